import { keyOf, type KubeObject, type Unstructured } from '../../kube/index.ts'
import { BadReview, isRecord, type ReviewRequest, type Route } from './review.ts'

/** The same object in another version. It need not care about metadata: all but labels and annotations is kept as it was. */
export type Convert = (object: Unstructured, toApiVersion: string) => KubeObject

/** By `group/Kind`. */
export type Conversions = Readonly<Record<`${string}/${string}`, Convert>>

/** What the API server asks: these objects, in that version. */
export interface ConversionRequest {
  uid: string
  desiredAPIVersion: string
  objects: Unstructured[]
}

/** All objects in their order, or none and the reason. */
export interface ConversionResponse {
  convertedObjects: KubeObject[]
  result: { status: 'Success' } | { status: 'Failure'; message: string }
}

/** The wire form around a request. */
export interface ConversionReview {
  apiVersion: 'apiextensions.k8s.io/v1'
  kind: 'ConversionReview'
  request?: ConversionRequest
  response?: ConversionResponse & { uid: string }
}

const failure = (message: string): ConversionResponse => ({
  convertedObjects: [],
  result: { status: 'Failure', message },
})

/** A route that converts custom resources between their versions. */
export const converting = (conversions: Conversions): Route => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'ConversionReview',
  // A list may come as one review.
  bodyLimit: 32 * 1024 * 1024,
  failure: (_code, message) => failure(message),
  answer: async (review, { log }): Promise<ConversionResponse> => {
    const { desiredAPIVersion, objects } = conversionRequest(review)
    const convertedObjects: KubeObject[] = []
    for (const object of objects) {
      try {
        convertedObjects.push(convertOne(conversions, object, desiredAPIVersion))
      } catch (error) {
        log.error('conversion failed', { uid: review.uid, object: describe(object), to: desiredAPIVersion, error })
        const why = error instanceof Error ? error.message : String(error)
        return failure(`${describe(object)} cannot be converted to ${desiredAPIVersion}: ${why}`)
      }
    }
    return { convertedObjects, result: { status: 'Success' } }
  },
})

const convertOne = (conversions: Conversions, object: Unstructured, toApiVersion: string): KubeObject => {
  if (object.apiVersion === toApiVersion) return object
  const group = groupOf(toApiVersion)
  if (groupOf(object.apiVersion ?? '') !== group) throw new Error('the groups differ')
  const key = `${group}/${object.kind}` as const
  const convert = Object.hasOwn(conversions, key) ? conversions[key] : undefined
  if (!convert) throw new Error(`there is no conversion for ${key}`)

  const { labels: _labels, annotations: _annotations, ...kept } = structuredClone(object.metadata)
  const { kind } = object
  const converted = convert(object, toApiVersion)
  const { labels, annotations } = converted.metadata
  // The API server refuses an answer in which the rest of the metadata differs.
  const metadata = { ...kept, ...(labels ? { labels } : {}), ...(annotations ? { annotations } : {}) }
  return { ...converted, apiVersion: toApiVersion, kind, metadata }
}

const conversionRequest = (request: ReviewRequest): ConversionRequest => {
  const { uid, desiredAPIVersion, objects } = request
  if (typeof desiredAPIVersion !== 'string') throw new BadReview('request.desiredAPIVersion is not a string')
  if (!Array.isArray(objects)) throw new BadReview('request.objects is not a list')
  if (!objects.every((one) => isRecord(one) && isRecord(one['metadata'])))
    throw new BadReview('request.objects holds something that is not an object with metadata')
  return { uid, desiredAPIVersion, objects: objects as Unstructured[] }
}

const groupOf = (apiVersion: string): string => apiVersion.split('/').slice(0, -1).join('/')

const describe = (object: Unstructured): string => `${object.kind} ${keyOf(object)} of ${object.apiVersion}`
