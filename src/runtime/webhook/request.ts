import type { IncomingMessage } from 'node:http'
import type { Refusal, Route } from './review.ts'

/** The head of a request, before anything of its body is read. */
export interface Arrived {
  path: string
  method: string
  contentType: string
  /** What the client announces; undefined when it sends in chunks. */
  contentLength: number | undefined
  route: Route | undefined
}

/** Why a request is turned away; the order says which fault is named first. */
export const refusals: ((arrived: Arrived) => Refusal | false)[] = [
  (a) => !a.route && { status: 404, message: `there is no webhook at ${a.path}` },
  (a) => a.method !== 'POST' && { status: 405, message: 'reviews are sent with POST' },
  (a) => !/^application\/json\s*(;|$)/i.test(a.contentType) && { status: 415, message: 'reviews are application/json' },
  (a) => (a.contentLength ?? 0) > a.route!.bodyLimit && tooLarge(a.route!),
]

const tooLarge = (route: Route): Refusal => ({
  status: 413,
  message: `the body is larger than the ${route.bodyLimit} bytes that are read`,
})

/** The head of a request, for the routes there are. */
export const arrived = (request: IncomingMessage, routes: Readonly<Record<string, Route>>): Arrived => {
  const [path = ''] = (request.url ?? '').split('?', 1)
  const length = request.headers['content-length']
  return {
    path,
    method: request.method ?? '',
    contentType: request.headers['content-type'] ?? '',
    contentLength: length === undefined ? undefined : Number(length),
    route: Object.hasOwn(routes, path) ? routes[path] : undefined,
  }
}

/** The whole body, or why not. It rejects when the client goes away. */
export const bodyOf = async (request: IncomingMessage, route: Route): Promise<string | Refusal> => {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length
    // The rest is read and thrown away: a client that is still sending would see a reset instead of the answer.
    if (size <= route.bodyLimit) chunks.push(chunk)
    else chunks.length = 0
  }
  return size > route.bodyLimit ? tooLarge(route) : Buffer.concat(chunks).toString('utf8')
}

/** The time that the API server grants, from `?timeout=10s`: it is told in the query of every admission review. */
export const grantedMs = (url: string): number | undefined => {
  const seconds = /[?&]timeout=(\d+)s(&|$)/.exec(url)?.[1]
  return seconds === undefined ? undefined : Number(seconds) * 1000
}
