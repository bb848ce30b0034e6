/**
 * `clusterctl move`: clusters of a namespace go from one management cluster to another, and AWS does not notice. A tour:
 *
 * `discover.ts` reads a namespace, `graph.ts` chooses what belongs to its clusters, `credentials.ts` follows their identities: a
 * `Bundle`. `target.ts` looks at what is on the target already; `preflight.ts` says all that stands in the way, before anything is
 * paused: what is not done yet (`unfinished.ts`), what is there otherwise (`conflicts.ts`), what is missing there (`outside.ts`), what
 * the person may not do (`rights.ts`). `account.ts` lets the target's controller say which account it reaches. Then `pause.ts`,
 * `bring.ts`, `release.ts`, `pause.ts` again, in the order of `moveBundle` below. `translate.ts` knows how an object reads on the
 * target; `retreat.ts` and `abort.ts` are the way back.
 *
 * Two rules make a cut at any point harmless. Whoever is paused says by whom (`marks.ts`), so the next run goes on instead of refusing.
 * And nothing is deleted at the source before all of it was seen on the target, nothing unpaused there before all of it is gone here:
 * at each moment at most one side may act.
 */
import { annotation } from '../../api/index.ts'
import { isNotFound } from '../../kube/index.ts'
import { sleep, stalled, type Clock } from '../../runtime/index.ts'
import { askController } from './account.ts'
import { bring, bringNamespaces, verify, type Made, type Uids } from './bring.ts'
import type { Bundle, Found, Item, Obstacle } from './bundle.ts'
import { discover, type Hub } from './discover.ts'
import { intoDirectory, isPausable, markOf, nameOf, standsStill } from './marks.ts'
import { busyIn, pauseAll, unawareIn, unpauseAll, type Aim } from './pause.ts'
import { sourceObstacles, targetObstacles } from './preflight.ts'
import { MoveRefused, progressIn, type MoveOptions, type Prepared, type Steps } from './prepared.ts'
import { free, isLeaving, releaseAll } from './release.ts'
import { idThere, lookAtTarget, type Present } from './target.ts'

export type { Bundle, Item, Obstacle } from './bundle.ts'
export { hubAt, type Hub } from './discover.ts'
export { isPausable } from './marks.ts'
export { MoveRefused, type MoveOptions, type Prepared, type Steps } from './prepared.ts'
export { abortMove } from './abort.ts'
export { isUnderWay, prepareAbort, retreatPlan, type Retreat, type RetreatLine } from './retreat.ts'
export { planOf, type PlanLine } from './plan.ts'

/** Looks at a move from both sides. What it says stands in the way has to be dealt with first: nothing is changed before. */
export const prepareMove = async (
  source: Hub,
  target: Hub,
  namespace: string,
  { signal, ...options }: MoveOptions & { signal: AbortSignal },
): Promise<{ move: Prepared; obstacles: Obstacle[] }> => {
  const { bundle, obstacles } = await discover(source, namespace, signal)
  const move = { source, target, bundle, options, present: await lookAtTarget(target, bundle, signal) }
  const { defaultRegion } = options
  const here =
    source.uid === target.uid ? [] : await sourceObstacles(source, bundle, { to: target.uid, defaultRegion, signal })
  return { move, obstacles: [...obstacles, ...here, ...(await targetObstacles(move, signal))] }
}

/** The same for what was exported. */
export const prepareImport = async (
  bundle: Bundle,
  target: Hub,
  { signal, ...options }: MoveOptions & { signal: AbortSignal },
): Promise<{ move: Prepared; obstacles: Obstacle[] }> => {
  const present = await lookAtTarget(target, bundle, signal)
  const move = { source: undefined, target, bundle, options, present }
  return { move, obstacles: await targetObstacles(move, signal) }
}

/** And for an export. */
export const prepareExport = async (
  source: Hub,
  namespace: string,
  { signal, defaultRegion }: MoveOptions & { signal: AbortSignal },
): Promise<{ bundle: Bundle; obstacles: Obstacle[] }> => {
  const { bundle, obstacles } = await discover(source, namespace, signal)
  const here = await sourceObstacles(source, bundle, { to: intoDirectory, defaultRegion, signal })
  return { bundle, obstacles: [...obstacles, ...here] }
}

