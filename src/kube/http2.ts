import http2 from 'node:http2'
import type tls from 'node:tls'
import { dialTls, type Dialing } from './dial.ts'
import type { HttpAnswer, HttpRequest } from './http1.ts'
import { Http2Session, type PingOptions } from './http2-session.ts'

/**
 * Watches share HTTP/2 sessions: an idle one costs 7 times less memory there than on a connection of its own, and the ping
 * notices a server that hangs, which an idle HTTP/1.1 connection cannot.
 */
export class Http2Sessions {
  readonly #tls: tls.ConnectionOptions
  readonly #dialing: Dialing
  readonly #ping: PingOptions
  readonly #sessions = new Set<Http2Session>()
  #opening: Promise<Http2Session | undefined> | undefined
  #spoken = true

  constructor(tls: tls.ConnectionOptions, dialing: Dialing, ping: PingOptions) {
    this.#tls = tls
    this.#dialing = dialing
    this.#ping = ping
    dialing.ending.addEventListener('abort', () => this.#close(), { once: true })
  }

  /** Undefined when the server does not speak HTTP/2; the caller then uses a connection of its own. */
  async send(request: HttpRequest): Promise<HttpAnswer | undefined> {
    while (this.#spoken) {
      request.signal?.throwIfAborted()
      const free = this.#sessions.values().find((session) => session.hasRoom)
      if (free) return free.send(request)
      this.#opening ??= this.#open().finally(() => (this.#opening = undefined))
      // Many may have waited for this session: those for whom there is no room wait for the next one.
      const opened = await this.#opening
      if (opened?.closed) throw Object.assign(new Error('the session ended as it began'), { code: 'ECONNRESET' })
    }
    return undefined
  }

  #close(): void {
    for (const session of this.#sessions) session.destroy()
  }

  async #open(): Promise<Http2Session | undefined> {
    const socket = await dialTls(this.#tls, this.#dialing)
    if (socket.alpnProtocol !== 'h2') {
      this.#spoken = false
      socket.destroy()
      return undefined
    }
    const client = http2.connect(this.#dialing.connection.server, {
      createConnection: () => socket,
      // Node's 64 KB for each stream would let a far-away list through at 64 KB a round trip.
      settings: { enablePush: false, initialWindowSize: 1 << 20 },
    })
    const session = new Http2Session(client, socket, this.#ping)
    this.#sessions.add(session)
    client.once('close', () => this.#sessions.delete(session))
    await session.ready(this.#dialing.timeoutMs)
    return session
  }
}
