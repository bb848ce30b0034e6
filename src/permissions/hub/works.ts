import { isDeepStrictEqual } from 'node:util'
import { ClusterPermission, ClusterSetPermission, ManifestWork, type ManagedCluster } from '../../api/index.ts'
import { isAlreadyExists, keyOf, type KubeObject } from '../../kube/index.ts'
import { contains, controllerOf, ownerReference, type ConditionState } from '../../runtime/index.ts'
import { manifestBytesLimit, workAgentExecutor } from '../../work/contract.ts'
import { permissionLabel, WorkCreated, workNameOf } from '../contract.ts'
import { accountPlaces, type Hub } from './hub.ts'
import type { CopiedRole } from './hub-roles.ts'
import { payloadOf, type Payload, type Recipe } from './payload.ts'
import { tooLarge } from './webhooks.ts'

const kinds = { ClusterPermission, ClusterSetPermission }

/** Whose rights are delivered. */
export interface Owner {
  readonly kind: Recipe['kind']
  readonly object: KubeObject
}

/** The key of a permission's work on one cluster. */
export const workKey = ({ object }: Owner, cluster: string): string =>
  `${cluster}/${workNameOf(object.metadata.name!, object.metadata.uid!)}`

/** The newest state of it that we know. */
export const workOf = (hub: Hub, owner: Owner, cluster: string): ManifestWork | undefined =>
  hub.written.of(workKey(owner, cluster), hub.works.get(workKey(owner, cluster)))

/** Why a cluster gets nothing now, whatever the permission says; what it has is the farewell's concern. */
export const clusterAway = (name: string, cluster: ManagedCluster | undefined): ConditionState | undefined => {
  if (!cluster || cluster.metadata.deletionTimestamp)
    return WorkCreated.clusterAway(`cluster ${name} is leaving: nothing is delivered any more`)
  if (!cluster.spec.hubAcceptsClient)
    return WorkCreated.clusterAway(`cluster ${name} is not accepted: accept it, and it is delivered`)
  return undefined
}

/** What became of a delivery. */
export interface Delivery {
  readonly state: ConditionState
  readonly work?: ManifestWork | undefined
}

/** Brings the work of a permission to what it should be. Nothing is sent when it is. */
export const deliver = async (
  hub: Hub,
  owner: Owner,
  of: { cluster: string; spec: Recipe['spec']; copies: readonly CopiedRole[] },
  signal: AbortSignal,
): Promise<Delivery> => {
  const { cluster, spec, copies } = of
  const { metadata } = owner.object
  const payload = payloadOf({
    kind: owner.kind,
    metadata,
    spec,
    copies,
    accountNamespace: accountPlaces(hub, cluster),
  })
  if (payload.bytes > manifestBytesLimit) {
    await withdraw(hub, owner, cluster, signal)
    return { state: WorkCreated.tooLarge(tooLarge(payload.bytes)) }
  }
  if (payload.spec.workload?.manifests?.length === 0) {
    await withdraw(hub, owner, cluster, signal)
    const why = 'there is nothing to deliver: all that it names is missing; the other conditions say what'
    return { state: WorkCreated.empty(why) }
  }
  const work = await put(hub, owner, cluster, payload, signal)
  return { state: WorkCreated.created(`ManifestWork ${keyOf(work)} holds it`), work }
}

const put = async (
  hub: Hub,
  owner: Owner,
  cluster: string,
  payload: Payload,
  signal: AbortSignal,
): Promise<ManifestWork> => {
  const { name, uid } = owner.object.metadata
  const desired: ManifestWork = {
    metadata: {
      name: workNameOf(name!, uid!),
      namespace: cluster,
      labels: { [permissionLabel]: uid! },
      ownerReferences: [ownerReference(owner.object, kinds[owner.kind], { controller: true })],
    },
    // As it comes back from the server: without what is undefined.
    spec: JSON.parse(JSON.stringify(payload.spec)) as ManifestWork['spec'],
  }
  const objects = hub.client.of(ManifestWork, cluster)
  const write = { fieldManager: 'lanyard-permissions', signal }
  let present = workOf(hub, owner, cluster)
  if (!present) {
    try {
      return hub.written.wrote(keyOf(desired), undefined, await objects.create(desired, write))
    } catch (error) {
      if (!isAlreadyExists(error)) throw error
      // Somebody took our label off it, or the cache is behind.
      present = await objects.get(desired.metadata.name!, { signal })
    }
  }
  // One that is on its way out is made anew when it is gone.
  if (present.metadata.deletionTimestamp || isAsWanted(present, desired)) return present
  const { executor } = present.spec
  const next: ManifestWork = {
    ...present,
    metadata: {
      ...present.metadata,
      labels: { ...present.metadata.labels, ...desired.metadata.labels },
      ownerReferences: desired.metadata.ownerReferences,
    },
    spec: isWorkAgent(executor) ? { ...desired.spec, executor } : desired.spec,
  }
  return hub.written.wrote(keyOf(desired), present, await objects.update(next, write))
}

// To the letter: a strategy or a delete option that somebody added would undo the protection.
const isAsWanted = (present: ManifestWork, desired: ManifestWork): boolean => {
  const { executor, ...spec } = present.spec
  return (
    (executor === undefined || isWorkAgent(executor)) &&
    isDeepStrictEqual(spec, desired.spec) &&
    contains(present.metadata.labels, desired.metadata.labels) &&
    isDeepStrictEqual(controllerOf(present), desired.metadata.ownerReferences?.[0])
  )
}

/** With the gate NilExecutorValidating, admission has written the work agent into the work. */
const isWorkAgent = (executor: ManifestWork['spec']['executor']): boolean =>
  isDeepStrictEqual(executor, workAgentExecutor)

/** Takes back what a permission delivered to a cluster. */
export const withdraw = async (hub: Hub, owner: Owner, cluster: string, signal: AbortSignal): Promise<void> => {
  const work = workOf(hub, owner, cluster)
  if (!work || work.metadata.deletionTimestamp) return
  const { name, uid } = work.metadata
  await hub.client.of(ManifestWork, cluster).delete(name!, { preconditions: { uid }, signal })
  hub.written.forget(keyOf(work))
}
