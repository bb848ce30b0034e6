import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { test, type TestContext } from 'node:test'
import { failureOf } from '../../testkit/failures.ts'
import { stubHttps } from '../../testkit/stub-server.ts'
import { ApiError, clientFor, ConfigMap, isTooManyRequests, type Client, type ClientOptions } from './index.ts'

type Answer = (response: ServerResponse, request: IncomingMessage) => void

const json =
  (status: number, body: object, headers: Record<string, string> = {}): Answer =>
  (response) =>
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))

const busy = (status: number, after?: string): Answer =>
  json(status, { kind: 'Status', status: 'Failure', code: status }, after === undefined ? {} : { 'retry-after': after })

const done = json(200, { metadata: { name: 'a' } })

/** A client of a server that gives these answers in turn, the last one for ever; and the requests that came. */
const answering = async (
  t: TestContext,
  answers: Answer[],
  options: ClientOptions = {},
): Promise<{ client: Client; seen: string[] }> => {
  const seen: string[] = []
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = (await request.toArray()).join('')
    seen.push(`${request.method} ${request.url}${body && ` ${body}`}`)
    answers[Math.min(seen.length, answers.length) - 1]!(response, request)
  }
  const stub = await stubHttps(t, (request, response) => void handle(request, response))
  const client = clientFor(stub.connection(), { random: () => 0, ...options })
  t.after(() => client.close())
  return { client, seen }
}

test('R0.9 429 and 503 with Retry-After are waited for, and then the request succeeds', async (t) => {
  const { client, seen } = await answering(t, [
    busy(429, '0'),
    busy(503, '0'),
    busy(429, new Date(0).toUTCString()),
    done,
  ])

  const found = await client.of(ConfigMap, 'default').get('a')

  assert.equal(found.metadata.name, 'a')
  assert.deepEqual(seen, Array(4).fill('GET /api/v1/namespaces/default/configmaps/a'))
})

test('R0.9 a POST that is told "later" is sent again, with its body', async (t) => {
  const { client, seen } = await answering(t, [busy(429, '0'), done])

  await client.of(ConfigMap, 'default').create({ metadata: { name: 'a' } })

  const sent = '{"metadata":{"name":"a"},"apiVersion":"v1","kind":"ConfigMap"}'
  assert.deepEqual(seen, Array(2).fill(`POST /api/v1/namespaces/default/configmaps ${sent}`))
})

test('R0.9 R0.10 after the last try the refusal is an error that says how long to wait', async (t) => {
  const { client, seen } = await answering(t, [busy(429, '0'), busy(429, '0'), busy(429, '7')], { maxRetries: 2 })

  const error = await failureOf(client.of(ConfigMap, 'default').list())

  assert.ok(isTooManyRequests(error))
  assert.equal(error.retryAfterMs, 7000)
  assert.equal(seen.length, 3)
})

test('R0.9 a 500, and a 503 that does not ask to come back, are not sent again', async (t) => {
  for (const answer of [busy(500, '0'), busy(503), busy(504, '0')]) {
    const { client, seen } = await answering(t, [answer, done])
    const error = await failureOf(client.of(ConfigMap, 'default').get('a'))
    assert.ok(error instanceof ApiError && error.status >= 500)
    assert.equal(seen.length, 1)
  }
})

test('R0.10 what a status says about waiting is kept where the header is missing', async (t) => {
  const status = { kind: 'Status', code: 500, reason: 'ServerTimeout', details: { retryAfterSeconds: 2 } }
  const { client } = await answering(t, [json(500, status)])

  const error = await failureOf(client.of(ConfigMap, 'default').get('a'))

  assert.ok(error instanceof ApiError && error.reason === 'ServerTimeout' && error.retryAfterMs === 2000)
})

test('R0.9 whoever waits for "later" can stop waiting', async (t) => {
  const stop = new AbortController()
  const reason = new Error('shutting down')
  const { client, seen } = await answering(t, [
    (response, request) => {
      busy(429, '60')(response, request)
      response.once('close', () => stop.abort(reason))
    },
  ])

  await assert.rejects(client.of(ConfigMap, 'default').get('a', { signal: stop.signal }), reason)
  assert.equal(seen.length, 1)
})

test('R0.9 a watch that is told "later" fails with the time to wait, for the one who follows to wait', async (t) => {
  const { client, seen } = await answering(t, [busy(429, '3')])

  const error = await failureOf(client.of(ConfigMap, 'default').watch())

  assert.ok(isTooManyRequests(error))
  assert.equal(error.retryAfterMs, 3000)
  assert.equal(seen.length, 1)
})
