import assert from 'node:assert/strict'
import { after, before, test, type TestContext } from 'node:test'
import { eventually, startControlPlane, type ControlPlane } from '../../../testkit/index.ts'
import {
  crds,
  installCrds,
  label,
  ManagedCluster,
  ManagedClusterSet,
  ManagedClusterSetBinding,
} from '../../api/index.ts'
import type { Client } from '../../kube/index.ts'
import { EventRecorder, findCondition, inParallel, Manager, silentLogger, systemClock } from '../../runtime/index.ts'
import { Bound, Empty } from '../contract.ts'
import { clusterSets } from './cluster-sets.ts'
import type { Hub } from './hub.ts'
import { setBindings } from './set-bindings.ts'

let plane: ControlPlane
let client: Client

before(async () => {
  plane = await startControlPlane({ controllerManager: false })
  client = plane.client()
  await installCrds(client, crds({ conversion: 'none' }))
})
after(() => plane.stop())

const userAgent = 'lanyard-hub-sets'
const hubRunning = async (t: TestContext, { defaultClusterSet = true } = {}) => {
  const hubClient = plane.client({ user: 'hub', groups: ['system:masters'], userAgent })
  const manager = new Manager({ client: hubClient })
  const hub: Hub = {
    client: hubClient,
    manager,
    clusters: manager.informer(ManagedCluster),
    events: new EventRecorder({ client: hubClient, controller: 'lanyard.io/hub', instance: 'test' }),
    clock: systemClock,
    log: silentLogger,
    settings: {
      gates: { managedClusterAutoApproval: false, defaultClusterSet, resourceCleanup: false },
      drivers: [],
      labels: {},
      farewellMs: 0,
    },
  }
  clusterSets(hub)
  setBindings(hub)
  const stop = new AbortController()
  const running = manager.run(stop.signal)
  t.after(async () => {
    stop.abort()
    await running
    await Promise.all([
      client.of(ManagedCluster).deleteAll(),
      client.of(ManagedClusterSet).deleteAll(),
      client.of(ManagedClusterSetBinding, 'default').deleteAll(),
    ])
  })
}

const sets = () => client.of(ManagedClusterSet)

/** Waits until the sets say so: a number of clusters, or that there are none. */
const counted = (wanted: Record<string, number>) =>
  eventually.watching(sets(), (all) => {
    const seen = Object.fromEntries(
      all.map((set) => [set.metadata.name, findCondition(set, Empty.type)?.message ?? 'nothing']),
    )
    for (const [name, count] of Object.entries(wanted))
      assert.equal(seen[name], count ? `${count} ManagedClusters selected` : 'No ManagedCluster selected', name)
  })

test('the sets default and global exist, come back when deleted, and are repaired when edited', async (t) => {
  await hubRunning(t)
  await counted({ default: 0, global: 0 })
  const global = await sets().get('global')
  assert.deepEqual(global.spec?.clusterSelector, { selectorType: 'LabelSelector', labelSelector: {} })

  for (const name of ['default', 'global']) {
    const { metadata } = await sets().get(name)
    await sets().delete(name)
    await eventually(async () => (await sets().get(name)).metadata.uid !== metadata.uid)
  }

  const edit = {
    clusterSelector: { selectorType: 'LabelSelector', labelSelector: { matchLabels: { mine: 'yes' } } },
    managedNamespaces: [{ name: 'kept' }],
  }
  await sets().patch('default', { merge: { spec: edit } })
  await sets().patch('global', { merge: { spec: { clusterSelector: { labelSelector: null } } } })
  await eventually.watching(sets(), (all) => {
    const spec = (name: string) => all.find(({ metadata }) => metadata.name === name)?.spec
    assert.deepEqual(spec('default')?.clusterSelector, { selectorType: 'ExclusiveClusterSetLabel' })
    assert.deepEqual(spec('default')?.managedNamespaces, [{ name: 'kept' }], 'what is not ours stays')
    assert.deepEqual(spec('global')?.clusterSelector, { selectorType: 'LabelSelector', labelSelector: {} })
  })
})

