import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test, type TestContext } from 'node:test'
import tls from 'node:tls'
import { connectionFailureOf } from '../../testkit/failures.ts'
import { secrets, stubCa, stubCertificate, stubHttp, stubHttps, stubTcp } from '../../testkit/stub-server.ts'
import { freePort } from '../../testkit/index.ts'
import { createAuthority } from '../runtime/pki/index.ts'
import {
  clientFor,
  ConfigMap,
  type ClientOptions,
  type Connection,
  type ConnectionError,
  type Credential,
} from './index.ts'

const day = 86_400_000
const to = (server: string, credential: Credential = { ca: stubCa, token: secrets.token }): Connection => ({
  source: 'context "stub" of ~/.kube/config',
  server,
  credentials: async () => credential,
})

/** A request and a watch of a server: the first over HTTP/1.1, the second over HTTP/2 where there is any. */
const failuresOf = async (
  t: TestContext,
  connection: Connection,
  options?: ClientOptions,
): Promise<ConnectionError[]> => {
  const client = clientFor(connection, options)
  t.after(() => client.close())
  const configMaps = client.of(ConfigMap, 'default')
  return [await connectionFailureOf(configMaps.get('a')), await connectionFailureOf(configMaps.watch())]
}

test('R0.39 a server that is down', async (t) => {
  for (const error of await failuresOf(t, to(`https://127.0.0.1:${await freePort()}`))) {
    assert.equal(error.code, 'ECONNREFUSED')
    assert.ok(error.notSent)
    assert.match(error.message, /nothing accepts connections there; check that the API server runs/)
  }
})

test('R0.39 a host that is unknown', async (t) => {
  for (const error of await failuresOf(t, to('https://no-such-host.invalid:6443'))) {
    assert.match(error.message, /the host name cannot be resolved; check the server address in the kubeconfig, and DNS/)
    assert.ok(error.notSent)
  }
})

