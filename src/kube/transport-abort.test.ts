import assert from 'node:assert/strict'
import { getEventListeners, once } from 'node:events'
import { test, type TestContext } from 'node:test'
import { eventually } from '../../testkit/index.ts'
import { connectionFailureOf } from '../../testkit/failures.ts'
import { stubHttp2, stubHttps, stubTcp, type Stub } from '../../testkit/stub-server.ts'
import { clientFor, ConfigMap, type Client, type ClientOptions } from './index.ts'

const event = '{"type":"ADDED","object":{"metadata":{"name":"a"}}}\n'
const reasons = [new Error('shutting down'), new DOMException('aborted', 'AbortError'), 'just a word', undefined]

const clientTo = (t: TestContext, stub: Stub, options?: ClientOptions): Client => {
  const client = clientFor(stub.connection(), options)
  t.after(() => client.close())
  return client
}

/** It rejects with just this, and leaves no listener. */
const endsWith = async (work: Promise<unknown>, signal: AbortSignal): Promise<void> => {
  const error: unknown = await work.then(
    () => assert.fail('it should have been aborted'),
    (error: unknown) => error,
  )
  assert.equal(error, signal.reason)
  assert.equal(getEventListeners(signal, 'abort').length, 0)
}

test('a request that was aborted before it began is not sent', async (t) => {
  const stub = await stubHttps(t, () => assert.fail('it was sent'))
  const configMaps = clientTo(t, stub).of(ConfigMap, 'a')
  for (const reason of reasons) {
    const signal = AbortSignal.abort(reason)
    await endsWith(configMaps.get('b', { signal }), signal)
    await endsWith(configMaps.create({ metadata: { name: 'b' } }, { signal }), signal)
    await endsWith(configMaps.watch({ signal }), signal)
  }
  assert.equal(stub.accepted(), 0)
})

test('a request or watch that is aborted while it waits for an answer ends with the reason, and so does its connection', async (t) => {
  for (const reason of reasons) {
    const arrived = Promise.withResolvers<void>()
    const stub = await stubHttps(t, () => arrived.resolve())
    const stop = new AbortController()
    const { signal } = stop
    const configMaps = clientTo(t, stub).of(ConfigMap, 'a')
    const requests = [configMaps.get('b', { signal }), configMaps.watch({ signal })]
    await arrived.promise

    stop.abort(reason)

    await Promise.all(requests.map((request) => endsWith(request, signal)))
    await eventually(() => assert.equal(stub.sockets.size, 0))
  }
})

test('a request that is aborted between head and end of its answer ends with the reason', async (t) => {
  const begun = Promise.withResolvers<void>()
  const stub = await stubHttps(t, (_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).write('{')
    begun.resolve()
  })
  const stop = new AbortController()
  const request = clientTo(t, stub).of(ConfigMap, 'a').get('b', { signal: stop.signal })
  await begun.promise

  stop.abort(reasons[0])

  await endsWith(request, stop.signal)
  await eventually(() => assert.equal(stub.sockets.size, 0))
})

test('a watch that is aborted while it runs ends with the reason, over HTTP/1.1 and over HTTP/2', async (t) => {
  const one = await stubHttps(t, (_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).write(event)
  })
  const ended: Promise<unknown>[] = []
  const two = await stubHttp2(t, (stream) => {
    ended.push(once(stream, 'close'))
    stream.respond({ ':status': 200, 'content-type': 'application/json' })
    stream.write(event)
  })
  for (const stub of [one, two]) {
    const client = clientTo(t, stub)
    for (const reason of reasons) {
      const stop = new AbortController()
      const watch = (await client.of(ConfigMap, 'a').watch({ signal: stop.signal }))[Symbol.asyncIterator]()
      assert.equal((await watch.next()).value?.length, 1)
      const next = watch.next()
      stop.abort(reason)
      await endsWith(next, stop.signal)
    }
  }
  await Promise.all(ended)
  await eventually(() => assert.equal(one.sockets.size, 0))
  assert.equal(two.sockets.size, 1) // the session is kept for the next watch
})

test('a watch that is aborted before anybody reads it does no harm', async (t) => {
  const stub = await stubHttps(t, (_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).write(event)
  })
  const stop = new AbortController()
  const watch = await clientTo(t, stub).of(ConfigMap, 'a').watch({ signal: stop.signal })

  stop.abort(reasons[0])
  await eventually(() => assert.equal(stub.sockets.size, 0))

  await assert.rejects(Array.fromAsync(watch), reasons[0] as Error)
  assert.equal(getEventListeners(stop.signal, 'abort').length, 0)
})

test('a watch that is left with break is closed, and its signal forgotten', async (t) => {
  const stub = await stubHttps(t, (_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).write(event)
  })
  const { signal } = new AbortController()
  for await (const batch of await clientTo(t, stub).of(ConfigMap, 'a').watch({ signal })) if (batch.length) break
  await eventually(() => assert.equal(stub.sockets.size, 0))
  await eventually(() => assert.equal(getEventListeners(signal, 'abort').length, 0))
})

test('a watch that is aborted while its connection is being made is not opened afterwards', async (t) => {
  const arrived = Promise.withResolvers<void>()
  const stub = await stubTcp(t, () => arrived.resolve())
  const client = clientTo(t, stub)
  const stop = new AbortController()
  const watch = client.of(ConfigMap, 'a').watch({ signal: stop.signal })
  await arrived.promise

  stop.abort(reasons[0])

  await endsWith(watch, stop.signal)
  client.close()
  await eventually(() => assert.equal(stub.sockets.size, 0))
})

test('one signal may stand for thousands of requests', async (t) => {
  const warnings: Error[] = []
  const warn = (warning: Error): void => void warnings.push(warning)
  process.on('warning', warn)
  t.after(() => process.off('warning', warn))
  const stub = await stubHttps(t, (_, response) => response.setHeader('content-type', 'application/json').end('{}'))
  const { signal } = new AbortController()
  const configMaps = clientTo(t, stub, { maxConnections: 4 }).of(ConfigMap, 'a')

  await Promise.all(Array.from({ length: 1000 }, () => configMaps.get('b', { signal })))

  assert.equal(getEventListeners(signal, 'abort').length, 0)
  assert.deepEqual(warnings, [])
})

test('a client that is closed ends what is under way and what waits for its turn, and takes nothing new', async (t) => {
  const stub = await stubHttps(t, (request, response) => {
    if (request.url!.includes('watch')) response.writeHead(200, { 'content-type': 'application/json' }).write(event)
  })
  const client = clientTo(t, stub, { maxConnections: 2 })
  const configMaps = client.of(ConfigMap, 'a')
  const watch = (await configMaps.watch())[Symbol.asyncIterator]()
  await watch.next()
  const requests = Array.from({ length: 5 }, () => configMaps.get('b'))
  await eventually(() => assert.equal(stub.sockets.size, 3))

  client.close()

  for (const request of [...requests, configMaps.get('b'), configMaps.watch()])
    assert.equal((await connectionFailureOf(request)).code, 'CLIENT_CLOSED')
  assert.equal((await connectionFailureOf(watch.next())).code, 'WATCH_CUT')
  await eventually(() => assert.equal(stub.sockets.size, 0))
  assert.equal(stub.accepted(), 4) // one of them to find out that there is no HTTP/2
})
