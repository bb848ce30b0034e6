import { finalizer, group, ManifestWork } from '../../../../api/index.ts'
import { isConflict, isNotFound, type Condition } from '../../../../kube/index.ts'
import { equal, hasFinalizer } from '../../../../runtime/index.ts'
import { isRecord, invalid, mustBe, parsed, type Desk, type Publication, type Write } from './publication.ts'
import type { Version } from './turns.ts'

type Status = NonNullable<ManifestWork['status']>

/** How often a write is tried again that somebody else came before. */
const attempts = 4

/** What an agent says last: everything that the work made is gone. */
const isRemoved = (conditions: readonly Condition[]): boolean =>
  conditions.some(({ type, status }) => type === 'Deleted' && status === 'True')

/**
 * Writes how a work went. The work is looked for among those of the caller's own cluster by its UID; one that is gone is not
 * missed, and what is said of an earlier generation is over.
 */
export const reportWork: Write = async (desk, publication) => {
  const { event, who, cluster, session } = publication
  const generation = Number(event.resourceVersion)
  if (!event.resourceId) throw invalid('the attribute resourceid is missing: the UID of the work')
  if (!Number.isSafeInteger(generation)) throw invalid('the attribute resourceversion is not a generation')
  const status = statusIn(parsed(() => event.data()))
  const meta = parsed(() => event.metadata()) ?? {}
  if (!isRecord(meta)) throw invalid('the attribute metadata is not an object')
  if (meta.namespace !== undefined) mustBe('metadata.namespace', meta.namespace, cluster)
  const wish = { cluster, group: group.work, resource: 'manifestworks', namespace: cluster }
  await desk.access.demand(who, { ...wish, verb: 'update', subresource: 'status' })
  // With the cluster, which was just authorized: numbers that others make up for this UID are no business of its own agent.
  await desk.turns.run(`${cluster}/${event.resourceId}`, { number: event.sequenceId, session }, (left) =>
    act(desk, publication, { meta, status, generation, left }),
  )
}

interface Report {
  meta: Record<string, unknown>
  status: Status
  generation: number
  /** The version of the work after the report before this one. */
  left: Version
}

/** The version of the work afterwards. */
const act = async (
  desk: Desk,
  publication: Publication,
  { meta, status, generation, left }: Report,
): Promise<bigint> => {
  const { who, cluster } = publication
  const wish = { cluster, group: group.work, resource: 'manifestworks', namespace: cluster }
  const name = typeof meta.name === 'string' && meta.name ? meta.name : undefined
  let work = await find(desk, publication, name, { generation, left })
  for (let attempt = 1; work; attempt++) {
    if (name) mustBe('metadata.name', name, work.metadata.name!)
    try {
      const change = isRemoved(status.conditions ?? []) ? release(work) : holdAndReport(work, status, generation)
      // Letting go and taking hold change the work itself, which is another right.
      if (change.finalizers) {
        await desk.access.demand(who, { ...wish, verb: 'patch' })
        work = await writeFinalizers(desk, work, change.finalizers, publication)
      }
      if (change.status) work = await writeStatus(desk, work, change.status, publication)
      return versionOf(work)
    } catch (error) {
      if (isNotFound(error)) return 0n
      if (attempt >= attempts || !isConflict(error)) throw error
      work = await fresh(desk, publication, work.metadata.name!)
    }
  }
  return 0n
}

/** Resource versions of one kind grow (KEP-5504). */
const versionOf = ({ metadata }: ManifestWork): bigint => BigInt(metadata.resourceVersion ?? 0)

interface WorkChange {
  finalizers?: string[]
  status?: Status
}

const release = (work: ManifestWork): WorkChange =>
  work.metadata.deletionTimestamp && hasFinalizer(work, finalizer.manifestWork)
    ? { finalizers: work.metadata.finalizers!.filter((one) => one !== finalizer.manifestWork) }
    : {}