test('R0.39 a server whose certificate is from another authority', async (t) => {
  const stub = await stubHttps(t, () => assert.fail('it was trusted'))
  const stranger = createAuthority({ commonName: 'stranger', validForMs: day, now: new Date() })
  for (const ca of [stranger.cert, undefined])
    for (const error of await failuresOf(t, to(stub.server, { ca, token: secrets.token })))
      assert.match(error.message, /the server's certificate is not trusted \(\w+\); check that certificate-authority/)
})

test('R0.39 a server whose certificate is for another name, unless that name is asked for', async (t) => {
  const certificate = stubCertificate({ ipAddresses: [], dnsNames: ['kubernetes.default'] })
  const stub = await stubHttps(t, (_, response) => response.setHeader('content-type', 'application/json').end('{}'), {
    certificate,
  })
  for (const error of await failuresOf(t, to(stub.server))) {
    assert.equal(error.code, 'ERR_TLS_CERT_ALTNAME_INVALID')
    assert.match(
      error.message,
      /for another name \(.*127\.0\.0\.1.*\); use a name that it holds, or set tls-server-name/,
    )
  }
  for (const trusting of [{ tlsServerName: 'kubernetes.default' }, { insecureSkipTlsVerify: true }]) {
    const client = clientFor({ ...to(stub.server), ...trusting })
    t.after(() => client.close())
    await client.of(ConfigMap, 'default').get('a')
  }
})

test('R0.39 a server whose certificate has expired', async (t) => {
  const notAfter = new Date(Date.now() - 1000)
  const stub = await stubHttps(t, () => assert.fail('it was trusted'), { certificate: stubCertificate({ notAfter }) })
  for (const error of await failuresOf(t, to(stub.server)))
    assert.match(error.message, /the server's certificate has expired; renew it, and check the clock here/)
})

test('R0.39 plain HTTP on a port where TLS was meant, and the other way round', async (t) => {
  const plain = await stubHttp(t, (_, response) => response.end('hello'))
  for (const error of await failuresOf(t, to(plain.server.replace('http:', 'https:'))))
    assert.match(error.message, /TLS failed \(.*\); check that the port speaks TLS/)

  const encrypted = await stubHttps(t, () => assert.fail('it was understood'))
  for (const error of await failuresOf(t, to(encrypted.server.replace('https:', 'http:'))))
    assert.match(error.message, /; (check the port, and whether the address should begin with https|if it goes on)/)
})

test('R0.39 something else on the port, that speaks neither', async (t) => {
  const ssh = await stubTcp(t, (socket) => socket.write('SSH-2.0-OpenSSH_9.9\r\n'))
  for (const error of await failuresOf(t, to(ssh.server.replace('https:', 'http:'))))
    assert.match(error.message, /the answer is not HTTP \(HPE_\w+\); check the port/)
  for (const error of await failuresOf(t, to(ssh.server))) assert.match(error.message, /TLS failed/)
})

test('R0.39 a server that hangs up at once', async (t) => {
  const stub = await stubTcp(t, (socket) => socket.destroy())
  for (const error of await failuresOf(t, to(stub.server)))
    assert.match(error.message, /the connection was cut; if it goes/)
})

test('a server that never answers, or stops in the middle, is given up in time', async (t) => {
  const tcp = await stubTcp(t, (socket) => void socket.resume()) // no TLS handshake
  const silent = await stubHttps(t, () => {}) // no head
  const slow = await stubHttps(t, (_, response) =>
    response.writeHead(500, { 'content-type': 'application/json' }).write('{'),
  )
  for (const stub of [tcp, silent, slow]) {
    for (const error of await failuresOf(t, stub.connection(), { timeoutMs: 50 })) {
      assert.equal(error.code, 'REQUEST_TIMEOUT')
      assert.match(error.message, /no answer within 0\.05 s; the API server is down, overloaded or cut off/)
    }
  }
})

test('a connection that never comes about does not stand in the way of later watches', async (t) => {
  let hangs = true
  const certificate = stubCertificate()
  const stub = await stubTcp(t, (socket) => {
    if (hangs) return
    const secure = new tls.TLSSocket(socket, { isServer: true, ...certificate })
    secure.once('data', () =>
      secure.end('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n'),
    )
  })
  const client = clientFor(stub.connection(), { connectTimeoutMs: 50 })
  t.after(() => client.close())

  const error = await connectionFailureOf(client.of(ConfigMap, 'default').watch())
  assert.match(error.message, /the host cannot be reached \(ETIMEDOUT\); check routes/)
  hangs = false

  assert.deepEqual(await Array.fromAsync(await client.of(ConfigMap, 'default').watch()), [])
})

test('R0.37 a server that hangs up on an expired client certificate: the error says when it expired', async (t) => {
  const notAfter = new Date('2026-01-02T03:04:05Z')
  const expired = stubCertificate({
    commonName: 'ada',
    usages: ['client'],
    notBefore: new Date('2026-01-01'),
    notAfter,
  })
  const server = tls.createServer({ ...stubCertificate(), ca: stubCa, requestCert: true, rejectUnauthorized: true })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const { port } = server.address() as { port: number }

  for (const error of await failuresOf(t, to(`https://127.0.0.1:${port}`, { ca: stubCa, ...expired })))
    assert.match(
      error.message,
      /certificate of context "stub" of .* expired at 2026-01-02T03:04:05.000Z; renew it or log in/,
    )
})

test('credentials that cannot be used are named, and not shown', async (t) => {
  const stub = await stubHttps(t, () => assert.fail('something was sent'))
  const pair = stubCertificate({ usages: ['client'] })
  const other = stubCertificate({ usages: ['client'] })
  const bad: Credential[] = [
    { ca: stubCa, cert: pair.cert, key: '-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n' },
    { ca: stubCa, cert: pair.cert, key: other.key },
    { ca: stubCa, token: `${secrets.token}\nx` },
  ]
  const messages = []
  for (const credential of bad)
    for (const error of await failuresOf(t, to(stub.server, credential))) messages.push(error.message)

  const unusable = /the CA, the client certificate or its key cannot be used \(\w+\); check them in context "stub"/
  for (const message of messages.slice(0, 4)) assert.match(message, unusable)
  for (const message of messages.slice(4)) assert.match(message, /cannot be sent in a header; look for line breaks/)
})
