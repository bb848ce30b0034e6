import { isAlreadyExists, Namespace, type OwnerReference, type Unstructured } from '../../kube/index.ts'
import { differs, inParallel } from '../../runtime/index.ts'
import { wavesOf, type Item } from './bundle.ts'
import { conflictWith, lostFields } from './conflicts.ts'
import { isPausable, markOf, nameOf, standsStill } from './marks.ts'
import { spaceAfter } from './labels.ts'
import { progressIn, type Prepared } from './prepared.ts'
import { idThere, lookAtTarget } from './target.ts'
import { asCopy, asOnTarget, isCopy, withOwners } from './translate.ts'

const width = 16

/** The uids on the target by those at the source, as far as they are known. */
export type Uids = Map<string, string>

/** What a run made on the target, so that it can take it back. */
export type Made = { item: Item; object: Unstructured }[]

/** Namespaces first. One that is made gets the labels that permission depends on; one that exists is somebody's and stays as it is. */
export const bringNamespaces = async ({ bundle, present, target }: Prepared, signal: AbortSignal): Promise<void> => {
  const there = bundle.items.flatMap(
    (item) => asOnTarget(bundle, item, { ...target, uidOf: () => undefined }).metadata.namespace ?? [],
  )
  for (const name of new Set([bundle.namespace, ...there])) {
    const labels = name === bundle.namespace ? spaceAfter(bundle, present).labels : {}
    if (name === bundle.namespace ? present.namespace : await target.client.of(Namespace).find(name, { signal }))
      continue
    await target.client
      .of(Namespace)
      .create({ metadata: { name, labels } }, { signal })
      .catch((error: unknown) => {
        if (!isAlreadyExists(error)) throw error
      })
  }
}

/** Makes what is missing, wave by wave, and brings what is still paused up to date. What was there before gets its owners, and nothing else. */
export const bring = async (
  move: Prepared,
  fate: Item['fate'],
  uids: Uids,
  signal: AbortSignal,
  made: Made = [],
): Promise<Made> => {
  const { bundle, target } = move
  const to = { controllerNamespace: target.controllerNamespace, uidOf: (uid: string) => uids.get(uid) }
  const others = othersIn(move)
  for (const wave of wavesOf(bundle.items.filter((item) => item.fate === fate)))
    await inParallel(
      width,
      wave.map((item) => async () => {
        const wanted = asOnTarget(bundle, item, to)
        const known = move.present.objects.get(idThere(bundle, item, target))
        const created = known ? undefined : await create(move, item, wanted, signal)
        if (created?.isNew) made.push({ item, object: created.object })
        const there = known ?? created!.object
        // The uid that it has there, also when it was there before: what it owns would be collected as garbage otherwise.
        if (item.object.metadata.uid) uids.set(item.object.metadata.uid, there.metadata.uid!)
        if (created?.isNew || !mayChange(move, item)) return
        if (!isCopy(item, there)) return adopt(move, item, adoptersOf(wanted, others), there, signal)
        const kept = asCopy(wanted, there, ownersOfThis(uids))
        if (differs(kept, there) || hasMore(there, kept)) await update(move, item, kept, there, signal)
      }),
    )
  return made
}

const ownersOfThis = (uids: Uids): ((uid: string) => boolean) => {
  const came = new Set(uids.values())
  return (uid) => came.has(uid)
}

/** Somebody may have made it there meanwhile: a controller, of what has come already. That is as if it had been there before. */
const create = async (
  move: Prepared,
  item: Item,
  wanted: Unstructured,
  signal: AbortSignal,
): Promise<{ object: Unstructured; isNew: boolean }> => {
  const of = move.target.client.of(item.resource, wanted.metadata.namespace)
  try {
    return { object: await of.create(wanted, { fieldManager: 'lanyard', signal }), isNew: true }
  } catch (error) {
    // Of the others nobody would look at its content.
    if (!isAlreadyExists(error) || !mayChange(move, item)) throw error
    return { object: await of.get(wanted.metadata.name!, { signal }), isNew: false }
  }
}

/** The uids of what was on the target before and is no copy. */
const othersIn = ({ bundle, present }: Prepared): ReadonlySet<string | undefined> => {
  const sources = new Set(bundle.items.map(({ object }) => object.metadata.uid))
  const all = [...present.objects.values()]
  return new Set(all.filter((one) => !sources.has(markOf(one, 'copyOf'))).map(({ metadata }) => metadata.uid))
}

