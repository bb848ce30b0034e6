import {
  apiVersionOf,
  isAlreadyExists,
  isNotFound,
  keyOf,
  type Api,
  type KubeObject,
  type Resource,
  type Unstructured,
} from '../kube/index.ts'
import { inParallel } from './parallel.ts'

/** A kind that the set may hold, and where its objects are cached. */
export interface ApplyTarget {
  resource: Resource<KubeObject>
  cache: { get(key: string): KubeObject | undefined }
}

export interface ApplySetOptions {
  client: Api
  targets: ApplyTarget[]
  fieldManager: string
  /** Requests under way at the same time. */
  concurrency?: number | undefined
  signal?: AbortSignal | undefined
}

export type Change = 'created' | 'updated' | 'replaced' | 'deleted'

/** Fields that cannot be changed in place: the object is deleted and made again. */
const immutable: Record<string, readonly string[]> = {
  RoleBinding: ['roleRef'],
  ClusterRoleBinding: ['roleRef'],
  Secret: ['type'],
}

/**
 * Brings a set of objects to their desired state, and deletes `obsolete` ones. What differs is found in the caches: when
 * nothing does, nothing is sent. All requests go out together; an error of one is thrown when the others are done.
 */
export const applySet = async (
  desired: readonly KubeObject[],
  options: ApplySetOptions & { obsolete?: readonly KubeObject[] | undefined },
): Promise<Map<string, Change>> => {
  const changes = new Map<KubeObject, Change>()
  const note = (object: KubeObject, change: Change | undefined): void => {
    if (change) changes.set(object, change)
  }
  const wanted = new Set(desired.map(identity))
  const obsolete = (options.obsolete ?? []).filter((object) => !wanted.has(identity(object)))
  await inParallel(options.concurrency ?? 16, [
    ...desired.map((object) => async () => note(object, await applyOne(object, options))),
    ...obsolete.map((object) => async () => note(object, await deleteOne(object, options))),
  ])
  // In the order that was asked for, whatever finished first.
  return new Map(
    [...desired, ...obsolete].flatMap((object) => {
      const change = changes.get(object)
      return change ? [[`${object.kind} ${keyOf(object)}`, change] as const] : []
    }),
  )
}

const identity = (object: KubeObject): string => `${object.apiVersion} ${object.kind} ${keyOf(object)}`

const targetOf = (object: KubeObject, targets: readonly ApplyTarget[]): ApplyTarget => {
  const found = targets.find(
    ({ resource }) => resource.kind === object.kind && apiVersionOf(resource) === object.apiVersion,
  )
  if (found) return found
  throw new Error(
    `${object.kind} of ${object.apiVersion} is not among the targets of this set: add its resource and cache`,
  )
}

const applyOne = async (desired: KubeObject, options: ApplySetOptions): Promise<Change | undefined> => {
  const { cache, resource } = targetOf(desired, options.targets)
  const { client, fieldManager, signal } = options
  const objects = client.of(resource, desired.metadata.namespace)
  const write = { fieldManager, signal }
  let present = cache.get(keyOf(desired))
  if (!present) {
    try {
      await objects.create(desired, write)
      return 'created'
    } catch (error) {
      // The cache is behind, or somebody else made it: compare with what is there.
      if (!isAlreadyExists(error)) throw error
      present = await objects.get(desired.metadata.name!, { signal })
    }
  }
  if (!differs(desired, present)) return undefined
  if (needsReplacement(desired, present)) {
    const { uid } = present.metadata
    await objects.delete(desired.metadata.name!, { preconditions: { uid }, signal })
    await objects.create(desired, write)
    return 'replaced'
  }
  // With its resourceVersion: if the cache was behind, this is a conflict, and the next reconcile sees more.
  await objects.update(merged(desired, present), write)
  return 'updated'
}

const deleteOne = async (object: KubeObject, options: ApplySetOptions): Promise<Change | undefined> => {
  if (object.metadata.deletionTimestamp) return undefined
  const { resource } = targetOf(object, options.targets)
  const { uid } = object.metadata
  try {
    const existed = await options.client
      .of(resource, object.metadata.namespace)
      .delete(object.metadata.name!, { preconditions: { uid }, signal: options.signal })
    return existed ? 'deleted' : undefined
  } catch (error) {
    if (isNotFound(error)) return undefined
    throw error
  }
}

/**
 * Whether the present object lacks something of the desired one. Labels, annotations and a `spec` may hold more than we ask
 * for (others write them, the server fills in defaults); every other field must be exactly ours, so that a rule or subject
 * that somebody added is taken out again.
 */
export const differs = (desired: KubeObject, present: KubeObject): boolean => {
  const { metadata, ...fields } = desired as Unstructured
  const actual = present as Unstructured
  if (!contains(actual.metadata.labels, metadata.labels)) return true
  if (!contains(actual.metadata.annotations, metadata.annotations)) return true
  if (!contains(actual.metadata.finalizers, metadata.finalizers)) return true
  if (!contains(actual.metadata.ownerReferences, metadata.ownerReferences)) return true
  return Object.entries(fields).some(([field, value]) => {
    if (field === 'apiVersion' || field === 'kind' || field === 'status') return false
    return field === 'spec' ? !contains(actual[field], value) : !equal(actual[field], value)
  })
}

const needsReplacement = (desired: KubeObject, present: KubeObject): boolean =>
  (immutable[desired.kind ?? ''] ?? []).some((field) => {
    const value = (desired as Unstructured)[field]
    return value !== undefined && !equal((present as Unstructured)[field], value)
  })

const merged = (desired: KubeObject, present: KubeObject): KubeObject => ({
  ...present,
  ...desired,
  metadata: {
    ...present.metadata,
    labels: { ...present.metadata.labels, ...desired.metadata.labels },
    annotations: { ...present.metadata.annotations, ...desired.metadata.annotations },
    finalizers: [...new Set([...(present.metadata.finalizers ?? []), ...(desired.metadata.finalizers ?? [])])],
    ownerReferences: desired.metadata.ownerReferences ?? present.metadata.ownerReferences,
  },
})

// The API leaves out what is empty: {}, [], '' and absent are one.
const isEmpty = (value: unknown): boolean =>
  value === undefined ||
  value === null ||
  value === '' ||
  (typeof value === 'object' && Object.keys(value).length === 0)

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null

/** Deep equality in which empty and absent are the same. */
export const equal = (a: unknown, b: unknown): boolean => {
  if (a === b || (isEmpty(a) && isEmpty(b))) return true
  if (!isRecord(a) || !isRecord(b) || Array.isArray(a) !== Array.isArray(b)) return false
  if (Array.isArray(a) && a.length !== (b as unknown as unknown[]).length) return false
  return [...new Set([...Object.keys(a), ...Object.keys(b)])].every((key) => equal(a[key], b[key]))
}

/** Whether everything in `part` is also in `whole`. Lists must have the same length. */
export const contains = (whole: unknown, part: unknown): boolean => {
  if (whole === part || isEmpty(part)) return true
  if (!isRecord(whole) || !isRecord(part) || Array.isArray(whole) !== Array.isArray(part)) return false
  if (Array.isArray(part) && part.length !== (whole as unknown as unknown[]).length) return false
  return Object.keys(part).every((key) => contains(whole[key], part[key]))
}
