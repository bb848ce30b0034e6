import { AWSCluster } from '../../api/index.ts'
import { inParallel, sleep } from '../../runtime/index.ts'
import { questionsOf } from './account.ts'
import type { Found, Item } from './bundle.ts'
import { everythingIn, type Hub } from './discover.ts'
import { givingUp, mark, markOf, nameOf } from './marks.ts'
import { unpauseAll } from './pause.ts'
import { MoveRefused, type Steps } from './prepared.ts'
import { releaseAll } from './release.ts'
import { prepareAbort, type Retreat } from './retreat.ts'

const width = 16

/** Gives a move up, from wherever it or an earlier attempt to give it up was cut off. */
export const abortMove = async (first: Retreat, steps: Steps): Promise<void> => {
  const { source, target, namespace } = first
  const retreat = await steps.step(`stopping the move at ${source.client.connection.server}`, async ({ signal }) => {
    // A move that is still running somewhere cannot remove anything at the source from now on: what it copied is not what is there.
    await markAll(source, first.paused, givingUp(target.uid), signal)
    const { retreat: now, obstacles } = await prepareAbort(source, target, namespace, signal)
    if (obstacles.length === 0) return now
    await markAll(source, now.paused, target.uid, signal)
    throw new MoveRefused(obstacles)
  })
  await steps.step(`removing what came to ${target.client.connection.server}`, async ({ signal, seen }) => {
    for (const { name } of questionsOf(retreat.ways))
      await target.client.of(AWSCluster, namespace).delete(name, { signal })
    await disown(retreat, signal)
    let left = retreat.copies
    for (;;) {
      await releaseAll(target.client, left, signal, 'target')
      const { all } = await everythingIn(target.client, namespace, signal)
      const still = new Map(all.map(({ object }) => [object.metadata.uid, object]))
      left = left.flatMap((item): Item[] => {
        const object = still.get(item.object.metadata.uid)
        return object ? [{ ...item, object }] : []
      })
      if (left.length === 0) return
      seen(`${left.map(({ resource, object }) => nameOf(resource, object)).join(', ')} is still there`)
      await sleep(steps.clock, 500, signal)
    }
  })
  await steps.step(`letting ${source.client.connection.server} act for them again`, async ({ signal }) => {
    // The pause ends last: as long as there is one, everybody sees that something is left to be done.
    await markAll(source, retreat.marked, null, signal)
    await unpauseAll(source.client, retreat.paused, undefined, signal)
  })
}

const markAll = (
  { client }: Hub,
  found: readonly Found[],
  movingTo: string | null,
  signal: AbortSignal,
): Promise<unknown> =>
  inParallel(
    width,
    found
      .filter(({ object }) => markOf(object, 'movingTo') !== movingTo)
      .map(({ resource, object }) => async () => {
        const { namespace, name, uid } = object.metadata
        const server = movingTo === null ? { [mark.movingToServer]: null } : {}
        const merge = { metadata: { uid, annotations: { [mark.movingTo]: movingTo, ...server } } }
        await client.of(resource, namespace).patch(name!, { merge }, { fieldManager: 'lanyard', signal })
      }),
  )

/** Whatever was there before stays: without its owners it would be collected as garbage. */
const disown = ({ target: { client }, adopted, copies }: Retreat, signal: AbortSignal): Promise<unknown> => {
  const gone = new Set(copies.map(({ object }) => object.metadata.uid))
  return inParallel(
    width,
    adopted.map(({ resource, object }) => async () => {
      const { namespace, name, uid, resourceVersion, ownerReferences = [] } = object.metadata
      const kept = ownerReferences.filter((owner) => !gone.has(owner.uid))
      const merge = { metadata: { uid, resourceVersion, ownerReferences: kept } }
      await client.of(resource, namespace).patch(name!, { merge }, { fieldManager: 'lanyard', signal })
    }),
  )
}