const holdAndReport = (work: ManifestWork, status: Status, generation: number): WorkChange => {
  if ((work.metadata.generation ?? 0) > generation) return {}
  const held = hasFinalizer(work, finalizer.manifestWork) || work.metadata.deletionTimestamp
  const merged = withTimes(status, work.status)
  return {
    ...(held ? {} : { finalizers: [...(work.metadata.finalizers ?? []), finalizer.manifestWork] }),
    ...(equal(merged, { conditions: [], resourceStatus: {}, ...work.status }) ? {} : { status: merged }),
  }
}

/** An agent that was restarted does not know since when a condition has been as it is; the hub does. */
const withTimes = (status: Status, known: Status | undefined): Status => {
  const timed = (now: Condition[] | undefined, before: Condition[] | undefined): Condition[] | undefined =>
    now?.map((one) => {
      const old = before?.find(({ type }) => type === one.type)
      return old?.status === one.status ? { ...one, lastTransitionTime: old.lastTransitionTime } : one
    })
  const place = ({ resourceMeta: m }: { resourceMeta: object }): string => JSON.stringify(m)
  const before = new Map(known?.resourceStatus?.manifests?.map((one) => [place(one), one]))
  const manifests = status.resourceStatus?.manifests?.map((one) => {
    const conditions = timed(one.conditions, before.get(place(one))?.conditions)
    return { ...one, ...(conditions ? { conditions } : {}) }
  })
  return {
    conditions: timed(status.conditions, known?.conditions) ?? [],
    resourceStatus: manifests ? { manifests } : {},
  }
}

const statusIn = (data: unknown): Status => {
  if (!isRecord(data)) throw invalid('the data is not the status of a manifest bundle')
  const { conditions = [], resourceStatus = [] } = data
  const lists = [conditions ?? [], resourceStatus ?? []]
  if (!lists.every((list) => Array.isArray(list) && list.every(isRecord)))
    throw invalid('conditions and resourceStatus are lists of objects')
  const [first, second] = lists as [Status['conditions'], NonNullable<Status['resourceStatus']>['manifests']]
  return { conditions: first, resourceStatus: { manifests: second } }
}

/** From the cache; from the server where the cache is behind what the agent knows, or behind what we have written ourselves. */
const find = async (
  desk: Desk,
  publication: Publication,
  name: string | undefined,
  { generation, left }: Pick<Report, 'generation' | 'left'>,
): Promise<ManifestWork | undefined> => {
  const { cluster, event } = publication
  const cached = desk.caches.works.list(cluster).find(({ metadata }) => metadata.uid === event.resourceId)
  const isCurrent = cached !== undefined && left !== undefined && versionOf(cached) >= left
  if (isCurrent && (cached.metadata.generation ?? 0) >= generation) return cached
  return name || cached ? fresh(desk, publication, cached?.metadata.name ?? name!) : undefined
}

const fresh = async (
  desk: Desk,
  { cluster, event, signal }: Publication,
  name: string,
): Promise<ManifestWork | undefined> => {
  const work = await desk.client.of(ManifestWork, cluster).find(name, { signal })
  return work?.metadata.uid === event.resourceId ? work : undefined
}

const writeFinalizers = (
  { client }: Desk,
  { metadata }: ManifestWork,
  finalizers: string[],
  { cluster, signal }: Publication,
): Promise<ManifestWork> => {
  const { uid, resourceVersion } = metadata
  const merge = { metadata: { uid, resourceVersion, finalizers } }
  return client.of(ManifestWork, cluster).patch(metadata.name!, { merge }, { fieldManager: 'lanyard-grpc', signal })
}

const writeStatus = (
  { client }: Desk,
  { metadata }: ManifestWork,
  status: Status,
  { cluster, signal }: Publication,
): Promise<ManifestWork> => {
  const { uid, resourceVersion } = metadata
  const merge = { metadata: { uid, resourceVersion }, status }
  return client
    .of(ManifestWork, cluster)
    .patch(metadata.name!, { merge }, { subresource: 'status', fieldManager: 'lanyard-grpc', signal })
}
