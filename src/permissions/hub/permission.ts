import { ClusterPermission } from '../../api/index.ts'
import type { KubeObject } from '../../kube/index.ts'
import { controllerOf, watching, type ConditionState, type Reconcile } from '../../runtime/index.ts'
import { accountsOf } from '../bindings.ts'
import { SubjectPresent, Valid, WorkCreated } from '../contract.ts'
import { faultsOf, hasNoBindings } from '../faults.ts'
import { authorize, type Decision } from './authorization.ts'
import { accountPlaces, index, isOtherCluster, type Hub } from './hub.ts'
import { copiesOf, isAffected, missingRoles, type CopiedRole } from './hub-roles.ts'
import { report } from './report.ts'
import { clusterAway, deliver, withdraw, workKey, workOf, type Delivery, type Owner } from './works.ts'

/** Turns ClusterPermissions into ManifestWorks, and reports what became of them. */
export const clusterPermissions = (hub: Hub): void => {
  const keys = (permissions: readonly ClusterPermission[]): string[] =>
    permissions.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`)
  const inNamespace = ({ metadata }: KubeObject): string[] =>
    keys(hub.permissions.list(metadata.namespace ?? metadata.name))
  const ownerOf = (work: KubeObject): string[] => {
    const owner = controllerOf(work)
    return owner?.kind === ClusterPermission.kind ? [`${work.metadata.namespace}/${owner.name}`] : []
  }
  hub.manager.controller({
    name: 'cluster-permission',
    workers: 16,
    reconcile: reconcile(hub),
    watches: [
      watching(hub.permissions),
      watching(hub.works, ownerOf),
      watching(hub.clusters, inNamespace, isOtherCluster),
      watching(hub.accounts, inNamespace),
      watching(hub.addOns, inNamespace, (now, old) => now.status?.namespace !== old?.status?.namespace),
      watching(hub.clusterRoles, (role) =>
        keys(hub.permissions.by(index.roleRef, 'ClusterRole').filter(({ spec }) => isAffected(spec, role, hub))),
      ),
      watching(hub.roles, ({ metadata }) =>
        keys(hub.permissions.by(index.roleRef, `Role ${metadata.namespace}/${metadata.name}`)),
      ),
    ],
  })
}

const reconcile =
  (hub: Hub): Reconcile =>
  async (key, signal) => {
    const permission = hub.permissions.get(key)
    // The garbage collector takes the work with it.
    if (!permission || permission.metadata.deletionTimestamp) return {}
    const owner: Owner = { kind: 'ClusterPermission', object: permission }
    try {
      const { copies, missing } = copiesOf(permission.spec ?? {}, hub)
      const fault = faultState(hub, permission)
      const decision = await authorize(hub, permission, copies, signal)
      const delivery = await bring(hub, owner, permission, { copies, fault, decision }, signal)
      const valid = fault ?? (missing.length ? Valid.noRole(missingRoles(missing)) : Valid.yes())
      const states = [valid, decision.state, delivery.state, subjectState(hub, permission)]
      await report(hub, permission, { states, decision, work: delivery.work }, signal)
      return {}
    } catch (error) {
      // Only the caches are believed now: what we wrote may be gone again.
      hub.written.forget(workKey(owner, permission.metadata.namespace!))
      throw error
    }
  }

const bring = async (
  hub: Hub,
  owner: Owner,
  permission: ClusterPermission,
  { copies, fault, decision }: { copies: readonly CopiedRole[]; fault: ConditionState | undefined; decision: Decision },
  signal: AbortSignal,
): Promise<Delivery> => {
  const { namespace: cluster = '' } = permission.metadata
  const away = clusterAway(cluster, hub.clusters.get(cluster))
  if (away && !fault) return { state: away, work: workOf(hub, owner, cluster) }
  if (!fault && decision.granted) return deliver(hub, owner, { cluster, spec: permission.spec ?? {}, copies }, signal)
  // What an older controller delivered is not taken away from one day to the next: only what we have dealt with before.
  if (permission.status?.authorization) await withdraw(hub, owner, cluster, signal)
  return {
    state: WorkCreated.withheld(
      fault ? 'it is not valid: Validation says why' : 'it waits for approval: Authorized says why',
    ),
  }
}

/** What is wrong whatever the hub has; admission refuses most of it, but not what was there before. */
const faultState = (hub: Hub, { metadata, spec = {} }: ClusterPermission): ConditionState | undefined => {
  if (!hub.clusters.get(metadata.namespace!))
    return Valid.notACluster(
      `namespace value is not a managed cluster: ${metadata.namespace} belongs to none; move it to the namespace that has the name of its cluster`,
    )
  const faults = faultsOf(metadata.name!, spec)
  if (faults.length === 0) return undefined
  const message = faults.map((fault) => `${fault.field}: ${fault.message}`).join('; ')
  return hasNoBindings(spec) ? Valid.noBindings(message) : Valid.fault(message)
}

const subjectState = (hub: Hub, { metadata, spec = {} }: ClusterPermission): ConditionState => {
  const { namespace = '', name = '' } = metadata
  const placeOf = accountPlaces(hub, namespace)
  const missing = accountsOf(name, spec).filter((account) => placeOf(account) === undefined)
  if (missing.length === 0) return SubjectPresent.present()
  return SubjectPresent.missing(
    `there is no ManagedServiceAccount ${missing.join(', ')} in namespace ${namespace}: its bindings are not delivered until there is`,
  )
}
