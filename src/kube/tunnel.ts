import net from 'node:net'

/** Asks a proxy, over a socket that is connected to it, for a way to host:port. The login is in the proxy's URL. */
export const tunnel = (socket: net.Socket, proxy: URL, host: string, port: number): Promise<void> =>
  proxy.protocol.startsWith('socks5') ? socks5(socket, proxy, host, port) : httpConnect(socket, proxy, host, port)

const httpConnect = async (socket: net.Socket, proxy: URL, host: string, port: number): Promise<void> => {
  const target = `${net.isIPv6(host) ? `[${host}]` : host}:${port}`
  const { user, password } = loginOf(proxy)
  const login = user ? `Proxy-Authorization: Basic ${Buffer.from(`${user}:${password}`).toString('base64')}\r\n` : ''
  socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n${login}\r\n`)
  const answer = await readUntil(socket, proxy, (seen) => seen.includes('\r\n\r\n'))
  const [, status, text] = /^HTTP\/1\.\d (\d{3})([^\r]*)/.exec(answer.toString('latin1')) ?? []
  if (status === '407') throw refused(`the proxy ${proxy.host} wants ${user ? 'another' : 'a'} login (407)`)
  if (status !== '200')
    throw refused(`the proxy ${proxy.host} answered ${status ?? 'no HTTP'}${text ?? ''} to CONNECT ${target}`)
}

// RFC 1928: greeting, optional user name and password (RFC 1929), then the request. The proxy resolves the name.
const socks5 = async (socket: net.Socket, proxy: URL, host: string, port: number): Promise<void> => {
  const { user, password } = loginOf(proxy)
  socket.write(Buffer.from(user ? [5, 2, 0, 2] : [5, 1, 0]))
  const [version, method] = await readUntil(socket, proxy, (seen) => seen.length >= 2)
  if (version !== 5) throw refused(`the proxy ${proxy.host} does not speak SOCKS5`)
  if (method === 2 && user) {
    socket.write(Buffer.concat([Buffer.from([1]), sized(user), sized(password)]))
    const [, outcome] = await readUntil(socket, proxy, (seen) => seen.length >= 2)
    if (outcome !== 0) throw refused(`the SOCKS proxy ${proxy.host} refused the login`)
  } else if (method !== 0) throw refused(`the SOCKS proxy ${proxy.host} wants ${user ? 'another kind of' : 'a'} login`)

  socket.write(Buffer.concat([Buffer.from([5, 1, 0]), socksAddress(host), Buffer.from([port >> 8, port & 255])]))
  const answer = await readUntil(socket, proxy, (seen) => seen.length >= 5 && seen.length >= socksAnswerLength(seen))
  if (answer[1] !== 0)
    throw refused(`the SOCKS proxy ${proxy.host} could not reach ${host}:${port} (code ${answer[1]})`)
}

const socksAddress = (host: string): Buffer => {
  if (net.isIPv4(host)) return Buffer.from([1, ...host.split('.').map(Number)])
  if (net.isIPv6(host)) return Buffer.concat([Buffer.from([4]), ipv6Bytes(host)])
  return Buffer.concat([Buffer.from([3]), sized(host)])
}

const ipv6Bytes = (address: string): Buffer => {
  // A URL writes addresses in hexadecimal groups only, with `::` for one run of zeros.
  const [head = [], tail = []] = address.split('::').map((part) => part.split(':').filter(Boolean))
  const zeros = Array<string>(8 - head.length - tail.length).fill('0')
  return Buffer.from([...head, ...zeros, ...tail].map((group) => group.padStart(4, '0')).join(''), 'hex')
}

const socksAnswerLength = (answer: Buffer): number =>
  answer[3] === 1 ? 10 : answer[3] === 4 ? 22 : 7 + (answer[4] ?? 0)

const sized = (text: string): Buffer => {
  const bytes = Buffer.from(text)
  if (bytes.length > 255) throw refused('SOCKS5 allows at most 255 bytes for a user name, a password or a host name')
  return Buffer.concat([Buffer.from([bytes.length]), bytes])
}

const loginOf = (proxy: URL): { user: string; password: string } => ({
  user: decoded(proxy.username),
  password: decoded(proxy.password),
})

// A password may hold a bare `%`, which a URL does not encode.
const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

const refused = (message: string): Error => Object.assign(new Error(message), { code: 'PROXY_REFUSED' })

// Not paused in between: a socket that was paused would have to be resumed by whoever comes next, and nothing comes unasked.
const readUntil = (socket: net.Socket, proxy: URL, complete: (seen: Buffer) => boolean): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    let seen = Buffer.alloc(0)
    const settle = (finish: () => void): void => {
      socket.off('data', onData).off('error', onEnd).off('close', onEnd)
      finish()
    }
    const onData = (chunk: Buffer): void => {
      seen = Buffer.concat([seen, chunk])
      if (complete(seen)) settle(() => resolve(seen))
      else if (seen.length > 16_384) settle(() => reject(refused(`the proxy ${proxy.host} answered too much`)))
    }
    const onEnd = (): void => settle(() => reject(refused(`the proxy ${proxy.host} closed the connection`)))
    socket.on('data', onData).on('error', onEnd).on('close', onEnd)
  })
