import type http from 'node:http'
import https from 'node:https'
import type { Readable } from 'node:stream'
import tls from 'node:tls'
import { nodeHttp } from './node-http.ts'
import { dialThroughProxy, hostOf, portOf, type Dialing } from './dial.ts'

export interface HttpRequest {
  method: string
  /** With the query. */
  path: string
  headers: Record<string, string | string[]>
  body?: string | undefined
  signal?: AbortSignal | undefined
}

export interface HttpAnswer {
  status: number
  headers: http.IncomingHttpHeaders
  body: Readable
}

/** No answer came. The cause is Node's own error, or the reason of the signal. */
export class HttpFailure extends Error {
  override name = 'HttpFailure'
  /** It went into a connection that had served others, and that the server may have closed meanwhile. */
  readonly reused: boolean

  constructor(cause: unknown, reused: boolean) {
    super('no answer', { cause })
    this.reused = reused
  }
}

/** The API server closes idle connections after 90 s: we do it first, so that no request is sent into a closing one. */
const idleMs = 45_000

/** Kept connections. Bulk writes go twice as fast over 16 to 32 of these as over one HTTP/2 session (ADR 2). */
export const http1Agent = (options: tls.ConnectionOptions, maxIdle: number, dialing: Dialing): http.Agent => {
  const kept = { keepAlive: true, keepAliveMsecs: 30_000, maxFreeSockets: maxIdle, timeout: idleMs }
  const { server, proxyUrl } = dialing.connection
  const secure = !server.startsWith('http:')
  const agent = secure ? new https.Agent({ ...kept, ...options }) : new nodeHttp.Agent(kept)
  if (proxyUrl) {
    agent.createConnection = (target, callback) => {
      dialThroughProxy(proxyUrl, dialing)
        .then((socket) => (secure ? tls.connect({ ...(target as tls.ConnectionOptions), socket }) : socket))
        .then(
          (socket) => callback?.(null, socket),
          (error: Error) => callback?.(error, undefined as never),
        )
      return undefined
    }
  }
  return agent
}

/** Closes the connections that nobody uses: where one was found dead, the others may be too. */
export const closeIdle = (agent: http.Agent): void => {
  for (const sockets of Object.values(agent.freeSockets)) for (const socket of sockets ?? []) socket.destroy()
}

/** Sends one request and resolves with the head of the answer. */
export const sendOverHttp1 = (server: URL, agent: http.Agent, request: HttpRequest): Promise<HttpAnswer> =>
  new Promise((resolve, reject) => {
    const { signal } = request
    signal?.throwIfAborted() // to find out about HTTP/2 took its time
    const send = server.protocol === 'http:' ? nodeHttp.request : https.request
    // Not as a string: Node would write the headers in the encoding of the body.
    const body = request.body === undefined ? undefined : Buffer.from(request.body)
    const length = body ? { 'content-length': body.length } : {}
    const outgoing = send({
      agent,
      method: request.method,
      host: hostOf(server),
      port: portOf(server),
      path: request.path,
      headers: { ...request.headers, ...length },
    })
    const abort = (): void => {
      outgoing.destroy()
    }
    signal?.addEventListener('abort', abort, { once: true })
    outgoing.once('close', () => signal?.removeEventListener('abort', abort))
    outgoing.once('response', (incoming) =>
      resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, body: incoming }),
    )
    outgoing.on('error', (error) => reject(new HttpFailure(error, outgoing.reusedSocket)))
    outgoing.end(body)
  })
