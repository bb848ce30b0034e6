import assert from 'node:assert/strict'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { test, type TestContext } from 'node:test'
import { eventually } from '../../testkit/index.ts'
import { connectionFailureOf, failureOf } from '../../testkit/failures.ts'
import { secrets, stubCa, stubHttp, stubHttps, type Stub, type StubOptions } from '../../testkit/stub-server.ts'
import { clientFor, ConfigMap, isUnauthorized, type Client, type ClientOptions, type Credential } from './index.ts'
import type { AnswerReport } from './transport.ts'

const ok = (response: ServerResponse): unknown =>
  response.setHeader('content-type', 'application/json').end('{"items":[]}')
const refuse = (response: ServerResponse, status: number): unknown =>
  response.writeHead(status, { 'content-type': 'application/json' }).end('{}')

const clientOf = async (
  t: TestContext,
  listener: RequestListener,
  options: ClientOptions & StubOptions = {},
): Promise<{ client: Client; stub: Stub }> => {
  const stub = await stubHttps(t, listener, options)
  const client = clientFor(stub.connection(), options)
  t.after(() => client.close())
  return { client, stub }
}

/** Hangs up on the second request of every connection, as a server does that closed it just before. */
const hangingUp = (seen: string[]): RequestListener => {
  const used = new WeakSet<object>()
  return (request: IncomingMessage, response: ServerResponse) => {
    seen.push(request.method!)
    if (used.has(request.socket)) request.socket.destroy()
    else ok(response)
    used.add(request.socket)
  }
}

test('a kept connection that the server has just closed costs one more request, where that can do no harm', async (t) => {
  const seen: string[] = []
  const { client } = await clientOf(t, hangingUp(seen))
  const configMaps = client.of(ConfigMap, 'default')
  const object = { metadata: { name: 'a' } }
  const harmless = {
    GET: () => configMaps.get('a'),
    PUT: () => configMaps.update(object),
    DELETE: () => configMaps.delete('a'),
    PATCH: () => configMaps.patch('a', { merge: { data: { a: 'b' } } }),
  }
  for (const [method, request] of Object.entries(harmless)) {
    await client.json({ method: 'GET', path: '/' }).catch(() => {}) // leaves a connection to use
    seen.length = 0
    await request()
    assert.deepEqual(seen, [method, method])
  }
})

test('a request that may have been acted on is not sent again by itself', async (t) => {
  const seen: string[] = []
  const { client } = await clientOf(t, hangingUp(seen))
  const configMaps = client.of(ConfigMap, 'default')
  const append = { json: [{ op: 'add', path: '/metadata/finalizers/-', value: 'x' }] }
  for (const request of [() => configMaps.create({ metadata: { name: 'a' } }), () => configMaps.patch('a', append)]) {
    await client.json({ method: 'GET', path: '/' })
    seen.length = 0
    const error = await connectionFailureOf(request())
    assert.equal(error.code, 'ECONNRESET')
    assert.equal(error.notSent, false)
    assert.equal(seen.length, 1)
  }
})

test('when one kept connection turns out to be dead, the others are not tried', async (t) => {
  const seen: string[] = []
  const { client, stub } = await clientOf(t, hangingUp(seen))
  await Promise.all(Array.from({ length: 5 }, () => client.json({ method: 'GET', path: '/' })))
  assert.equal(stub.accepted(), 5)
  seen.length = 0

  await client.json({ method: 'GET', path: '/' })

  assert.equal(seen.length, 2)
  await eventually(() => assert.equal(stub.sockets.size, 1))
})

test('there are never more connections than allowed, and they are used again', async (t) => {
  const { client, stub } = await clientOf(t, (_, response) => setImmediate(ok, response), { maxConnections: 3 })
  await Promise.all(Array.from({ length: 30 }, () => client.of(ConfigMap, 'default').list()))
  assert.equal(stub.accepted(), 3)
})

