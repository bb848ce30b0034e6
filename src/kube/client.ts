import type { Connection, Impersonation } from './connection.ts'
import { ApiError, ConnectionError, type FailedRequest, type StatusBody } from './errors.ts'
import { explainUnauthorized } from './explain.ts'
import type { HttpAnswer } from './http1.ts'
import { impersonationHeaders } from './impersonation.ts'
import type { KubeObject } from './objects.ts'
import { ResourceClient } from './resource-client.ts'
import type { Resource } from './resource.ts'
import { laterMs, pause, spread } from './retry.ts'
import { collect, Transport, type CompleteAnswer, type TransportOptions } from './transport.ts'

export interface ClientOptions extends TransportOptions {
  /** How often a request is sent again when the server says "later" (429, or 503 with Retry-After). */
  maxRetries?: number | undefined
  random?: (() => number) | undefined
}

/** What every call takes. */
export interface CallOptions {
  signal?: AbortSignal | undefined
  timeoutMs?: number | undefined
}

export interface ApiRequest extends CallOptions {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  path: string
  query?: Record<string, string | number | boolean | string[] | undefined> | undefined
  body?: unknown
  contentType?: string | undefined
  accept?: string | undefined
}

/** Talks to one API server as one identity. */
export class Client {
  readonly connection: Connection
  readonly #transport: Transport
  readonly #headers: Record<string, string | string[]>
  readonly #maxRetries: number
  readonly #random: () => number
  readonly #now: () => number

  constructor(transport: Transport, options: ClientOptions = {}, impersonate = transport.connection.impersonate) {
    this.connection = transport.connection
    this.#transport = transport
    this.#headers = impersonate ? impersonationHeaders(impersonate) : {}
    this.#maxRetries = options.maxRetries ?? 10
    this.#random = options.random ?? Math.random
    this.#now = options.now ?? Date.now
  }

  /** Everything that can be done with one kind, in one namespace or, without it, in all. */
  of<T extends KubeObject>(resource: Resource<T>, namespace?: string): ResourceClient<T> {
    return new ResourceClient(this, resource, namespace)
  }

