import { isAlreadyExists, isInvalid, type ApiError, type Unstructured } from '../../../kube/index.ts'
import { contains, equal } from '../../../runtime/index.ts'
import { withOwnership } from '../ownership.ts'
import { contentFor, contentOf, mustBeReplaced } from './fields.ts'
import { ApplyProblem, type Applied, type ApplyContext, type Strategy } from './strategy.ts'

const fieldManager = 'work-agent'

/** The object is as the manifest says; labels, annotations, finalizers and owners of others stay. */
export const update: Strategy = async (context) => {
  const { objects, desired, signal } = context
  const present = await presentOrCreated(context)
  if (isCreated(present)) return present
  assertNotLeaving(present)
  if (mustBeReplaced(desired, present, (a, b) => !equal(a, b))) return replace(context, present)
  const next = merged(context, present)
  const metadataFits = equal(next.metadata, present.metadata)
  if (metadataFits && (context.isAsApplied(present) || equal(contentOf(next), contentOf(present))))
    return { live: present }
  await context.mayWrite(next, present)
  try {
    const live = await objects.update(next, { fieldManager, signal })
    // The server writes nothing when, with its defaults filled in, nothing differs.
    const changed = live.metadata.resourceVersion !== present.metadata.resourceVersion
    return changed ? { live, change: 'updated' } : { live }
  } catch (error) {
    if (!isInvalid(error)) throw error
    // It can't be written as a whole, but holds all that the manifest asks for: the server filled in the rest.
    if (metadataFits && contains(contentOf(present), contentOf(desired))) return { live: present }
    throw immutable(error)
  }
}

/** The object as it is, or as it was just made. Looking first would double the requests of a new work. */
export const presentOrCreated = async (
  context: ApplyContext,
): Promise<Unstructured | (Applied & { change: 'created' })> => {
  const { objects, desired, unseen, signal } = context
  if (unseen) {
    try {
      return await create(context)
    } catch (error) {
      if (!isAlreadyExists(error)) throw error
    }
  }
  const present = await objects.find(desired.metadata.name!, { signal })
  if (!present) return create(context)
  context.mayTake(present)
  return present
}

export const isCreated = (of: Unstructured | Applied): of is Applied & { change: 'created' } =>
  'live' in of && 'change' in of && !('metadata' in of)

/** Makes an object that was not there. */
const create = async (context: ApplyContext): Promise<Applied & { change: 'created' }> => {
  const { objects, desired, owner, signal } = context
  const ownerReferences = withOwnership(desired.metadata.ownerReferences, owner)
  const object: Unstructured = { ...desired, metadata: { ...desired.metadata, ownerReferences } }
  await context.mayWrite(object, undefined)
  return { live: await objects.create(object, { fieldManager, signal }), change: 'created' }
}

const replace = async (context: ApplyContext, present: Unstructured): Promise<Applied> => {
  const { objects, desired, owner, signal } = context
  const { uid } = present.metadata
  const ownerReferences = withOwnership(present.metadata.ownerReferences, owner)
  const object: Unstructured = { ...desired, metadata: { ...metadataFor(context, present), ownerReferences } }
  await context.mayWrite(object, undefined)
  await objects.delete(desired.metadata.name!, { preconditions: { uid }, signal })
  try {
    return { live: await objects.create(object, { fieldManager, signal }), change: 'replaced' }
  } catch (error) {
    if (isAlreadyExists(error))
      throw new ApplyProblem('it is made anew, for a field of it cannot be changed, and the old one is not gone yet')
    throw error
  }
}

const merged = (context: ApplyContext, present: Unstructured): Unstructured => {
  const { desired, owner } = context
  return {
    apiVersion: desired.apiVersion,
    kind: desired.kind,
    ...('status' in present ? { status: present['status'] } : {}),
    ...contentFor(desired, present),
    metadata: {
      ...present.metadata,
      ...metadataFor(context, present),
      ownerReferences: withOwnership(
        [...(present.metadata.ownerReferences ?? []), ...missingOwners(desired, present)],
        owner,
      ),
    },
  }
}

const metadataFor = ({ desired }: ApplyContext, present: Unstructured): Unstructured['metadata'] => ({
  name: present.metadata.name,
  namespace: present.metadata.namespace,
  labels: { ...present.metadata.labels, ...desired.metadata.labels },
  annotations: { ...present.metadata.annotations, ...desired.metadata.annotations },
  finalizers: [...new Set([...(present.metadata.finalizers ?? []), ...(desired.metadata.finalizers ?? [])])],
})

const missingOwners = (desired: Unstructured, present: Unstructured) =>
  (desired.metadata.ownerReferences ?? []).filter(
    (wanted) => !present.metadata.ownerReferences?.some(({ uid }) => uid === wanted.uid),
  )

/** An object on its way out can only be waited for. */
export const assertNotLeaving = (present: Unstructured): void => {
  if (!present.metadata.deletionTimestamp) return
  const held = present.metadata.finalizers?.length ? `; it is held by ${present.metadata.finalizers.join(', ')}` : ''
  throw new ApplyProblem(`somebody is deleting it; it is made anew when it is gone${held}`)
}

const immutable = (error: ApiError): ApplyProblem => {
  const fields = error.details.causes?.map(({ field, message }) => `${field}: ${message}`) ?? []
  const said = fields.length ? fields.join('; ') : error.serverMessage
  return new ApplyProblem(
    `the API server refuses the change: ${said}; a field that cannot be changed needs the object to be deleted, or another name in the manifest`,
    { cause: error },
  )
}