/** The owners that something gets which was there before: how it stands to others that were there too is not ours to say. */
const adoptersOf = (wanted: Unstructured, others: ReadonlySet<string | undefined>): OwnerReference[] =>
  (wanted.metadata.ownerReferences ?? []).filter(({ uid }) => !others.has(uid))

const isAdopted = (
  { metadata: { ownerReferences = [] } }: Unstructured,
  adopters: readonly OwnerReference[],
): boolean => withOwners(ownerReferences, adopters).length === ownerReferences.length

/** What was there before stays as it is, but for the owners that it gets: those are taken off again when the move is given up. */
const adopt = async (
  move: Prepared,
  item: Item,
  adopters: readonly OwnerReference[],
  there: Unstructured,
  signal: AbortSignal,
): Promise<void> => {
  if (isAdopted(there, adopters) || conflictWith(move, item, there).length > 0) return // `verify` says so
  const { namespace, name, uid, resourceVersion, ownerReferences = [] } = there.metadata
  const merge = { metadata: { uid, resourceVersion, ownerReferences: withOwners(ownerReferences, adopters) } }
  const of = move.target.client.of(item.resource, namespace)
  await of.patch(name!, { merge }, { fieldManager: 'lanyard', signal })
}

const update = async (
  { target }: Prepared,
  { resource }: Item,
  wanted: Unstructured,
  there: Unstructured,
  signal: AbortSignal,
): Promise<void> => {
  const { uid, resourceVersion } = there.metadata
  const object = { ...wanted, metadata: { ...wanted.metadata, uid, resourceVersion } }
  await target.client.of(resource, wanted.metadata.namespace).update(object, { fieldManager: 'lanyard', signal })
}

/** What was taken away at the source since it was copied. Defaults of the target look the same: written again, they change nothing. */
const hasMore = (there: Unstructured, wanted: Unstructured): boolean =>
  lostFields(there['spec'], wanted['spec'], 'spec').length > 0 ||
  lostFields(there.metadata.labels, wanted.metadata.labels, 'labels').length > 0

/** Copies belong to the target once they are there; what has arrived is changed by its own controllers only. */
const mayChange = (move: Prepared, item: Item): boolean => {
  if (item.fate === 'copy' || item.withheld) return false
  if (isPausable(item.resource)) return progressIn(move, item) === 'coming'
  return rootsOf(move, item).every((root) => ['coming', 'absent'].includes(progressIn(move, root)))
}

/** The paused things that an item belongs to; all of them where it cannot be told. */
const rootsOf = (move: Prepared, item: Item): Item[] => {
  const { bundle } = move
  const byUid = new Map(bundle.items.map((one) => [one.object.metadata.uid, one]))
  const above = new Set([item])
  for (const one of above)
    for (const { uid } of one.object.metadata.ownerReferences ?? []) {
      const owner = byUid.get(uid)
      if (owner) above.add(owner)
    }
  const roots = [...above].filter(({ resource }) => isPausable(resource))
  if (roots.length > 0) return roots
  return bundle.items.filter((one) => isPausable(one.resource) && progressIn(move, one) !== 'same')
}

/** Reads the target again and says what is not there as it should be; empty when all of it is. */
export const verify = async (
  move: Prepared,
  uids: Uids,
  signal: AbortSignal,
): Promise<{ move: Prepared; faults: string[] }> => {
  const { bundle, target } = move
  const present = await lookAtTarget(target, bundle, signal)
  const now = { ...move, present }
  const to = { controllerNamespace: target.controllerNamespace, uidOf: (uid: string) => uids.get(uid) }
  const others = othersIn(now)
  const faults = bundle.items.flatMap((item) => {
    const name = nameOf(item.resource, item.object)
    const there = present.objects.get(idThere(bundle, item, target))
    if (!there) return [`${name} is not there`]
    if (item.fate === 'copy' || item.withheld) return []
    if (isPausable(item.resource) && ['arrived', 'home', 'same'].includes(progressIn(now, item))) return []
    if (isPausable(item.resource) && !standsStill(item.resource, there)) return [`${name} is not paused there`]
    if (!mayChange(now, item)) return []
    const wanted = asOnTarget(bundle, item, to)
    if (isCopy(item, there)) return differs(asCopy(wanted, there, ownersOfThis(uids)), there) ? [`${name} differs`] : []
    const lacks = isAdopted(there, adoptersOf(wanted, others)) ? [] : [`${name} lacks its owners`]
    return [...conflictWith(now, item, there).map(({ what }) => what), ...lacks]
  })
  return { move: now, faults }
}
