import { AWSCluster } from '../../api/index.ts'
import { keyOf } from '../../kube/index.ts'
import { questionsOf } from './account.ts'
import { idOfFound, type Bundle, type Found, type Item, type Obstacle } from './bundle.ts'
import { everythingIn, type Hub } from './discover.ts'
import { chooseNeeded } from './graph.ts'
import { givingUp, intoDirectory, isPausable, markOf, nameOf, pausesBySpec, standsStill } from './marks.ts'
import { isReleased } from './release.ts'
import { missingRights, type Need } from './rights.ts'

/** A move that was begun, and can still be given up. */
export interface Retreat {
  readonly source: Hub
  readonly target: Hub
  readonly namespace: string
  /** What the move has paused at the source. */
  readonly paused: readonly Found[]
  /** What it has only marked there. */
  readonly marked: readonly Found[]
  /** What it has made on the target, as it is there. */
  readonly copies: readonly Item[]
  /** What was on the target before, and was given owners that go now. */
  readonly adopted: readonly Found[]
  /** What it would ask the target's controller by. */
  readonly ways: Pick<Bundle, 'items'>
  /** Exported, and so not unpaused here. */
  readonly exported: readonly Found[]
}

/** One line of what giving up does. */
export interface RetreatLine {
  kind: string
  name: string
  source: 'act again' | 'keep'
  target: 'delete' | 'keep' | ''
}

/** Looks at both sides of a move that somebody wants to give up. Only what is a copy of something that is still at the source is taken away. */
export const prepareAbort = async (
  source: Hub,
  target: Hub,
  namespace: string,
  signal: AbortSignal,
): Promise<{ retreat: Retreat; obstacles: Obstacle[] }> => {
  const [here, there] = await Promise.all([source, target].map(({ client }) => everythingIn(client, namespace, signal)))
  const marks = new Set([target.uid, givingUp(target.uid)])
  const pausables = here!.all.filter(({ resource }) => isPausable(resource))
  const touched = here!.all.filter(({ object }) => marks.has(markOf(object, 'movingTo') ?? ''))
  const paused = touched.filter(({ resource }) => isPausable(resource))
  const marked = touched.filter(({ resource }) => !isPausable(resource))
  const copies = copiesIn(there!.all, here!.all, source)
  const gone = new Set(copies.map(({ object }) => object.metadata.uid))
  const sources = new Set(here!.all.map(idOfFound))
  const adopted = there!.all.filter(
    (found) =>
      !gone.has(found.object.metadata.uid) &&
      sources.has(idOfFound(found)) &&
      found.object.metadata.ownerReferences?.some(({ uid }) => gone.has(uid)),
  )
  const ways = { items: pausables.map((found): Item => ({ ...found, fate: 'move', wave: 0 })) }
  const exported = pausables.filter(({ object }) => markOf(object, 'movingTo') === intoDirectory)
  const retreat = { source, target, namespace, paused, marked, copies, adopted, ways, exported }
  if (source.uid === target.uid) return { retreat, obstacles: [sameCluster] }
  if (!isUnderWay(retreat)) return { retreat, obstacles: [...here!.obstacles, ...onOtherWays(pausables)] }
  const standing = [...here!.obstacles, ...there!.obstacles, ...tooLate(retreat, pausables, there!.all)]
  return { retreat, obstacles: standing.length > 0 ? standing : await lackingRights(retreat, signal) }
}

const sameCluster: Obstacle = {
  what: 'source and target are the same cluster',
  next: 'name the one that the clusters were being moved to with --to-kubeconfig or --to-context',
}

const onOtherWays = (pausables: readonly Found[]): Obstacle[] =>
  pausables.flatMap((found) => {
    const where = markOf(found.object, 'movingTo')
    if (where === undefined || where === intoDirectory) return []
    return {
      what: `${named(found)} is on its way to another cluster (the one whose namespace kube-system has uid ${where.replace(/^.*:/, '')})`,
      next: 'name that one with --to-kubeconfig or --to-context',
    }
  })

