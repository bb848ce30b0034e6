import { once } from 'node:events'
import type { EventEmitter } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { constants, type Http2ServerRequest } from 'node:http2'

/** What a matcher sees of a request. */
export interface FaultRequest {
  method: string
  path: string
  query: URLSearchParams
  watch: boolean
  userAgent: string
}

/** Which requests: by a function, or by what is given; a path is exact, or a pattern. */
export type Matcher =
  | ((request: FaultRequest) => boolean)
  | { method?: string; path?: string | RegExp; watch?: boolean; userAgent?: string }

/** Whether a request is one of those meant. */
export const matches = (matcher: Matcher, request: FaultRequest): boolean => {
  if (typeof matcher === 'function') return matcher(request)
  const { method, path, watch, userAgent } = matcher
  return (
    (method === undefined || method === request.method) &&
    (path === undefined || (typeof path === 'string' ? path === request.path : path.test(request.path))) &&
    (watch === undefined || watch === request.watch) &&
    (userAgent === undefined || request.userAgent.startsWith(userAgent))
  )
}

/** A request as node:http2 hands it over, by the protocol that the client chose. */
export type Incoming = IncomingMessage | Http2ServerRequest

/** What the responses of both protocols have in common. */
export interface Outgoing extends EventEmitter {
  readonly destroyed: boolean
  writeHead: (status: number, headers: Record<string, string | string[]>) => unknown
  flushHeaders?: () => void
  write: (chunk: Uint8Array, written: () => void) => boolean
  end: (body: string) => unknown
}

/** One request on its way through the proxy, as long as it is open. */
export class Exchange {
  readonly request: FaultRequest
  /** Ends it in the middle: HTTP/1.1 loses its connection, HTTP/2 its stream. */
  readonly cut: () => void
  readonly #outgoing: Outgoing
  readonly #closed: Promise<unknown>

  constructor(incoming: Incoming, outgoing: Outgoing) {
    const url = new URL(incoming.url ?? '/', 'https://proxy')
    const watch = url.searchParams.get('watch')
    this.request = {
      method: incoming.method ?? 'GET',
      path: url.pathname,
      query: url.searchParams,
      watch: watch === 'true' || watch === '1',
      userAgent: incoming.headers['user-agent'] ?? '',
    }
    this.#outgoing = outgoing
    this.cut = cutterOf(incoming)
    outgoing.on('error', () => this.cut())
    this.#closed = once(outgoing, 'close').catch(() => undefined)
  }

  /** Resolves when the answer is complete, or either side has given up. */
  get closed(): Promise<unknown> {
    return this.#closed
  }

  /** Sends the head of the answer at once: a watch may have nothing to say for long. */
  begin(status: number, headers: Record<string, string | string[]>): void {
    if (this.#outgoing.destroyed) return
    this.#outgoing.writeHead(status, headers)
    this.#outgoing.flushHeaders?.() // HTTP/2 has done it already
  }

  /** Resolves when the chunk has left, or nobody waits for it any more. */
  async write(chunk: Uint8Array): Promise<void> {
    if (this.#outgoing.destroyed) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#outgoing.write(chunk, resolve)
    await Promise.race([promise, this.#closed])
  }

  end(body = ''): void {
    if (!this.#outgoing.destroyed) this.#outgoing.end(body)
  }
}

const cutterOf = (incoming: Incoming): (() => void) => {
  if (!('stream' in incoming)) return () => incoming.socket.destroy()
  const { stream } = incoming // a request that has been closed knows it no more
  return () => stream.close(constants.NGHTTP2_INTERNAL_ERROR)
}
