import type http from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import type { Connection, Credential } from './connection.ts'
import { ConnectionError } from './errors.ts'
import { explainNetworkError } from './explain.ts'
import { http1Pool, sendOverHttp1, type HttpAnswer, type HttpRequest } from './http1.ts'
import { Http2Sessions } from './http2.ts'

export interface TransportOptions {
  userAgent?: string | undefined
  /** Connections for everything but watches. */
  maxConnections?: number | undefined
  /** Until the whole answer is there; for a stream, until its head is. */
  timeoutMs?: number | undefined
}

export interface TransportRequest extends HttpRequest {
  timeoutMs?: number | undefined
}

export interface CompleteAnswer {
  status: number
  headers: http.IncomingHttpHeaders
  body: Buffer
  /** What the request was authenticated with, to explain a 401. */
  credential: Credential
}

interface Pool {
  credential: Credential
  requests: http.Agent
  streams: http.Agent
  sessions: Http2Sessions | undefined
  underWay: number
  retired: boolean
}

/** The connections to one API server as one identity: kept, shared, and made anew when the credential changes. */
export class Transport {
  readonly connection: Connection
  readonly #server: URL
  readonly #userAgent: string
  readonly #maxConnections: number
  readonly #timeoutMs: number
  #pool: Pool | undefined
  readonly #retired = new Set<Pool>()

  constructor(connection: Connection, options: TransportOptions = {}) {
    this.connection = connection
    this.#server = new URL(connection.server)
    this.#userAgent = options.userAgent ?? 'lanyard'
    this.#maxConnections = options.maxConnections ?? 32
    this.#timeoutMs = options.timeoutMs ?? 30_000
  }

