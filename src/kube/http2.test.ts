import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { IncomingHttpHeaders, ServerHttp2Stream, Settings } from 'node:http2'
import net from 'node:net'
import { test, type TestContext } from 'node:test'
import tls from 'node:tls'
import { connectionFailureOf } from '../../testkit/failures.ts'
import { eventually } from '../../testkit/index.ts'
import { secrets, stubCa, stubCertificate, stubHttp2, stubRelay, stubTcp } from '../../testkit/stub-server.ts'
import { clientFor, ConfigMap, type Client, type ClientOptions, type Connection, type WatchBatch } from './index.ts'

type Watch = AsyncIterator<WatchBatch<ConfigMap>>

const event = '{"type":"ADDED","object":{"metadata":{"name":"a"}}}\n'
const begin = (stream: ServerHttp2Stream): void => {
  stream.respond({ ':status': 200, 'content-type': 'application/json' })
  stream.write(event)
}

/** A server that begins every watch with one event, unless told otherwise, and a client of it. */
const serving = async (
  t: TestContext,
  options: ClientOptions & { settings?: Settings; onStream?: (stream: ServerHttp2Stream, n: number) => void } = {},
) => {
  const streams: ServerHttp2Stream[] = []
  const headers: IncomingHttpHeaders[] = []
  const stub = await stubHttp2(
    t,
    (stream, received) => {
      headers.push(received)
      ;(options.onStream ?? begin)(stream, streams.push(stream))
    },
    options.settings,
  )
  return { stub, streams, headers, client: clientTo(t, stub.connection(), options) }
}

const clientTo = (t: TestContext, connection: Connection, options?: ClientOptions): Client => {
  const client = clientFor(connection, options)
  t.after(() => client.close())
  return client
}

/** Opens a watch and reads its first batch. */
const watching = async (client: Client): Promise<Watch> => {
  const watch = (await client.of(ConfigMap, 'a').watch())[Symbol.asyncIterator]()
  assert.equal((await watch.next()).value?.length, 1)
  return watch
}

test('a watch goes over HTTP/2, with everything that its headers say', async (t) => {
  const { client, streams, headers } = await serving(t, { userAgent: 'lanyard-test/1' })

  await watching(client.as({ user: 'zoë', groups: ['a', 'b'], extra: { 'example.com/team(x)': ['1', '2'] } }))

  assert.equal(streams[0]!.session!.alpnProtocol, 'h2')
  const seen = { ...headers[0] }
  assert.equal(seen['user-agent'], 'lanyard-test/1')
  assert.equal(seen['authorization'], `Bearer ${secrets.token}`)
  assert.equal(Buffer.from(String(seen['impersonate-user']), 'latin1').toString(), 'zoë')
  assert.equal(seen['impersonate-group'], 'a, b') // Node joins what came as two
  assert.equal(seen['impersonate-extra-example.com%2Fteam%28x%29'.toLowerCase()], '1, 2')
  assert.equal(seen[':path'], '/api/v1/namespaces/a/configmaps?watch=true&allowWatchBookmarks=true')
})

test('what cannot be sent in a header is refused, not left out', async (t) => {
  const { client, stub, streams } = await serving(t)
  const configMaps = client.as({ user: 'eve\r\nimpersonate-group: system:masters' }).of(ConfigMap, 'a')
  for (const request of [() => configMaps.watch(), () => configMaps.get('b')])
    assert.match((await connectionFailureOf(request())).message, /cannot be sent in a header; look for line breaks/)

  const broken = clientTo(t, stub.connection({}, { ca: stubCa, token: `${secrets.token}\n` }))
  assert.match((await connectionFailureOf(broken.of(ConfigMap, 'a').watch())).message, /cannot be sent in a header/)
  assert.equal(streams.length, 0)
})

test('150 watches share two connections', async (t) => {
  const { client, stub, streams } = await serving(t)
  await Promise.all(Array.from({ length: 150 }, () => watching(client)))
  assert.equal(streams.length, 150)
  assert.equal(stub.accepted(), 2)
})

test('a server that allows few streams gets more connections, and no watch waits for another to end', async (t) => {
  const { client, stub } = await serving(t, { settings: { maxConcurrentStreams: 4 } })
  await Promise.all(Array.from({ length: 10 }, () => watching(client)))
  assert.equal(stub.accepted(), 3)
})

test('a server that says goodbye keeps its watches, and new ones go elsewhere', async (t) => {
  const { client, stub, streams } = await serving(t)
  const first = await watching(client)
  streams[0]!.session!.goaway(0, streams[0]!.id)
  await eventually(async () => {
    await watching(client)
    return stub.accepted() === 2
  })

  streams[0]!.write(event)
  assert.equal((await first.next()).value?.length, 1)
  streams[0]!.end()
  assert.equal((await first.next()).done, true)
})