  /** The same connections, acting as somebody else. */
  as(impersonate: Impersonation): Client {
    return new Client(
      this.#transport,
      { maxRetries: this.#maxRetries, random: this.#random, now: this.#now },
      impersonate,
    )
  }

  /** A request whose answer is JSON. */
  async json<T>(request: ApiRequest): Promise<T> {
    return this.#decode(request, await this.#send(request)) as T
  }

  /** A request whose answer is text, such as /readyz or a log. */
  async text(request: ApiRequest): Promise<string> {
    return (await this.#send(request)).body.toString('utf8')
  }

  /** A request whose answer goes on: a watch. "Later" is an error here, since whoever watches waits between tries anyway. */
  async stream(request: ApiRequest): Promise<HttpAnswer> {
    const answer = await this.#transport.stream(this.#encode(request))
    if (answer.status >= 300) throw this.#refusal(request, { ...answer, body: await collect(answer.body) })
    if (isJson(answer)) return answer
    answer.body.destroy()
    throw this.#notKubernetes(request, answer)
  }

  close(): void {
    this.#transport.close()
  }

  /** "Later" is an answer that a server gives before it acts, so that any request may be sent again. */
  async #send(request: ApiRequest): Promise<CompleteAnswer> {
    let isAskedAgain = false
    for (let retries = 0; ; retries++) {
      const answer = await this.#transport.request(this.#encode(request))
      if (answer.status < 300) return answer
      if (!isAskedAgain && namesNoObject(request, answer)) {
        isAskedAgain = true
        await this.#hasStarted(request)
        continue
      }
      const waitMs = laterMs(answer, this.#now())
      if (waitMs === undefined || retries >= this.#maxRetries) throw this.#refusal(request, answer)
      await pause(spread(waitMs, this.#random), request.signal)
    }
  }

  /**
   * An API server that is starting can miss whole kinds for a moment. Read as an object that is gone, or as a list that is empty, that
   * would be a reason to clean up. It counts only when the server says that it is ready, and says it again.
   */
  async #hasStarted(request: ApiRequest): Promise<void> {
    const { signal, timeoutMs } = request
    const { status } = await this.#transport.request(
      this.#encode({ method: 'GET', path: '/readyz', signal, timeoutMs }),
    )
    if (status < 500) return // also one that does not tell
    throw new ConnectionError(this.#failed(request), {
      code: 'STARTING',
      why: 'the API server does not know the kind and says that it is not ready',
      next: 'it may have just started: try again in a moment',
      notSent: true,
    })
  }

  #encode(request: ApiRequest): Parameters<Transport['request']>[0] {
    const body = request.body === undefined ? undefined : JSON.stringify(request.body)
    return {
      method: request.method,
      path: request.path + queryString(request.query),
      headers: {
        accept: request.accept ?? 'application/json',
        ...(body === undefined ? {} : { 'content-type': request.contentType ?? 'application/json' }),
        ...this.#headers,
      },
      body,
      signal: request.signal,
      timeoutMs: request.timeoutMs,
    }
  }

  #decode(request: ApiRequest, answer: CompleteAnswer): unknown {
    if (!isJson(answer)) throw this.#notKubernetes(request, answer)
    try {
      return parseObject(answer.body)
    } catch (cause) {
      throw new ConnectionError(this.#failed(request), {
        code: 'BROKEN_JSON',
        why: `the answer of ${answer.body.length} bytes is not a JSON object`,
        next: 'it was cut or altered on its way: look at what stands between',
        cause,
      })
    }
  }

  #refusal(request: ApiRequest, answer: CompleteAnswer): ApiError | ConnectionError {
    // A 404 of some proxy must not be taken for an object that is gone. Kubernetes says no in JSON, or in plain text.
    if (!isJson(answer) && !isPlain(answer)) return this.#notKubernetes(request, answer)
    const now = this.#now()
    const next = answer.status === 401 ? explainUnauthorized(this.connection, answer.credential, now) : undefined
    return new ApiError(this.#failed(request), answer.status, statusOf(answer), laterMs(answer, now), next)
  }

  #notKubernetes(request: ApiRequest, { status, headers }: TypedAnswer & { status: number }): ConnectionError {
    return new ConnectionError(this.#failed(request), {
      code: 'NOT_KUBERNETES',
      why: `the answer is ${headers['content-type'] ?? 'of no type'}, not JSON (status ${status})`,
      next:
        status >= 500
          ? 'a proxy or load balancer in between has no API server to turn to: look at both'
          : 'this does not look like a Kubernetes API: check the server address, and for a login page or proxy in between',
    })
  }

  #failed(request: ApiRequest): FailedRequest {
    const { server, source } = this.connection
    return { server, source, method: request.method, path: request.path }
  }
}

/** The client for a connection. Its connections are opened when first needed, and kept. */
export const clientFor = (connection: Connection, options: ClientOptions = {}): Client =>
  new Client(new Transport(connection, options), options)

interface TypedAnswer {
  headers: { 'content-type'?: string | undefined }
}

/** A 404 for a whole kind, and not for one object of it. */
const namesNoObject = ({ path }: ApiRequest, answer: CompleteAnswer): boolean =>
  answer.status === 404 &&
  /^\/apis\/[^/]+\/[^/]+\/./.test(path) &&
  (isJson(answer) || isPlain(answer)) &&
  statusOf(answer).details?.name === undefined

const isJson = ({ headers }: TypedAnswer): boolean => headers['content-type']?.includes('json') ?? false

const isPlain = ({ headers }: TypedAnswer): boolean => headers['content-type']?.startsWith('text/plain') ?? false

const parseObject = (body: Buffer): object => {
  const value: unknown = JSON.parse(body.toString('utf8'))
  if (typeof value !== 'object' || value === null)
    throw new TypeError(`it is ${value === null ? 'null' : typeof value}`)
  return value
}

const statusOf = (answer: CompleteAnswer): StatusBody => {
  try {
    return parseObject(answer.body)
  } catch {
    return { message: answer.body.toString('utf8').slice(0, 200).trim() } // the text itself is the best message there is
  }
}

const queryString = (query: ApiRequest['query']): string => {
  if (!query) return ''
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue
    for (const one of Array.isArray(value) ? value : [value]) params.append(name, String(one))
  }
  const text = params.toString()
  return text && `?${text}`
}
