/**
 * ClusterProfiles of the cluster inventory API: feature gate ClusterProfile. Each namespace that is bound to a ManagedClusterSet
 * has one for every cluster of the set that the hub has accepted; it says where the cluster is, and that `lanyard token` gives
 * the credential.
 */
import {
  ClusterProfile,
  isMember,
  ManagedCluster,
  ManagedClusterSet,
  ManagedClusterSetBinding,
} from '../../api/index.ts'
import {
  apiVersionOf,
  CustomResourceDefinition,
  isAlreadyExists,
  KindMapper,
  parseKey,
  type Client,
  type KubeObject,
} from '../../kube/index.ts'
import {
  contains,
  equal,
  silentLogger,
  systemClock,
  watching,
  type Clock,
  type EventRecorder,
  type Informer,
  type Logger,
  type Manager,
  type Reconcile,
} from '../../runtime/index.ts'
import { isOurs, managerName, profileLabel, profileOf, statusOf } from './profile.ts'

export interface ProfileOptions {
  client: Client
  events: EventRecorder
  clock?: Clock | undefined
  log?: Logger | undefined
}

interface Room extends Required<Omit<ProfileOptions, 'clock' | 'log'>> {
  clock: Clock
  log: Logger
  clusters: Informer<ManagedCluster>
  sets: Informer<ManagedClusterSet>
  bindings: Informer<ManagedClusterSetBinding>
  profiles: Informer<ClusterProfile>
}

/** Whether ClusterProfiles are served. With `install` the kind is put there where nobody has: never over another's. */
export const ensureProfileKind = async (
  client: Client,
  { install, signal }: { install: boolean; signal: AbortSignal },
): Promise<void> => {
  const served = (): Promise<unknown> =>
    new KindMapper(client).find({ apiVersion: apiVersionOf(ClusterProfile), kind: ClusterProfile.kind }, { signal })
  if (await served()) return
  if (!install)
    throw new Error(
      'the feature gate ClusterProfile is on, and this hub does not serve clusterprofiles.multicluster.x-k8s.io: apply the CRD of the cluster inventory API, or config/crds/borrowed/clusterprofiles.multicluster.x-k8s.io.yaml',
    )
  const definitions = client.of(CustomResourceDefinition)
  await definitions.create(ClusterProfile.crd({ conversion: 'none' }), { signal }).catch((error: unknown) => {
    if (!isAlreadyExists(error)) throw error
  })
  const name = `${ClusterProfile.plural}.${ClusterProfile.group}`
  for await (const batch of await definitions.watch({ fieldSelector: `metadata.name=${name}`, signal })) {
    const isEstablished = batch.some(
      ({ type, object }) =>
        type !== 'BOOKMARK' &&
        object.status?.conditions?.some((one) => one.type === 'Established' && one.status === 'True'),
    )
    if (isEstablished) return
  }
}

const byCluster = 'cluster'

/** Adds the controller that keeps them to the manager. */
export const startProfiles = (manager: Manager, options: ProfileOptions): void => {
  const { client, events, clock = systemClock, log = silentLogger } = options
  const room: Room = {
    client,
    events,
    clock,
    log,
    clusters: manager.informer(ManagedCluster),
    sets: manager.informer(ManagedClusterSet),
    bindings: manager.informer(ManagedClusterSetBinding),
    profiles: manager.informer(ClusterProfile, { indexes: { [byCluster]: ({ metadata }) => [metadata.name!] } }),
  }
  const namesOf = (objects: readonly KubeObject[]): string[] => objects.map(({ metadata }) => metadata.name!)
  const placesOf = (cluster: string): string[] => {
    const places = [...room.bindings.list(), ...room.profiles.by(byCluster, cluster)].map(
      ({ metadata }) => metadata.namespace!,
    )
    return [...new Set(places)].map((namespace) => `${namespace}/${cluster}`)
  }
  const allIn = (namespace: string): string[] =>
    [...new Set([...namesOf(room.clusters.list()), ...namesOf(room.profiles.list(namespace))])].map(
      (name) => `${namespace}/${name}`,
    )
  const boundTo = (set: string): string[] =>
    room.bindings.list().flatMap(({ metadata, spec }) => (spec.clusterSet === set ? [metadata.namespace!] : []))
  manager.controller({
    name: 'cluster-profile',
    workers: 8,
    reconcile: reconcile(room),
    watches: [
      watching(room.profiles),
      watching(room.clusters, ({ metadata }) => placesOf(metadata.name!)),
      watching(room.bindings, ({ metadata }) => allIn(metadata.namespace!), isOtherSpec),
      watching(room.sets, ({ metadata }) => boundTo(metadata.name!).flatMap(allIn), isOtherSpec),
    ],
  })
}

