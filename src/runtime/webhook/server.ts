import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { systemClock, type Clock } from '../clock.ts'
import { silentLogger, type Logger } from '../log.ts'
import { arrived, bodyOf, grantedMs, refusals, type Arrived } from './request.ts'
import { answerReview, type Refusal, type Route } from './review.ts'

/** What `webhookServer` needs. */
export interface WebhookServerOptions {
  /** 0 takes any free port. */
  port: number
  host: string
  /** PEM; asked at the start, and again on every `reload`. */
  certificate: () => { cert: string; key: string }
  /** By path, such as `/validate-managedcluster`. */
  routes: Readonly<Record<string, Route>>
  log?: Logger | undefined
  clock?: Clock | undefined
  /** For a handler; 8 s, as the API server waits 10 s. Where a configuration grants less, so do we. */
  handlerTimeoutMs?: number | undefined
  /** For the TLS handshake, and then for the headers; 5 s. */
  headersTimeoutMs?: number | undefined
  /** For the whole request, body included; 10 s. */
  requestTimeoutMs?: number | undefined
  /** How long `stop` waits for what is under way; 10 s. */
  graceMs?: number | undefined
}

// Go drops an idle connection after 90 s. Were we first, a review could be on its way over a connection that is closing,
// and Go does not send a POST again.
const keepAliveTimeout = 120_000

// How much of the granted time a handler may use; the rest is for the way there and back.
const share = 0.8

/** A webhook server, not yet listening. */
export const webhookServer = (options: WebhookServerOptions): WebhookServer => new WebhookServer(options)

/**
 * Answers reviews over TLS. It speaks HTTP/1.1 alone: the API server asks webhooks behind a Service over nothing else, so that
 * its calls spread over all replicas.
 */
export class WebhookServer {
  readonly #options: WebhookServerOptions
  readonly #log: Logger
  readonly #clock: Clock
  #server: Server | undefined
  #stopping: Promise<void> | undefined

  constructor(options: WebhookServerOptions) {
    this.#options = options
    this.#log = options.log ?? silentLogger
    this.#clock = options.clock ?? systemClock
  }

  /** The port it listens on. */
  get port(): number {
    return (this.#server?.address() as AddressInfo | null)?.port ?? this.#options.port
  }

  /** Resolves when it listens. */
  async start(): Promise<void> {
    if (this.#server) throw new Error('the webhook server was started before')
    const { port, host, headersTimeoutMs = 5000, requestTimeoutMs = 10_000 } = this.#options
    const server = createServer(
      {
        ...this.#secureContext(),
        handshakeTimeout: headersTimeoutMs,
        headersTimeout: headersTimeoutMs,
        requestTimeout: requestTimeoutMs,
        connectionsCheckingInterval: Math.min(1000, headersTimeoutMs, requestTimeoutMs),
        keepAliveTimeout,
      },
      (request, response) => void this.#serve(request, response),
    )
    // Mostly an API server that does not trust the certificate: there is no other trace of it on this side.
    server.on('tlsClientError', (error) => this.#log.debug('TLS handshake failed', { error }))
    this.#server = server
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    server.once('error', reject)
    server.listen({ port, host }, resolve)
    await promise
    server.off('error', reject)
    server.on('error', (error) => this.#log.error('webhook server failed', { error }))
  }

  /** Uses the present certificate for new connections; those that are open keep the one they began with. */
  readonly reload = (): void => this.#server?.setSecureContext(this.#secureContext())

  /** Takes no new connection, and resolves when what was under way has been answered, or the grace period is over. */
  stop(): Promise<void> {
    this.#stopping ??= this.#close()
    return this.#stopping
  }

  async #close(): Promise<void> {
    const server = this.#server
    if (!server?.listening) return
    const { promise, resolve } = Promise.withResolvers<void>()
    server.close(() => resolve()) // closes idle connections too
    const cancel = this.#clock.after(this.#options.graceMs ?? 10_000, () => server.closeAllConnections())
    await promise
    cancel()
  }

  #secureContext(): { cert: string; key: string; minVersion: 'TLSv1.2' } {
    const { cert, key } = this.#options.certificate()
    return { cert, key, minVersion: 'TLSv1.2' }
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const head = arrived(request, this.#options.routes)
    try {
      for (const refusal of refusals) {
        const refused = refusal(head)
        if (refused) return this.#send(response, refused)
      }
      const body = await bodyOf(request, head.route!)
      if (typeof body !== 'string') return this.#send(response, body)
      this.#send(response, await this.#review(head, body, response, grantedMs(request.url ?? '')))
    } catch (error) {
      // The client went away in the middle of its body, or was too slow and has been told so with a 408.
      this.#log.debug('webhook request broke off', { webhook: head.path, error })
      response.destroy()
    }
  }

  async #review(
    head: Arrived,
    body: string,
    response: ServerResponse,
    granted = Infinity,
  ): Promise<Refusal | { body: string }> {
    const gone = new AbortController()
    response.once('close', () => response.writableFinished || gone.abort(new Error('the caller hung up')))
    return answerReview(head.route!, body, {
      path: head.path,
      timeoutMs: Math.min(this.#options.handlerTimeoutMs ?? 8000, granted * share),
      signal: gone.signal,
      clock: this.#clock,
      log: this.#log,
    })
  }

  #send(response: ServerResponse, answer: Refusal | { body: string }): void {
    const status = 'status' in answer ? answer.status : 200
    const text = 'status' in answer ? `${answer.message}\n` : answer.body
    response.writeHead(status, {
      'content-type': 'status' in answer ? 'text/plain; charset=utf-8' : 'application/json',
      'content-length': Buffer.byteLength(text),
      ...(status === 405 ? { allow: 'POST' } : {}),
      ...(this.#stopping ? { connection: 'close' } : {}),
    })
    response.end(text)
  }
}
