import { Agent, request } from 'node:https'
import type { IncomingMessage } from 'node:http'
import { TLSSocket } from 'node:tls'
import type { ControlPlane } from './control-plane.ts'
import type { Identity } from './credentials.ts'
import type { Incoming } from './fault-exchange.ts'

// they speak of one connection (RFC 9110, 7.6.1), and HTTP/2 refuses most of them
const hopByHop = new Set(['connection', 'keep-alive', 'proxy-connection', 'te', 'transfer-encoding', 'upgrade', 'host'])

/** Sends requests on to the API server, for whoever sent them to the proxy. */
export const upstreamOf = (plane: ControlPlane, fallback: Identity) => {
  const agent = new Agent({ keepAlive: true, ca: plane.ca, ...plane.frontProxy })
  const { hostname, port } = new URL(plane.server)

  /** Resolves with the head of the answer; `signal` gives the request up. */
  const send = (incoming: Incoming, signal: AbortSignal): Promise<IncomingMessage> => {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
    const headers = { ...headersOf(incoming), ...remoteUser(incoming, fallback) }
    const { method, url: path } = incoming
    const outgoing = request({ hostname, port, agent, method, path, headers, signal }, resolve)
    outgoing.on('error', reject)
    incoming.pipe(outgoing)
    return promise
  }
  return { send, close: () => agent.destroy() }
}

/** Headers as they came, repeated ones included: there may be many Impersonate-Group. */
const headersOf = ({ rawHeaders }: Incoming): Record<string, string[]> => {
  const headers: Record<string, string[]> = {}
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!.toLowerCase()
    if (name.startsWith(':') || name.startsWith('x-remote-') || hopByHop.has(name)) continue
    ;(headers[name] ??= []).push(rawHeaders[i + 1]!)
  }
  return headers
}

/** A token speaks for itself; else the client's certificate counts, and without one the user the proxy was given. */
const remoteUser = (incoming: Incoming, fallback: Identity): Record<string, string | string[]> => {
  if (incoming.headers.authorization) return {}
  const { user, groups = [] } = identityOf(incoming) ?? fallback
  return { 'x-remote-user': user, 'x-remote-group': [...groups] }
}

const identityOf = (incoming: Incoming): Identity | undefined => {
  const socket = 'stream' in incoming ? incoming.stream.session?.socket : incoming.socket
  if (!(socket instanceof TLSSocket) || !socket.authorized) return undefined
  const { CN, O } = socket.getPeerCertificate().subject
  return { user: String(CN), groups: [O ?? []].flat() }
}

/** The headers of the answer that are meant for the client. */
export const answerHeaders = (answer: IncomingMessage): Record<string, string[]> => {
  const entries = Object.entries(answer.headersDistinct).filter(([name]) => !hopByHop.has(name))
  return Object.fromEntries(entries.map(([name, values]) => [name, values ?? []]))
}