test('R0.8 every answer, and every lack of one, is reported', async (t) => {
  const reports: AnswerReport[] = []
  const onAnswer = (about: AnswerReport): void => void reports.push(about)
  const { client, stub } = await clientOf(
    t,
    (request, response) => {
      if (request.url === '/later' && reports.length === 1)
        response.writeHead(429, { 'retry-after': '0', 'content-type': 'application/json' }).end('{}')
      else if (request.url === '/cut') request.socket.destroy()
      else ok(response)
    },
    { onAnswer, random: () => 0 },
  )

  await client.json({ method: 'POST', path: '/', body: {} })
  await client.as({ user: 'ada' }).json({ method: 'GET', path: '/later' })
  await failureOf(client.json({ method: 'POST', path: '/cut' }))
  await Array.fromAsync((await client.stream({ method: 'GET', path: '/stream' })).body)
  const stop = AbortSignal.abort(new Error('never mind'))
  await assert.rejects(client.json({ method: 'GET', path: '/', signal: stop }), /never mind/)

  const host = new URL(stub.server).host
  assert.deepEqual(
    reports.map(({ method, status }) => `${method} ${status}`),
    ['POST 200', 'GET 429', 'GET 200', 'POST 0', 'GET 200'],
  )
  assert.ok(reports.every((one) => one.durationMs >= 0 && one.host === host))
})

test('R0.8 a server behind a path, as Rancher has it', async (t) => {
  const urls: string[] = []
  const stub = await stubHttps(t, (request, response) => {
    urls.push(request.url!)
    refuse(response, 404)
  })
  for (const prefix of ['/k8s/clusters/c1', '/k8s/clusters/c1/']) {
    const client = clientFor(stub.connection({ server: stub.server + prefix }))
    t.after(() => client.close())
    const { message } = await failureOf(client.of(ConfigMap, 'a').get('b', { resourceVersion: '0' }))
    assert.match(message, /^GET \/api\/v1\/namespaces\/a\/configmaps\/b at https:\S+\/k8s\/clusters\/c1/)
    await failureOf(client.of(ConfigMap, 'a').watch())
  }
  const path = '/k8s/clusters/c1/api/v1/namespaces/a/configmaps'
  assert.deepEqual(urls.slice(0, 2), [`${path}/b?resourceVersion=0`, `${path}?watch=true&allowWatchBookmarks=true`])
  assert.deepEqual(urls.slice(2), urls.slice(0, 2))
})

test('R0.8 an IPv6 address, with and without TLS', async (t) => {
  const { client, stub } = await clientOf(t, (_, response) => ok(response), { host: '::1' })
  assert.match(stub.server, /^https:\/\/\[::1\]:/)
  await client.of(ConfigMap, 'a').list()
  await Array.fromAsync((await client.stream({ method: 'GET', path: '/' })).body)

  const plain = clientFor((await stubHttp(t, (_, response) => ok(response))).connection())
  t.after(() => plain.close())
  await plain.of(ConfigMap, 'a').list()
  await Array.fromAsync((await plain.stream({ method: 'GET', path: '/' })).body)
})

test('R0.6 after a 401 the credential is asked for once, and the request sent once more', async (t) => {
  const tokens: string[] = []
  const stub = await stubHttps(t, (request, response) => {
    tokens.push(request.headers.authorization!.replace('Bearer ', ''))
    if (tokens.at(-1) === 'new') ok(response)
    else refuse(response, 401)
  })
  const [old, renewed]: Credential[] = [
    { ca: stubCa, token: 'old' },
    { ca: stubCa, token: 'new' },
  ]
  const rejected: unknown[] = []
  const client = clientFor(
    stub.connection({
      credentials: async (asked) => {
        if (asked?.rejected) rejected.push(asked.rejected)
        return asked?.rejected ? renewed! : old!
      },
    }),
  )
  t.after(() => client.close())

  await client.of(ConfigMap, 'a').list()
  await Array.fromAsync((await client.stream({ method: 'GET', path: '/' })).body)

  assert.deepEqual(tokens, ['old', 'new', 'old', 'new'])
  assert.deepEqual(rejected, [old, old])
})

test('R0.6 a 401 for which there is no new credential, or that goes on, is an error that says what to do', async (t) => {
  let requests = 0
  const stub = await stubHttps(t, (_, response) => {
    requests++
    refuse(response, 401)
  })
  let serial = 0
  const fresh = async (): Promise<Credential> => ({ ca: stubCa, token: `${secrets.token}${serial++}` })
  for (const [connection, expected] of [
    [stub.connection(), 1],
    [stub.connection({ credentials: fresh }), 2],
  ] as const) {
    const client = clientFor(connection)
    t.after(() => client.close())
    for (const request of [() => client.of(ConfigMap, 'a').list(), () => client.of(ConfigMap, 'a').watch()]) {
      requests = 0
      const error = await failureOf(request())
      assert.ok(isUnauthorized(error))
      assert.match(error.message, /credentials of context "stub" of \S+ were refused: the token is expired, revoked or/)
      assert.equal(requests, expected)
    }
  }
})
