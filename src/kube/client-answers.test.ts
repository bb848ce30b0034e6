import assert from 'node:assert/strict'
import type { RequestListener } from 'node:http'
import { test, type TestContext } from 'node:test'
import { connectionFailureOf, failureOf } from '../../testkit/failures.ts'
import { stubHttps, type Stub } from '../../testkit/stub-server.ts'
import { ApiError, clientFor, ConfigMap, isExpired, isNotFound, KindMapper, Lease, type Client } from './index.ts'

const clientOf = async (t: TestContext, listener: RequestListener): Promise<{ client: Client; stub: Stub }> => {
  const stub = await stubHttps(t, listener)
  const client = clientFor(stub.connection())
  t.after(() => client.close())
  return { client, stub }
}

const answer =
  (status: number, type: string | undefined, body: string): RequestListener =>
  (_, response) =>
    response.writeHead(status, type ? { 'content-type': type } : {}).end(body)

test('R0.39 HTML in place of an answer is named as such, with what to look for', async (t) => {
  const { client } = await clientOf(t, answer(200, 'text/html; charset=utf-8', '<html>Please log in</html>'))
  for (const request of [client.of(ConfigMap, 'a').get('b'), client.of(ConfigMap, 'a').watch()]) {
    const error = await connectionFailureOf(request)
    assert.equal(error.code, 'NOT_KUBERNETES')
    assert.match(
      error.message,
      /the answer is text\/html; charset=utf-8, not JSON \(status 200\); .*check the server address/,
    )
  }
})

test('R0.39 HTML with a 502 points to what stands between', async (t) => {
  const { client } = await clientOf(t, answer(502, 'text/html', '<html>Bad gateway</html>'))
  for (const request of [client.of(ConfigMap, 'a').list(), client.of(ConfigMap, 'a').watch()]) {
    const error = await connectionFailureOf(request)
    assert.equal(error.code, 'NOT_KUBERNETES')
    assert.match(error.message, /\(status 502\); a proxy or load balancer in between/)
    assert.doesNotMatch(error.message, /<html>/)
  }
})

test('R0.39 a 404 that is not from Kubernetes is not taken for an object that is gone', async (t) => {
  for (const type of ['text/html', undefined]) {
    const { client } = await clientOf(t, answer(404, type, ''))
    const configMaps = client.of(ConfigMap, 'a')
    for (const request of [configMaps.find('b'), configMaps.delete('b'), new KindMapper(client).served('v1')])
      assert.equal((await connectionFailureOf(request)).code, 'NOT_KUBERNETES')
  }
})

test('R0.39 a kind that a starting server does not know says nothing about its objects; a server that is ready is believed', async (t) => {
  let isReady = false
  const { client } = await clientOf(t, (request, response) => {
    if (request.url === '/readyz') answer(isReady ? 200 : 500, 'text/plain', '')(request, response)
    else answer(404, 'text/plain', '404 page not found')(request, response)
  })
  const leases = client.of(Lease, 'a')
  for (const request of [leases.find('b'), leases.delete('b'), leases.list(), leases.get('b')])
    assert.equal((await connectionFailureOf(request)).code, 'STARTING')

  isReady = true
  assert.equal(await leases.find('b'), undefined)
  assert.equal(await leases.delete('b'), false)
})

test('R0.39 a kind that is missing for a moment is asked for again', async (t) => {
  const asked: string[] = []
  const { client } = await clientOf(t, (request, response) => {
    asked.push(`${request.method} ${request.url}`)
    if (request.url === '/readyz') answer(200, 'text/plain', 'ok')(request, response)
    else if (asked.length === 1) answer(404, 'text/plain', '404 page not found')(request, response)
    else answer(200, 'application/json', '{"metadata":{"name":"b"}}')(request, response)
  })
  const path = '/apis/coordination.k8s.io/v1/namespaces/a/leases/b'
  assert.equal((await client.of(Lease, 'a').find('b'))?.metadata.name, 'b')
  assert.deepEqual(asked, [`GET ${path}`, 'GET /readyz', `GET ${path}`])
})

test('R0.39 a redirection to a login page is not followed', async (t) => {
  const { client, stub } = await clientOf(t, (_, response) =>
    response.writeHead(302, { location: 'https://login.example/', 'content-type': 'text/html' }).end(),
  )
  assert.match((await connectionFailureOf(client.of(ConfigMap, 'a').get('b'))).message, /status 302.*login page/)
  assert.equal(stub.accepted(), 1)
})

