import http2, { type ClientHttp2Session, type ClientHttp2Stream } from 'node:http2'
import {
  ConnectionError,
  dialTls,
  explainNetworkError,
  tlsOptions,
  type Connection,
  type Credential,
  type FailedRequest,
} from '../kube/index.ts'
import { systemClock, type Clock } from '../runtime/index.ts'
import {
  decodeEvent,
  encodePublish,
  encodeSubscription,
  type CloudEvent,
  type SubscriptionRequest,
} from './cloud-event.ts'
import { framed, Frames, prefixLength } from './frames.ts'
import { asApiError, errorIn } from './status.ts'

export interface EventClientOptions {
  clock?: Clock | undefined
  userAgent?: string | undefined
  /** Until a call is answered; 30 s. */
  timeoutMs?: number | undefined
  /** A subscription that hears nothing for so long, not even a heartbeat, ends with an error; 60 s, and 0 waits for ever. */
  silenceMs?: number | undefined
  /** The longest message that is taken; 4 MiB. */
  maxMessageBytes?: number | undefined
}

/** Events as they come, heartbeats among them. It ends with an error, or when its signal fires. */
export interface Subscription extends AsyncIterable<CloudEvent> {
  /** As the server calls it. */
  readonly id: string
  close(): void
}

interface Session {
  http2: ClientHttp2Session
  credential: Credential
}

interface CallOptions {
  signal?: AbortSignal | undefined
  timeoutMs?: number | undefined
}

const service = '/io.cloudevents.v1.CloudEventService'

/**
 * Talks to a gRPC endpoint as one identity, over one connection that is opened when it is needed. When `credentials` gives another
 * credential, the next call goes over a new connection; subscriptions stay on the one they began with.
 *
 * Errors are those of a Kubernetes client: an ApiError where the API server behind the endpoint has refused, a ConnectionError
 * where there was no answer, and a GrpcError for what the endpoint itself refuses.
 */
export class EventClient {
  readonly connection: Connection
  readonly #options: EventClientOptions
  readonly #clock: Clock
  readonly #ending = new AbortController()
  #session: Session | undefined
  #opening: Promise<Session> | undefined

  constructor(connection: Connection, options: EventClientOptions = {}) {
    this.connection = connection
    this.#options = options
    this.#clock = options.clock ?? systemClock
  }

  /** Resolves when the hub has acted on the event. */
  async publish(event: CloudEvent, options: CallOptions = {}): Promise<void> {
    const message = framed(encodePublish(event, { reserve: prefixLength }))
    const call = await this.#call('Publish', message, options)
    await call.answered
    for await (const _ of call.stream as AsyncIterable<Buffer>); // `Empty` has nothing to read
    call.check()
  }

