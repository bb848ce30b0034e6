import type { Connection, Impersonation } from './connection.ts'
import { ApiError, ConnectionError, type FailedRequest, type StatusBody } from './errors.ts'
import { explainUnauthorized } from './explain.ts'
import type { KubeObject } from './objects.ts'
import { ResourceClient } from './resource-client.ts'
import type { Resource } from './resource.ts'
import { pause, Transport, type CompleteAnswer, type TransportOptions } from './transport.ts'
import type { HttpAnswer } from './http1.ts'

export interface ClientOptions extends TransportOptions {
  /** How often a request is sent again when the server says "later" (429, or 503 with Retry-After). */
  maxRetries?: number | undefined
  random?: (() => number) | undefined
  now?: (() => number) | undefined
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
    const answer = await this.#patiently(request, () => this.#transport.request(this.#encode(request)))
    if (answer.status >= 300) throw this.#refusal(request, answer)
    return this.#decode(request, answer) as T
  }

  /** A request whose answer is text, such as /readyz or a log. */
  async text(request: ApiRequest): Promise<string> {
    const answer = await this.#patiently(request, () => this.#transport.request(this.#encode(request)))
    if (answer.status >= 300) throw this.#refusal(request, answer)
    return answer.body.toString('utf8')
  }

  /** A request whose answer goes on: a watch. */
  async stream(request: ApiRequest): Promise<HttpAnswer> {
    const answer = await this.#transport.stream(this.#encode(request))
    if (answer.status < 300 && isJson(answer)) return answer
    const chunks: Buffer[] = []
    for await (const chunk of answer.body) chunks.push(chunk as Buffer)
    const complete = { ...answer, body: Buffer.concat(chunks) }
    throw answer.status < 300 ? this.#notKubernetes(request, complete) : this.#refusal(request, complete)
  }

  close(): void {
    this.#transport.close()
  }

  /** "Later" is an answer that a server gives before it acts, so that any request may be sent again. */
  async #patiently<A extends CompleteAnswer>(request: ApiRequest, send: () => Promise<A>): Promise<A> {
    for (let retries = 0; ; retries++) {
      const answer = await send()
      const waitMs = laterMs(answer)
      if (waitMs === undefined || retries >= this.#maxRetries) return answer
      await pause(waitMs, this.#random, request.signal)
    }
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
      return JSON.parse(answer.body.toString('utf8'))
    } catch (cause) {
      throw new ConnectionError(this.#failed(request), {
        code: 'BROKEN_JSON',
        why: `the answer of ${answer.body.length} bytes is not valid JSON`,
        next: 'it was cut or altered on its way: look at what stands between',
        cause,
      })
    }
  }

  #refusal(request: ApiRequest, answer: CompleteAnswer): ApiError {
    const next = answer.status === 401 ? explainUnauthorized(this.connection, answer.credential, this.#now()) : undefined
    return new ApiError(this.#failed(request), answer.status, statusOf(answer), laterMs(answer), next)
  }

  #notKubernetes(request: ApiRequest, answer: CompleteAnswer): ConnectionError {
    return new ConnectionError(this.#failed(request), {
      code: 'NOT_KUBERNETES',
      why: `the answer is ${answer.headers['content-type'] ?? 'of no type'}, not JSON (status ${answer.status})`,
      next: 'this does not look like a Kubernetes API: check the server address, and for a login page or proxy in between',
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

const isJson = (answer: { headers: { 'content-type'?: string | undefined } }): boolean =>
  answer.headers['content-type']?.includes('json') ?? false

/** How long the server wants us to wait; undefined when it does not. */
const laterMs = (answer: CompleteAnswer): number | undefined => {
  const after = answer.headers['retry-after']
  if (answer.status !== 429 && !(answer.status === 503 && after)) return undefined
  const seconds = Number(after ?? 1)
  return Number.isFinite(seconds) ? Math.min(seconds, 60) * 1000 : 1000
}

const statusOf = (answer: CompleteAnswer): StatusBody => {
  const text = answer.body.toString('utf8')
  if (isJson(answer)) {
    try {
      return JSON.parse(text) as StatusBody
    } catch {
      // falls through: the text itself is the best message there is
    }
  }
  return { message: text.slice(0, 200).trim() }
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

// Several groups are several headers of one name, which is why headers are arrays all the way down.
const impersonationHeaders = (who: Impersonation): Record<string, string | string[]> => ({
  'impersonate-user': who.user,
  ...(who.uid ? { 'impersonate-uid': who.uid } : {}),
  ...(who.groups?.length ? { 'impersonate-group': who.groups } : {}),
  ...Object.fromEntries(
    Object.entries(who.extra ?? {}).map(([key, values]) => [`impersonate-extra-${encodeURIComponent(key)}`, values]),
  ),
})