test('watches whose server goes away say so, and new ones find the new server', async (t) => {
  const { client, streams } = await serving(t)
  const watches = await Promise.all([watching(client), watching(client)])

  streams[0]!.session!.destroy()

  for (const watch of watches) {
    const end = await watch.next().catch((error: unknown) => error)
    // without half a line, a reset looks like an end: whoever follows goes on from the last event in both cases
    assert.ok((end as IteratorResult<unknown>).done ?? (end as { code: string }).code === 'WATCH_CUT')
  }
  await watching(client)
})

test('a watch that meets a closing connection is sent once more, over a new one', async (t) => {
  const { client, stub, streams } = await serving(t, {
    onStream: (stream, n) => (n === 2 ? stream.session!.destroy() : begin(stream)),
  })
  await watching(client)
  await watching(client)
  assert.equal(streams.length, 3)
  assert.equal(stub.accepted(), 2)
})

test('a watch that is reset before it is answered fails, and does not hang', async (t) => {
  const { client } = await serving(t, { onStream: (stream) => stream.close(7) })
  const error = await connectionFailureOf(client.of(ConfigMap, 'a').watch())
  assert.match(error.message, /the connection was cut; if it goes on/)
})

test('R0.14 a server that stops answering is noticed by pings', async (t) => {
  const { stub } = await serving(t)
  const relay = await stubRelay(t, stub.server)
  const client = clientTo(t, relay.connection(), { pingAfterMs: 20, pingTimeoutMs: 50 })
  const watch = await watching(client)

  relay.frozen = true

  const error = await connectionFailureOf(watch.next())
  assert.equal(error.code, 'WATCH_CUT')
  assert.match(String(error.cause), /the server does not answer HTTP\/2 pings/)
  relay.frozen = false
  await watching(client)
})

test('R0.14 a silent watch lives for as long as its server answers pings', async (t) => {
  const { client, streams } = await serving(t, { pingAfterMs: 10, pingTimeoutMs: 20_000 })
  const watch = await watching(client)
  for (let pings = 0; pings < 5; pings++) await once(streams[0]!.session!, 'ping')
  streams[0]!.write(event)
  assert.equal((await watch.next()).value?.length, 1)
})

test('a connection on which nobody watches any more is closed after a while', async (t) => {
  const { client, stub } = await serving(t, { pingAfterMs: 10 })
  await (
    await watching(client)
  ).return!()
  await eventually(() => assert.equal(stub.sockets.size, 0))
  await watching(client)
})

test('a watch that is aborted while its connection is being made is not opened afterwards', async (t) => {
  const { stub, streams } = await serving(t)
  const [arrived, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const gate = await stubTcp(t, (socket) => {
    arrived.resolve()
    const upstream = net.connect(stub.port, '127.0.0.1').on('error', () => {})
    void released.promise.then(() => socket.pipe(upstream).pipe(socket))
  })
  const client = clientTo(t, gate.connection())
  const stop = new AbortController()
  const aborted = client.of(ConfigMap, 'a').watch({ signal: stop.signal })
  await arrived.promise
  stop.abort(new Error('not wanted any more'))
  await assert.rejects(aborted, /not wanted any more/)

  released.resolve()
  await watching(client)

  assert.equal(streams.length, 1)
  assert.equal(gate.accepted(), 1)
})

test('a server that says goodbye at once is not asked for ever', async (t) => {
  const stub = await stubHttp2(
    t,
    () => {},
    {},
    (session) => session.close(),
  )
  const error = await connectionFailureOf(clientTo(t, stub.connection()).of(ConfigMap, 'a').watch())
  assert.match(error.message, /the connection was cut/)
  assert.ok(stub.accepted() <= 2)
})

test('a server that agrees to HTTP/2 and then says nothing, or hangs up, is given up', async (t) => {
  for (const [hangsUp, pattern] of [
    [false, /the host cannot be reached/],
    [true, /the connection was cut/],
  ] as const) {
    const stub = await stubTcp(t, (socket) => {
      const secure = new tls.TLSSocket(socket, { isServer: true, ...stubCertificate(), ALPNProtocols: ['h2'] })
      secure.on('error', () => {}).resume()
      secure.once('secure', () => hangsUp && secure.destroy())
    })
    const client = clientTo(t, stub.connection(), { connectTimeoutMs: hangsUp ? 20_000 : 50 })
    assert.match((await connectionFailureOf(client.of(ConfigMap, 'a').watch())).message, pattern)
    await eventually(() => assert.equal(stub.sockets.size, 0))
  }
})

test('a process with nothing left to do ends, though its connections are still open', async (t) => {
  const { stub } = await serving(t)
  const program = `
    import { clientFor, ConfigMap } from ${JSON.stringify(new URL('index.ts', import.meta.url).href)}
    const credential = { ca: ${JSON.stringify(stubCa)} }
    const client = clientFor({ source: 'test', server: '${stub.server}', credentials: async () => credential })
    for await (const batch of await client.of(ConfigMap, 'a').watch()) if (batch.length) break
    console.log('watched')`
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.after(() => child.kill('SIGKILL'))
  const [[code], output] = await Promise.all([once(child, 'exit'), child.stdout.toArray()])
  assert.equal(code, 0)
  assert.equal(output.join(''), 'watched\n')
})
