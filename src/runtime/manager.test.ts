import assert from 'node:assert/strict'
import { after, before, test, type TestContext } from 'node:test'
import {
  eventually,
  startControlPlane,
  startFaultProxy,
  type ControlPlane,
  type FaultProxy,
} from '../../testkit/index.ts'
import { clientFor, ConfigMap, connectionFrom, Lease, loadKubeconfig, Secret, type Client } from '../kube/index.ts'
import { clientMetrics } from './client-metrics.ts'
import { systemClock } from './clock.ts'
import { watching } from './controller.ts'
import { Manager, type ManagerOptions } from './manager.ts'
import { Metrics } from './metrics.ts'

let plane: ControlPlane
let proxy: FaultProxy
let client: Client
before(async () => {
  plane = await startControlPlane({ controllerManager: false, audit: false })
  proxy = await startFaultProxy(plane, { user: 'manager', groups: ['system:masters'] })
  client = clientFor(connectionFrom(await loadKubeconfig({ path: proxy.kubeconfig, env: {} })))
})
after(async () => {
  client.close()
  await proxy.stop()
  await plane.stop()
})

/** A manager whose one controller notes the keys it saw. */
const managed = (t: TestContext, options: Partial<ManagerOptions> = {}) => {
  const manager = new Manager({ client, health: { port: 0 }, ...options })
  const maps = manager.informer(ConfigMap, { namespace: 'default' })
  const seen: string[] = []
  let hold: { begun: () => void; finished: Promise<void> } | undefined
  manager.controller({
    name: 'noter',
    watches: [watching(maps)],
    reconcile: async (key) => {
      hold?.begun()
      await hold?.finished
      seen.push(key)
      return {}
    },
  })
  const stop = new AbortController()
  t.after(() => stop.abort())
  const run = (): Promise<void> => manager.run(stop.signal)
  const ask = async (path: string): Promise<{ status: number; text: string }> => {
    const response = await fetch(`${manager.healthAddress}${path}`)
    return { status: response.status, text: await response.text() }
  }
  const holdReconciles = () => {
    const begun = Promise.withResolvers<void>()
    const finished = Promise.withResolvers<void>()
    hold = { begun: begun.resolve, finished: finished.promise }
    return { begun: begun.promise, finish: finished.resolve }
  }
  return { manager, maps, seen, stop, run, ask, holdReconciles }
}

const create = (name: string): Promise<unknown> =>
  plane
    .client()
    .of(ConfigMap, 'default')
    .create({ metadata: { name, namespace: 'default' } })

test('R0.20 R0.22 no controller works, and nothing is ready, before the last cache is complete', async (t) => {
  await create('early')
  proxy.stall({ path: '/api/v1/secrets' })
  const { manager, maps, seen, stop, run, ask } = managed(t)
  manager.informer(Secret)
  const running = run()
  await maps.synced
  const waiting = await ask('/readyz')
  assert.equal(waiting.status, 500)
  assert.match(waiting.text, /the first list of secrets is not complete/)
  assert.equal((await ask('/healthz')).status, 200)
  assert.equal(seen.length, 0)
  proxy.release()
  await eventually(() => assert.ok(seen.includes('default/early')))
  assert.deepEqual(await ask('/readyz'), { status: 200, text: 'ok\n' })
  stop.abort()
  await running
})

test('R0.22 /metrics has what dashboards for controller-runtime expect; other paths say what there is', async (t) => {
  const metrics = new Metrics()
  const kubeconfig = await loadKubeconfig({ path: proxy.kubeconfig, env: {} })
  const counted = clientFor(connectionFrom(kubeconfig), { onAnswer: clientMetrics(metrics) })
  t.after(() => counted.close())
  const { seen, stop, run, ask } = managed(t, { client: counted, metrics })
  const running = run()
  await create('metrics')
  await eventually(() => assert.ok(seen.includes('default/metrics')))
  const { text } = await ask('/metrics')
  for (const name of [
    'controller_runtime_reconcile_total{controller="noter",result="success"}',
    'controller_runtime_reconcile_time_seconds_bucket{controller="noter",le="1"}',
    'controller_runtime_max_concurrent_reconciles{controller="noter"}',
    'workqueue_depth{name="noter",controller="noter"}',
    'process_resident_memory_bytes',
    'rest_client_requests_total{code="200",method="GET"',
  ])
    assert.ok(text.includes(name), `${name} is not in\n${text}`)
  assert.equal((await ask('/nothing')).status, 404)
  stop.abort()
  await running
})

test('R0.21 after the signal no work begins, what is under way finishes, the lease is given up', async (t) => {
  const lease = { namespace: 'default', name: 'graceful', identity: 'me' }
  const { seen, stop, run, holdReconciles } = managed(t, { leaderElection: lease })
  const running = run()
  await create('graceful-1')
  await eventually(() => assert.ok(seen.includes('default/graceful-1')))
  assert.equal((await client.of(Lease, 'default').get('graceful')).spec.holderIdentity, 'me')

  const { begun, finish } = holdReconciles()
  await create('graceful-2')
  await begun
  stop.abort()
  finish()
  await running
  assert.equal(seen.at(-1), 'default/graceful-2')
  assert.equal((await client.of(Lease, 'default').get('graceful')).spec.holderIdentity || '', '')
  const before = seen.length
  await create('graceful-3')
  assert.equal(seen.length, before)
})

test('R0.21 work that does not end within the grace period is cut by its signal', async (t) => {
  const manager = new Manager({ client, gracePeriodMs: 10 })
  const stop = new AbortController()
  t.after(() => stop.abort())
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>()
  let cut: unknown
  manager
    .controller({
      name: 'endless',
      watches: [],
      reconcile: (_key, signal) =>
        new Promise((_, reject) => {
          begin()
          signal.addEventListener('abort', () => {
            cut = signal.reason
            reject(signal.reason as Error)
          })
        }),
    })
    .enqueue('x')
  const running = manager.run(stop.signal)
  await begun
  stop.abort()
  await running
  assert.match(String(cut), /grace period/)
})

test('R0.23 a process whose watch has been silent for too long says so', async (t) => {
  let ahead = 0
  const clock = { ...systemClock, now: () => Date.now() + ahead }
  const { maps, stop, run, ask } = managed(t, { clock })
  const running = run()
  await maps.synced
  assert.equal((await ask('/healthz')).status, 200)
  proxy.stall({ watch: true })
  ahead = 20 * 60_000
  const dead = await ask('/healthz')
  assert.equal(dead.status, 500)
  assert.match(dead.text, /the watch of configmaps has been silent for 1\d\d\d s/)
  proxy.release()
  stop.abort()
  await running
})

test('R0.21 one part that fails ends the others and the manager, with its error', async (t) => {
  const { manager, seen, run } = managed(t)
  manager.add({ name: 'broken', run: () => Promise.reject(new Error('broken part')) })
  await assert.rejects(run(), /broken part/)
  const before = seen.length
  await create('after-the-end')
  assert.equal(seen.length, before)
})
