import http2 from 'node:http2'
import tls from 'node:tls'
import type { Connection, Credential } from './connection.ts'
import { dialThroughProxy, tlsOptions } from './dial.ts'
import type { HttpAnswer, HttpRequest } from './http1.ts'

/** kube-apiserver allows 100 streams a connection unless told otherwise: stay below. */
const streamsPerSession = 90
/** The timings of client-go: a silent connection is asked after 30 s and given up 15 s later. */
const pingAfterMs = 30_000
const pingTimeoutMs = 15_000

interface Session {
  http2: http2.ClientHttp2Session
  streams: number
}

/**
 * Watches share HTTP/2 sessions: an idle one costs 7 times less memory there than on a connection of its own, and the ping
 * notices a server that hangs, which an idle HTTP/1.1 connection cannot.
 */
export class Http2Sessions {
  readonly #connection: Connection
  readonly #credential: Credential
  readonly #sessions: Session[] = []
  #opening: Promise<Session | undefined> | undefined
  #spoken = true

  constructor(connection: Connection, credential: Credential) {
    this.#connection = connection
    this.#credential = credential
  }

  /** Undefined when the server does not speak HTTP/2; the caller then uses a connection of its own. */
  async send(request: HttpRequest): Promise<HttpAnswer | undefined> {
    const session = this.#spoken ? await this.#acquire() : undefined
    return session && this.#request(session, request)
  }

  close(): void {
    for (const session of this.#sessions.splice(0)) session.http2.destroy()
  }

  async #acquire(): Promise<Session | undefined> {
    for (;;) {
      const free = this.#sessions.find((s) => s.streams < streamsPerSession && !s.http2.closed && !s.http2.destroyed)
      if (free) {
        if (free.streams++ === 0) free.http2.ref()
        return free
      }
      this.#opening ??= this.#open().finally(() => (this.#opening = undefined))
      if (!(await this.#opening)) return undefined
    }
  }

  async #open(): Promise<Session | undefined> {
    const socket = await this.#dial()
    if (socket.alpnProtocol !== 'h2') {
      this.#spoken = false
      socket.destroy()
      return undefined
    }
    const client = http2.connect(this.#connection.server, { createConnection: () => socket })
    const session = { http2: client, streams: 0 }
    const stopPinging = pingWhenSilent(client, socket)
    client.on('error', () => {}) // every stream reports it
    client.once('close', () => {
      stopPinging()
      this.#sessions.splice(this.#sessions.indexOf(session), 1)
    })
    // After GOAWAY the streams under way may end, and new ones need a new session: `closed` is set by then.
    client.once('goaway', () => client.close())
    this.#sessions.push(session)
    return session
  }

  async #dial(): Promise<tls.TLSSocket> {
    const server = new URL(this.#connection.server)
    const host = server.hostname.replace(/^\[|\]$/g, '')
    const port = Number(server.port || 443)
    const raw = this.#connection.proxyUrl ? await dialThroughProxy(this.#connection.proxyUrl, host, port) : undefined
    const socket = tls.connect({
      host,
      port,
      ...(raw ? { socket: raw } : {}),
      ...tlsOptions(this.#connection, this.#credential),
      ALPNProtocols: ['h2', 'http/1.1'],
    })
    await new Promise<void>((resolve, reject) => {
      socket.once('error', reject)
      socket.once('secureConnect', () => {
        socket.off('error', reject)
        resolve()
      })
    })
    return socket
  }

  #request(session: Session, request: HttpRequest): Promise<HttpAnswer> {
    return new Promise((resolve, reject) => {
      const { signal } = request
      const { host: _, ...headers } = request.headers
      const stream = session.http2.request({ ':method': request.method, ':path': request.path, ...headers })
      const abort = (): void => {
        stream.destroy(signal!.reason as Error)
      }
      signal?.addEventListener('abort', abort, { once: true })
      stream.once('close', () => {
        // A session without watches does not keep the process alive.
        if (--session.streams === 0) session.http2.unref()
        signal?.removeEventListener('abort', abort)
        // A stream reset by the server before it answered ends in `close` alone.
        reject(Object.assign(new Error('the stream was closed before an answer'), { code: 'ECONNRESET' }))
      })
      stream.once('response', (answer) =>
        resolve({ status: Number(answer[':status']), headers: answer, body: stream }),
      )
      stream.once('error', reject)
      stream.end(request.body)
    })
  }
}

/** Destroys a session whose server stopped answering, so that its watches fail and start again. */
const pingWhenSilent = (session: http2.ClientHttp2Session, socket: tls.TLSSocket): (() => void) => {
  let seen = 0
  let deadline: NodeJS.Timeout | undefined
  const timer = setInterval(() => {
    if (socket.bytesRead !== seen) {
      seen = socket.bytesRead
      return
    }
    deadline = setTimeout(() => {
      session.destroy(Object.assign(new Error('the server does not answer HTTP/2 pings'), { code: 'ETIMEDOUT' }))
    }, pingTimeoutMs).unref()
    session.ping(() => clearTimeout(deadline))
  }, pingAfterMs).unref()
  return () => {
    clearInterval(timer)
    clearTimeout(deadline)
  }
}
