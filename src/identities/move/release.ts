import { isDeepStrictEqual } from 'node:util'
import { annotation } from '../../api/index.ts'
import { isConflict, isNotFound, type Client, type Unstructured } from '../../kube/index.ts'
import { inParallel, stalled } from '../../runtime/index.ts'
import { annotation as identityAnnotation, identityResources } from '../contract.ts'
import { wavesOf, type Found, type Item } from './bundle.ts'
import { nameOf } from './marks.ts'

const width = 16

/**
 * Takes away at the source what is on the target: the reverse of how it was made. Finalizers go first, and with them the reason to do
 * anything in AWS: nobody ever sees one of these objects being deleted. Only what was copied goes, as it was when it was copied.
 */
export const releaseAll = async (client: Client, items: readonly Item[], signal: AbortSignal): Promise<void> => {
  for (const wave of wavesOf(items.filter(({ fate }) => fate === 'move')).toReversed())
    await inParallel(
      width,
      wave.map((item) => () => release(client, item, signal)),
    )
}

const release = async (client: Client, { resource, object }: Found, signal: AbortSignal): Promise<void> => {
  const of = client.of(resource, object.metadata.namespace)
  const name = object.metadata.name!
  let copied: Unstructured | undefined = object
  // Controllers say in the status that they have seen the pause: that is no change of what was copied.
  for (let tries = 0; copied && tries < 5; tries++) {
    try {
      const needsNothing = resource.group === '' && !copied.metadata.finalizers?.length
      const freed = needsNothing ? copied : await free(client, { resource, object: copied }, signal)
      const { uid, resourceVersion } = freed.metadata
      await of.delete(name, { preconditions: { uid, resourceVersion }, propagationPolicy: 'Background', signal })
      return
    } catch (error) {
      if (isNotFound(error)) return
      if (!isConflict(error)) throw error
      copied = await of.find(name, { signal })
      if (copied && !isSame(copied, object)) break
    }
  }
  if (copied)
    throw stalled('ChangedMeanwhile', {
      message: `${nameOf(resource, object)} was changed at the source after it was copied`,
      next: 'run the same command again: it brings the target up to date first',
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
