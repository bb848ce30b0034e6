import assert from 'node:assert/strict'
import { after, before, test, type TestContext } from 'node:test'
import {
  eventually,
  rounds,
  seededRandom,
  startControlPlane,
  startFaultProxy,
  type ControlPlane,
  type FaultProxy,
  type FaultRequest,
  type Random,
} from '../../testkit/index.ts'
import {
  clientFor,
  ConfigMap,
  connectionFrom,
  isAlreadyExists,
  isNotFound,
  keyOf,
  loadKubeconfig,
  type Client,
  type KubeObject,
} from '../kube/index.ts'
import { Informer, type InformerOptions } from './informer.ts'
import { jsonLogger } from './log.ts'

let plane: ControlPlane
let proxy: FaultProxy
let client: Client
before(async () => {
  plane = await startControlPlane({ controllerManager: false, audit: false })
  proxy = await startFaultProxy(plane, { user: 'informer', groups: ['system:masters'] })
  client = clientFor(connectionFrom(await loadKubeconfig({ path: proxy.kubeconfig, env: {} })))
})
after(async () => {
  client.close()
  await proxy.stop()
  await plane.stop()
})

/** An informer beside a handler that keeps its own copy from what it is told. */
const followed = (t: TestContext, options: Partial<InformerOptions<ConfigMap>> = {}) => {
  const mistakes: string[] = []
  const informer = new Informer<ConfigMap>({
    client,
    resource: ConfigMap,
    namespace: 'default',
    indexes: { group: (item) => [item.metadata.labels?.['group'] ?? ''] },
    log: jsonLogger((line) => mistakes.push(line), { level: 'error' }),
    ...options,
  })
  const told = new Map<string, string>()
  informer.on({
    added: (item) => told.set(keyOf(item), item.metadata.resourceVersion!),
    updated: (item, old) => {
      assert.equal(told.get(keyOf(item)), old.metadata.resourceVersion, 'the old object is the one told before')
      told.set(keyOf(item), item.metadata.resourceVersion!)
    },
    deleted: (item) => assert.ok(told.delete(keyOf(item)), 'deleted once'),
  })
  const stop = new AbortController()
  t.after(() => stop.abort())
  void informer.run(stop.signal)
  const versions = (items: readonly KubeObject[]): string[] =>
    items.map((item) => `${keyOf(item)}@${item.metadata.resourceVersion}`).sort()
  return {
    informer,
    /** Cache, index and handler all say what a fresh list says. */
    assertEquals: (fresh: readonly ConfigMap[]): void => {
      assert.deepEqual(mistakes, [])
      assert.deepEqual(versions(informer.list()), versions(fresh))
      assert.deepEqual([...told].map(([key, version]) => `${key}@${version}`).sort(), versions(fresh))
      for (const group of groups) {
        const expected = fresh.filter((item) => item.metadata.labels?.['group'] === group)
        assert.deepEqual(versions(informer.by('group', group)), versions(expected))
      }
    },
  }
}

const groups = ['red', 'green', 'blue']
const names = Array.from({ length: 120 }, (_, i) => `thing-${i}`)

/** One random write. The server may be gone at any moment: what became of the write shows in the list. */
const write = async (writer: Client, random: Random): Promise<void> => {
  const items = writer.of(ConfigMap, 'default')
  const name = random.pick(names)
  const labels = { group: random.pick(groups), app: 'things' }
  const metadata = { name, namespace: 'default', labels }
  const data = { value: String(random.next()) }
  const kind = random.below(5)
  if (kind < 2) await items.create({ metadata, data }).catch(ignoring(isAlreadyExists))
  else if (kind < 4) await items.patch(name, { merge: { metadata: { labels }, data } }).catch(ignoring(isNotFound))
  else await items.delete(name)
}

const ignoring =
  (expected: (error: unknown) => boolean) =>
  (error: unknown): void => {
    if (!expected(error)) throw error
  }

/** A watch that goes on from where it was, as opposed to one that begins with a list. */
const isResumed = (request: FaultRequest): boolean => request.watch && request.query.has('resourceVersion')
const isList = (request: FaultRequest): boolean => !request.watch || request.query.has('sendInitialEvents')
const expired = {
  status: 410,
  body: {
    kind: 'Status',
    apiVersion: 'v1',
    status: 'Failure',
    reason: 'Expired',
    code: 410,
    message: 'too old resource version',
  },
}

