import { isDeepStrictEqual } from 'node:util'
import { ClusterSetPermission, isMember } from '../../api/index.ts'
import { parseKey, type KubeObject } from '../../kube/index.ts'
import { controllerOf, setConditions, watching, type ConditionState, type Reconcile } from '../../runtime/index.ts'
import { accountsOf } from '../bindings.ts'
import { SubjectPresent, Valid, WorkApplied, WorkCreated } from '../contract.ts'
import { faultsOf } from '../faults.ts'
import { authorize, printOf } from './authorization.ts'
import { accountPlaces, index, isOtherCluster, type Hub } from './hub.ts'
import { copiesOf, isAffected, missingRoles } from './hub-roles.ts'
import { noGrant } from './report.ts'
import { appliedState, isApplied } from './status.ts'
import { clusterAway, deliver, withdraw, workKey, workOf, type Owner } from './works.ts'

/** Delivers ClusterSetPermissions to each cluster of their set: one controller decides and reports, the other delivers cluster by cluster. */
export const clusterSetPermissions = (hub: Hub): void => {
  const names = (permissions: readonly ClusterSetPermission[]): string[] =>
    permissions.map(({ metadata }) => metadata.name!)
  const all = (): string[] => names(hub.setPermissions.list())
  const ofSet = ({ metadata }: KubeObject): string[] =>
    names(hub.setPermissions.list().filter(({ spec }) => spec.clusterSet === metadata.name))
  const ownerOf = (work: KubeObject): string[] => {
    const owner = controllerOf(work)
    return owner?.kind === ClusterSetPermission.kind ? [owner.name] : []
  }
  hub.manager.controller({
    name: 'cluster-set-permission',
    reconcile: decide(hub),
    watches: [
      watching(hub.setPermissions),
      watching(hub.sets, ofSet),
      watching(hub.clusters, all, isOtherCluster),
      watching(hub.works, ownerOf),
      watching(hub.accounts, all),
      watching(hub.clusterRoles, (role) =>
        names(
          hub.setPermissions
            .by(index.roleRef, 'ClusterRole')
            .filter(({ spec }) => isAffected(spec.permission, role, hub)),
        ),
      ),
      watching(hub.roles, ({ metadata }) =>
        names(hub.setPermissions.by(index.roleRef, `Role ${metadata.namespace}/${metadata.name}`)),
      ),
    ],
  })

  const everywhere = (permissions: readonly string[]): string[] =>
    permissions.flatMap((name) => hub.clusters.list().map(({ metadata }) => `${metadata.name}/${name}`))
  const here = (cluster: string): string[] => all().map((name) => `${cluster}/${name}`)
  const hereOf = ({ metadata }: KubeObject): string[] => here(metadata.namespace!)
  hub.manager.controller({
    name: 'cluster-set-delivery',
    workers: 16,
    reconcile: deliverTo(hub),
    watches: [
      watching(hub.setPermissions, ({ metadata }) => everywhere([metadata.name!]), isOtherGrant),
      watching(hub.sets, (set) => everywhere(ofSet(set))),
      watching(hub.clusters, ({ metadata }) => here(metadata.name!), isOtherCluster),
      watching(hub.works, (work) => ownerOf(work).map((name) => `${work.metadata.namespace}/${name}`)),
      watching(hub.accounts, hereOf),
      watching(hub.addOns, hereOf, (now, old) => now.status?.namespace !== old?.status?.namespace),
    ],
  })
}

const isOtherGrant = (now: ClusterSetPermission, old?: ClusterSetPermission): boolean =>
  !old ||
  now.metadata.generation !== old.metadata.generation ||
  !isDeepStrictEqual(now.status?.authorization, old.status?.authorization)

const faultState = (hub: Hub, { metadata, spec }: ClusterSetPermission): ConditionState | undefined => {
  if (!hub.sets.get(spec.clusterSet))
    return Valid.noSet(`there is no ManagedClusterSet ${spec.clusterSet}: create it, or correct spec.clusterSet`)
  const faults = faultsOf(metadata.name!, spec.permission, 'spec.permission')
  return faults.length ? Valid.fault(faults.map(({ field, message }) => `${field}: ${message}`).join('; ')) : undefined
}

