import net from 'node:net'
import tls from 'node:tls'
import type { Connection, Credential } from './connection.ts'
import { tunnel } from './tunnel.ts'

/** Where to connect, and when to give up. */
export interface Dialing {
  connection: Connection
  /** PEM; also trusted for an HTTPS proxy, as Go's clients do, beside the system's roots. */
  ca?: string | undefined
  timeoutMs: number
  /** Fires when nobody wants the connection any more. */
  ending: AbortSignal
}

/** The host of a URL as sockets want it: without the brackets of an IPv6 address. */
export const hostOf = (url: URL): string => url.hostname.replaceAll(/^\[|\]$/g, '')

export const portOf = (url: URL): number => Number(url.port || (url.protocol === 'http:' ? 80 : 443))

/** The TLS settings of a connection with one credential. Certificates are parsed here, once, and keys kept out of Node's caches. */
export const tlsOptions = (connection: Connection, { ca, cert, key }: Credential): tls.ConnectionOptions => {
  const name = connection.tlsServerName ?? hostOf(new URL(connection.server))
  return {
    // SNI must not carry an address (RFC 6066); Node would warn and send it.
    ...(net.isIP(name) ? {} : { servername: name }),
    ...(connection.tlsServerName ? { checkServerIdentity: (_host, cert) => tls.checkServerIdentity(name, cert) } : {}),
    secureContext: tls.createSecureContext({ ...(ca ? { ca } : {}), ...(cert && key ? { cert, key } : {}) }),
    rejectUnauthorized: !connection.insecureSkipTlsVerify,
  }
}

/** A raw connection to the server through the proxy of the connection: HTTP, HTTPS or SOCKS5. */
export const dialThroughProxy = async (proxyUrl: string, dialing: Dialing): Promise<net.Socket> => {
  const proxy = new URL(proxyUrl)
  const server = new URL(dialing.connection.server)
  const socket = connectTo(proxy, dialing.ca)
  const steps = async (): Promise<void> => {
    await connected(socket).catch((cause: unknown) => {
      throw proxyError(`the proxy ${proxy.host} cannot be reached (${(cause as NodeJS.ErrnoException).code})`, cause)
    })
    await tunnel(socket, proxy, hostOf(server), portOf(server))
  }
  return within(socket, dialing, steps, () => proxyError(`the proxy ${proxy.host} did not answer in time`))
}

/** A TLS connection that may speak HTTP/2. */
export const dialTls = async (options: tls.ConnectionOptions, dialing: Dialing): Promise<tls.TLSSocket> => {
  const { proxyUrl, server } = dialing.connection
  const raw = proxyUrl ? await dialThroughProxy(proxyUrl, dialing) : undefined
  const url = new URL(server)
  const socket = tls.connect({
    host: hostOf(url),
    port: portOf(url),
    ...(raw ? { socket: raw } : {}),
    ...options,
    ALPNProtocols: ['h2', 'http/1.1'],
  })
  const late = (): Error => Object.assign(new Error('no connection in time'), { code: 'ETIMEDOUT' })
  return within(socket, dialing, () => connected(socket), late)
}

const connectTo = (proxy: URL, ca: string | undefined): net.Socket => {
  const host = hostOf(proxy)
  if (proxy.protocol === 'http:') return net.connect({ host, port: portOf(proxy) })
  if (proxy.protocol !== 'https:') return net.connect({ host, port: Number(proxy.port || 1080) })
  return tls.connect({
    host,
    port: portOf(proxy),
    ...(net.isIP(host) ? {} : { servername: host }),
    ...(ca ? { ca: [...tls.getCACertificates('default'), ca] } : {}),
  })
}

const connected = (socket: net.Socket): Promise<void> =>
  new Promise((resolve, reject) => {
    socket.once('error', reject)
    socket.once(socket instanceof tls.TLSSocket ? 'secureConnect' : 'connect', () => {
      socket.off('error', reject)
      resolve()
    })
  })

/** Does the steps that make a socket usable; destroys it when they fail, take too long or are not wanted any more. */
const within = async <S extends net.Socket>(
  socket: S,
  { timeoutMs, ending }: Dialing,
  steps: () => Promise<void>,
  late: () => Error,
): Promise<S> => {
  const stop = Promise.withResolvers<never>()
  const unwanted = (): void => stop.reject(ending.reason as Error)
  const timer = setTimeout(() => stop.reject(late()), timeoutMs)
  ending.addEventListener('abort', unwanted, { once: true })
  if (ending.aborted) unwanted()
  try {
    await Promise.race([steps(), stop.promise])
    return socket
  } catch (error) {
    socket.on('error', () => {}).destroy()
    throw error
  } finally {
    clearTimeout(timer)
    ending.removeEventListener('abort', unwanted)
  }
}

const proxyError = (message: string, cause?: unknown): Error =>
  Object.assign(new Error(message, { cause }), { code: 'PROXY_REFUSED' })
