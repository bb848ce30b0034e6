import http from 'node:http'
import https from 'node:https'
import type { Readable } from 'node:stream'
import tls from 'node:tls'
import type { Connection, Credential } from './connection.ts'
import { dialThroughProxy, tlsOptions } from './dial.ts'

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

/** The API server closes idle connections after 90 s: we do it first, so that no request is sent into a closing one. */
const idleMs = 45_000

/** A pool of kept connections. Bulk writes go twice as fast over 16 to 32 of these as over one HTTP/2 session (ADR 2). */
export const http1Pool = (connection: Connection, credential: Credential, maxSockets: number): http.Agent => {
  const options = { keepAlive: true, keepAliveMsecs: 30_000, maxSockets, timeout: idleMs, scheduling: 'lifo' as const }
  if (connection.server.startsWith('http:')) return new http.Agent(options)

  const agent = new https.Agent({ ...options, ...tlsOptions(connection, credential) })
  if (connection.proxyUrl) {
    const proxyUrl = connection.proxyUrl
    agent.createConnection = (target, callback) => {
      const { host, port } = target as { host: string; port: number }
      dialThroughProxy(proxyUrl, host, port).then(
        (socket) => callback?.(null, tls.connect({ ...(target as tls.ConnectionOptions), socket })),
        (error: Error) => callback?.(error, undefined as never),
      )
      return undefined
    }
  }
  return agent
}

/** Sends one request and resolves with the head of the answer. Rejects with Node's own error, or the signal's reason. */
export const sendOverHttp1 = (server: URL, agent: http.Agent, request: HttpRequest): Promise<HttpAnswer> =>
  new Promise((resolve, reject) => {
    const { signal } = request
    const send = server.protocol === 'http:' ? http.request : https.request
    const outgoing = send({
      agent,
      method: request.method,
      host: server.hostname.replace(/^\[|\]$/g, ''),
      port: server.port || (server.protocol === 'http:' ? 80 : 443),
      path: request.path,
      headers:
        request.body === undefined
          ? request.headers
          : { ...request.headers, 'content-length': Buffer.byteLength(request.body) },
    })
    const abort = (): void => {
      outgoing.destroy(signal!.reason as Error)
    }
    signal?.addEventListener('abort', abort, { once: true })
    outgoing.once('close', () => signal?.removeEventListener('abort', abort))
    outgoing.once('response', (incoming) =>
      resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, body: incoming }),
    )
    outgoing.once('error', (error) => reject(Object.assign(error, { reusedSocket: outgoing.reusedSocket })))
    outgoing.end(request.body)
  })