/** Whether one cluster should have it now. A role of the hub that changed a moment ago waits for the decision about it. */
const deliverTo =
  (hub: Hub): Reconcile =>
  async (key, signal) => {
    const { namespace: clusterName = '', name } = parseKey(key)
    const permission = hub.setPermissions.get(name)
    if (!permission || permission.metadata.deletionTimestamp) return {}
    const cluster = hub.clusters.get(clusterName)
    if (!cluster || clusterAway(clusterName, cluster)) return {}
    const owner: Owner = { kind: 'ClusterSetPermission', object: permission }
    const set = hub.sets.get(permission.spec.clusterSet)
    const { copies } = copiesOf(permission.spec.permission, hub)
    const { granted, wanted } = permission.status?.authorization ?? {}
    try {
      if (!set || !isMember(set, cluster) || faultState(hub, permission) || !granted)
        await withdraw(hub, owner, clusterName, signal)
      else if (granted === wanted && granted === printOf(permission, copies))
        await deliver(hub, owner, { cluster: clusterName, spec: permission.spec.permission, copies }, signal)
      return {}
    } catch (error) {
      hub.written.forget(workKey(owner, clusterName))
      throw error
    }
  }

/** How often counts are written: while a hundred clusters report, nobody reads each number. */
const countEveryMs = 1000
const mostTroubles = 50

type Status = NonNullable<ClusterSetPermission['status']>

const decide = (hub: Hub): Reconcile => {
  const writtenAt = new Map<string, number>()
  return async (name, signal) => {
    const permission = hub.setPermissions.get(name)
    if (!permission || permission.metadata.deletionTimestamp) {
      writtenAt.delete(name)
      return {}
    }
    const { copies, missing } = copiesOf(permission.spec.permission, hub)
    const decision = await authorize(hub, permission, copies, signal)
    const fault = faultState(hub, permission)
    const valid = fault ?? (missing.length ? Valid.noRole(missingRoles(missing)) : Valid.yes())
    const { states, ...counts } = fleetState(hub, permission, !fault && decision.granted)
    const now = hub.clock.now()
    const { generation, uid, resourceVersion } = permission.metadata
    const status: Status = {
      conditions: setConditions(permission.status?.conditions, [valid, decision.state, ...states], { now, generation }),
      authorization: decision.authorization,
      ...counts,
    }
    const present = permission.status
    if (isDeepStrictEqual(JSON.parse(JSON.stringify(status)), present)) return {}
    const isUrgent = !isDeepStrictEqual(present?.authorization, status.authorization)
    const wait = (writtenAt.get(name) ?? 0) + countEveryMs - now
    if (!isUrgent && wait > 0) return { requeueAfterMs: wait }
    const merge = {
      metadata: { uid, resourceVersion },
      status: { ...status, authorization: { ...noGrant, ...status.authorization } },
    }
    await hub.client
      .of(ClusterSetPermission)
      .patch(name, { merge }, { subresource: 'status', fieldManager: 'lanyard-permissions', signal })
    writtenAt.set(name, now)
    return {}
  }
}

/** How far it is on the clusters of the set. */
const fleetState = (
  hub: Hub,
  permission: ClusterSetPermission,
  delivers: boolean,
): Required<Pick<Status, 'clusters' | 'troubles'>> & { states: ConditionState[] } => {
  const owner: Owner = { kind: 'ClusterSetPermission', object: permission }
  const set = hub.sets.get(permission.spec.clusterSet)
  const members = set
    ? hub.clusters.list().filter((one) => isMember(set, one) && !clusterAway(one.metadata.name!, one))
    : []
  const accounts = accountsOf(permission.metadata.name!, permission.spec.permission)
  const without: string[] = []
  const troubles: NonNullable<Status['troubles']> = []
  let [delivered, applied] = [0, 0]
  for (const { metadata } of members.toSorted((a, b) => (a.metadata.name! < b.metadata.name! ? -1 : 1))) {
    const cluster = metadata.name!
    const work = workOf(hub, owner, cluster)
    if (work) delivered++
    if (work && isApplied(work)) applied++
    else if (delivers && troubles.length < mostTroubles) {
      const { reason, message } = appliedState(work)
      troubles.push({ cluster, reason, message })
    }
    if (accounts.some((account) => accountPlaces(hub, cluster)(account) === undefined)) without.push(cluster)
  }
  const counted = `${applied} of ${members.length} clusters`
  return {
    clusters: { selected: members.length, delivered, applied },
    troubles,
    states: [
      delivers
        ? WorkCreated.created(`${delivered} of ${members.length} clusters have a ManifestWork with it`)
        : WorkCreated.withheld('it is not delivered: Validation and Authorized say why'),
      applied === members.length && delivers
        ? WorkApplied.applied(`${counted} have applied it`)
        : WorkApplied.pending(`${counted} have applied it; status.troubles names the others`),
      without.length
        ? SubjectPresent.missing(
            `ManagedServiceAccount ${accounts.join(', ')} is missing on ${without.slice(0, 10).join(', ')}${without.length > 10 ? ` and ${without.length - 10} more` : ''}: its bindings are not delivered there until there is one`,
          )
        : SubjectPresent.present(),
    ],
  }
}
