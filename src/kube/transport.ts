import type http from 'node:http'
import { addAbortSignal, finished, Readable } from 'node:stream'
import { orAborted } from './abort.ts'
import type { Connection, Credential } from './connection.ts'
import { ConnectionError, type FailedRequest } from './errors.ts'
import { explainNetworkError, explainTimeout } from './explain.ts'
import { HttpFailure, sendOverHttp1, type HttpAnswer, type HttpRequest } from './http1.ts'
import { Pools, type Pool } from './pools.ts'
import { Slots } from './slots.ts'

/** One answer, for metrics. */
export interface AnswerReport {
  method: string
  /** 0 when there was none. */
  status: number
  durationMs: number
  /** With the port. */
  host: string
}

export interface TransportOptions {
  userAgent?: string | undefined
  /** Connections for everything but watches; what comes on top waits for its turn. */
  maxConnections?: number | undefined
  /** Until the whole answer is there; for a stream, until its head is. The wait for a connection does not count. */
  timeoutMs?: number | undefined
  /** Until a proxy has answered, and for a stream until the TLS handshake is done. */
  connectTimeoutMs?: number | undefined
  /** The connection of a watch that has been silent for so long is asked whether it lives, */
  pingAfterMs?: number | undefined
  /** and given up when it does not answer within this. */
  pingTimeoutMs?: number | undefined
  /** Told about every answer, and every request that got none; a request that is sent again counts again. */
  onAnswer?: ((about: AnswerReport) => void) | undefined
  now?: (() => number) | undefined
}

type Settings = { [K in keyof TransportOptions]-?: NonNullable<TransportOptions[K]> }

