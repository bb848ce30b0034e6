import assert from 'node:assert/strict'
import type { RequestListener } from 'node:http'
import net from 'node:net'
import { test, type TestContext } from 'node:test'
import tls from 'node:tls'
import { connectionFailureOf } from '../../testkit/failures.ts'
import { eventually, freePort } from '../../testkit/index.ts'
import { stubHttpProxy, stubSocksProxy } from '../../testkit/stub-proxy.ts'
import {
  secrets,
  stubCertificate,
  stubHttp,
  stubHttp2,
  stubHttps,
  stubTcp,
  type Stub,
} from '../../testkit/stub-server.ts'
import { clientFor, ConfigMap, type Client, type ClientOptions, type Connection } from './index.ts'

const login = `joe:${encodeURIComponent(secrets.password)}@`
const withLogin = (proxyUrl: string, text = login): string => proxyUrl.replace('://', `://${text}`)

const clientTo = (t: TestContext, stub: Stub, more: Partial<Connection>, options?: ClientOptions): Client => {
  const client = clientFor(stub.connection(more), options)
  t.after(() => client.close())
  return client
}

const emptyList: RequestListener = (_, response) =>
  response.setHeader('content-type', 'application/json').end('{"items":[]}')

/** An API server for requests, and one for watches, that only speaks HTTP/2. */
const servers = async (t: TestContext): Promise<[Stub, Stub]> => [
  await stubHttps(t, emptyList),
  await stubHttp2(t, (stream) => {
    stream.respond({ ':status': 200, 'content-type': 'application/json' })
    stream.end('{"type":"ADDED","object":{"metadata":{"name":"a"}}}\n')
  }),
]

/** A list over HTTP/1.1 and a watch over HTTP/2. */
const use = async (t: TestContext, [http1, http2]: [Stub, Stub], more: Partial<Connection>): Promise<void> => {
  await clientTo(t, http1, more).of(ConfigMap, 'a').list()
  assert.equal((await Array.fromAsync(await clientTo(t, http2, more).of(ConfigMap, 'a').watch())).length, 1)
}

const failuresOf = async (t: TestContext, proxyUrl: string, options?: ClientOptions): Promise<string[]> => {
  const client = clientTo(t, await stubHttps(t, () => assert.fail('it came through')), { proxyUrl }, options)
  const configMaps = client.of(ConfigMap, 'a')
  const errors = [await connectionFailureOf(configMaps.get('b')), await connectionFailureOf(configMaps.watch())]
  for (const error of errors) {
    assert.equal(error.code, 'PROXY_REFUSED')
    assert.equal(error.notSent, true)
    assert.match(error.message, /; check proxy-url in the kubeconfig, or HTTPS_PROXY and NO_PROXY$/)
  }
  return errors.map(({ message }) => message)
}

test('R0.5 an HTTP proxy, without and with a login', async (t) => {
  const stubs = await servers(t)
  const open = await stubHttpProxy(t)
  const closed = await stubHttpProxy(t, { login: secrets.login })

  await use(t, stubs, { proxyUrl: open.server })
  await use(t, stubs, { proxyUrl: withLogin(closed.server) })

  const targets = stubs.map(({ port }) => `127.0.0.1:${port}`)
  assert.deepEqual(open.targets, targets)
  assert.deepEqual(closed.targets, targets)
})

test('R0.5 an HTTP proxy that wants a login, or another one', async (t) => {
  const proxy = await stubHttpProxy(t, { login: 'somebody:else' })
  for (const message of await failuresOf(t, proxy.server)) assert.match(message, /the proxy \S+ wants a login \(407\)/)
  for (const message of await failuresOf(t, withLogin(proxy.server)))
    assert.match(message, /the proxy 127\.0\.0\.1:\d+ wants another login \(407\)/)
})

test('R0.5 an HTTP proxy that refuses, speaks nonsense or hangs up', async (t) => {
  const answers = {
    'HTTP/1.1 403 Forbidden\r\n\r\n': /the proxy \S+ answered 403 Forbidden to CONNECT 127\.0\.0\.1:\d+/,
    '220 smtp.example ESMTP\r\n\r\n': /the proxy \S+ answered no HTTP to CONNECT/,
    '': /the proxy \S+ closed the connection/,
    [`HTTP/1.1 200 OK\r\nx: ${'x'.repeat(20_000)}`]: /the proxy \S+ answered too much/,
  }
  for (const [answer, pattern] of Object.entries(answers)) {
    const proxy = await stubHttpProxy(t, { answer })
    for (const message of await failuresOf(t, withLogin(proxy.server))) assert.match(message, pattern)
    await eventually(() => assert.equal(proxy.sockets.size, 0))
  }
})

test('R0.5 a proxy that is down or unknown', async (t) => {
  for (const proxyUrl of [`http://${login}127.0.0.1:${await freePort()}`, `socks5://${login}no-such-host.invalid`])
    for (const message of await failuresOf(t, proxyUrl))
      assert.match(message, /the proxy \S+ cannot be reached \(E\w+\)/)
})