/** Dependants have the higher waves, and go first. */
const copiesIn = (there: readonly Found[], here: readonly Found[], source: Hub): Item[] => {
  const waves = new Map(chooseNeeded(there).items.map((item) => [item.object.metadata.uid, item.wave]))
  const uids = new Set(here.map(({ object }) => object.metadata.uid))
  return there
    .filter(({ resource, object }) =>
      isPausable(resource)
        ? markOf(object, 'movingFrom') === source.uid
        : uids.has(markOf(object, 'copyOf') ?? 'of nothing'),
    )
    .map((found) => ({ ...found, fate: 'move', wave: waves.get(found.object.metadata.uid) ?? 0 }))
}

const forward = 'the target has everything: complete the move, with the same command without --abort'

/** Why there is no way back; in each case there is one forward. */
const tooLate = ({ copies, source, target }: Retreat, here: readonly Found[], there: readonly Found[]): Obstacle[] => {
  const atSource = new Map(here.map((found) => [idOfFound(found), found]))
  const coming = copies.filter(({ resource }) => isPausable(resource))
  return [
    ...here
      .filter(({ object }) => isReleased(object))
      .map((found) => ({ what: `${named(found)} is already being removed at the source`, next: forward })),
    ...coming
      .filter((found) => !atSource.has(idOfFound(found)))
      .map((found) => ({ what: `${named(found)} is no longer at the source`, next: forward })),
    ...there
      .filter((found) => isPausable(found.resource) && markOf(found.object, 'movedFrom') === source.uid)
      .filter((found) => {
        const left = atSource.get(idOfFound(found))
        const where = left && markOf(left.object, 'movingTo')
        return where === target.uid || where === intoDirectory || where === givingUp(target.uid)
      })
      .map((found) => ({ what: `${named(found)} has arrived, and the target acts for it`, next: forward })),
    ...coming
      .filter(({ resource, object }) => !standsStill(resource, object))
      .map((found) => ({
        what: `somebody has ended the pause of ${named(found)} on the target, so that its controllers may act`,
        next: `pause it there first: kubectl -n ${found.object.metadata.namespace} ${howToPause(found)}`,
      })),
  ]
}

const howToPause = ({ resource, object: { metadata } }: Found): string => {
  const kind = `${resource.plural}.${resource.group}`
  return pausesBySpec(resource)
    ? `patch ${kind} ${metadata.name} --type=merge -p '{"spec":{"paused":true}}'`
    : `annotate ${kind} ${metadata.name} cluster.x-k8s.io/paused=true`
}

const named = ({ resource, object }: Found): string => nameOf(resource, object)

const lackingRights = async ({ source, target, namespace, ...retreat }: Retreat, signal: AbortSignal) => {
  const need = (found: readonly Found[], verbs: string[]): Need[] =>
    found.flatMap(({ resource: kind }) => verbs.map((verb) => ({ verb, kind, namespace })))
  const atTarget = [
    ...need(retreat.copies, ['patch', 'delete']),
    ...need(retreat.adopted, ['patch']),
    ...questionsOf(retreat.ways).map(() => ({ verb: 'delete', kind: AWSCluster, namespace })),
  ]
  return [
    ...(await missingRights(source.client, 'source', need([...retreat.paused, ...retreat.marked], ['patch']), signal)),
    ...(await missingRights(target.client, 'target', atTarget, signal)),
  ]
}

/** Whether a move is under way at all. */
export const isUnderWay = ({ paused, marked, copies }: Retreat): boolean =>
  [paused, marked, copies].some(({ length }) => length > 0)

/** What giving up would do, in the order in which it is done. */
export const retreatPlan = ({ paused, copies, adopted }: Retreat): RetreatLine[] => {
  const line = ({ resource, object }: Found, target: RetreatLine['target']): RetreatLine => ({
    kind: resource.kind,
    name: keyOf(object),
    source: paused.some((found) => idOfFound(found) === idOfFound({ resource, object })) ? 'act again' : 'keep',
    target,
  })
  const gone = new Set(copies.map(idOfFound))
  const only = paused.filter((found) => !gone.has(idOfFound(found)))
  return [
    ...copies.toSorted((a, b) => b.wave - a.wave).map((found) => line(found, 'delete')),
    ...adopted.map((found) => line(found, 'keep')),
    ...only.map((found) => line(found, '')),
  ]
}
