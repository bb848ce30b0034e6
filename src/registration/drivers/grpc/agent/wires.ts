import { ManagedCluster, ManagedClusterAddOn, ManifestWork } from '../../../../api/index.ts'
import { dataType, type DataType, type ReadEvent } from '../../../../events/index.ts'
import { CertificateSigningRequest, Lease, type KubeObject, type Resource } from '../../../../kube/index.ts'
import { timestamp } from '../../../../runtime/index.ts'
import type { Seen, Wire } from './feed.ts'

/** Kinds that travel as they are. */
const plain = <T extends KubeObject>(type: DataType): Wire<T> => ({
  dataType: type,
  idOf: ({ metadata }) => metadata.name!,
  heldVersion: ({ metadata }) => Math.floor(Number(metadata.resourceVersion ?? 0)),
  read: (event, known): Seen<T> => {
    const data = event.data() as T | undefined
    const object = data ?? (known && event.deletedAt !== undefined ? deleting(known, event.deletedAt) : undefined)
    if (event.action === 'delete_request' || (object && isGone(object)))
      return { gone: object?.metadata.uid ?? event.resourceId }
    return object && { object }
  },
})

const deleting = <T extends KubeObject>(object: T, at: number): T => ({
  ...object,
  metadata: { ...object.metadata, deletionTimestamp: timestamp(at) },
})

const isGone = ({ metadata }: KubeObject): boolean =>
  Boolean(metadata.deletionTimestamp) && !metadata.finalizers?.length

interface Bundle {
  manifests?: NonNullable<ManifestWork['spec']['workload']>['manifests']
  deleteOption?: ManifestWork['spec']['deleteOption']
  manifestConfigs?: ManifestWork['spec']['manifestConfigs']
  executer?: ManifestWork['spec']['executor']
}

/** Works: what is wanted comes as a bundle, and never how it went, since we have said so ourselves. */
const works: Wire<ManifestWork> = {
  dataType: dataType.manifestBundles,
  idOf: ({ metadata }) => metadata.uid!,
  heldVersion: ({ metadata }) => metadata.generation ?? 0,
  read: (event, known): Seen<ManifestWork> => {
    const metadata = event.metadata() as ManifestWork['metadata'] | undefined
    // In a resync, hubs of the field say this also of what is only being deleted, and waits for us.
    if (event.action === 'delete_request' && !(metadata && isListed(metadata))) return { gone: event.resourceId }
    const base = metadata ?? known?.metadata
    if (!base) return undefined
    const bundle = event.data() as Bundle | undefined
    const spec = bundle ? specOf(bundle) : (known?.spec ?? {})
    const uid = base.uid ?? event.resourceId
    const deletionTimestamp = event.deletedAt === undefined ? undefined : timestamp(event.deletedAt)
    const generation = generationOf(event) ?? base.generation
    const resourceVersion = versionOf({ ...base, uid, generation }, known?.metadata)
    const own = { ...base, uid, generation, resourceVersion, ...(deletionTimestamp ? { deletionTimestamp } : {}) }
    const status = known?.metadata.uid === uid ? known?.status : undefined
    const object = { metadata: own, spec, ...(status ? { status } : {}) } as ManifestWork
    return isGone(object) ? { gone: uid } : { object }
  },
}

/** Hubs of the field put the generation where the version is into what they list for a resync. */
const isListed = ({ resourceVersion, generation }: ManifestWork['metadata']): boolean =>
  generation !== undefined && resourceVersion === String(generation)

/** Its version; what has a generation that is new to us is newer than what we know, even where it was listed without one. */
const versionOf = (now: ManifestWork['metadata'], known: ManifestWork['metadata'] | undefined): string | undefined =>
  isListed(now) && known?.uid === now.uid && now.generation! > (known?.generation ?? 0)
    ? String(Math.max(Math.floor(Number(known?.resourceVersion ?? 0)) + 1, now.generation!))
    : now.resourceVersion

const generationOf = ({ resourceVersion }: ReadEvent): number | undefined =>
  typeof resourceVersion === 'number' ? resourceVersion : undefined

const specOf = ({ manifests, deleteOption, manifestConfigs, executer }: Bundle): ManifestWork['spec'] => ({
  workload: { manifests: manifests ?? [] },
  ...(deleteOption ? { deleteOption } : {}),
  ...(manifestConfigs ? { manifestConfigs } : {}),
  ...(executer ? { executor: executer } : {}),
})

/** What an agent reads and writes on its hub. Everything else stays out of reach. */
const wires = new Map<string, Wire<KubeObject>>([
  [idOf(ManagedCluster), plain(dataType.managedClusters)],
  [idOf(CertificateSigningRequest), plain(dataType.certificateSigningRequests)],
  [idOf(ManagedClusterAddOn), plain(dataType.addOns)],
  // Only to say there that the hub is too old for us.
  [idOf(ManagedClusterAddOn.versions.v1alpha1), plain(dataType.addOnsAlpha)],
  [idOf(Lease), plain(dataType.leases)],
  [idOf(ManifestWork), works],
])

function idOf({ group, version, plural }: Pick<Resource, 'group' | 'version' | 'plural'>): string {
  return `${group}/${version}/${plural}`
}

export const wireFor = <T extends KubeObject>(resource: Resource<T>): Wire<T> | undefined =>
  wires.get(idOf(resource)) as Wire<T> | undefined
