import net, { type Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { stubTcp, type Stub } from './stub-server.ts'

/** A proxy on loopback, and what it was asked for. */
export interface StubProxy extends Stub {
  /** host:port of every request. */
  targets: string[]
}

export interface StubProxyOptions {
  /** user:password that it wants. */
  login?: string
  /** What it answers to CONNECT in place of 200. */
  answer?: string
}

/** An HTTP proxy that knows CONNECT. */
export const stubHttpProxy = async (t: TestContext, options: StubProxyOptions = {}): Promise<StubProxy> => {
  const targets: string[] = []
  const stub = await stubTcp(t, (socket) => {
    let seen = ''
    const onData = (chunk: Buffer): void => {
      seen += chunk.toString('latin1')
      if (!seen.includes('\r\n\r\n')) return
      socket.off('data', onData)
      const target = /^CONNECT (\S+) /.exec(seen)?.[1] ?? ''
      targets.push(target)
      const login = /Proxy-Authorization: Basic (\S+)/i.exec(seen)?.[1] ?? ''
      if (options.answer !== undefined) socket.end(options.answer)
      else if (options.login && Buffer.from(login, 'base64').toString() !== options.login)
        socket.end('HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\n')
      else {
        const { hostname, port } = new URL(`http://${target}`)
        join(socket, hostname.replaceAll(/^\[|\]$/g, ''), Number(port), 'HTTP/1.1 200 Connection established\r\n\r\n')
      }
    }
    socket.on('data', onData)
  })
  return { ...stub, server: `http://127.0.0.1:${stub.port}`, targets }
}

/** A SOCKS5 proxy (RFC 1928), with a login if one is wanted (RFC 1929). */
export const stubSocksProxy = async (
  t: TestContext,
  options: { login?: string; code?: number } = {},
): Promise<StubProxy> => {
  const targets: string[] = []
  const stub = await stubTcp(t, (socket) => {
    const steps = options.login ? [chooseLogin, checkLogin, connect] : [chooseNone, connect]
    socket.on('data', function step(chunk: Buffer) {
      steps.shift()?.(chunk)
      if (steps.length === 0) socket.off('data', step)
    })
    function chooseNone(): void {
      socket.write(Buffer.from([5, 0]))
    }
    function chooseLogin(greeting: Buffer): void {
      if (greeting.subarray(2).includes(2)) socket.write(Buffer.from([5, 2]))
      else socket.end(Buffer.from([5, 255]))
    }
    function checkLogin(chunk: Buffer): void {
      const user = chunk.subarray(2, 2 + chunk[1]!)
      const password = chunk.subarray(3 + user.length)
      if ([user, password].join(':') === options.login) socket.write(Buffer.from([1, 0]))
      else socket.end(Buffer.from([1, 1]))
    }
    function connect(chunk: Buffer): void {
      const { host, port } = targetOf(chunk)
      targets.push(`${host}:${port}`)
      if (options.code) socket.end(Buffer.from([5, options.code, 0, 1, 0, 0, 0, 0, 0, 0]))
      else join(socket, host === 'api.internal' ? '127.0.0.1' : host, port, Buffer.from([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]))
    }
  })
  return { ...stub, server: `socks5://127.0.0.1:${stub.port}`, targets }
}

const targetOf = (request: Buffer): { host: string; port: number } => {
  const port = request.readUInt16BE(request.length - 2)
  const address = request.subarray(4, -2)
  if (request[3] === 1) return { host: [...address].join('.'), port }
  if (request[3] === 3) return { host: address.subarray(1).toString(), port }
  const groups = Array.from({ length: 8 }, (_, i) => address.readUInt16BE(2 * i).toString(16))
  return { host: groups.join(':'), port }
}

const join = (client: Socket, host: string, port: number, greeting: string | Buffer): void => {
  const upstream = net.connect(port, host, () => {
    client.write(greeting)
    client.pipe(upstream).pipe(client)
  })
  upstream.on('error', () => client.destroy()).on('close', () => client.destroy())
  client.on('close', () => upstream.destroy())
}
