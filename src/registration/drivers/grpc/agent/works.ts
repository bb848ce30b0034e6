import { finalizer, type ManifestWork } from '../../../../api/index.ts'
import type { CallOptions, ObjectApi, Patch } from '../../../../kube/index.ts'
import { equal, hasFinalizer, setConditions } from '../../../../runtime/index.ts'
import { changed, readsOf, refusals, type Place, type UpdateOptions } from './objects.ts'

type Status = NonNullable<ManifestWork['status']>

/** What lets the hub take its finalizer off: everything that the work made is gone. */
const removed = {
  type: 'Deleted',
  status: 'True',
  reason: 'ManifestsDeleted',
  message: 'All manifests are removed',
} as const

/**
 * Works. Their status and our finalizer are written by the hub for us: it puts the finalizer there with the first report, and
 * takes it off when a report says that all is removed. What we said is kept here, because the hub does not repeat it.
 */
export const worksOf = (place: Place<ManifestWork>): ObjectApi<ManifestWork> => {
  const { link, feed, wire, resource } = place
  const { keyFor, ...reads } = readsOf(place)

  const report = async ({ metadata }: ManifestWork, status: Status, call: CallOptions): Promise<void> => {
    const { managedFields: _, ...rest } = metadata
    const resourceVersion = metadata.resourceVersion?.split('.')[0]
    await link.publish(
      {
        dataType: wire.dataType,
        side: 'status',
        action: 'update_request',
        resourceId: metadata.uid,
        resourceVersion: metadata.generation ?? 0,
        sequenceId: link.nextSequence(),
        metadata: { ...rest, resourceVersion },
        data: { conditions: status.conditions ?? [], resourceStatus: status.resourceStatus?.manifests ?? [] },
      },
      call,
    )
  }
  /** As we have changed it, under a version of our own: the next one from the hub is greater. */
  const noted = (base: ManifestWork, next: ManifestWork): ManifestWork => {
    const now = feed.get(keyFor(base.metadata.name!))
    // The hub may have sent something newer meanwhile: that counts, with what we have said of it.
    if (now && now !== base && now.metadata.uid === base.metadata.uid) {
      feed.put({ ...now, status: next.status, metadata: { ...now.metadata, resourceVersion: ownVersion(now) } })
      return next
    }
    const own = { ...next, metadata: { ...next.metadata, resourceVersion: ownVersion(base) } }
    if (now === base) feed.put(own)
    return own
  }

  /** Nobody knows whether the hub has written what it gave no answer to: whatever comes next is said, also what was said before. */
  const forget = ({ metadata }: ManifestWork): void => {
    const { status, ...now } = feed.get(keyFor(metadata.name!)) ?? { status: undefined, metadata }
    if (status === undefined || now.metadata.uid !== metadata.uid) return
    feed.put({ ...now, metadata: { ...now.metadata, resourceVersion: ownVersion(now) } } as ManifestWork)
  }

  const patch = async (name: string, change: Patch, options: UpdateOptions = {}): Promise<ManifestWork> => {
    const { subresource, signal, timeoutMs } = options
    const call = { signal, timeoutMs }
    await feed.live(call)
    const base = feed.get(keyFor(name)) ?? (await reads.get(name, call))
    const next = changed(place, base, change)
    if (equal(base, next)) return base
    if (subresource === 'status')
      await report(base, next.status ?? {}, call).catch((error: unknown) => {
        forget(base)
        throw error
      })
    else if (hasFinalizer(next, finalizer.manifestWork)) await report(base, base.status ?? {}, call)
    else await report(base, withRemoved(base.status, link.clock.now()), call)
    return noted(base, next)
  }
  return { ...refusals(link, resource), ...reads, patch }
}

const withRemoved = (status: Status | undefined, now: number): Status => {
  const conditions = setConditions(status?.conditions, [removed], { now })
  return { ...status, conditions }
}

const ownVersion = ({ metadata }: Pick<ManifestWork, 'metadata'>): string => {
  const [version = '0', own = '0'] = (metadata.resourceVersion ?? '0').split('.')
  return `${version}.${Number(own) + 1}`
}
