import { once } from 'node:events'
import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import https from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import tls from 'node:tls'
import { createAuthority, issue } from '../../src/runtime/pki/index.ts'

/** A way to the local AWS for programs that insist on the real names of AWS. */
export interface ConnectProxy {
  /** For `HTTPS_PROXY`. */
  url: string
  /** What they have to trust: for `SSL_CERT_FILE` or `AWS_CA_BUNDLE`. */
  ca: string
  stop: () => Promise<void>
}

const day = 86_400_000
const ofAws = /^[a-z0-9.-]+\.amazonaws\.com(\.cn)?$/

/**
 * Terminates TLS for hosts of AWS with an authority of its own and passes requests on with their Host header, which is signed.
 * Nobody else is connected to. GetCallerIdentity is told as JSON to who asks for JSON, as AWS does and the local AWS does not.
 */
export const startConnectProxy = async (upstream: string): Promise<ConnectProxy> => {
  const now = new Date()
  const authority = createAuthority({ commonName: 'lanyard-testkit-aws', validForMs: day, now })
  const contexts = new Map<string, tls.SecureContext>()
  const contextFor = (host: string): tls.SecureContext => {
    const known = contexts.get(host)
    if (known) return known
    const usual = { notBefore: new Date(now.getTime() - 60_000), notAfter: new Date(now.getTime() + day) }
    const made = tls.createSecureContext(
      issue(authority, { commonName: host, dnsNames: [host], usages: ['server'], ...usual }),
    )
    contexts.set(host, made)
    return made
  }
  const inside = https.createServer(
    { SNICallback: (host, done) => done(null, contextFor(host)) },
    (request, response) => void passOn(request, response, upstream).catch(() => response.destroy()),
  )
  const sockets = new Set<Socket>()
  const outside = http.createServer((_, response) => response.writeHead(405).end())
  outside.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket)).on('error', () => socket.destroy())
  })
  outside.on('connect', (request: IncomingMessage, socket: Socket) => {
    const host = request.url?.replace(/:443$/, '') ?? ''
    const isAws = ofAws.test(host)
    socket.write(`HTTP/1.1 ${isAws ? '200 Connection established' : '403 Forbidden'}\r\n\r\n`)
    if (isAws) inside.emit('connection', socket)
    else socket.end()
  })
  outside.listen(0, '127.0.0.1')
  await once(outside, 'listening')
  const { port } = outside.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    ca: authority.cert,
    stop: async () => {
      for (const socket of sockets) socket.destroy()
      outside.close()
      inside.close()
    },
  }
}

const passOn = async (request: IncomingMessage, response: ServerResponse, upstream: string): Promise<void> => {
  const body = await buffer(request)
  const { connection: _, ...headers } = request.headers
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  http
    .request(new URL(request.url!, upstream), { method: request.method!, headers }, resolve)
    .on('error', reject)
    .end(body)
  const answer = await promise
  const text = (await buffer(answer)).toString()
  const json = request.headers.accept?.includes('json') ? callerAsJson(text) : undefined
  const type = json ? 'application/json' : (answer.headers['content-type'] ?? 'text/xml')
  response.writeHead(answer.statusCode!, { 'content-type': type }).end(json ?? text)
}

const callerAsJson = (xml: string): string | undefined => {
  if (!xml.includes('<GetCallerIdentityResult>')) return undefined
  const of = (name: string): string => new RegExp(`<${name}>([^<]*)<`).exec(xml)?.[1] ?? ''
  const GetCallerIdentityResult = { Account: of('Account'), Arn: of('Arn'), UserId: of('UserId') }
  const ResponseMetadata = { RequestId: of('RequestId') }
  return JSON.stringify({ GetCallerIdentityResponse: { GetCallerIdentityResult, ResponseMetadata } })
}
