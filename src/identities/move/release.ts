import { isDeepStrictEqual } from 'node:util'
import { annotation } from '../../api/index.ts'
import { isConflict, isNotFound, type Client, type Unstructured } from '../../kube/index.ts'
import { inParallel, stalled } from '../../runtime/index.ts'
import { annotation as identityAnnotation, identityResources } from '../contract.ts'
import { wavesOf, type Found, type Item } from './bundle.ts'
import { isAwsCluster } from './graph.ts'
import { isPausable, nameOf } from './marks.ts'

const width = 16

/** Controllers write the status of what was just paused, and some put their finalizers back: more often than this only who does not stop. */
const most = 10

/**
 * Takes away on one side what is on the other: the reverse of how it was made. Finalizers go first, and with them the reason to do
 * anything in AWS: nobody who respects the pause ever acts for one of these that is being deleted, and nobody at all sees that an
 * AWSCluster is. Only what was copied goes, as it was when it was copied.
 */
export const releaseAll = async (
  client: Client,
  items: readonly Item[],
  signal: AbortSignal,
  side: 'source' | 'target' = 'source',
): Promise<void> => {
  const moved = items.filter(({ fate }) => fate === 'move')
  // All of them say that they go before the first one does, and those first that are paused: where none of these says so, nothing is
  // gone, and somebody who gives the move up has only to change them, to be sure that nothing goes.
  const free: Item[] = []
  for (const first of [true, false])
    await inParallel(
      width,
      moved
        .filter(({ resource }) => isPausable(resource) === first)
        .map((item) => async () => {
          const object = await asCopied(client, item, { side, signal }, (now) => freed(client, item, now, signal))
          if (object) free.push({ ...item, object })
        }),
    )
  for (const wave of wavesOf(free).toReversed())
    await inParallel(
      width,
      wave.map(
        (item) => () =>
          asCopied(client, item, { side, signal }, (now, tries) => remove(client, item, now, { tries, signal })),
      ),
    )
}

const freed = async (client: Client, { resource }: Found, now: Unstructured, signal: AbortSignal) => {
  const needsNothing = (resource.group === '' || isReleased(now)) && !now.metadata.finalizers?.length
  return needsNothing ? now : free(client, { resource, object: now }, signal)
}

const remove = async (
  client: Client,
  item: Found,
  now: Unstructured,
  { tries, signal }: { tries: number; signal: AbortSignal },
): Promise<void> => {
  const isKept = tries > 1 && isKeptByItsController(item, now)
  const { uid, resourceVersion, namespace, name } = (isKept ? now : await freed(client, item, now, signal)).metadata
  const of = client.of(item.resource, namespace)
  await of.delete(name!, { preconditions: { uid, resourceVersion }, propagationPolicy: 'Background', signal })
  if (!isKept) return
  // From now on the API server lets nobody put a finalizer back. It goes before its owners do: its controller reads there that it is paused.
  const left = await of.find(name!, { signal })
  if (left?.metadata.uid === uid) await free(client, { resource: item.resource, object: left! }, signal)
}

/**
 * From v1.9 on the controllers of Cluster API put their finalizer back before they ask whether a thing is paused, and are nearer to the
 * API server than whoever moves. They are content when it is there, so it is deleted with it, and they are paused for what they see
 * then. For an AWSCluster nobody may do that, and whoever saw it being deleted might remove a network.
 */
const isKeptByItsController = ({ resource }: Found, now: Unstructured): boolean =>
  !isAwsCluster(resource) &&
  isReleased(now) &&
  now.metadata.deletionTimestamp === undefined &&
  (now.metadata.finalizers?.length ?? 0) > 0

/** Does something to an object as long as it is what was copied; nothing when it is gone. */
const asCopied = async <T>(
  client: Client,
  { resource, object }: Found,
  { side, signal }: { side: 'source' | 'target'; signal: AbortSignal },
  act: (now: Unstructured, tries: number) => Promise<T>,
): Promise<T | undefined> => {
  const of = client.of(resource, object.metadata.namespace)
  let now: Unstructured | undefined = object
  // Controllers say in the status that they have seen the pause: that is no change of what was copied.
  for (let tries = 0; now && tries < most; tries++) {
    try {
      return await act(now, tries)
    } catch (error) {
      if (isNotFound(error)) return undefined
      if (!isConflict(error)) throw error
      now = await of.find(object.metadata.name!, { signal })
      if (now && !isSame(now, object))
        throw stalled('ChangedMeanwhile', {
          message: `${nameOf(resource, object)} was changed at the ${side} after it was ${side === 'source' ? 'copied' : 'looked at'}`,
          next: `run the same command again${side === 'source' ? ': it brings the target up to date first' : ''}`,
        })
    }
  }
  if (!now) return undefined
  const { finalizers = [] } = now.metadata
  const held = finalizers.length > 0 ? `, and has its finalizers back each time (${finalizers.join(', ')})` : ''
  throw stalled('NotLeftAlone', {
    message: `${nameOf(resource, object)} is written to at the ${side} again and again while it is to be removed there${held}`,
    next: `stop the controller there that does so although it is paused, then run the same command again`,
  })
}

/** Without finalizers, and with what webhooks have to know to let it go. */
export const free = (client: Client, { resource, object }: Found, signal: AbortSignal): Promise<Unstructured> => {
  const { namespace, name, uid, resourceVersion } = object.metadata
  const annotations = {
    [annotation.deleteForMove]: '',
    // Clusters used it a moment ago, and our own webhook may not have seen yet that they are gone.
    ...(Object.hasOwn(identityResources, resource.kind) ? { [identityAnnotation.deleteInUse]: 'true' } : {}),
  }
  const merge = { metadata: { uid, resourceVersion, annotations, finalizers: null } }
  return client.of(resource, namespace).patch(name!, { merge }, { fieldManager: 'lanyard', signal })
}

/** Whether an earlier run came so far that only the deletion is left: the target had all of it then. */
export const isReleased = ({ metadata }: Unstructured): boolean =>
  Object.hasOwn(metadata.annotations ?? {}, annotation.deleteForMove)

/** Whether somebody else deletes it, whose hub has to remove what it has. */
export const isLeaving = ({ object }: Found): boolean =>
  object.metadata.deletionTimestamp !== undefined && !isReleased(object)

const isSame = (now: Unstructured, then: Unstructured): boolean => isDeepStrictEqual(essence(now), essence(then))

const essence = ({
  apiVersion: _apiVersion,
  kind: _kind,
  status: _status,
  metadata,
  ...fields
}: Unstructured): unknown => {
  const { uid, labels = {}, annotations = {}, ownerReferences = [] } = metadata
  const { [annotation.deleteForMove]: _mark, [identityAnnotation.deleteInUse]: _says, ...kept } = annotations
  return { uid, labels, annotations: kept, ownerReferences, ...fields }
}