test('with the gate off no set is made', async (t) => {
  await hubRunning(t, { defaultClusterSet: false })
  await sets().create({ metadata: { name: 'only' } })
  await counted({ only: 0 })
  assert.deepEqual(
    (await sets().list()).items.map(({ metadata }) => metadata.name),
    ['only'],
  )
})

test('200 clusters in five sets are counted right through joins, moves and departures, and then nothing is written', async (t) => {
  await hubRunning(t)
  for (const name of ['red', 'green', 'blue']) await sets().create({ metadata: { name } })
  const env = { selectorType: 'LabelSelector' as const, labelSelector: { matchLabels: { env: 'prod' } } }
  await sets().create({ metadata: { name: 'prod' }, spec: { clusterSelector: env } })
  const none = { selectorType: 'LabelSelector' as const }
  await sets().create({ metadata: { name: 'unselective' }, spec: { clusterSelector: none } })
  const clusters = client.of(ManagedCluster)
  const names = Array.from({ length: 200 }, (_, i) => `c${i}`)
  const homes = ['red', 'green', 'blue', 'default']
  await inParallel(
    16,
    names.map((name, i) => async () => {
      const labels = { [label.clusterSet]: homes[i % 4]!, env: i % 2 ? 'prod' : 'test' }
      await clusters.create({ metadata: { name, labels }, spec: {} })
    }),
  )
  await counted({ red: 50, green: 50, blue: 50, default: 50, global: 200, prod: 100, unselective: 0 })

  const move = (name: string, labels: Record<string, string | null>) =>
    clusters.patch(name, { merge: { metadata: { labels } } })
  await move('c0', { [label.clusterSet]: 'green' })
  await move('c4', { [label.clusterSet]: null, env: 'prod' })
  await clusters.delete('c1')
  await counted({ red: 48, green: 50, blue: 50, default: 50, global: 199, prod: 100 })

  await sets().patch('prod', {
    merge: { spec: { clusterSelector: { labelSelector: { matchLabels: { env: 'test' } } } } },
  })
  await sets().patch('unselective', { merge: { spec: { clusterSelector: { labelSelector: {} } } } })
  await counted({ prod: 99, unselective: 199 })
  const anyEnv = { matchExpressions: [{ key: 'flag', operator: 'Exists' }] }
  await sets().patch('unselective', { merge: { spec: { clusterSelector: { labelSelector: anyEnv } } } })
  await move('c7', { flag: '' })
  await counted({ unselective: 1 })

  // A steady state: clusters change all the time, but neither their number nor their labels.
  const since = new Date()
  await inParallel(
    16,
    names.slice(10, 60).map((name) => async () => {
      await clusters.patch(name, { merge: { spec: { leaseDurationSeconds: 61 } } })
    }),
  )
  await sets().create({ metadata: { name: 'marker' } })
  await counted({ marker: 0 })
  const { entries } = await plane.requestsBy(userAgent, { since })
  const writes = entries.filter(({ verb }) => ['create', 'update', 'patch', 'delete'].includes(verb))
  assert.deepEqual(
    writes.map(({ name }) => name),
    ['marker'],
  )
})

test('a binding is bound while its set exists, and says what to do when it does not', async (t) => {
  await hubRunning(t)
  const bindings = client.of(ManagedClusterSetBinding, 'default')
  const bound = (status: string) =>
    eventually.watching(bindings, ([binding]) => {
      const found = binding && findCondition(binding, Bound.type)
      return found?.status === status && found
    })
  await bindings.create({ metadata: { name: 'team', namespace: 'default' }, spec: { clusterSet: 'team' } })
  const missing = await bound('False')
  assert.equal(missing && missing.reason, 'ClusterSetNotFound')
  assert.match(
    missing ? missing.message : '',
    /ManagedClusterSet team does not exist: create it, or delete this binding/,
  )

  await sets().create({ metadata: { name: 'team' } })
  const present = await bound('True')
  assert.equal(present && present.reason, 'ClusterSetBound')
  await sets().delete('team')
  await bound('False')
})
