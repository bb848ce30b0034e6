import { ManifestWork, AppliedManifestWork, finalizer } from '../../api/index.ts'
import { isConflict, keyOf, type ObjectApi, type ServedResource, type Unstructured } from '../../kube/index.ts'
import {
  describeError,
  inParallel,
  setConditions,
  withoutFinalizer,
  type ReconcileResult,
} from '../../runtime/index.ts'
import { appliedName, WorkDeleting } from '../contract.ts'
import type { Agent } from './agent.ts'
import { recordOf, refKey, writeRefs, type AppliedResource } from './applied-record.ts'
import type { Interest } from './drift.ts'
import { nameOf, staysBehind } from './manifest.ts'
import { inRanks, rankOf } from './order.ts'
import { disown, isOwnedBy, otherWorks } from './ownership.ts'
import { planFor } from './plan.ts'
import { writeStatus } from './status.ts'

/** What could not be removed yet, and why. */
export interface Left {
  readonly ref: AppliedResource
  readonly why: string
  /** To hear when it goes. */
  readonly interest?: Interest | undefined
}

/** After this long something that is held by others is looked at again, even if nothing was seen to change. */
export const lookAgainMs = 10_000

interface Found {
  ref: AppliedResource
  rank: number
  resource: ServedResource
  objects: ObjectApi<Unstructured>
}

/** Removes objects that a record owns, the reverse of the order in which they came. What isn't ours, or not ours alone, stays. */
export const removeRefs = async (
  agent: Agent,
  recordUid: string,
  refs: readonly AppliedResource[],
  signal: AbortSignal,
): Promise<Left[]> => {
  const left: Left[] = []
  const found: Found[] = []
  const kinds = new Map<string, ServedResource | undefined>()
  for (const ref of refs) {
    const kind = `${ref.group}/${ref.version}/${ref.resource}`
    if (!kinds.has(kind)) kinds.set(kind, await agent.kinds.ofResource(ref, signal))
    const resource = kinds.get(kind)
    // A kind that is gone has taken its objects along.
    if (resource)
      found.push({ ref, rank: -rankOf(resource.kind), resource, objects: agent.local.of(resource, ref.namespace) })
  }
  for (const rank of inRanks(found))
    await inParallel(
      agent.concurrency,
      rank.map((one) => async () => {
        const why = await removeOne(one, recordUid, signal).catch((error: unknown) => {
          if (signal.aborted) throw error
          return describeError(error)
        })
        if (why === undefined) return
        const { ref, resource } = one
        left.push({ ref, why, interest: { resource, key: keyOf({ metadata: ref }), id: `removal/${refKey(ref)}` } })
      }),
    )
  return left
}

/** Why it is still there; undefined when it is not, or is not our concern. */
const removeOne = async (
  { ref, objects, resource }: Found,
  recordUid: string,
  signal: AbortSignal,
): Promise<string | undefined> => {
  for (let tries = 0; ; tries++) {
    const live = await objects.find(ref.name, { signal })
    if (!live || !isOwnedBy(live, recordUid)) return undefined
    try {
      if (otherWorks(live, recordUid).length > 0) {
        await disown(objects, live, recordUid, signal)
        return undefined
      }
      const { uid, resourceVersion, deletionTimestamp, finalizers = [] } = live.metadata
      const what = nameOf({ kind: resource.kind, namespace: ref.namespace, name: ref.name })
      if (deletionTimestamp) return `${what} is held by ${finalizers.join(', ') || 'what it contains'}`
      // With the version that was seen: somebody may make it theirs in this moment.
      await objects.delete(ref.name, {
        preconditions: { uid, resourceVersion },
        propagationPolicy: 'Background',
        signal,
      })
    } catch (error) {
      if (!isConflict(error) || tries >= 4) throw error
    }
  }
}

/** A work is being deleted: what stays is let go, the record goes with all the rest, and then the work may go. */
export const withdraw = async (agent: Agent, work: ManifestWork, signal: AbortSignal): Promise<ReconcileResult> => {
  if (!work.metadata.finalizers?.includes(finalizer.manifestWork)) return {}
  const name = appliedName(agent.hubHash, work.metadata.name!)
  const records = agent.local.of(AppliedManifestWork)
  // A record that the cache does not have may have been made a moment ago.
  const record = recordOf(agent, name) ?? (await records.find(name, { signal }))
  if (record) {
    const trouble = agent.troubles.get(name)
    const message = trouble ? `ManifestWork is being deleted; ${trouble}` : undefined
    const conditions = setConditions(work.status?.conditions, [WorkDeleting.deleting(message)], {
      now: agent.clock.now(),
      generation: work.metadata.generation,
    })
    await writeStatus(agent, work, { ...work.status, conditions }, signal)
    if (record.metadata.deletionTimestamp) return { requeueAfterMs: lookAgainMs }
    await letGo(agent, work, record, signal)
    const { uid } = record.metadata
    if (record.spec.agentID !== agent.agentId)
      await records.patch(name, { merge: { metadata: { uid }, spec: { agentID: agent.agentId } } }, { signal })
    await records.delete(name, { preconditions: { uid }, signal })
    return { requeueAfterMs: lookAgainMs }
  }
  const { uid, resourceVersion } = work.metadata
  const { finalizers } = withoutFinalizer(work, finalizer.manifestWork).metadata
  const merge = { metadata: { uid, resourceVersion, finalizers } }
  const written = await agent.hub.of(ManifestWork, agent.cluster).patch(work.metadata.name!, { merge }, { signal })
  agent.written.wrote(work.metadata.name!, work, written)
  return {}
}