test('R0.5 a proxy that hangs is given up, and later ones are not kept waiting', async (t) => {
  const proxy = await stubTcp(t, (socket) => void socket.resume())
  for (const scheme of ['http', 'socks5', 'https']) {
    const proxyUrl = withLogin(proxy.server.replace('https:', `${scheme}:`))
    const messages = await failuresOf(t, proxyUrl, { connectTimeoutMs: 30, maxConnections: 1 })
    for (const message of messages) assert.match(message, /the proxy \S+ did not answer in time/)
  }
  await eventually(() => assert.equal(proxy.sockets.size, 0))
})

test('R0.5 many requests through a proxy share the connections that are allowed', async (t) => {
  const [stub] = await servers(t)
  const proxy = await stubHttpProxy(t)
  const configMaps = clientTo(t, stub, { proxyUrl: proxy.server }, { maxConnections: 3 }).of(ConfigMap, 'a')
  await Promise.all(Array.from({ length: 30 }, () => configMaps.list()))
  assert.equal(proxy.accepted(), 3)
})

test('R0.5 an HTTPS proxy whose certificate is from the CA of the kubeconfig', async (t) => {
  const stubs = await servers(t)
  const inner = await stubHttpProxy(t, { login: secrets.login })
  const certificate = stubCertificate()
  const outer = await stubTcp(t, (socket) => {
    const secure = new tls.TLSSocket(socket, { isServer: true, ...certificate })
    const plain = net.connect(inner.port, '127.0.0.1')
    secure.on('error', () => plain.destroy()).on('close', () => plain.destroy())
    secure.pipe(plain).pipe(secure)
  })
  await use(t, stubs, { proxyUrl: withLogin(outer.server) })
  assert.equal(inner.targets.length, 2)
})

test('R0.5 a SOCKS5 proxy, without and with a login; names and addresses are left to it', async (t) => {
  const stubs = await servers(t)
  const open = await stubSocksProxy(t)
  const closed = await stubSocksProxy(t, { login: secrets.login })

  await use(t, stubs, { proxyUrl: open.server })
  await use(t, stubs, { proxyUrl: withLogin(open.server) })
  await use(t, stubs, { proxyUrl: withLogin(closed.server) })
  const named = { server: `https://api.internal:${stubs[0].port}`, tlsServerName: '127.0.0.1' }
  await clientTo(t, stubs[0], { proxyUrl: open.server, ...named })
    .of(ConfigMap, 'a')
    .list()

  assert.deepEqual(
    closed.targets,
    stubs.map(({ port }) => `127.0.0.1:${port}`),
  )
  assert.equal(open.targets.at(-1), `api.internal:${stubs[0].port}`)
})

test('R0.5 a SOCKS5 proxy to an IPv6 address', async (t) => {
  const stub = await stubHttps(t, emptyList, { host: '::1' })
  for (const proxy of [await stubSocksProxy(t), await stubHttpProxy(t)]) {
    await clientTo(t, stub, { proxyUrl: proxy.server }).of(ConfigMap, 'a').list()
    assert.match(proxy.targets[0]!, /^(0:0:0:0:0:0:0:1|\[::1\]):\d+$/)
  }
})

test('R0.5 a SOCKS5 proxy that refuses', async (t) => {
  const wanting = await stubSocksProxy(t, { login: 'somebody:else' })
  const failing = await stubSocksProxy(t, { code: 5 })
  const http = await stubHttpProxy(t, { answer: 'HTTP/1.1 400 Bad Request\r\n\r\n' })
  const long = `joe:${'x'.repeat(300)}@`

  for (const message of await failuresOf(t, wanting.server)) assert.match(message, /SOCKS proxy \S+ wants a login/)
  for (const message of await failuresOf(t, withLogin(wanting.server))) assert.match(message, /\S+ refused the login/)
  for (const message of await failuresOf(t, withLogin(wanting.server, long))) assert.match(message, /at most 255 bytes/)
  for (const message of await failuresOf(t, failing.server))
    assert.match(message, /the SOCKS proxy \S+ could not reach 127\.0\.0\.1:\d+ \(code 5\)/)
  const confused = http.server.replace('http:', 'socks5:')
  for (const message of await failuresOf(t, confused, { connectTimeoutMs: 50 }))
    assert.match(message, /did not answer in time|does not speak SOCKS5/)
})

test('R0.5 a server without TLS is reached through the proxy too', async (t) => {
  const stub = await stubHttp(t, emptyList)
  const proxy = await stubHttpProxy(t)
  await clientTo(t, stub, { proxyUrl: proxy.server }).of(ConfigMap, 'a').list()
  assert.deepEqual(proxy.targets, [`127.0.0.1:${stub.port}`])
})
