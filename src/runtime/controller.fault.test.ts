import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { eventually, seededRandom, startControlPlane, type ControlPlane } from '../../testkit/index.ts'
import { ConfigMap, isConflict, type Client } from '../kube/index.ts'
import { Controller, watching } from './controller.ts'
import { Informer } from './informer.ts'

let plane: ControlPlane
before(async () => {
  plane = await startControlPlane({ controllerManager: false, audit: false })
})
after(() => plane.stop())

const keys = Array.from({ length: 40 }, (_, i) => `item-${i}`)

test('R0.19 R0.16 ten writers and a reconcile that fails one time in three: every key converges, none is worked on twice at once', async (t) => {
  const random = seededRandom(t)
  const client = plane.client()
  const items = client.of(ConfigMap, 'default')
  for (const name of keys)
    await items.create({ metadata: { name, namespace: 'default', labels: { app: 'converge' } }, data: { want: '0' } })

  const informer = new Informer({ client, resource: ConfigMap, namespace: 'default', labelSelector: 'app=converge' })
  const working = new Set<string>()
  const twice: string[] = []
  let failures = 0
  const controller = new Controller({
    name: 'converge',
    workers: 8,
    queue: { maxDelayMs: 200 },
    watches: [watching(informer)],
    reconcile: async (key) => {
      if (working.has(key)) twice.push(key)
      working.add(key)
      try {
        const item = informer.get(key)
        if (!item || item.data?.['have'] === item.data?.['want']) return {}
        await pause(random.below(3)) // lets another worker in, if the queue would
        if (random.below(3) === 0) throw new Error('bad luck')
        await items.update({ ...item, data: { ...item.data, have: item.data!['want']! } })
        return {}
      } catch (error) {
        failures++
        throw error
      } finally {
        working.delete(key)
      }
    },
  })
  const stop = new AbortController()
  const running = [informer.run(stop.signal), controller.run(stop.signal)]
  t.after(() => stop.abort())
  await informer.synced

  const written = new Set<string>()
  await Promise.all(
    Array.from({ length: 10 }, async (_, writer) => {
      for (let i = 0; i < 30; i++) {
        const name = random.pick(keys)
        written.add(name)
        await items.patch(name, { merge: { data: { want: `${writer}-${i}` } } })
      }
    }),
  )
  await eventually(async () => {
    const { items: all } = await items.list({ labelSelector: 'app=converge' })
    const behind = all.filter((item) => item.data!['have'] !== item.data!['want'])
    assert.deepEqual(
      behind.map((item) => item.metadata.name),
      [],
    )
  })
  assert.deepEqual(twice, [], 'keys that two workers had at once')
  assert.ok(failures > 20, `only ${failures} failures: the test did not test much`)
  assert.ok(written.size > 20, `only ${written.size} keys were written`)
  stop.abort()
  await Promise.all(running)
  await forgetAll(client)
})

const forgetAll = (client: Client): Promise<void> =>
  client.of(ConfigMap, 'default').deleteAll({ labelSelector: 'app=converge' })

test('R0.17 a conflict with another writer is retried until it succeeds', async (t) => {
  const client = plane.client()
  const items = client.of(ConfigMap, 'default')
  await items.create({ metadata: { name: 'contested', namespace: 'default' }, data: { count: '0' } })
  const informer = new Informer({ client, resource: ConfigMap, fieldSelector: 'metadata.name=contested' })
  let conflicts = 0
  const controller = new Controller({
    name: 'contested',
    watches: [watching(informer)],
    reconcile: async (key) => {
      const item = informer.get(key)!
      if (item.data?.['done']) return {}
      if (conflicts === 0) await items.patch('contested', { merge: { data: { count: '1' } } })
      try {
        await items.update({ ...item, data: { ...item.data, done: 'yes' } })
      } catch (error) {
        if (isConflict(error)) conflicts++
        throw error
      }
      return {}
    },
  })
  const stop = new AbortController()
  t.after(() => stop.abort())
  void informer.run(stop.signal)
  void controller.run(stop.signal)
  await eventually(async () => assert.deepEqual((await items.get('contested')).data, { count: '1', done: 'yes' }))
  assert.ok(conflicts >= 1)
})
