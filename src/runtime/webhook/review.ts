import { systemClock, type Clock } from '../clock.ts'
import type { Logger } from '../log.ts'

/** What a handler gets beside the review. */
export interface Context {
  /** Fires when nobody waits for the answer any more: the time is up, or the API server hung up. */
  signal: AbortSignal
  log: Logger
}

/** The `request` of a review, as it came in. */
export type ReviewRequest = Record<string, unknown> & { uid: string }

/** What answers one path: the server knows HTTP, a route knows its kind of review. */
export interface Route {
  apiVersion: string
  kind: string
  /** Bytes. */
  bodyLimit: number
  /** The `response` without its uid; a `BadReview` becomes a 400, every other error a `failure`. */
  answer(request: ReviewRequest, context: Context): Promise<object>
  /** The `response` in place of one that did not come. */
  failure(code: 500 | 504, message: string): object
}

/** Why a request gets no review: an HTTP status and one line for the person who looks into it. */
export interface Refusal {
  status: number
  message: string
}

/** The request is not what its kind promises. */
export class BadReview extends Error {
  override name = 'BadReview'
}

/** How a review is answered. */
export interface ReviewOptions extends Context {
  /** Names the webhook in messages. */
  path: string
  timeoutMs: number
  clock?: Clock | undefined
}

/** Answers the body of a review with the body of the answer. A handler may throw or hang; the answer comes all the same. */
export const answerReview = async (
  route: Route,
  body: string,
  options: ReviewOptions,
): Promise<Refusal | { body: string }> => {
  try {
    return { body: await answered(route, requestIn(body, route), options) }
  } catch (error) {
    if (error instanceof BadReview) return { status: 400, message: error.message }
    throw error
  }
}

const answered = async (route: Route, request: ReviewRequest, options: ReviewOptions): Promise<string> => {
  const { apiVersion, kind } = route
  const { uid } = request
  const { path, log } = options
  const review = (response: object): string => JSON.stringify({ apiVersion, kind, response: { ...response, uid } })
  try {
    return review(await inTime(route, request, options))
  } catch (error) {
    if (error instanceof BadReview) throw error
    log.error('webhook failed', { webhook: path, uid, error })
    if (error instanceof TooLate) return review(route.failure(504, `webhook ${path} ${error.message}`))
    // The error's own text stays in the log: it was not written for whoever sent the object, and may hold a secret.
    return review(route.failure(500, `webhook ${path} failed; its log says why, under uid ${uid}`))
  }
}

class TooLate extends Error {
  override name = 'TooLate'
}

const inTime = async (route: Route, request: ReviewRequest, options: ReviewOptions): Promise<object> => {
  const { timeoutMs, clock = systemClock, log } = options
  const late = new AbortController()
  const cancel = clock.after(timeoutMs, () => late.abort(new TooLate(`did not answer within ${timeoutMs / 1000} s`)))
  const signal = AbortSignal.any([options.signal, late.signal])
  const { promise: abandoned, reject } = Promise.withResolvers<never>()
  signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
  try {
    return await Promise.race([route.answer(request, { signal, log }), abandoned])
  } finally {
    cancel()
  }
}

const requestIn = (body: string, route: Route): ReviewRequest => {
  const review = parsed(body)
  if (!isRecord(review)) throw new BadReview('the body is not a JSON object')
  if (review['kind'] !== route.kind || review['apiVersion'] !== route.apiVersion)
    throw new BadReview(`the body is no ${route.kind} of ${route.apiVersion}`)
  const request = review['request']
  if (!isRecord(request) || typeof request['uid'] !== 'string')
    throw new BadReview(`the ${route.kind} has no request with a uid`)
  return request as ReviewRequest
}

const parsed = (body: string): unknown => {
  try {
    return JSON.parse(body)
  } catch {
    return undefined
  }
}

/** A JSON object, neither null nor an array. */
export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