/** Carries a move out, from wherever an earlier run was cut off. */
export const moveBundle = async (prepared: Prepared, steps: Steps): Promise<void> => {
  const { source, target } = prepared
  const uids: Uids = new Map()
  const needed = prepared.bundle.items.length > 0
  if (needed) await bringCredentials(prepared, uids, steps)
  const bundle = source && needed ? await stopped(source, prepared.bundle, aimAt(target), steps) : prepared.bundle
  if (needed) await bringAndVerify({ ...prepared, bundle }, uids, steps)
  if (source && needed)
    await steps.step(
      `removing them from ${source.client.connection.server}`,
      ({ signal, seen }) => gone(source, bundle, { clock: steps.clock, signal, seen }),
      { noWayBack: true },
    )
  await steps.step(
    `letting ${target.client.connection.server} act for them`,
    async ({ signal }) => {
      const present = await lookAtTarget(target, bundle, signal)
      if (!source && target.uid === bundle.origin)
        await unpauseAll(target.client, marked(bundle, present, target), undefined, signal)
      await unpauseAll(target.client, present.coming, { from: bundle.origin }, signal)
    },
    { noWayBack: true },
  )
}

/** What an export has left paused on the cluster that it is now read on. */
const marked = (bundle: Bundle, present: Present, target: Hub): Found[] =>
  bundle.items.flatMap((item) => {
    const object = present.objects.get(idThere(bundle, item, target))
    return object && markOf(object, 'movingTo') === intoDirectory ? [{ resource: item.resource, object }] : []
  })

/** Identities and their keys, and whether they lead where they should. They only add to the target; if they lead elsewhere, they go again. */
const bringCredentials = async (move: Prepared, uids: Uids, steps: Steps): Promise<void> => {
  const made: Made = []
  await steps.step('copying identities and their keys', async ({ signal }) => {
    await bringNamespaces(move, signal)
    await bring(move, 'copy', uids, signal, made)
    // In the namespace and so moved like the clusters, but the target's controller needs it before it can answer.
    const accounts = move.bundle.items.filter(({ resource }) => resource.kind === 'AWSServiceAccountIdentity')
    await bring({ ...move, bundle: { ...move.bundle, items: accounts } }, 'move', uids, signal, made)
  })
  // What has a place on the target already was checked when it came.
  const isNew = move.bundle.items.some((item) => isPausable(item.resource) && progressIn(move, item) === 'absent')
  if (!move.options.checkAccount || !isNew) return
  const next = `is a hub running there with --feature-gates=AWSIdentities=true? --no-account-check goes on without its answer`
  const obstacles = await steps.step(
    'asking the controller of the target which accounts it reaches',
    (step) => askController(move, { clock: steps.clock, ...step }),
    { next },
  )
  if (obstacles.length === 0) return
  await takeBack(move, made)
  throw new MoveRefused(obstacles)
}

const takeBack = async ({ target: { client } }: Prepared, made: Made): Promise<void> => {
  const { signal } = new AbortController()
  for (const { item, object } of made.toReversed()) {
    const { resource } = item
    const { namespace, name } = object.metadata
    const of = client.of(resource, namespace)
    const now = await of.find(name!)
    if (!now || now.metadata.uid !== object.metadata.uid) continue
    await free(
      client,
      { resource, object: { ...now, metadata: { ...now.metadata, resourceVersion: undefined } } },
      signal,
    ).catch(ignoreGone)
    await of.delete(name!, { preconditions: { uid: object.metadata.uid } })
  }
}

const ignoreGone = (error: unknown): void => {
  if (!isNotFound(error)) throw error
}

const aimAt = ({ uid, client }: Hub): Aim => ({ id: uid, server: client.connection.server })

/** Controllers that run see a pause at once; one that starts later sees it first. */
const patienceMs = 30_000

