import { CustomResourceDefinition, isNotFound, type Api } from '../kube/index.ts'

/** What is changed of a definition only so that it is changed. */
const reminder = 'lanyard.io/reminder-of-deletion'

/**
 * Whether the API server may have forgotten that it is to delete a definition. It fails to when the storage of a new kind is not up
 * yet, and if its cache is behind at the next try it takes the conflict for a change by others, and waits for news of it (seen with
 * 1.36). Its own resync, after five minutes, ends that, or any change of the object.
 */
export const isForgotten = ({ metadata, status }: CustomResourceDefinition): boolean =>
  metadata.deletionTimestamp !== undefined &&
  (status?.conditions?.some(({ type, reason }) => type === 'Terminating' && reason === 'InstanceDeletionFailed') ??
    false)

/** Makes the API server look again. */
export const remindOfDeletion = async (
  client: Api,
  { metadata: { name, uid, resourceVersion } }: CustomResourceDefinition,
  signal: AbortSignal,
): Promise<void> => {
  const merge = { metadata: { uid, annotations: { [reminder]: resourceVersion } } }
  await client
    .of(CustomResourceDefinition)
    .patch(name!, { merge }, { signal })
    .catch((error: unknown) => {
      if (!isNotFound(error)) throw error
    })
}