const isOtherSpec = (now: KubeObject, old?: KubeObject): boolean =>
  !old || now.metadata.generation !== old.metadata.generation || now.metadata.deletionTimestamp !== undefined

const fieldManager = 'lanyard-cluster-profile'

const reconcile =
  (room: Room): Reconcile =>
  async (key, signal) => {
    const { namespace = '', name } = parseKey(key)
    const cluster = room.clusters.get(name)
    const present = room.profiles.get(key)
    const profiles = room.client.of(ClusterProfile, namespace)
    if (!cluster || !isWanted(room, namespace, cluster)) {
      if (present && isOurs(present) && !present.metadata.deletionTimestamp)
        await profiles.delete(name, { preconditions: { uid: present.metadata.uid }, signal })
      return {}
    }
    const wanted = profileOf(namespace, cluster)
    if (!present) {
      await profiles.create(wanted, { fieldManager, signal }).catch((error: unknown) => {
        if (!isAlreadyExists(error)) throw error // the cache is behind: its news bring us here again
      })
      return {}
    }
    if (!isKept(present)) return refuse(room, present)
    // One that the cluster no longer has is taken off as well.
    const labels = { [profileLabel.clusterSet]: null, ...wanted.metadata.labels }
    const isLabelled = Object.entries(labels).every(
      ([one, value]) => (present.metadata.labels?.[one] ?? null) === value,
    )
    if (!isLabelled || !contains(present.spec, wanted.spec)) {
      const merge = { metadata: { labels }, spec: { displayName: wanted.spec.displayName } }
      await profiles.patch(name, { merge }, { fieldManager, signal })
      return {}
    }
    const status = statusOf(present, cluster, room.clock.now())
    if (equal({ ...present.status, ...status }, present.status)) return {}
    const { uid, resourceVersion } = present.metadata
    await profiles.patch(
      name,
      { merge: { metadata: { uid, resourceVersion }, status } },
      { subresource: 'status', fieldManager, signal },
    )
    return {}
  }

/** A namespace wants the clusters of the sets that it is bound to; the hub vouches only for those that it has accepted. */
const isWanted = ({ bindings, sets }: Room, namespace: string, cluster: ManagedCluster): boolean =>
  cluster.spec.hubAcceptsClient === true &&
  !cluster.metadata.deletionTimestamp &&
  bindings.list(namespace).some(({ metadata, spec }) => {
    const set = sets.get(spec.clusterSet)
    return set !== undefined && !metadata.deletionTimestamp && isMember(set, cluster)
  })

/** Ours, though somebody may have taken labels off it. */
const isKept = ({ spec }: ClusterProfile): boolean => spec.clusterManager.name === managerName

const refuse = ({ events, log }: Room, present: ClusterProfile): Record<string, never> => {
  const { name, namespace } = present.metadata
  const message = `ClusterProfile ${namespace}/${name} belongs to cluster manager ${present.spec.clusterManager.name}: it is left alone, and managed cluster ${name} has none there until it is removed`
  log.warn(message)
  const { kind } = ClusterProfile
  events.record(
    { ...present, apiVersion: apiVersionOf(ClusterProfile), kind },
    { type: 'Warning', reason: 'NameTaken', action: 'Keep', note: message },
  )
  return {}
}