/** Pings as client-go does them. */
const defaults: Settings = {
  userAgent: 'lanyard',
  maxConnections: 32,
  timeoutMs: 30_000,
  connectTimeoutMs: 15_000,
  pingAfterMs: 30_000,
  pingTimeoutMs: 15_000,
  onAnswer: () => {},
  now: Date.now,
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

type Send<A> = (pool: Pool, request: HttpRequest) => Promise<A>

/** The connections to one API server as one identity: kept, shared, and made anew when the credential changes. */
export class Transport {
  readonly connection: Connection
  readonly #server: URL
  readonly #prefix: string
  readonly #options: Settings
  readonly #pools: Pools
  readonly #slots: Slots
  readonly #underWay = new Set<AbortController>()
  #closed = false

  constructor(connection: Connection, options: TransportOptions = {}) {
    this.connection = connection
    this.#server = new URL(connection.server)
    this.#prefix = this.#server.pathname.replace(/\/$/, '')
    this.#options = withDefaults(options)
    this.#pools = new Pools(connection, this.#options)
    this.#slots = new Slots(this.#options.maxConnections)
  }

  /** One request with its whole answer. */
  async request(request: TransportRequest): Promise<CompleteAnswer> {
    const send: Send<Omit<CompleteAnswer, 'credential'>> = async (pool, limited) => {
      const answer = await sendOverHttp1(this.#server, pool.http1, limited)
      return { ...answer, body: await collect(answer.body) }
    }
    return this.#slots.run(() => this.#authenticated(request, send), request.signal)
  }

  /** One request whose answer is read as it comes. The signal ends it at any time. A refusal is read here. */
  async stream(request: TransportRequest): Promise<HttpAnswer & { credential: Credential }> {
    return this.#authenticated(request, async (pool, limited) => {
      const answer = (await pool.http2?.send(limited)) ?? (await sendOverHttp1(this.#server, pool.http1, limited))
      if (answer.status >= 300) return { ...answer, body: Readable.from([await collect(answer.body)]) }
      keepOpen(answer.body, pool, request.signal)
      return answer
    })
  }

  /** Ends every connection. What is under way fails, and so does what comes later. */
  close(): void {
    this.#closed = true
    for (const limit of this.#underWay) limit.abort()
    this.#pools.close()
  }

  /** A 401 may mean that the credential has just been replaced: asks for a newer one, and tries once more if there is. */
  async #authenticated<A extends { status: number }>(
    request: TransportRequest,
    send: Send<A>,
  ): Promise<A & { credential: Credential }> {
    const signal = request.signal ? { signal: request.signal } : {}
    const used = await this.connection.credentials(signal)
    const answer = await this.#exchange(used, request, send)
    if (answer.status !== 401) return answer
    const renewed = await this.connection.credentials({ rejected: used, ...signal })
    return renewed === used ? answer : this.#exchange(renewed, request, send)
  }

  /** The server may close a kept connection just as we send into it: what can do no harm is then sent once more. */
  async #exchange<A extends { status: number }>(credential: Credential, request: TransportRequest, send: Send<A>) {
    for (let again = mayRepeat(request); ; again = false) {
      try {
        return await this.#once(credential, request, send)
      } catch (error) {
        if (again && error instanceof HttpFailure && error.reused) continue
        throw this.#explained(credential, request, error)
      }
    }
  }

  async #once<A extends { status: number }>(credential: Credential, request: TransportRequest, send: Send<A>) {
    const pool = this.#pools.enter(credential)
    const started = performance.now()
    const report = (status: number): void =>
      this.#options.onAnswer({
        method: request.method,
        status,
        durationMs: performance.now() - started,
        host: this.#server.host,
      })
    try {
      const headers = { 'user-agent': this.#options.userAgent, ...authorization(credential), ...request.headers }
      const sent = { ...request, path: this.#prefix + request.path, headers }
      const answer = await this.#within(request, (signal) => send(pool, { ...sent, signal }))
      report(answer.status)
      return { ...answer, credential }
    } catch (error) {
      request.signal?.throwIfAborted()
      report(0)
      pool.closeIdle()
      throw error
    } finally {
      pool.leave()
    }
  }

  /** Bounds the time, and ends with the request's signal or with the client. */
  async #within<A>(request: TransportRequest, send: (signal: AbortSignal) => Promise<A>): Promise<A> {
    request.signal?.throwIfAborted()
    if (this.#closed) throw this.#afterClose(request)
    const timeoutMs = request.timeoutMs ?? this.#options.timeoutMs
    const limit = new AbortController()
    const timer = setTimeout(() => limit.abort(explainTimeout(this.#failed(request), timeoutMs)), timeoutMs)
    // Not AbortSignal.any: callers pass signals that live as long as the process, and this runs for every request.
    const forward = (): void => limit.abort(request.signal!.reason)
    request.signal?.addEventListener('abort', forward, { once: true })
    this.#underWay.add(limit)
    try {
      // Dialling and a proxy's answer do not listen to the signal themselves.
      return await orAborted(send(limit.signal), limit.signal)
    } catch (error) {
      throw this.#closed ? this.#afterClose(request) : error
    } finally {
      clearTimeout(timer)
      this.#underWay.delete(limit)
      request.signal?.removeEventListener('abort', forward)
    }
  }

  #explained(credential: Credential, request: TransportRequest, error: unknown): unknown {
    if (error instanceof ConnectionError || request.signal?.aborted) return error
    const about = { request: this.#failed(request), connection: this.connection, credential, now: this.#options.now() }
    return explainNetworkError(about, error instanceof HttpFailure ? error.cause : error)
  }

  #afterClose(request: HttpRequest): ConnectionError {
    const about = { code: 'CLIENT_CLOSED', why: 'the client was closed', next: 'make a new one' }
    return new ConnectionError(this.#failed(request), about)
  }

  #failed(request: HttpRequest): FailedRequest {
    const { server, source } = this.connection
    return { server, source, method: request.method, path: request.path.split('?')[0]! }
  }
}

const withDefaults = (options: TransportOptions): Settings => {
  const given = Object.entries(options).filter(([, value]) => value !== undefined)
  return { ...defaults, ...Object.fromEntries(given) }
}

/** A POST, and a JSON patch that appends to a list, would happen twice if only the answer was lost. */
const mayRepeat = ({ method, headers }: HttpRequest): boolean =>
  method !== 'POST' && headers['content-type'] !== 'application/json-patch+json'

/** The pool stays for as long as the body does, which ends with the signal. */
const keepOpen = (body: Readable, pool: Pool, signal: AbortSignal | undefined): void => {
  pool.enter()
  finished(body, () => pool.leave()) // also takes an error that comes before anybody reads
  // Node ends an HTTP/2 stream with CANCEL for this, and with INTERNAL_ERROR for any other error.
  if (signal) addAbortSignal(signal, body)
}

const authorization = (credential: Credential): Record<string, string> => {
  if (credential.token) return { authorization: `Bearer ${credential.token}` }
  if (!credential.basic) return {}
  const { username, password } = credential.basic
  return { authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}` }
}

/** The whole of a body. */
export const collect = async (body: Readable): Promise<Buffer> => {
  const chunks: Buffer[] = []
  for await (const chunk of body) chunks.push(chunk as Buffer)
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)
}
