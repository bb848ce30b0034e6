import { isDeepStrictEqual } from 'node:util'
import type { Unstructured } from '../kube/index.ts'
import { annotation } from './names.ts'

/** A value somewhere in an object; undefined where it is absent. */
export type Values = Record<string, unknown>

/** Corresponding places of the two versions, each by a short name, and how what stands there is said in the other. */
export interface Part {
  v1alpha1: Record<string, string[]>
  v1beta1: Record<string, string[]>
  up: (v1alpha1: Values) => Values
  down: (v1beta1: Values) => Values
}

type Step = { from: 'v1alpha1' | 'v1beta1'; to: 'v1alpha1' | 'v1beta1'; there: 'up' | 'down'; back: 'up' | 'down' }

const steps: Record<string, Step> = {
  v1beta1: { from: 'v1alpha1', to: 'v1beta1', there: 'up', back: 'down' },
  v1alpha1: { from: 'v1beta1', to: 'v1alpha1', there: 'down', back: 'up' },
}

/** What the other version could not say, on the object in that other version. */
const remainderOf = { v1alpha1: annotation.v1alpha1Fields, v1beta1: annotation.v1beta1Fields }

/**
 * Converts part by part. When the way back would not give the same again, the part is kept as it was in an annotation.
 * A kept part is used on the way back if the part was not changed meanwhile; so nothing is lost in either direction,
 * and nothing outdated comes back. Whatever is in the object, this never throws: one bad object would stop every list.
 */
export const convertLossless = (
  parts: Record<string, Part>,
  object: Unstructured,
  toApiVersion: string,
): Unstructured => {
  if (object.apiVersion === toApiVersion) return object
  const step = steps[toApiVersion.slice(toApiVersion.indexOf('/') + 1)]
  if (!step) throw new Error(`${object.kind} has the versions v1alpha1 and v1beta1, not ${toApiVersion}`)

  const result: Unstructured = { ...structuredClone(object), apiVersion: toApiVersion }
  const kept = keptParts(take(result, ['metadata', 'annotations', remainderOf[step.to]]))
  const remainder: Record<string, Values> = {}
  for (const [name, part] of Object.entries(parts)) {
    const before = compact(mapValues(part[step.from], (path) => take(result, path)))
    const known = kept[name]
    const after =
      known && isDeepStrictEqual(compact(part[step.back](known)), before) ? known : compact(part[step.there](before))
    if (!isDeepStrictEqual(compact(part[step.back](after)), before)) remainder[name] = before
    for (const [key, path] of Object.entries(part[step.to])) put(result, path, after[key])
  }
  const left = Object.keys(remainder).length > 0 ? JSON.stringify(remainder) : undefined
  put(result, ['metadata', 'annotations', remainderOf[step.from]], left)
  return withoutEmptyAnnotations(result)
}

/** Anybody can write the annotation: what is not an object of objects is as good as absent. */
const keptParts = (text: unknown): Record<string, Values> => {
  if (typeof text !== 'string') return {}
  try {
    const parsed: unknown = JSON.parse(text)
    return isObject(parsed)
      ? (Object.fromEntries(Object.entries(parsed).filter(([, part]) => isObject(part))) as never)
      : {}
  } catch {
    return {}
  }
}

/** A plain JSON object. */
export const isObject = (value: unknown): value is Values =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const take = (object: Values, [first, ...rest]: string[]): unknown => {
  const value = object[first!]
  if (rest.length > 0) return isObject(value) ? take(value, rest) : undefined
  delete object[first!]
  return value
}

const put = (object: Values, [first, ...rest]: string[], value: unknown): void => {
  if (value === undefined) return
  if (rest.length === 0) {
    object[first!] = value
    return
  }
  const parent = (object[first!] ??= {})
  if (isObject(parent)) put(parent, rest, value)
}

const mapValues = (paths: Record<string, string[]>, of: (path: string[]) => unknown): Values =>
  Object.fromEntries(Object.entries(paths).map(([key, path]) => [key, of(path)]))

/** Without the fields that are undefined: absent and undefined are the same in JSON. */
export const compact = (values: Values): Values =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined))

// The API server does not store an empty map of annotations either.
const withoutEmptyAnnotations = (object: Unstructured): Unstructured => {
  const { annotations } = object.metadata
  if (annotations && Object.keys(annotations).length === 0) delete object.metadata.annotations
  return object
}