test('R0.10 a refusal in plain text is an error with the reason that its code means', async (t) => {
  const { client } = await clientOf(t, answer(404, 'text/plain; charset=utf-8', '404 page not found\n'))
  const error = await failureOf(client.of(ConfigMap, 'a').get('b'))
  assert.ok(isNotFound(error) && error.serverMessage === '404 page not found')
  assert.deepEqual(await new KindMapper(client).served('example.com/v1'), [])
})

test('R0.10 a refusal that is not a status, or is cut, is still an error with its code', async (t) => {
  for (const body of ['null', '"no"', '{"kind":"Stat', '', '[]']) {
    const { client } = await clientOf(t, answer(403, 'application/json', body))
    const error = await failureOf(client.of(ConfigMap, 'a').get('b'))
    assert.ok(error instanceof ApiError && error.reason === 'Forbidden', body)
  }
})

test('R0.40 an answer that is cut in the middle of its JSON is an error that says so', async (t) => {
  const half = '{"metadata":{"na'
  const listeners: RequestListener[] = [
    answer(200, 'application/json', half), // which ends properly
    (_, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': 1000 }).write(half)
      setImmediate(() => response.destroy())
    },
    (_, response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).write(half)
      setImmediate(() => response.destroy())
    },
  ]
  const errors = []
  for (const listener of listeners) {
    const { client } = await clientOf(t, listener)
    errors.push(await connectionFailureOf(client.of(ConfigMap, 'a').get('b')))
  }
  assert.deepEqual(
    errors.map(({ code }) => code),
    ['BROKEN_JSON', 'ECONNRESET', 'ECONNRESET'],
  )
  assert.match(errors[0]!.message, /the answer of 16 bytes is not a JSON object; it was cut or altered/)
  assert.match(errors[1]!.message, /the connection was cut; if it goes on, look at/)
})

test('R0.40 JSON that is not an object does not crash the reader', async (t) => {
  for (const body of ['null', '42', '"text"', '[']) {
    const { client } = await clientOf(t, answer(200, 'application/json', body))
    assert.equal((await connectionFailureOf(client.of(ConfigMap, 'a').list())).code, 'BROKEN_JSON')
  }
})

test('R0.39 JSON of something else is not taken for a cluster with nothing in it', async (t) => {
  const other = await clientOf(t, answer(200, 'application/json', '{"status":"ok"}'))
  const empty = await clientOf(t, answer(200, 'application/json', '{"metadata":{},"items":null}'))

  const error = await connectionFailureOf(other.client.of(ConfigMap, 'a').list())

  assert.equal(error.code, 'NOT_KUBERNETES')
  assert.match(error.message, /the answer is JSON, but not a list; check the server address/)
  assert.deepEqual(await new KindMapper(other.client).served('v1'), [])
  assert.deepEqual((await empty.client.of(ConfigMap, 'a').list()).items, [])
})

test('R0.10 a 410 in a watch, as an answer or as an event, means that it is too old', async (t) => {
  const status = JSON.stringify({ kind: 'Status', code: 410, reason: 'Expired', message: 'too old' })
  const refusing = await clientOf(t, answer(410, 'application/json', status))
  const streaming = await clientOf(t, answer(200, 'application/json', `{"type":"ERROR","object":${status}}\n`))

  assert.ok(isExpired(await failureOf(refusing.client.of(ConfigMap, 'a').watch())))
  const watch = await streaming.client.of(ConfigMap, 'a').watch()
  assert.ok(isExpired(await failureOf(Array.fromAsync(watch))))
})

test('R0.40 a watch that is cut in the middle of a line, or sends rubbish, says so', async (t) => {
  const event = '{"type":"ADDED","object":{"metadata":{"name":"a"}}}\n'
  const cutting = await clientOf(t, (_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).write(event + event.slice(0, 20))
    setImmediate(() => response.destroy())
  })
  const raving = await clientOf(t, answer(200, 'application/json', `${event}<html>\n`))

  for (const { client } of [cutting, raving]) {
    const watch = (await client.of(ConfigMap, 'a').watch())[Symbol.asyncIterator]()
    assert.equal((await watch.next()).value?.length, 1)
    const error = await connectionFailureOf(watch.next())
    assert.equal(error.code, 'WATCH_CUT')
    assert.match(error.message, /^WATCH \/api\/v1\/namespaces\/a\/configmaps at/)
  }
})
