import { finalizer, label, ManagedClusterAddOn, ManifestWork, type ManagedCluster } from '../../api/index.ts'
import { ClusterRole, ClusterRoleBinding, keyOf, Namespace, RoleBinding, type KubeObject } from '../../kube/index.ts'
import { applySet, inParallel, type ApplyTarget, type Informer } from '../../runtime/index.ts'
import { rbac } from '../contract.ts'
import { unlessGone } from './cluster-writes.ts'
import type { Hub } from './hub.ts'
import { everyPermissionOf } from './permissions.ts'
import { nameRefusal } from './reserved-names.ts'
import { hasReached, UnseenWrites, type Seen } from './unseen-writes.ts'

/** What the hub keeps for clusters, as the caches show it, and what was written and is not there yet. */
export interface Records extends Hub {
  readonly namespaces: Informer<Namespace>
  readonly clusterRoles: Informer<ClusterRole>
  readonly clusterRoleBindings: Informer<ClusterRoleBinding>
  readonly roleBindings: Informer<RoleBinding>
  readonly works: Informer<KubeObject>
  readonly addOns: Informer<KubeObject>
  readonly unseen: UnseenWrites
}

/** Which way the hub was going when it wrote. */
export type Intent = 'accept' | 'farewell'

// Add-ons label their own RBAC with the cluster's name too; that is not ours to look at.
const ofClusters = { labelSelector: `${label.clusterName},!${label.addOnName}` }

/** Where people say in which order works and add-ons go: 0 to 100, the smallest first. */
export const cleanupPriority = 'open-cluster-management.io/cleanup-priority'

// Works are counted and removed here, never read: of thousands, each costs a few hundred bytes.
const outline = ({ metadata }: KubeObject): KubeObject => {
  const { name, namespace, uid, resourceVersion, deletionTimestamp, finalizers, annotations } = metadata
  const priority = annotations?.[cleanupPriority]
  return {
    metadata: {
      name,
      namespace,
      uid,
      resourceVersion,
      ...(deletionTimestamp ? { deletionTimestamp } : {}),
      ...(finalizers ? { finalizers } : {}),
      ...(priority === undefined ? {} : { annotations: { [cleanupPriority]: priority } }),
    },
  }
}

export const recordsOf = (hub: Hub): Records => {
  const outlines = { metadataOnly: true, transform: outline }
  return {
    ...hub,
    namespaces: hub.manager.informer(Namespace, { labelSelector: label.clusterName, metadataOnly: true }),
    clusterRoles: hub.manager.informer(ClusterRole, ofClusters),
    clusterRoleBindings: hub.manager.informer(ClusterRoleBinding, ofClusters),
    roleBindings: hub.manager.informer(RoleBinding, ofClusters),
    works: hub.manager.informer<KubeObject>(ManifestWork, outlines),
    addOns: hub.manager.informer<KubeObject>(ManagedClusterAddOn, outlines),
    unseen: new UnseenWrites(),
  }
}

const targetsOf = (records: Records): ApplyTarget[] => [
  { resource: ClusterRole, cache: records.clusterRoles },
  { resource: ClusterRoleBinding, cache: records.clusterRoleBindings },
  { resource: RoleBinding, cache: records.roleBindings },
]

/** The RBAC objects of a cluster that the caches show, whether it should have them or not. */
export const permissionsInPlace = (records: Records, cluster: string): KubeObject[] =>
  // Under a reserved name there may be something that all clusters share.
  (nameRefusal(cluster) ? [] : everyPermissionOf(cluster)).flatMap(({ apiVersion, kind, metadata }) => {
    const cached = cacheOf(records, kind)?.get(keyOf({ metadata }))
    return cached ? [{ ...cached, apiVersion, kind }] : []
  })

const cacheOf = (records: Records, kind: string | undefined): ApplyTarget['cache'] | undefined =>
  targetsOf(records).find(({ resource }) => resource.kind === kind)?.cache

/** Makes the desired permissions the only ones that the cluster has, besides those `kept`, all at once. Nothing is sent when they are. */
export const applyPermissions = async (
  records: Records,
  cluster: string,
  desired: readonly KubeObject[],
  { intent, kept = [], signal }: { intent: Intent; kept?: readonly string[]; signal: AbortSignal },
): Promise<void> => {
  const wanted = new Set(desired.map((object) => `${object.kind} ${keyOf(object)}`))
  const isObsolete = (object: KubeObject): boolean =>
    !wanted.has(`${object.kind} ${keyOf(object)}`) && !kept.includes(object.metadata.name!)
  const obsolete = permissionsInPlace(records, cluster).filter(isObsolete)
  const before = new Map(
    [...desired, ...obsolete].map((object) => {
      const cache = cacheOf(records, object.kind)!
      const version = cache.get(keyOf(object))?.metadata.resourceVersion
      const seen: Seen = () => cache.get(keyOf(object))?.metadata.resourceVersion !== version
      return [`${object.kind} ${keyOf(object)}`, seen]
    }),
  )
  const options = { client: records.client, targets: targetsOf(records), fieldManager: 'lanyard', signal }
  const held = obsolete.filter((object) => object.metadata.finalizers?.length)
  const changes = new Map<string, unknown>()
  await inParallel(16, [
    // Neither waits for the other: what can be revoked is revoked, whatever happens to the rest.
    async () => {
      const free = obsolete.filter((object) => !held.includes(object))
      for (const [id, change] of await applySet(desired, { ...options, obsolete: free })) changes.set(id, change)
    },
    ...held.map((object) => async () => {
      await letGo(records, object, signal)
      for (const [id, change] of await applySet([], { ...options, obsolete: [object] })) changes.set(id, change)
    }),
  ])
  const unseen = [...changes.keys()].flatMap((id) => before.get(id) ?? [])
  records.unseen.wrote(cluster, intent, records.clock.now(), unseen)
}

/** Takes the finalizer off a binding that was to outlive its deletion. */
export const letGo = async (records: Records, binding: KubeObject, signal: AbortSignal): Promise<void> => {
  const present = binding.metadata.finalizers ?? []
  if (!present.includes(finalizer.manifestWork)) return
  const json = [
    { op: 'test', path: '/metadata/uid', value: binding.metadata.uid },
    { op: 'test', path: '/metadata/finalizers', value: present },
    { op: 'replace', path: '/metadata/finalizers', value: present.filter((f) => f !== finalizer.manifestWork) },
  ]
  await records.client
    .of(RoleBinding, binding.metadata.namespace)
    .patch(binding.metadata.name!, { json }, { signal })
    .catch(unlessGone)
}

/** Remembers that the cluster itself was written, so that the next look waits for the cache to show it. */
export const wroteCluster = (
  records: Records,
  intent: Intent,
  before: ManagedCluster,
  written: ManagedCluster,
): void => {
  if (before === written) return
  const { name } = before.metadata
  const seen: Seen = () => {
    const cached = records.clusters.get(name!)
    return !cached || hasReached(cached.metadata.resourceVersion, written.metadata.resourceVersion)
  }
  records.unseen.wrote(name!, intent, records.clock.now(), [seen])
}

/** The binding that lets the agent work on its works. */
export const workBindingOf = (records: Records, cluster: string): RoleBinding | undefined =>
  records.roleBindings.get(`${cluster}/${rbac.workBinding(cluster)}`)
