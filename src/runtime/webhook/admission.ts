import type { KubeObject, Unstructured } from '../../kube/index.ts'
import { admitted, denied, type AdmissionResponse, type Denial, type Warned } from './admission-response.ts'
import { jsonPatch } from './json-patch.ts'
import { BadReview, isRecord, type Context, type ReviewRequest, type Route } from './review.ts'

/** As which kind an object is shown. */
export interface GroupVersionKind {
  group: string
  version: string
  kind: string
}

/** Through which collection it was written. */
export interface GroupVersionResource {
  group: string
  version: string
  resource: string
}

/** Who sent the object, as the API server authenticated them. */
export interface UserInfo {
  username: string
  uid?: string
  groups?: string[]
  extra?: Record<string, string[]>
}

/** What the API server asks: whether, and how, this object may be stored. Absent parts are absent here, never null. */
export interface AdmissionRequest<T> {
  uid: string
  kind: GroupVersionKind
  resource: GroupVersionResource
  subResource?: string
  /** What the client sent, where the API server converted it to the version that the webhook asked for. */
  requestKind?: GroupVersionKind
  requestResource?: GroupVersionResource
  requestSubResource?: string
  /** Absent while the server has still to make one up from `generateName`. */
  name?: string
  namespace?: string
  operation: 'CREATE' | 'UPDATE' | 'DELETE' | 'CONNECT'
  userInfo: UserInfo
  /** Absent on DELETE. */
  object?: T
  /** Absent on CREATE. */
  oldObject?: T
  /** Nothing will be stored: a handler must leave no trace either. */
  dryRun: boolean
  options?: Unstructured
}

/** The wire form around a request. */
export interface AdmissionReview<T> {
  apiVersion: 'admission.k8s.io/v1'
  kind: 'AdmissionReview'
  request?: AdmissionRequest<T>
  response?: AdmissionResponse & { uid: string }
}

/** Says no with a `Denial`; anything else admits. */
export type Validate<T> = (
  request: AdmissionRequest<T>,
  context: Context,
) => Promise<Denial | Warned | undefined> | Denial | Warned | undefined

/**
 * Returns the object as it should be, or undefined to leave it; the one in the request is a copy, and may be changed.
 * It comes before the API server has checked the object against its schema, so its fields may be of any type.
 */
export type Mutate<T> = (request: AdmissionRequest<T>, context: Context) => Promise<Mutation<T>> | Mutation<T>
/** What a mutating handler may say. An object is known by its metadata, a denial by its reason. */
export type Mutation<T> = T | Denial | Warned<T> | undefined

/** A route that judges objects. */
export const validating = <T extends KubeObject>(validate: Validate<T>): Route =>
  admission(async (request: AdmissionRequest<T>, context) => {
    const verdict = await validate(request, context)
    if (!verdict) return { allowed: true }
    return 'reason' in verdict ? denied(verdict, request) : admitted(verdict.warnings)
  })

/** A route that changes objects; what differs goes back as a JSON Patch. */
export const mutating = <T extends KubeObject>(mutate: Mutate<T>): Route =>
  admission(async (request: AdmissionRequest<T>, context) => {
    const result = await mutate({ ...request, ...copied(request.object) }, context)
    if (!result) return { allowed: true }
    if ('metadata' in result) return patched(request.object, result)
    if ('reason' in result) return denied(result, request)
    return { ...patched(request.object, result.object), ...admitted(result.warnings) }
  })

const admission = <T>(
  decide: (request: AdmissionRequest<T>, context: Context) => Promise<AdmissionResponse>,
): Route => ({
  apiVersion: 'admission.k8s.io/v1',
  kind: 'AdmissionReview',
  // The API server reads objects of up to 3 MiB, and an update brings the old one too.
  bodyLimit: 7 * 1024 * 1024,
  answer: async (request, context) => decide(admissionRequest<T>(request), context),
  failure: (code, message) => ({
    allowed: false,
    status: { status: 'Failure', code, reason: code === 504 ? 'Timeout' : 'InternalError', message },
  }),
})

const operations = new Set<unknown>(['CREATE', 'UPDATE', 'DELETE', 'CONNECT'])

const admissionRequest = <T>(request: ReviewRequest): AdmissionRequest<T> => {
  if (!operations.has(request['operation'])) throw new BadReview('request.operation is none of the four')
  for (const part of ['kind', 'resource', 'userInfo'])
    if (!isRecord(request[part])) throw new BadReview(`request.${part} is not an object`)
  for (const part of ['object', 'oldObject', 'options'])
    if (!isRecord(request[part] ?? {})) throw new BadReview(`request.${part} is not an object`)
  const present = Object.entries(request).filter(([, value]) => value !== null)
  return { dryRun: false, ...Object.fromEntries(present) } as unknown as AdmissionRequest<T>
}

const copied = <T>(object: T | undefined): { object?: T } =>
  object === undefined ? {} : { object: structuredClone(object) }

const patched = <T>(before: T | undefined, after: T | undefined): AdmissionResponse => {
  if (before === undefined || after === undefined) return { allowed: true }
  // As it will be on the wire: what JSON leaves out is a field that was removed.
  const operations = jsonPatch(before, JSON.parse(JSON.stringify(after)))
  if (operations.length === 0) return { allowed: true }
  return {
    allowed: true,
    patchType: 'JSONPatch',
    patch: Buffer.from(JSON.stringify(operations)).toString('base64'),
  }
}