  /** Resolves when the hub has confirmed it: what changes afterwards is sent. What there is already has to be asked for by a resync. */
  async subscribe(request: SubscriptionRequest, options: CallOptions = {}): Promise<Subscription> {
    const message = framed(encodeSubscription(request, { reserve: prefixLength }))
    const call = await this.#call('Subscribe', message, { ...options, goesOn: true })
    const headers = await call.answered
    const id = headers['subscription-id']
    if (typeof id !== 'string') {
      call.stream.resume()
      await call.closed
      call.check()
      throw this.#cut('Subscribe', 'the endpoint confirmed no subscription')
    }
    return { id, close: () => call.stream.close(), [Symbol.asyncIterator]: () => this.#events(call) }
  }

  close(): void {
    this.#ending.abort(new Error('the client was closed'))
    this.#session?.http2.destroy()
  }

  async *#events(call: OpenCall): AsyncGenerator<CloudEvent> {
    const { silenceMs = 60_000, maxMessageBytes = 4 << 20 } = this.#options
    const frames = new Frames(maxMessageBytes)
    const chunks = (call.stream as AsyncIterable<Buffer>)[Symbol.asyncIterator]()
    try {
      for (;;) {
        const cancel = silenceMs
          ? this.#clock.after(silenceMs, () =>
              call.stream.destroy(Object.assign(new Error('no sign of life from the endpoint'), { code: 'ETIMEDOUT' })),
            )
          : () => {}
        const next = await chunks.next().finally(cancel)
        if (next.done) break
        for (const message of frames.push(next.value)) yield decodeEvent(message)
      }
    } catch (error) {
      call.signal?.throwIfAborted()
      throw this.#explained('Subscribe', call.credential, error)
    } finally {
      call.stream.close()
    }
    call.signal?.throwIfAborted()
    call.check()
    throw this.#cut('Subscribe', 'the endpoint ended the subscription')
  }

  async #call(method: string, message: Buffer, options: CallOptions & { goesOn?: boolean }): Promise<OpenCall> {
    const { signal } = options
    signal?.throwIfAborted()
    const { http2: session, credential } = await this.#connected(method, signal)
    const stream = session.request({
      ':method': 'POST',
      ':path': `${service}/${method}`,
      'content-type': 'application/grpc',
      te: 'trailers',
      'user-agent': this.#options.userAgent ?? 'lanyard',
      ...(credential.token ? { authorization: `Bearer ${credential.token}` } : {}),
    })
    const { timeoutMs = this.#options.timeoutMs ?? 30_000 } = options
    const late = (): void =>
      void stream.destroy(Object.assign(new Error(`no answer within ${timeoutMs / 1000} s`), { code: 'ETIMEDOUT' }))
    const cancel = this.#clock.after(timeoutMs, late)
    const abort = (): void => void stream.destroy()
    signal?.addEventListener('abort', abort, { once: true })
    const closed = new Promise<void>((resolve) => stream.once('close', resolve))
    void closed.then(() => {
      cancel()
      signal?.removeEventListener('abort', abort)
    })
    let trailers: Record<string, unknown> | undefined
    let failure: unknown
    stream.on('trailers', (came) => (trailers = came))
    stream.on('error', (error) => (failure = error))
    const { promise: answered, resolve, reject } = Promise.withResolvers<Record<string, unknown>>()
    stream.once('response', (headers) => {
      if (options.goesOn) cancel()
      // An answer that is nothing but a status comes as headers alone.
      if (headers['grpc-status'] !== undefined) trailers = headers
      else if (headers[':status'] !== 200)
        failure = new Error(`the answer is no gRPC (HTTP status ${headers[':status']})`)
      resolve(headers)
    })
    const check = (): void => {
      const error = trailers && errorIn(trailers, this.#place(method))
      if (error) throw asApiError(error, this.#failed(method)) ?? error
      if (!trailers) throw this.#explained(method, credential, failure ?? cutOff())
    }
    void closed.then(() => {
      try {
        signal?.throwIfAborted()
        check()
        reject(cutOff())
      } catch (error) {
        reject(error)
      }
    })
    answered.catch(() => {}) // a call whose stream is read to its end reports it there
    stream.end(message)
    return { stream, answered, closed, check, credential, signal }
  }

  /** One dial for all who wait; a session whose credential is not the current one serves its streams to their end and no others. */
  async #connected(method: string, signal: AbortSignal | undefined): Promise<Session> {
    for (;;) {
      this.#ending.signal.throwIfAborted()
      const credential = await this.connection.credentials({ signal })
      const present = this.#session
      if (present && !present.http2.closed && !present.http2.destroyed && present.credential === credential)
        return present
      this.#opening ??= this.#open(credential).finally(() => (this.#opening = undefined))
      const opened = await this.#opening.catch((error: unknown) => {
        throw this.#explained(method, credential, error)
      })
      if (opened.credential === credential) return opened
    }
  }

  async #open(credential: Credential): Promise<Session> {
    const dialing = { connection: this.connection, ca: credential.ca, timeoutMs: 15_000, ending: this.#ending.signal }
    const socket = await dialTls(tlsOptions(this.connection, credential), dialing)
    if (socket.alpnProtocol !== 'h2') {
      socket.destroy()
      throw new Error('the server does not speak HTTP/2, and so no gRPC')
    }
    const session = http2.connect(this.connection.server, {
      createConnection: () => socket,
      settings: { enablePush: false, initialWindowSize: 1 << 20 },
    })
    session.on('error', () => {}) // each of its streams reports it
    session.once('connect', () => session.setLocalWindowSize(16 << 20))
    this.#session?.http2.close()
    this.#session = { http2: session, credential }
    return this.#session
  }

  #explained(method: string, credential: Credential, error: unknown): unknown {
    if (error instanceof ConnectionError) return error
    if (this.#ending.signal.aborted) return this.#cut(method, 'the client was closed')
    const about = { request: this.#failed(method), connection: this.connection, credential, now: this.#clock.now() }
    return explainNetworkError(about, error)
  }

  #cut(method: string, why: string): ConnectionError {
    return new ConnectionError(this.#failed(method), { code: 'CUT', why, next: 'connect again' })
  }

  #failed(method: string): FailedRequest {
    const { server, source } = this.connection
    return { server, source, method: 'gRPC', path: method }
  }

  #place(method: string): string {
    return `gRPC ${method} at ${this.connection.server} (${this.connection.source})`
  }
}

interface OpenCall {
  stream: ClientHttp2Stream
  answered: Promise<Record<string, unknown>>
  closed: Promise<void>
  /** Throws what the status says, or that there was none. To be asked at the end. */
  check: () => void
  credential: Credential
  signal: AbortSignal | undefined
}

const cutOff = (): Error => Object.assign(new Error('the call was cut off'), { code: 'ECONNRESET' })
