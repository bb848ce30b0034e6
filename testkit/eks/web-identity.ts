import { once } from 'node:events'
import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'

/** The local AWS with what it lacks of web identities. */
export interface WebIdentityFront {
  endpoint: string
  stop: () => Promise<void>
}

/**
 * Stands before the local AWS. Tokens of Kubernetes name their audience in a list of one, which AWS takes and the local AWS does
 * not; and AWS refuses tokens that have expired. All other calls pass as they are, with their Host, which is signed;
 * `told` may say what has changed since the local AWS began.
 */
export const startWebIdentityFront = async (
  upstream: string,
  told: (request: IncomingMessage, answer: Buffer) => Buffer = (_, answer) => answer,
): Promise<WebIdentityFront> => {
  const server = http.createServer(
    (request, response) => void serve(request, response, { upstream, told }).catch(() => response.destroy()),
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: async () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

const serve = async (
  request: IncomingMessage,
  response: ServerResponse,
  { upstream, told }: { upstream: string; told: (request: IncomingMessage, answer: Buffer) => Buffer },
): Promise<void> => {
  const received = await buffer(request)
  const asked = webIdentityIn(received)
  if (asked && asked.claims.exp * 1000 < Date.now()) {
    const error = '<Error><Code>ExpiredTokenException</Code><Message>Token expired</Message></Error>'
    return void response.writeHead(400, { 'content-type': 'text/xml' }).end(`<ErrorResponse>${error}</ErrorResponse>`)
  }
  const body = asked ? Buffer.from(asked.body) : received
  const { connection: _, ...headers } = request.headers
  if (asked) headers['content-length'] = String(body.length)
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  http
    .request(new URL(request.url!, upstream), { method: request.method!, headers }, resolve)
    .on('error', reject)
    .end(body)
  const answer = await promise
  response.writeHead(answer.statusCode!, { 'content-type': answer.headers['content-type'] ?? 'text/xml' })
  response.end(told(request, await buffer(answer)))
}

interface Claims {
  aud?: unknown
  exp: number
}

const webIdentityIn = (received: Buffer): { body: string; claims: Claims } | undefined => {
  if (!received.includes('AssumeRoleWithWebIdentity')) return undefined
  const parameters = new URLSearchParams(received.toString())
  const [head, payload = '', signature] = (parameters.get('WebIdentityToken') ?? '').split('.')
  try {
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as Claims
    const aud: unknown = Array.isArray(claims.aud) && claims.aud.length === 1 ? claims.aud[0] : claims.aud
    const told = Buffer.from(JSON.stringify({ ...claims, aud })).toString('base64url')
    parameters.set('WebIdentityToken', [head, told, signature].join('.'))
    return { body: String(parameters), claims: { ...claims, exp: claims.exp ?? Infinity } }
  } catch {
    return undefined
  }
}
