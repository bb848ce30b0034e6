import type http2 from 'node:http2'
import type net from 'node:net'
import { HttpFailure, type HttpAnswer, type HttpRequest } from './http1.ts'
import { nodeHttp } from './node-http.ts'

export interface PingOptions {
  /** A connection that has been silent for so long is asked whether it lives. */
  pingAfterMs: number
  /** And given up when no answer comes within this. */
  pingTimeoutMs: number
}

/** kube-apiserver allows 100 streams a connection unless told otherwise: stay below. */
const streamsPerSession = 90
/** For all streams together; what each may have under way is in the session's settings. */
const sessionWindow = 16 << 20

/** One HTTP/2 connection and the watches on it. */
export class Http2Session {
  readonly #http2: http2.ClientHttp2Session
  #streams = 0
  #answers = 0

  constructor(client: http2.ClientHttp2Session, socket: net.Socket, ping: PingOptions) {
    this.#http2 = client
    client.on('error', () => {}) // every stream reports it
    client.once('connect', () => client.setLocalWindowSize(sessionWindow))
    client.unref() // a session without watches does not keep the process alive
    client.once('remoteSettings', () => {
      const stopPinging = pingWhenSilent(client, socket, ping, () => this.#streams > 0)
      client.once('close', stopPinging)
    })
  }

  /** Also after GOAWAY: the streams under way may end, new ones need a new session. */
  get closed(): boolean {
    return this.#http2.closed || this.#http2.destroyed
  }

  get hasRoom(): boolean {
    const allowed = this.#http2.remoteSettings?.maxConcurrentStreams ?? streamsPerSession
    return !this.closed && this.#streams < Math.max(1, Math.min(streamsPerSession, allowed))
  }

  /** The server has spoken, so that its limits are known. */
  ready(timeoutMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.destroy(late('the server accepted HTTP/2 and then said nothing')), timeoutMs)
      this.#http2.once('remoteSettings', () => {
        clearTimeout(timer)
        resolve()
      })
      this.#http2.once('error', reject).once('close', () => {
        clearTimeout(timer)
        reject(Object.assign(new Error('the session was closed before it began'), { code: 'ECONNRESET' }))
      })
    })
  }

  send(request: HttpRequest): Promise<HttpAnswer> {
    const reused = this.#answers > 0
    return new Promise((resolve, reject) => {
      const { signal } = request
      const fail = (error: unknown): void => reject(new HttpFailure(error, reused))
      checkHeaders(request.headers)
      const stream = this.#http2.request({ ':method': request.method, ':path': request.path, ...request.headers })
      const abort = (): void => {
        stream.destroy()
      }
      if (this.#streams++ === 0) this.#http2.ref()
      signal?.addEventListener('abort', abort, { once: true })
      stream.once('close', () => {
        if (--this.#streams === 0) this.#http2.unref()
        signal?.removeEventListener('abort', abort)
        // A stream that the server resets before it answers ends in `close` alone.
        fail(Object.assign(new Error('the stream was closed before an answer'), { code: 'ECONNRESET' }))
      })
      stream.once('response', (answer) => {
        this.#answers++
        resolve({ status: Number(answer[':status']), headers: answer, body: stream })
      })
      stream.on('error', fail)
      stream.end(request.body)
    })
  }

  destroy(error?: Error): void {
    this.#http2.destroy(error)
  }
}

// HTTP/2 in Node leaves out a header that it cannot send. The request would go out as anonymous, or as ourselves where it
// should act as somebody else.
const checkHeaders = (headers: HttpRequest['headers']): void => {
  for (const [name, values] of Object.entries(headers)) {
    nodeHttp.validateHeaderName(name)
    for (const value of [values].flat()) nodeHttp.validateHeaderValue(name, value)
  }
}

/** Destroys a session whose server stopped answering, so that its watches fail and start again, and closes an idle one. */
const pingWhenSilent = (
  session: http2.ClientHttp2Session,
  socket: net.Socket,
  { pingAfterMs, pingTimeoutMs }: PingOptions,
  inUse: () => boolean,
): (() => void) => {
  let seen = 0
  let idle = false
  let deadline: NodeJS.Timeout | undefined
  const ping = (): void => {
    deadline = setTimeout(() => session.destroy(late('the server does not answer HTTP/2 pings')), pingTimeoutMs).unref()
    session.ping(() => {
      clearTimeout(deadline)
      deadline = undefined
      seen = socket.bytesRead
    })
  }
  const look = (): void => {
    const silent = socket.bytesRead === seen
    seen = socket.bytesRead
    if (session.destroyed || deadline) return
    if (idle && !inUse()) session.close()
    else if (silent) ping()
    idle = !inUse()
  }
  const timer = setInterval(look, pingAfterMs).unref()
  return () => {
    clearInterval(timer)
    clearTimeout(deadline)
  }
}

const late = (message: string): Error => Object.assign(new Error(message), { code: 'ETIMEDOUT' })
