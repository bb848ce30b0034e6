import type { X509Certificate } from 'node:crypto'
import { constants } from 'node:crypto'
import http2, { type IncomingHttpHeaders, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { silentLogger, systemClock, type Clock, type Logger } from '../runtime/index.ts'
import { decodePublish, decodeSubscription, type CloudEvent, type SubscriptionRequest } from './cloud-event.ts'
import { prefixLength } from './frames.ts'
import { Outbox } from './outbox.ts'
import { MessageError } from './protobuf.ts'
import { bodyOf } from './server-body.ts'
import { code, GrpcError, trailersOf } from './status.ts'

/** Who is at the other end of a connection, as far as TLS knows. */
export interface Peer {
  /** The same for all calls over one connection. */
  readonly session: object
  readonly address: string
  /** Checked against the authorities of now; it may end while the connection lives. */
  readonly certificate?: X509Certificate | undefined
  /** Why the certificate that was shown counts for nothing. */
  readonly refused?: string | undefined
}

export interface Call {
  readonly peer: Peer
  /** The metadata `authorization`, as it came. */
  readonly authorization: string | undefined
  /** Fires when the caller is gone, or the server stops. */
  readonly signal: AbortSignal
}

/** What is served. A GrpcError is the answer; any other error is a fault of ours, and its text stays here. */
export interface EventService<Who> {
  /** Who calls. Asked before anything of the body is taken, so that strangers cost nothing. The answer is told `done` at the end. */
  admit(call: Call, method: 'publish' | 'subscribe'): Promise<{ who: Who; done?: () => void }>
  publish(event: CloudEvent, who: Who, call: Call): Promise<void>
  /** Says whether it is allowed. What it returns is called once the caller knows that it is subscribed. */
  subscribe(request: SubscriptionRequest, who: Who, call: Call): Promise<(outbox: Outbox) => void>
}

export interface EventServerOptions<Who> {
  host: string
  /** 0 takes any free port. */
  port: number
  service: EventService<Who>
  /** PEM; asked at the start and on every `reload`. `ca` is what client certificates are checked against. */
  tls: () => { cert: string; key: string; ca: string }
  clock?: Clock | undefined
  log?: Logger | undefined
  /** 2 MiB: etcd takes 1.5 MiB, so that no honest message is longer. */
  maxMessageBytes?: number | undefined
  /** For the whole of a request to arrive; 20 s. */
  requestTimeoutMs?: number | undefined
  /** How often a silent connection is asked whether it lives; 30 s, and 10 s more for the answer. */
  pingMs?: number | undefined
  maxConnections?: number | undefined
  /** How long `stop` waits for calls under way; 5 s. */
  graceMs?: number | undefined
}

const subscriptionBytes = 4096
const path = {
  publish: '/io.cloudevents.v1.CloudEventService/Publish',
  subscribe: '/io.cloudevents.v1.CloudEventService/Subscribe',
}
const grpcHeaders = { ':status': 200, 'content-type': 'application/grpc' } as const
/** `google.protobuf.Empty`. */
const empty = Buffer.alloc(prefixLength)

/** The CloudEventService of `io.cloudevents.v1`: gRPC over HTTP/2 and TLS. */
export class EventServer<Who> {
  readonly #options: EventServerOptions<Who>
  readonly #clock: Clock
  readonly #log: Logger
  readonly #sessions = new Map<ServerHttp2Session, Peer>()
  readonly #streams = new Set<Outbox>()
  readonly #stopping = new AbortController()
  #server: http2.Http2SecureServer | undefined

  constructor(options: EventServerOptions<Who>) {
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.#log = options.log ?? silentLogger
  }

  get port(): number {
    return (this.#server?.address() as AddressInfo | null)?.port ?? this.#options.port
  }

  get listening(): boolean {
    return this.#server?.listening ?? false
  }

  get connections(): number {
    return this.#sessions.size
  }

  /** Resolves when it listens. */
  async start(): Promise<void> {
    const { host, port, maxConnections = 20_000 } = this.#options
    const server = http2.createSecureServer({
      ...this.#secureContext(),
      minVersion: 'TLSv1.2',
      // Verified if given: who has none brings a token. A bad one is answered in words, not with a broken handshake.
      requestCert: true,
      rejectUnauthorized: false,
      handshakeTimeout: 10_000,
      // A resumed session is not checked against the authorities of now.
      secureOptions: constants.SSL_OP_NO_TICKET,
      maxHeaderListPairs: 64,
      unknownProtocolTimeout: 1000,
      settings: { maxConcurrentStreams: 100, maxHeaderListSize: 16_384, enablePush: false },
    })
    this.#server = server
    server.maxConnections = maxConnections
    server.on('session', (session) => this.#welcome(session))
    server.on('stream', (stream, headers) => void this.#serve(stream as ServerHttp2Stream, headers))
    server.on('tlsClientError', (error) => this.#log.debug('TLS handshake failed', { error }))
    server.on('sessionError', (error) => this.#log.debug('a connection failed', { error }))
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    server.once('error', reject)
    server.listen({ port, host }, resolve)
    await promise
    server.off('error', reject)
    server.on('error', (error) => this.#log.error('the gRPC endpoint failed', { error }))
  }

  /** Uses the certificates of now for new connections; those that are open keep what they began with. */
  readonly reload = (): void => this.#server?.setSecureContext({ ...this.#secureContext(), minVersion: 'TLSv1.2' })

  /** Ends subscriptions with a word, waits for calls under way, then closes what is left. */
  async stop(): Promise<void> {
    const server = this.#server
    if (!server?.listening) return
    const closed = new Promise<void>((resolve) => server.close(() => resolve()))
    this.#stopping.abort()
    for (const outbox of this.#streams)
      outbox.end(new GrpcError(code.unavailable, 'the endpoint is stopping: connect again'))
    for (const session of this.#sessions.keys()) session.close()
    const cancel = this.#clock.after(this.#options.graceMs ?? 5000, () => {
      for (const session of this.#sessions.keys()) session.destroy()
    })
    await closed
    cancel()
  }

  #secureContext(): { cert: string; key: string; ca: string } {
    const { cert, key, ca } = this.#options.tls()
    return { cert, key, ca }
  }

  #welcome(session: ServerHttp2Session): void {
    const socket = session.socket as TLSSocket
    const shown = socket.getPeerX509Certificate()
    const refused = shown && !socket.authorized ? String(socket.authorizationError) : undefined
    this.#sessions.set(session, {
      session,
      address: `${socket.remoteAddress}:${socket.remotePort}`,
      ...(shown && !refused ? { certificate: shown } : {}),
      ...(refused ? { refused } : {}),
    })
    session.on('error', () => {}) // each of its streams reports it
    const { pingMs = 30_000 } = this.#options
    const stopPinging = this.#ping(session, pingMs)
    session.once('close', () => {
      stopPinging()
      this.#sessions.delete(session)
    })
  }

  /** A peer that vanished without a word holds its subscriptions until somebody asks. */
  #ping(session: ServerHttp2Session, everyMs: number): () => void {
    let cancel = (): void => {}
    const next = (): void => {
      cancel = this.#clock.after(everyMs, () => {
        if (session.destroyed) return
        cancel = this.#clock.after(10_000, () => session.destroy())
        session.ping(() => {
          cancel()
          if (!session.destroyed) next()
        })
      })
    }
    next()
    return () => cancel()
  }

  async #serve(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): Promise<void> {
    stream.on('error', () => {}) // the caller went away; `close` follows
    const method = Object.entries(path).find(([, one]) => one === headers[':path'])?.[0] as
      | keyof typeof path
      | undefined
    const gone = new AbortController()
    stream.once('close', () => gone.abort(new Error('the caller hung up')))
    let done: (() => void) | undefined
    try {
      if (!headers['content-type']?.startsWith('application/grpc') || headers[':method'] !== 'POST') {
        stream.respond({ ':status': 415 }, { endStream: true })
        return
      }
      if (!method)
        throw new GrpcError(
          code.unimplemented,
          'there are the methods Publish and Subscribe of io.cloudevents.v1.CloudEventService',
        )
      const peer = this.#sessions.get(stream.session as ServerHttp2Session)
      if (!peer || this.#stopping.signal.aborted)
        throw new GrpcError(code.unavailable, 'the endpoint is stopping: connect again')
      const { authorization } = headers
      const call: Call = { peer, authorization, signal: gone.signal }
      const admitted = await this.#options.service.admit(call, method)
      done = admitted.done
      stream.once('close', () => done?.())
      gone.signal.throwIfAborted()
      if (method === 'publish') await this.#publish(stream, admitted.who, call)
      else await this.#subscribe(stream, admitted.who, call)
    } catch (error) {
      this.#fail(stream, error, method)
    }
  }

  async #publish(stream: ServerHttp2Stream, who: Who, call: Call): Promise<void> {
    const { maxMessageBytes = 2 << 20 } = this.#options
    const event = decodePublish(await this.#body(stream, maxMessageBytes, call))
    if (!event) throw new GrpcError(code.invalidArgument, 'the request holds no event')
    await this.#options.service.publish(event, who, call)
    if (stream.destroyed) return
    stream.respond(grpcHeaders, { waitForTrailers: true })
    stream.once('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
    stream.end(empty)
  }

  async #subscribe(stream: ServerHttp2Stream, who: Who, call: Call): Promise<void> {
    const request = decodeSubscription(await this.#body(stream, subscriptionBytes, call))
    const start = await this.#options.service.subscribe(request, who, call)
    if (stream.destroyed) return
    const outbox = new Outbox(stream, this.#clock)
    this.#streams.add(outbox)
    stream.once('close', () => this.#streams.delete(outbox))
    // Registered before the caller can know of it: what changes from now on reaches it.
    start(outbox)
    stream.respond({ ...grpcHeaders, 'subscription-id': outbox.id }, { waitForTrailers: true })
    outbox.open()
  }

  #body(stream: ServerHttp2Stream, limit: number, { signal }: Call): Promise<Buffer> {
    const { requestTimeoutMs = 20_000 } = this.#options
    return bodyOf(stream, { limit, timeoutMs: requestTimeoutMs, clock: this.#clock, signal })
  }

  #fail(stream: ServerHttp2Stream, error: unknown, method: string | undefined): void {
    if (stream.destroyed) return
    const answer = answerTo(error)
    if (answer.code === code.internal) this.#log.error('a call over gRPC failed', { method, error })
    if (!stream.headersSent) stream.respond({ ...grpcHeaders, ...trailersOf(answer) }, { endStream: true })
    // The rest of the body is of no use: without this, the peer would go on sending it. The answer has to be out first.
    if (!stream.readableEnded) setImmediate(() => stream.close(http2.constants.NGHTTP2_NO_ERROR))
    // Who shows a certificate that counts for nothing, or none at all, has no further business on this connection.
    if (answer.code === code.unauthenticated) stream.session?.close()
  }
}

const answerTo = (error: unknown): GrpcError => {
  if (error instanceof GrpcError) return error
  if (error instanceof MessageError)
    return new GrpcError(code.invalidArgument, `the message cannot be read: ${error.message}`)
  return new GrpcError(code.internal, 'the hub has failed: its log tells why')
}
