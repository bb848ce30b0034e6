import { request as plainRequest, type ClientRequest, type IncomingMessage, type RequestOptions } from 'node:http'
import { Agent, request as secureRequest } from 'node:https'
import type { KeyPair } from '../src/runtime/pki/index.ts'

/** Asks with GET, and returns the status code; fails when there is no answer in 5 seconds. */
export type Probe = (path: string, userAgent?: string) => Promise<number>

const timeout = 5_000

const statusOf = (send: (onResponse: (response: IncomingMessage) => void) => ClientRequest): Promise<number> => {
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  const request = send((response) => {
    response.resume()
    response.once('end', () => resolve(response.statusCode ?? 0))
    response.once('error', reject)
  })
  request.once('timeout', () => request.destroy(new Error(`no answer within ${timeout / 1000} s`)))
  request.once('error', reject)
  request.end()
  return promise
}

/** Asks a server on 127.0.0.1 over TLS, with a client certificate. */
export const secureProbe = (port: number, ca: string, client: KeyPair): Probe => {
  const agent = new Agent({ keepAlive: true, ca, ...client })
  return (path, userAgent = 'lanyard-testkit') => {
    const options: RequestOptions = {
      host: '127.0.0.1',
      port,
      path,
      agent,
      timeout,
      headers: { 'user-agent': userAgent },
    }
    return statusOf((onResponse) => secureRequest(options, onResponse))
  }
}

/** Asks a plain HTTP server, by host and port or by the path of its socket. */
export const plainProbe =
  (where: { host: string; port: number } | { socketPath: string }): Probe =>
  (path) =>
    statusOf((onResponse) => plainRequest({ ...where, path, timeout }, onResponse))
