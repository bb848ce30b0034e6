import assert from 'node:assert/strict'
import { after, before, test, type TestContext } from 'node:test'
import { connectionFailureOf, failureOf } from '../../testkit/failures.ts'
import { eventually, startControlPlane, type ControlPlane } from '../../testkit/index.ts'
import { stubRelay } from '../../testkit/stub-server.ts'
import {
  clientFor,
  ConfigMap,
  CustomResourceDefinition,
  initialEventsEnd,
  isExpired,
  isForbidden,
  resource,
  type Client,
  type ClientOptions,
  type WatchEvent,
  type WatchOptions,
} from './index.ts'

let plane: ControlPlane
let client: Client
before(async () => {
  plane = await startControlPlane({ controllerManager: false })
  client = plane.client()
})
after(() => plane?.stop())

/** Reads a watch event by event. */
const watching = async (from: Client, namespace: string, options: WatchOptions = {}) => {
  const batches = await from.of(ConfigMap, namespace).watch(options)
  const events = (async function* () {
    for await (const batch of batches) yield* batch
  })()
  return {
    next: async (): Promise<WatchEvent<ConfigMap>> => {
      const { value, done } = await events.next()
      assert.ok(!done, 'the watch has ended')
      return value
    },
    stop: () => events.return(undefined),
  }
}

const named = (event: WatchEvent<ConfigMap>): string => `${event.type} ${event.object.metadata.name ?? ''}`

/** A client whose connections are counted, and can be frozen. */
const counted = async (t: TestContext, options?: ClientOptions) => {
  const relay = await stubRelay(t, plane.server)
  const through = clientFor({ ...client.connection, server: relay.server }, options)
  t.after(() => through.close())
  return { relay, through }
}

test('R0.8 a watch from a list on shows every change after it', async () => {
  const configMaps = client.of(ConfigMap, 'default')
  const { metadata } = await configMaps.list()
  const watch = await watching(client, 'default', {
    resourceVersion: metadata.resourceVersion,
    labelSelector: 'story=changes',
  })

  const labels = { story: 'changes' }
  await configMaps.create({ metadata: { name: 'other' } })
  await configMaps.create({ metadata: { name: 'a', labels }, data: { text: 'ä\n日本 🦜' } })
  await configMaps.patch('a', { merge: { data: { b: '1' } } })
  await configMaps.delete('a')

  const added = await watch.next()
  assert.equal(named(added), 'ADDED a')
  assert.equal((added.object as ConfigMap).data?.['text'], 'ä\n日本 🦜')
  assert.equal(named(await watch.next()), 'MODIFIED a')
  assert.equal(named(await watch.next()), 'DELETED a')
  await watch.stop()
})

test('R0.11 a watch that begins with what is there ends that with a bookmark', async () => {
  const configMaps = client.of(ConfigMap, 'kube-system')
  for (const name of ['a', 'b']) await configMaps.create({ metadata: { name }, data: { x: '1' } })
  const watch = await watching(client, 'kube-system', { sendInitialEvents: true, metadataOnly: true })

  const first: WatchEvent<ConfigMap>[] = []
  for (let event = await watch.next(); event.type !== 'BOOKMARK'; event = await watch.next()) first.push(event)
  const names = first.map(named)

  assert.ok(names.includes('ADDED a') && names.includes('ADDED b'), names.join())
  assert.ok(first.every(({ object }) => (object as ConfigMap).data === undefined)) // as it was asked for
  await configMaps.delete('a')
  assert.equal(named(await watch.next()), 'DELETED a')
  await watch.stop()
})

test('R0.12 bookmarks say how far everything has been sent, and a watch goes on from there', async () => {
  const watch = await watching(client, 'kube-public', { sendInitialEvents: true })
  let bookmark = await watch.next()
  while (bookmark.type !== 'BOOKMARK') bookmark = await watch.next()
  assert.equal(bookmark.object.metadata.annotations?.[initialEventsEnd], 'true')
  await watch.stop()

  const created = await client.of(ConfigMap, 'kube-public').create({ metadata: { name: 'later' } })
  const resumed = await watching(client, 'kube-public', { resourceVersion: bookmark.object.metadata.resourceVersion })
  assert.deepEqual((await resumed.next()).object.metadata.uid, created.metadata.uid)
  await resumed.stop()
})

test('R0.8 a watch ends after the time that was asked for, without an error', async () => {
  const batches = await client.of(ConfigMap, 'kube-node-lease').watch({ timeoutSeconds: 1 })
  assert.ok((await Array.fromAsync(batches)).flat().every(({ type }) => type === 'ADDED' || type === 'BOOKMARK'))
})

test('R0.10 a watch from too long ago is expired', async () => {
  // the server begins to remember a kind when its CRD is installed
  const Scroll = resource({ group: 'example.com', version: 'v1', kind: 'Scroll', plural: 'scrolls', namespaced: true })
  const schema = { openAPIV3Schema: { type: 'object' } }
  await client.of(CustomResourceDefinition).create({
    metadata: { name: 'scrolls.example.com' },
    spec: {
      group: 'example.com',
      names: { kind: 'Scroll', plural: 'scrolls' },
      scope: 'Namespaced',
      versions: [{ name: 'v1', served: true, storage: true, schema }],
    },
  })
  const scrolls = client.of(Scroll, 'default')
  const watch = async () => Array.fromAsync(await scrolls.watch({ resourceVersion: '1' }))

  // until the kind is served, it is told otherwise
  await eventually(async () => assert.ok(isExpired(await failureOf(watch()))))
})

test('R0.10 a watch that is not allowed is refused before it begins', async () => {
  const error = await failureOf(plane.client({ user: 'eve' }).of(ConfigMap, 'default').watch())
  assert.ok(isForbidden(error))
})

test('150 watches of a real server share two connections, which only HTTP/2 can do, and all of them live', async (t) => {
  const { relay, through } = await counted(t)
  const { metadata } = await client.of(ConfigMap, 'default').list()
  const options = { resourceVersion: metadata.resourceVersion, fieldSelector: 'metadata.name=heard-by-all' }
  const watches = await Promise.all(Array.from({ length: 150 }, () => watching(through, 'default', options)))
  assert.equal(relay.accepted(), 2)

  await client.of(ConfigMap, 'default').create({ metadata: { name: 'heard-by-all' } })

  const heard = await Promise.all(watches.map((watch) => watch.next()))
  assert.ok(heard.every((event) => named(event) === 'ADDED heard-by-all'))
  await Promise.all(watches.map((watch) => watch.stop()))
})

test('R0.14 a real server that hangs is noticed by pings, and found again when it goes on', async () => {
  const pinging = clientFor(client.connection, { pingAfterMs: 50, pingTimeoutMs: 100 })
  const watch = await watching(pinging, 'default', { sendInitialEvents: true })
  await watch.next()

  plane.apiServer.pause()
  const error = await connectionFailureOf(
    (async () => {
      for (;;) await watch.next()
    })(),
  )
  plane.apiServer.resume()

  assert.match(String(error.cause), /does not answer HTTP\/2 pings/)
  await (await watching(pinging, 'default')).stop()
  pinging.close()
})
