import net from 'node:net'
import tls from 'node:tls'
import type { Connection, Credential } from './connection.ts'

/** The TLS settings of a connection with the credential that is current now. */
export const tlsOptions = (connection: Connection, credential: Credential): tls.ConnectionOptions => {
  const host = new URL(connection.server).hostname.replace(/^\[|\]$/g, '')
  const name = connection.tlsServerName ?? host
  return {
    // SNI must not carry an address (RFC 6066); Node would warn and send it.
    ...(net.isIP(name) ? {} : { servername: name }),
    ...(connection.tlsServerName
      ? { checkServerIdentity: (_host, cert) => tls.checkServerIdentity(connection.tlsServerName!, cert) }
      : {}),
    ...(credential.ca ? { ca: credential.ca } : {}),
    ...(credential.cert && credential.key ? { cert: credential.cert, key: credential.key } : {}),
    rejectUnauthorized: !connection.insecureSkipTlsVerify,
  }
}

/** A raw connection to host:port through an HTTP, HTTPS or SOCKS5 proxy. */
export const dialThroughProxy = async (proxyUrl: string, host: string, port: number): Promise<net.Socket> => {
  const proxy = new URL(proxyUrl)
  const socket = await connected(
    proxy.protocol === 'https:'
      ? tls.connect({ host: proxy.hostname, port: Number(proxy.port || 443), servername: proxy.hostname })
      : net.connect({ host: proxy.hostname, port: Number(proxy.port || (proxy.protocol === 'http:' ? 80 : 1080)) }),
  )
  try {
    await (proxy.protocol.startsWith('socks5') ? socks5(socket, proxy, host, port) : httpConnect(socket, proxy, host, port))
  } catch (error) {
    socket.destroy()
    throw error
  }
  return socket
}

const connected = (socket: net.Socket): Promise<net.Socket> =>
  new Promise((resolve, reject) => {
    socket.once(socket instanceof tls.TLSSocket ? 'secureConnect' : 'connect', () => {
      socket.off('error', reject)
      resolve(socket)
    })
    socket.once('error', reject)
  })

const httpConnect = async (socket: net.Socket, proxy: URL, host: string, port: number): Promise<void> => {
  const target = `${host.includes(':') ? `[${host}]` : host}:${port}`
  const login = proxy.username
    ? `Proxy-Authorization: Basic ${Buffer.from(`${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`).toString('base64')}\r\n`
    : ''
  socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n${login}\r\n`)
  const answer = await readUntil(socket, (seen) => seen.includes('\r\n\r\n'))
  const status = /^HTTP\/1\.\d (\d{3})([^\r]*)/.exec(answer.toString('latin1'))
  if (status?.[1] !== '200')
    throw refused(`the proxy ${proxy.host} answered ${status?.[1] ?? 'no HTTP'}${status?.[2] ?? ''} to CONNECT ${target}`)
}

// RFC 1928: greeting, optional user name and password (RFC 1929), then the request with the host name, so that the proxy resolves it.
const socks5 = async (socket: net.Socket, proxy: URL, host: string, port: number): Promise<void> => {
  socket.write(Buffer.from(proxy.username ? [5, 1, 2] : [5, 1, 0]))
  const method = await readUntil(socket, (seen) => seen.length >= 2)
  if (method[1] === 2) {
    const user = Buffer.from(decodeURIComponent(proxy.username))
    const password = Buffer.from(decodeURIComponent(proxy.password))
    socket.write(Buffer.concat([Buffer.from([1, user.length]), user, Buffer.from([password.length]), password]))
    const login = await readUntil(socket, (seen) => seen.length >= 2)
    if (login[1] !== 0) throw refused(`the SOCKS proxy ${proxy.host} refused the login`)
  } else if (method[1] !== 0) throw refused(`the SOCKS proxy ${proxy.host} accepts none of our login methods`)

  const name = Buffer.from(host)
  socket.write(Buffer.concat([Buffer.from([5, 1, 0, 3, name.length]), name, Buffer.from([port >> 8, port & 255])]))
  const answer = await readUntil(socket, (seen) => seen.length >= 5 && seen.length >= socksAnswerLength(seen))
  if (answer[1] !== 0) throw refused(`the SOCKS proxy ${proxy.host} could not reach ${host}:${port} (code ${answer[1]})`)
}

const socksAnswerLength = (answer: Buffer): number =>
  answer[3] === 1 ? 10 : answer[3] === 4 ? 22 : 7 + (answer[4] ?? 0)

const refused = (message: string): Error => Object.assign(new Error(message), { code: 'PROXY_REFUSED' })

const readUntil = (socket: net.Socket, complete: (seen: Buffer) => boolean): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    let seen = Buffer.alloc(0)
    const settle = (finish: () => void): void => {
      socket.off('data', onData).off('error', onError).off('close', onClose)
      socket.pause()
      finish()
    }
    const onData = (chunk: Buffer): void => {
      seen = Buffer.concat([seen, chunk])
      if (complete(seen)) settle(() => resolve(seen))
      else if (seen.length > 16_384) settle(() => reject(refused('the proxy answered with more than 16 KB of headers')))
    }
    const onError = (error: Error): void => settle(() => reject(error))
    const onClose = (): void => settle(() => reject(refused('the proxy closed the connection')))
    socket.on('data', onData).on('error', onError).on('close', onClose)
  })
