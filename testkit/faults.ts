import { once } from 'node:events'
import { createSecureServer, type Http2SecureServer } from 'node:http2'
import type { Socket } from 'node:net'
import type { ControlPlane } from './control-plane.ts'
import type { Identity } from './credentials.ts'
import { Exchange, matches, type FaultRequest, type Incoming, type Matcher, type Outgoing } from './fault-exchange.ts'
import { answerHeaders, upstreamOf } from './fault-upstream.ts'

/** What is answered in place of the API server. */
export interface FaultAnswer {
  status: number
  headers?: Record<string, string>
  /** An object is sent as JSON. */
  body?: string | object
}

const all: Matcher = {}
const watches: Matcher = { watch: true }

/**
 * A server in front of the API server of a control plane that passes everything on, and makes the faults that a real one
 * cannot be asked for. Clients without credentials are the given user; those with a token or a certificate stay who they are.
 */
export const startFaultProxy = async (plane: ControlPlane, user: Identity): Promise<FaultProxy> => {
  const tls = { ...plane.serverCertificate(), ca: plane.ca, requestCert: true, rejectUnauthorized: false }
  const listener = createSecureServer({ ...tls, allowHTTP1: true })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  return new FaultProxy(plane, user, listener)
}

/** A running proxy; `stop` ends it. */
export class FaultProxy {
  readonly server: string
  /** Path of a kubeconfig for the user that the proxy was started with. */
  readonly kubeconfig: string
  readonly #upstream: ReturnType<typeof upstreamOf>
  readonly #listener: Http2SecureServer
  readonly #sockets = new Set<Socket>()
  readonly #open = new Set<Exchange>()
  readonly #seen: FaultRequest[] = []
  #answers: { matcher: Matcher; answer: FaultAnswer; left: number }[] = []
  #stalls: { matcher: Matcher; released: PromiseWithResolvers<void> }[] = []
  #midLine: { matcher: Matcher; done: PromiseWithResolvers<void> }[] = []

  constructor(plane: ControlPlane, user: Identity, listener: Http2SecureServer) {
    const address = listener.address()
    if (address === null || typeof address === 'string') throw new TypeError('the listener has no port')
    this.server = `https://127.0.0.1:${address.port}`
    this.kubeconfig = plane.kubeconfigFor({ ...user, server: this.server })
    this.#upstream = upstreamOf(plane, user)
    this.#listener = listener
    listener.on('request', (incoming, outgoing) => void this.#handle(incoming, outgoing))
    listener.on('connection', (socket: Socket) => {
      this.#sockets.add(socket)
      socket.once('close', () => this.#sockets.delete(socket))
    })
  }

  /** Answers the next matching requests itself, once unless said otherwise; the API server does not see them. */
  answer(matcher: Matcher, answer: FaultAnswer, { times = 1 }: { times?: number } = {}): void {
    this.#answers.push({ matcher, answer, left: times })
  }

  /** Ends the matching requests that are open now, in the middle; says how many there were. */
  cut(matcher: Matcher = all): number {
    const open = [...this.#open].filter(({ request }) => matches(matcher, request))
    for (const exchange of open) exchange.cut()
    return open.length
  }

  /** Of the next line of a matching answer only half is sent, then it is cut; resolves when that has happened. */
  cutMidLine(matcher: Matcher = watches): Promise<void> {
    const done = Promise.withResolvers<void>()
    this.#midLine.push({ matcher, done })
    return done.promise
  }

  /** From now on matching requests, open and new, are acted on but get nothing back, until `release`. */
  stall(matcher: Matcher = all): void {
    this.#stalls.push({ matcher, released: Promise.withResolvers<void>() })
  }

  /** Ends all stalls: what was held back is delivered. */
  release(): void {
    for (const { released } of this.#stalls.splice(0)) released.resolve()
  }

  /** How many matching requests have come in so far, those answered here included. */
  count(matcher: Matcher = all): number {
    return this.#seen.filter((request) => matches(matcher, request)).length
  }

  /** How many matching requests are open now. */
  open(matcher: Matcher = all): number {
    return [...this.#open].filter(({ request }) => matches(matcher, request)).length
  }

  async stop(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#listener.close(() => resolve())
    for (const socket of this.#sockets) socket.destroy()
    this.#upstream.close()
    await promise
  }

  async #handle(incoming: Incoming, outgoing: Outgoing): Promise<void> {
    const exchange = new Exchange(incoming, outgoing)
    this.#seen.push(exchange.request)
    this.#open.add(exchange)
    const gone = new AbortController()
    outgoing.once('close', () => {
      this.#open.delete(exchange)
      gone.abort()
    })
    try {
      const answer = this.#takeAnswer(exchange)
      if (answer) await this.#give(exchange, answer)
      else await this.#passOn(exchange, incoming, gone.signal)
    } catch {
      exchange.cut() // the API server has gone away: so do we, as it would
    }
  }

  async #passOn(exchange: Exchange, incoming: Incoming, signal: AbortSignal): Promise<void> {
    const answer = await this.#upstream.send(incoming, signal)
    await this.#notStalled(exchange)
    exchange.begin(answer.statusCode ?? 502, answerHeaders(answer))
    for await (const chunk of answer as AsyncIterable<Buffer>) {
      await this.#notStalled(exchange)
      const victim = this.#takeMidLine(exchange)
      if (victim) {
        const line = chunk.subarray(0, chunk.indexOf('\n') + 1 || chunk.length)
        await exchange.write(line.subarray(0, Math.ceil(line.length / 2)))
        exchange.cut()
        victim.done.resolve()
        return
      }
      await exchange.write(chunk)
    }
    exchange.end()
  }

  async #give(exchange: Exchange, { status, headers = {}, body = '' }: FaultAnswer): Promise<void> {
    await this.#notStalled(exchange)
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    exchange.begin(status, { 'content-type': 'application/json', ...headers })
    exchange.end(text)
  }

  async #notStalled(exchange: Exchange): Promise<void> {
    for (const { matcher, released } of this.#stalls)
      if (matches(matcher, exchange.request)) await Promise.race([released.promise, exchange.closed])
  }

  #takeAnswer({ request }: Exchange): FaultAnswer | undefined {
    const rule = this.#answers.find(({ matcher }) => matches(matcher, request))
    if (rule && --rule.left <= 0) this.#answers = this.#answers.filter((one) => one !== rule)
    return rule?.answer
  }

  #takeMidLine({ request }: Exchange) {
    const rule = this.#midLine.find(({ matcher }) => matches(matcher, request))
    if (rule) this.#midLine = this.#midLine.filter((one) => one !== rule)
    return rule
  }
}