/** Pauses the clusters of a namespace, and answers what there is when nobody works on them any more. */
const stopped = (source: Hub, known: Bundle, to: Aim, steps: Steps): Promise<Bundle> =>
  steps.step(
    `pausing them on ${source.client.connection.server}`,
    async ({ signal, seen }) => {
      await pauseAll(source.client, known.items, to, signal)
      const leftBefore = new Set(known.items.filter(isLeaving).map(({ object }) => object.metadata.uid))
      const until = steps.clock.now() + patienceMs
      for (;;) {
        // Read again: controllers may have written until they saw the pause.
        const { bundle } = await discover(source, known.namespace, signal)
        const stranger = bundle.items.find(
          ({ resource, object }) =>
            isPausable(resource) && (markOf(object, 'movingTo') !== to.id || !standsStill(resource, object)),
        )
        if (stranger)
          throw stalled('NamespaceChanged', {
            message: `${nameOf(stranger.resource, stranger.object)} came into the namespace, or was unpaused, while it was being moved`,
            next: 'run the same command again',
          })
        const leaving = bundle.items.find((item) => isLeaving(item) && !leftBefore.has(item.object.metadata.uid))
        if (leaving)
          throw stalled('NamespaceChanged', {
            message: `${nameOf(leaving.resource, leaving.object)} was deleted while it was being moved, and the move has paused it`,
            next: 'give the move up with --abort, and wait until it is gone: its own hub has to remove what it has',
          })
        const busy = busyIn(bundle)
        const unaware = steps.clock.now() < until ? unawareIn(bundle) : []
        if (busy.length === 0 && unaware.length === 0) return bundle
        seen([...busy.map(heldWords), ...unaware.map(unawareWords)].join(', '))
        await sleep(steps.clock, 500, signal)
      }
    },
    { next: whoHolds },
  )

const whoHolds = `whoever works on it takes annotation ${annotation.blockMove} off when it is done; if nobody does any more, take it off yourself`

const heldWords = ({ resource, object }: Item): string => {
  const by = object.metadata.annotations?.[annotation.blockMove]
  return `${nameOf(resource, object)} is still being worked on${by && by !== 'true' ? ` by ${by}` : ''}`
}

const unawareWords = ({ resource, object }: Item): string =>
  `the controller of ${nameOf(resource, object)} has not seen the pause yet`

const bringAndVerify = async (move: Prepared, uids: Uids, steps: Steps): Promise<void> => {
  const { target, bundle } = move
  await steps.step(`creating them on ${target.client.connection.server}`, async ({ signal }) => {
    // What an earlier run made has to be seen, and what this one has made since it looked.
    const now = { ...move, present: await lookAtTarget(target, bundle, signal) }
    await bring(now, 'copy', uids, signal)
    await bring(now, 'move', uids, signal)
    const { faults } = await verify(now, uids, signal)
    if (faults.length > 0)
      throw stalled('NotAsWritten', {
        message: `the target does not have everything as it was written: ${faults.join('; ')}`,
        next: 'nothing was removed at the source; look at who changes them on the target, then run the same command again',
      })
  })
}

/** Deletes what was copied until none of it is left. What came later is none of ours. */
const gone = async (
  source: Hub,
  copied: Bundle,
  { clock, signal, seen }: { clock: Clock; signal: AbortSignal; seen: (what: string) => void },
): Promise<void> => {
  const uids = new Set(copied.items.filter(({ fate }) => fate === 'move').map(({ object }) => object.metadata.uid))
  let left: readonly Item[] = copied.items
  for (;;) {
    await releaseAll(source.client, left, signal)
    const { bundle } = await discover(source, copied.namespace, signal)
    left = bundle.items.filter(({ fate, object }) => fate === 'move' && uids.has(object.metadata.uid))
    if (left.length === 0) return
    seen(`${left.map(({ resource, object }) => nameOf(resource, object)).join(', ')} is still there`)
    await sleep(clock, 500, signal)
  }
}

/** Pauses what goes into a directory. It stays paused: whoever reads the directory ends the pause, there or here. */
export const stopForExport = (source: Hub, bundle: Bundle, steps: Steps): Promise<Bundle> =>
  stopped(source, bundle, { id: intoDirectory }, steps)