  /** One request with its whole answer. */
  async request(request: TransportRequest): Promise<CompleteAnswer> {
    return this.#authenticated(request, async (pool, authenticated) =>
      this.#within(authenticated, async (limited) => {
        const answer = await sendOverHttp1(this.#server, pool.requests, limited)
        return { ...answer, body: await collect(answer), credential: pool.credential }
      }),
    )
  }

  /** One request whose answer is read as it comes. The signal ends it at any time. */
  async stream(request: TransportRequest): Promise<HttpAnswer & { credential: Credential }> {
    return this.#authenticated(request, async (pool, authenticated) => {
      const head = async (limited: HttpRequest): Promise<HttpAnswer> =>
        (await pool.sessions?.send(limited)) ?? sendOverHttp1(this.#server, pool.streams, limited)
      const answer = await this.#within(authenticated, head)
      const end = (): void => {
        answer.body.destroy(request.signal!.reason as Error)
      }
      request.signal?.addEventListener('abort', end, { once: true })
      pool.underWay++
      answer.body.once('close', () => {
        request.signal?.removeEventListener('abort', end)
        this.#finished(pool)
      })
      return { ...answer, credential: pool.credential }
    })
  }

  /** Ends every connection. What is under way fails. */
  close(): void {
    for (const pool of [...this.#retired, ...(this.#pool ? [this.#pool] : [])]) destroy(pool)
    this.#retired.clear()
    this.#pool = undefined
  }

  /** A 401 may mean that the credential has just been replaced: asks for a newer one, and tries once more if there is. */
  async #authenticated<A extends { status: number }>(
    request: TransportRequest,
    send: (pool: Pool, request: TransportRequest) => Promise<A>,
  ): Promise<A> {
    const { signal } = request
    const used = await this.connection.credentials(signal ? { signal } : {})
    const answer = await this.#through(used, request, send)
    if (answer.status !== 401) return answer
    const renewed = await this.connection.credentials(signal ? { rejected: used, signal } : { rejected: used })
    return renewed === used ? answer : this.#through(renewed, request, send)
  }

  async #through<A>(
    credential: Credential,
    request: TransportRequest,
    send: (pool: Pool, request: TransportRequest) => Promise<A>,
    again = true,
  ): Promise<A> {
    const pool = this.#poolFor(credential)
    const headers = { 'user-agent': this.#userAgent, ...authorization(credential), ...request.headers }
    const prefix = this.#server.pathname.replace(/\/$/, '')
    pool.underWay++
    try {
      return await send(pool, { ...request, path: prefix + request.path, headers })
    } catch (error) {
      if (request.signal?.aborted) throw request.signal.reason
      if (error instanceof ConnectionError) throw error
      // The server closed a kept connection just as we sent into it. Safe to repeat for everything but a POST.
      const stale = (error as { reusedSocket?: boolean }).reusedSocket && request.method !== 'POST'
      if (stale && again) return await this.#through(credential, request, send, false)
      throw explainNetworkError(this.#failed(request), this.connection, error)
    } finally {
      this.#finished(pool)
    }
  }

  async #within<A>(request: TransportRequest, send: (request: HttpRequest) => Promise<A>): Promise<A> {
    const timeoutMs = request.timeoutMs ?? this.#timeoutMs
    const limit = new AbortController()
    const timer = setTimeout(() => {
      limit.abort(
        new ConnectionError(this.#failed(request), {
          code: 'REQUEST_TIMEOUT',
          why: `no answer within ${timeoutMs / 1000} s`,
          next: 'the API server is down, overloaded or cut off: look at its health, and at what stands between',
        }),
      )
    }, timeoutMs)
    // Not AbortSignal.any: callers pass signals that live as long as the process, and this runs for every request.
    const forward = (): void => limit.abort(request.signal!.reason)
    request.signal?.addEventListener('abort', forward, { once: true })
    if (request.signal?.aborted) forward()
    try {
      return await Promise.race([send({ ...request, signal: limit.signal }), aborted(limit.signal)])
    } finally {
      clearTimeout(timer)
      request.signal?.removeEventListener('abort', forward)
    }
  }

  #failed(request: HttpRequest): ConnectionError['request'] {
    const { server, source } = this.connection
    return { server, source, method: request.method, path: request.path.split('?')[0]! }
  }

  #poolFor(credential: Credential): Pool {
    const current = this.#pool
    if (current && sameTls(current.credential, credential)) {
      current.credential = credential
      return current
    }
    if (current) {
      current.retired = true
      this.#retired.add(current)
      if (current.underWay === 0) this.#dispose(current)
    }
    this.#pool = {
      credential,
      requests: http1Pool(this.connection, credential, this.#maxConnections),
      streams: http1Pool(this.connection, credential, Infinity),
      sessions: this.#server.protocol === 'https:' ? new Http2Sessions(this.connection, credential) : undefined,
      underWay: 0,
      retired: false,
    }
    return this.#pool
  }

  #finished(pool: Pool): void {
    if (--pool.underWay === 0 && pool.retired) this.#dispose(pool)
  }

  #dispose(pool: Pool): void {
    this.#retired.delete(pool)
    destroy(pool)
  }
}

const destroy = (pool: Pool): void => {
  pool.requests.destroy()
  pool.streams.destroy()
  pool.sessions?.close()
}

// Dialling and a proxy's answer do not listen to the signal themselves.
const aborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    const fail = (): void => reject(signal.reason as Error)
    if (signal.aborted) fail()
    else signal.addEventListener('abort', fail, { once: true })
  })

const sameTls = (a: Credential, b: Credential): boolean =>
  a === b || (a.ca === b.ca && a.cert === b.cert && a.key === b.key)

const authorization = (credential: Credential): Record<string, string> => {
  if (credential.token) return { authorization: `Bearer ${credential.token}` }
  if (!credential.basic) return {}
  const { username, password } = credential.basic
  return { authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}` }
}

const collect = async (answer: HttpAnswer): Promise<Buffer> => {
  const chunks: Buffer[] = []
  for await (const chunk of answer.body) chunks.push(chunk as Buffer)
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)
}

/** Waits as long as the server asked, with up to a quarter more so that many clients do not return at once. */
export const pause = async (ms: number, random: () => number, signal?: AbortSignal): Promise<void> => {
  await wait(ms * (1 + random() / 4), undefined, signal ? { signal } : {})
}