/** Takes our reference off the objects that stay behind. They lose it when the work is applied; this is for a work that was changed and deleted at once. */
const letGo = async (
  agent: Agent,
  work: ManifestWork,
  record: AppliedManifestWork,
  signal: AbortSignal,
): Promise<void> => {
  const staying = (record.status?.appliedResources ?? []).filter((ref) =>
    staysBehind(work.spec, {
      group: ref.group ?? '',
      resource: ref.resource,
      namespace: ref.namespace ?? '',
      name: ref.name,
    }),
  )
  await disownRefs(agent, record.metadata.uid!, staying, signal)
}

/** Takes a record's reference off objects, which stay. */
export const disownRefs = async (
  agent: Agent,
  recordUid: string,
  refs: readonly AppliedResource[],
  signal: AbortSignal,
): Promise<void> =>
  inParallel(
    agent.concurrency,
    refs.map((ref) => async () => {
      const resource = await agent.kinds.ofResource(ref, signal)
      const objects = resource && agent.local.of(resource, ref.namespace)
      const live = await objects?.find(ref.name, { signal })
      if (objects && live && isOwnedBy(live, recordUid)) await disown(objects, live, recordUid, signal)
    }),
  )

/** A record is being deleted: its objects go first. If its work lives on, they are kept for the record that comes after it. */
export const finishRecord = async (
  agent: Agent,
  record: AppliedManifestWork,
  signal: AbortSignal,
): Promise<ReconcileResult> => {
  const { name, uid } = record.metadata
  if (!record.metadata.finalizers?.includes(finalizer.appliedManifestWork)) return {}
  const refs = record.status?.appliedResources ?? []
  const kept = await keptBy(agent, record)
  await disownRefs(agent, uid!, refs.filter(kept), signal)
  const left = await removeRefs(
    agent,
    uid!,
    refs.filter((ref) => !kept(ref)),
    signal,
  )
  if (left.length === 0) {
    agent.troubles.delete(name!)
    const { resourceVersion } = record.metadata
    const { finalizers } = withoutFinalizer(record, finalizer.appliedManifestWork).metadata
    await agent.local
      .of(AppliedManifestWork)
      .patch(name!, { merge: { metadata: { uid, resourceVersion, finalizers } } }, { signal })
    agent.drift.want(`record/${name}`, [])
    return {}
  }
  agent.troubles.set(name!, troubleOf(left))
  agent.drift.want(
    `record/${name}`,
    left.flatMap(({ interest }) => interest ?? []),
  )
  await writeRefs(
    agent,
    record,
    left.map(({ ref }) => ref),
    signal,
  )
  agent.enqueueWork(record.spec.manifestWorkName)
  return { requeueAfterMs: lookAgainMs }
}

/** Whether a living work still wants an object, though somebody deleted its record by hand. */
const keptBy = async (agent: Agent, record: AppliedManifestWork): Promise<(ref: AppliedResource) => boolean> => {
  const work = record.spec.hubHash === agent.hubHash ? agent.workOf(record.spec.manifestWorkName) : undefined
  if (!work || work.metadata.deletionTimestamp) return () => false
  const idOf = (group: string, namespace: string, name: string): string => JSON.stringify([group, namespace, name])
  const { entries } = await planFor(work, agent.namespaces)
  // A namespace on a cluster-scoped object has no meaning, and the record does not have it.
  const ids = new Set(
    entries.flatMap(({ group, namespace = '', name }) => [idOf(group, namespace, name), idOf(group, '', name)]),
  )
  return ({ group = '', namespace = '', name }) => ids.has(idOf(group, namespace, name))
}

/** What is still there, in words. */
export const troubleOf = (left: readonly Left[]): string => {
  const named = left.slice(0, 3).map(({ why }) => why)
  return `${left.length} objects are still there: ${[...named, ...(left.length > 3 ? ['and others'] : [])].join('; ')}`
}
