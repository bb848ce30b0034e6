import { isAlreadyExists, Namespace, type Unstructured } from '../../kube/index.ts'
import { differs, inParallel } from '../../runtime/index.ts'
import { wavesOf, type Item } from './bundle.ts'
import { lostFields } from './conflicts.ts'
import { isPausable, isPaused, nameOf } from './marks.ts'
import { isReleased } from './release.ts'
import { spaceAfter } from './labels.ts'
import { progressIn, type Prepared } from './prepared.ts'
import { idThere, lookAtTarget } from './target.ts'
import { asKept, asOnTarget } from './translate.ts'

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

/** Makes what is missing, wave by wave, and brings what is still paused up to date. */
export const bring = async (
  move: Prepared,
  fate: Item['fate'],
  uids: Uids,
  signal: AbortSignal,
  made: Made = [],
): Promise<Made> => {
  const { bundle, target } = move
  const to = { controllerNamespace: target.controllerNamespace, uidOf: (uid: string) => uids.get(uid) }
  for (const wave of wavesOf(bundle.items.filter((item) => item.fate === fate)))
    await inParallel(
      width,
      wave.map((item) => async () => {
        const there = move.present.objects.get(idThere(bundle, item, target))
        const wanted = asOnTarget(bundle, item, to)
        const is = there ?? (await create(move, item, wanted, signal))
        if (!there) made.push({ item, object: is })
        // The uid that it has there, also when it was there before: what it owns would be collected as garbage otherwise.
        if (item.object.metadata.uid) uids.set(item.object.metadata.uid, is.metadata.uid!)
        if (!there || !mayChange(move, item)) return
        const kept = asKept(wanted, there)
        if (differs(kept, there) || hasMore(there, kept)) await update(move, item, kept, there, signal)
      }),
    )
  return made
}

const create = async (
  { target }: Prepared,
  { resource }: Item,
  wanted: Unstructured,
  signal: AbortSignal,
): Promise<Unstructured> => {
  const of = target.client.of(resource, wanted.metadata.namespace)
  return of.create(wanted, { fieldManager: 'lanyard', signal })
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
  if (item.fate === 'copy' || item.withheld || isReleased(item.object)) return false
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
  const faults = bundle.items.flatMap((item) => {
    const name = nameOf(item.resource, item.object)
    const there = present.objects.get(idThere(bundle, item, target))
    if (!there) return [`${name} is not there`]
    if (item.fate === 'copy' || item.withheld) return []
    if (isPausable(item.resource) && ['arrived', 'home', 'same'].includes(progressIn(now, item))) return []
    if (isPausable(item.resource) && !isPaused(there)) return [`${name} is not paused there`]
    return mayChange(now, item) && differs(asKept(asOnTarget(bundle, item, to), there), there)
      ? [`${name} differs`]
      : []
  })
  return { move: now, faults }
}
