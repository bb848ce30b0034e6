import { once } from 'node:events'
import http, { type RequestListener } from 'node:http'
import http2 from 'node:http2'
import https from 'node:https'
import net, { type AddressInfo, type Server, type Socket } from 'node:net'
import type { TestContext } from 'node:test'
import type { Connection, Credential } from '../src/kube/index.ts'
import { createAuthority, issue, type Issue, type KeyPair } from '../src/runtime/pki/index.ts'

const day = 86_400_000
const authority = createAuthority({ commonName: 'stub', validForMs: day, now: new Date(Date.now() - day / 2) })

/** What stub servers are trusted by. */
export const stubCa = authority.cert

/** A certificate from the authority of the stub servers: for a server on loopback unless said otherwise. */
export const stubCertificate = (options: Partial<Issue> = {}): KeyPair =>
  issue(authority, {
    commonName: 'stub',
    ipAddresses: ['127.0.0.1', '::1'],
    usages: ['server'],
    notBefore: new Date(Date.now() - day / 4),
    notAfter: new Date(Date.now() + day / 4),
    ...options,
  })

const password = 'p@ss:/word%'

/** Must never be seen in an error. */
export const secrets = { token: 'secret.to.ken', password, login: `joe:${password}`, key: 'BEGIN PRIVATE KEY' }

/** A server that does what a test says, for faults that a real API server cannot make. Gone when the test ends. */
export interface Stub {
  /** As a URL. */
  server: string
  port: number
  /** Those that are open now. */
  sockets: Set<Socket>
  /** How many connections there have been. */
  accepted: () => number
  /** How to reach it, with a token. */
  connection: (more?: Partial<Connection>, credential?: Credential) => Connection
}

export interface StubOptions {
  certificate?: KeyPair
  /** 127.0.0.1 unless said otherwise. */
  host?: string
}

export const stubHttps = (t: TestContext, listener: RequestListener, options: StubOptions = {}): Promise<Stub> =>
  listening(t, https.createServer(options.certificate ?? stubCertificate(), listener), 'https', options)

export const stubHttp = (t: TestContext, listener: RequestListener): Promise<Stub> =>
  listening(t, http.createServer(listener), 'http')

/** Each stream is a request. */
export const stubHttp2 = (
  t: TestContext,
  onStream: (stream: http2.ServerHttp2Stream, headers: http2.IncomingHttpHeaders) => void,
  settings: http2.Settings = {},
  onSession: (session: http2.ServerHttp2Session) => void = () => {},
): Promise<Stub> => {
  const server = http2.createSecureServer({ ...stubCertificate(), settings })
  server.on('stream', (stream: http2.ServerHttp2Stream, headers) => {
    stream.on('error', () => {})
    onStream(stream, headers)
  })
  server.on('session', onSession)
  server.on('sessionError', () => {})
  return listening(t, server, 'https')
}

/** Bytes, without HTTP or TLS. */
export const stubTcp = (t: TestContext, onSocket: (socket: Socket) => void): Promise<Stub> =>
  listening(t, net.createServer(onSocket), 'https')

/** Passes bytes on to a server; while `frozen`, it swallows them without closing anything. */
export const stubRelay = async (t: TestContext, to: string): Promise<Stub & { frozen: boolean }> => {
  const { hostname, port } = new URL(to)
  const relay = await stubTcp(t, (socket) => {
    const upstream = net.connect(Number(port), hostname)
    pass(socket, upstream)
    pass(upstream, socket)
  })
  const pass = (from: Socket, into: Socket): void => {
    from.on('data', (chunk) => state.frozen || into.write(chunk))
    from.on('error', () => into.destroy()).on('close', () => into.destroy())
  }
  const state = Object.assign(relay, { frozen: false })
  return state
}

const listening = async (t: TestContext, server: Server, scheme: string, options: StubOptions = {}): Promise<Stub> => {
  const { host = '127.0.0.1' } = options
  const sockets = new Set<Socket>()
  let accepted = 0
  server.on('connection', (socket) => {
    accepted++
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('close', () => sockets.delete(socket))
  })
  server.on('tlsClientError', () => {})
  server.listen(0, host)
  await once(server, 'listening')
  t.after(async () => {
    const closed = once(server, 'close')
    server.close()
    for (const socket of sockets) socket.destroy()
    await closed
  })
  const { port } = server.address() as AddressInfo
  const url = `${scheme}://${net.isIPv6(host) ? `[${host}]` : host}:${port}`
  return {
    server: url,
    port,
    sockets,
    accepted: () => accepted,
    connection: (more = {}, credential = { ca: stubCa, token: secrets.token }) => ({
      source: 'context "stub" of ~/.kube/config',
      server: url,
      credentials: async () => credential,
      ...more,
    }),
  }
}