test('R0.15 R0.13 2,000 random writes, three kills of the API server and a 410: every cache equals a fresh list, every handler saw the last state', async (t) => {
  const random = seededRandom(t)
  const informers = [
    followed(t),
    followed(t, { streamingList: false }),
    followed(t, { metadataOnly: true }),
    followed(t, { labelSelector: 'app=things' }),
  ]
  await Promise.all(informers.map(({ informer }) => informer.synced))
  const writer = plane.client()
  for (let round = 0; round < rounds(1); round++) {
    let done = 0
    let outages = 0
    const killAt = [400, 900, 1500].map((at) => at + random.below(200))
    const work = async (): Promise<void> => {
      while (done < 2000) {
        done++
        await write(writer, random).catch(async () => {
          outages++
          await eventually(() => writer.text({ method: 'GET', path: '/readyz' }))
        })
      }
    }
    const harm = async (): Promise<void> => {
      for (const [i, at] of killAt.entries()) {
        await eventually(() => assert.ok(done >= at), { timeoutMs: 120_000 })
        if (i === 1) proxy.answer(isResumed, expired)
        await plane.apiServer.kill()
        await plane.apiServer.restart()
      }
    }
    await Promise.all([harm(), ...Array.from({ length: 4 }, work)])
    assert.ok(outages > 0, 'no write failed: the kills did not hit')
  }
  await eventually(async () => {
    const { items } = await writer.of(ConfigMap, 'default').list({ labelSelector: 'app=things' })
    for (const informer of informers) informer.assertEquals(items)
  })
})

/** Writes one object, and waits until the informer has it. */
const assertFollows = async (informer: Informer<ConfigMap>, name: string): Promise<void> => {
  await plane
    .client()
    .of(ConfigMap, 'default')
    .create({ metadata: { name, namespace: 'default' } })
  await eventually(() => assert.ok(informer.get(`default/${name}`)))
}

test('R0.40 a watch that is cut in the middle of an object goes on with nothing lost, nothing twice and no new list', async (t) => {
  const { informer, assertEquals } = followed(t)
  await informer.synced
  await assertFollows(informer, 'before-cut')
  const lists = proxy.count(isList)
  const cut = proxy.cutMidLine()
  await plane
    .client()
    .of(ConfigMap, 'default')
    .create({ metadata: { name: 'cut', namespace: 'default' } })
  await cut
  await assertFollows(informer, 'after-cut')
  assert.equal(proxy.count(isList), lists)
  assertEquals((await plane.client().of(ConfigMap, 'default').list()).items)
})

test('R0.14 a watch that stays open but has gone silent is noticed and replaced', async (t) => {
  const { informer } = followed(t, { silenceMs: 1000 })
  await informer.synced
  const old = new Set<FaultRequest>()
  proxy.count((request) => Boolean(old.add(request)))
  proxy.stall((request) => old.has(request))
  await assertFollows(informer, 'after-silence')
  proxy.release()
})

test('R0.11 a server that does not stream lists is asked for pages, and for nothing else from then on', async (t) => {
  proxy.answer((request) => request.query.has('sendInitialEvents'), {
    status: 422,
    body: {
      kind: 'Status',
      status: 'Failure',
      reason: 'Invalid',
      code: 422,
      message: 'sendInitialEvents is forbidden',
    },
  })
  const before = proxy.count((request) => request.query.has('sendInitialEvents'))
  const { informer } = followed(t)
  await informer.synced
  await assertFollows(informer, 'paged')
  proxy.cut(isResumed)
  await assertFollows(informer, 'paged-again')
  assert.equal(
    proxy.count((request) => request.query.has('sendInitialEvents')),
    before + 1,
  )
})

test('R0.12 a watch that ends is resumed where it was, without a list', async (t) => {
  const { informer } = followed(t)
  await informer.synced
  await assertFollows(informer, 'resume-1')
  const lists = proxy.count(isList)
  for (const name of ['resume-2', 'resume-3']) {
    assert.ok(proxy.cut() > 0)
    await assertFollows(informer, name)
  }
  assert.equal(proxy.count(isList), lists)
})

test('R0.9 a watch that is refused with 429 is tried again when the server said, and one that is forbidden goes on trying', async (t) => {
  const refusal = (code: number, reason: string) => ({
    status: code,
    headers: { 'retry-after': '0' },
    body: { kind: 'Status', status: 'Failure', reason, code, message: 'not now' },
  })
  proxy.answer({ watch: true }, refusal(429, 'TooManyRequests'), { times: 2 })
  proxy.answer({ watch: true }, refusal(403, 'Forbidden'))
  const { informer } = followed(t)
  await informer.synced
  await assertFollows(informer, 'after-refusal')
})
