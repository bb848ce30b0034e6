import { annotation } from '../../api/index.ts'
import { isConflict, type Client, type Unstructured } from '../../kube/index.ts'
import { inParallel, stalled } from '../../runtime/index.ts'
import type { Bundle, Found, Item } from './bundle.ts'
import { isPausable, mark, markOf, nameOf, pausesBySpec, standsStill } from './marks.ts'
import { saidOf } from './unfinished.ts'

const width = 16

/** Where things go: the id of a cluster and its address for people, or a directory. */
export interface Aim {
  readonly id: string
  readonly server?: string
}

/** Pauses what is not paused yet, and writes down on each why. What nobody owns is only marked. */
export const pauseAll = async (client: Client, items: readonly Item[], to: Aim, signal: AbortSignal): Promise<void> => {
  const awake = items.filter(({ resource, object, loose }) => {
    if (!loose && !isPausable(resource)) return false
    return markOf(object, 'movingTo') !== to.id || (isPausable(resource) && !standsStill(resource, object))
  })
  await inParallel(
    width,
    awake.map((item) => () => pause(client, item, to, signal)),
  )
}

/** Others write meanwhile, and may do so. But whoever has said in a mark where it goes, or that the move is given up, is not overruled. */
const pause = async (client: Client, { resource, object }: Item, to: Aim, signal: AbortSignal): Promise<void> => {
  const { namespace, name } = object.metadata
  const of = client.of(resource, namespace)
  const bySpec = pausesBySpec(resource)
  const byAnnotation = isPausable(resource) && !bySpec
  const marks = { [mark.movingTo]: to.id, [mark.movingToServer]: to.server ?? null }
  const annotations = { ...marks, ...(byAnnotation ? { [annotation.paused]: 'true' } : {}) }
  let now: Unstructured = object
  for (;;) {
    const { uid, resourceVersion } = now.metadata
    const merge = { metadata: { uid, resourceVersion, annotations }, ...(bySpec ? { spec: { paused: true } } : {}) }
    try {
      await of.patch(name!, { merge }, { fieldManager: 'lanyard', signal })
      return
    } catch (error) {
      if (!isConflict(error)) throw error
    }
    const fresh = await of.get(name!, { signal })
    const isSame = fresh.metadata.uid === object.metadata.uid
    if (!isSame || ![markOf(object, 'movingTo'), to.id].includes(markOf(fresh, 'movingTo')))
      throw stalled('NamespaceChanged', {
        message: `${nameOf(resource, object)} was ${isSame ? 'marked by another move, or by somebody who gives one up,' : 'made anew'} while it was being paused`,
        next: 'find out who moves it, then run the same command again',
      })
    now = fresh
  }
}

/** Ends the pause. Clusters come first: who follows an AWSCluster looks at its Cluster when the AWSCluster changes, and not before. */
export const unpauseAll = async (
  client: Client,
  found: readonly Found[],
  arrived: { from: string } | undefined,
  signal: AbortSignal,
): Promise<void> => {
  for (const first of [true, false])
    await inParallel(
      width,
      found
        .filter(({ resource }) => pausesBySpec(resource) === first)
        .map(({ resource, object }) => async () => {
          const { namespace, name, uid } = object.metadata
          const annotations = {
            [mark.movingTo]: null,
            [mark.movingToServer]: null,
            [mark.movingFrom]: null,
            [annotation.paused]: null,
            ...(arrived ? { [mark.movedFrom]: arrived.from } : {}),
          }
          const merge = {
            metadata: { uid, annotations },
            ...(pausesBySpec(resource) ? { spec: { paused: null } } : {}),
          }
          await client.of(resource, namespace).patch(name!, { merge }, { fieldManager: 'lanyard', signal })
        }),
    )
}

/** Who is still in the middle of something: a controller holds what it works on, and lets go when it sees the pause. */
export const busyIn = ({ items }: Bundle): Item[] =>
  items.filter(({ object, fate }) => fate === 'move' && isHeld(object))

const isHeld = ({ metadata }: Unstructured): boolean => Object.hasOwn(metadata.annotations ?? {}, annotation.blockMove)

/**
 * Whose controller has not said yet that it has seen the pause. From v1beta2 on they say so in a condition, of their own or of the Cluster's;
 * those that do not know the condition are not waited for.
 */
export const unawareIn = ({ items }: Bundle): Item[] =>
  items.filter((item) => item.fate === 'move' && saidOf(item, 'Paused') === 'False')
