import assert from 'node:assert/strict'
import { after, before, test, type TestContext } from 'node:test'
import { eventually, startControlPlane, type ControlPlane } from '../../../testkit/index.ts'
import { crds, installCrds, label, ManagedCluster } from '../../api/index.ts'
import { Event, Lease, Namespace, type Client, type Condition } from '../../kube/index.ts'
import {
  EventRecorder,
  findCondition,
  Manager,
  microTimestamp,
  setConditions,
  silentLogger,
  systemClock,
  timestamp,
  type Clock,
  type ConditionState,
} from '../../runtime/index.ts'
import { Accepted, Available, ClockSynced, leaseName, skipClockCheck, taintKey } from '../contract.ts'
import { availability } from './availability.ts'
import { clock } from './clock.ts'
import type { Hub } from './hub.ts'
import { clusterLeases } from './leases.ts'
import { taints } from './taints.ts'

let plane: ControlPlane
let client: Client

before(async () => {
  plane = await startControlPlane({ controllerManager: false })
  client = plane.client()
  await installCrds(client, crds({ conversion: 'none' }))
})
after(() => plane.stop())

/** Real time, of which a test can take some away: what falls due meanwhile runs at once. */
const skippingClock = (): Clock & { skip(ms: number): void } => {
  let ahead = 0
  const timers = new Set<{ due: number; run: () => void; cancel: () => void }>()
  const now = (): number => Date.now() + ahead
  return {
    now,
    after: (ms, run) => {
      const timer = {
        due: now() + ms,
        cancel: () => {},
        run: () => {
          timers.delete(timer)
          run()
        },
      }
      timer.cancel = systemClock.after(ms, timer.run)
      timers.add(timer)
      return () => {
        timer.cancel()
        timers.delete(timer)
      }
    },
    skip: (ms) => {
      ahead += ms
      for (const timer of Array.from(timers)) {
        timer.cancel()
        if (timer.due <= now()) timer.run()
        else timer.cancel = systemClock.after(timer.due - now(), timer.run)
      }
    },
  }
}

/** A hub with these controllers, and what it is called in the audit log. */
const hubRunning = async (t: TestContext) => {
  const userAgent = `lanyard-hub-${t.name.length}-${Date.now()}`
  const hubClient = plane.client({ user: 'hub', groups: ['system:masters'], userAgent })
  const time = skippingClock()
  const manager = new Manager({ client: hubClient, clock: time })
  const events = new EventRecorder({ client: hubClient, controller: 'lanyard.io/hub', instance: 'test', clock: time })
  const hub: Hub = {
    client: hubClient,
    manager,
    clusters: manager.informer(ManagedCluster),
    events,
    clock: time,
    log: silentLogger,
    settings: {
      gates: { managedClusterAutoApproval: false, defaultClusterSet: false, resourceCleanup: false },
      drivers: [],
      labels: {},
      farewellMs: 0,
    },
  }
  for (const add of [availability, clock, taints]) add(hub)
  const stop = new AbortController()
  const running = manager.run(stop.signal)
  t.after(async () => {
    stop.abort()
    await running
    await client.of(ManagedCluster).deleteAll()
  })
  await manager.informers.synced()
  return { time, userAgent, events, deafMs: () => clusterLeases(hub).missedMs(0) }
}

const clusters = () => client.of(ManagedCluster)

/** What acceptance would have done; `said` is what the agent has reported. */
const accepted = async (name: string, said: ConditionState[] = [], spec: ManagedCluster['spec'] = {}) => {
  await client.of(Namespace).create({ metadata: { name } })
  await clusters().create({ metadata: { name }, spec: { leaseDurationSeconds: 10, ...spec } })
  await say(name, Accepted.accepted(), ...said)
}

const say = (name: string, ...states: ConditionState[]) =>
  eventually(async () => {
    const cluster = await clusters().get(name)
    const conditions = setConditions(cluster.status?.conditions, states, { now: Date.now() })
    return clusters().updateStatus({ ...cluster, status: { ...cluster.status, conditions } })
  })

const renew = (name: string, at: number) =>
  client.of(Lease, name).patch(leaseName, { merge: { spec: { renewTime: microTimestamp(at) } } })

const leaseOf = (name: string) =>
  eventually.watching(client.of(Lease, name), (leases) => leases.find((l) => l.metadata.name === leaseName) ?? false)

const conditionOf = (name: string, type: string, status: string): Promise<Condition> =>
  eventually.watching(clusters(), (all) => {
    const cluster = all.find(({ metadata }) => metadata.name === name)
    const found = cluster && findCondition(cluster, type)
    return found?.status === status ? found : false
  })

const taintsOf = (name: string, ...keys: string[]) =>
  eventually.watching(clusters(), (all) => {
    const present = all.find(({ metadata }) => metadata.name === name)?.spec.taints ?? []
    return JSON.stringify(present.map(({ key }) => key)) === JSON.stringify(keys) ? present : false
  })

test('an accepted cluster gets a lease, and is unreachable until its agent speaks; renewals cost the hub nothing', async (t) => {
  const { userAgent, time } = await hubRunning(t)
  await accepted('heart')

  const lease = await leaseOf('heart')
  assert.equal(lease.metadata.labels?.[label.clusterName], 'heart')
  assert.equal(lease.spec.holderIdentity, leaseName)
  assert.ok(Math.abs(Date.parse(lease.spec.renewTime!) - Date.now()) < 60_000)
  const [taint] = await taintsOf('heart', taintKey.unreachable)
  assert.equal(taint?.effect, 'NoSelect')
  assert.ok(taint.timeAdded)

  await say('heart', Available.available())
  await taintsOf('heart')
  await renew('heart', time.now())
  await conditionOf('heart', ClockSynced.type, 'True')
  const since = new Date()
  for (let i = 0; i < 8; i++) {
    time.skip(20_000) // two lease durations at a time: in all three times the allowed silence
    await renew('heart', time.now())
  }
  // when the hub has seen the last of the renewals and what follows them, it has seen all of them
  await accepted('marker')
  await leaseOf('marker')
  const { entries } = await plane.requestsBy(userAgent, { since })
  const writes = entries.filter(({ verb, name }) => ['patch', 'update', 'create'].includes(verb) && name !== 'marker')
  assert.deepEqual(
    writes.filter(({ namespace }) => namespace !== 'marker'),
    [],
  )
  assert.equal(findCondition(await clusters().get('heart'), Available.type)?.status, 'True')
})

test('a lease that is deleted comes back', async (t) => {
  await hubRunning(t)
  await accepted('again', [Available.available()])
  const first = await leaseOf('again')
  await client.of(Lease, 'again').delete(leaseName)
  await eventually(async () => (await leaseOf('again')).metadata.uid !== first.metadata.uid)
})

test('a cluster that is silent for five lease durations is unknown, not before; its agent says when it is well again', async (t) => {
  const { time, events } = await hubRunning(t)
  await accepted('quiet', [Available.available()], { taints: [{ key: 'gpu', effect: 'PreferNoSelect' }] })
  const { spec } = await leaseOf('quiet')
  await taintsOf('quiet', 'gpu') // now the hub has heard the agent
  time.skip(45_000)
  time.skip(10_000)

  const unknown = await conditionOf('quiet', Available.type, 'Unknown')
  assert.equal(unknown.reason, 'ManagedClusterLeaseUpdateStopped')
  assert.equal(unknown.message, 'Registration agent stopped updating its lease.')
  assert.ok(Date.parse(unknown.lastTransitionTime) >= Date.parse(spec.renewTime!) + 49_000, 'not before its time')
  await taintsOf('quiet', 'gpu', taintKey.unreachable)
  await events.flush()
  const [event] = (await client.of(Event, 'quiet').list()).items
  assert.equal(event?.reason, 'AvailableUnknown')
  assert.match(event.note, /quiet has not renewed its lease for 50 s: look at its agent/)

  await say('quiet', Available.apiServerDown('The kube-apiserver is not ok'))
  await taintsOf('quiet', 'gpu', taintKey.unavailable)
  await say('quiet', Available.available())
  await taintsOf('quiet', 'gpu')
})

test('an agent that reports but cannot renew its lease is not contradicted at once, and unknown again when it is silent', async (t) => {
  const { time, userAgent } = await hubRunning(t)
  await accepted('stuck', [Available.available()])
  await leaseOf('stuck')
  await taintsOf('stuck') // now the hub has heard the agent
  time.skip(51_000)
  await conditionOf('stuck', Available.type, 'Unknown')
  await taintsOf('stuck', taintKey.unreachable)

  await say('stuck', Available.available())
  await taintsOf('stuck')
  time.skip(40_000)
  time.skip(11_000)
  await conditionOf('stuck', Available.type, 'Unknown')
  const { entries } = await plane.requestsBy(userAgent)
  const said = entries.filter(
    ({ subresource, name, code }) => subresource === 'status' && name === 'stuck' && code === 200,
  )
  assert.equal(said.length, 2)
})

test('silence while the API server was away is held against nobody', async (t) => {
  const { time, deafMs } = await hubRunning(t)
  await accepted('patient', [Available.available()])
  await leaseOf('patient')
  await taintsOf('patient')
  await plane.apiServer.kill()
  await eventually(() => deafMs() > 0)
  time.skip(60_000)
  await plane.apiServer.start()
  time.skip(30_000) // and the wait before the next attempt is over
  await accepted('later')
  await taintsOf('later', taintKey.unreachable)
  await leaseOf('later')
  assert.equal(findCondition(await clusters().get('patient'), Available.type)?.status, 'True')

  time.skip(51_000)
  await conditionOf('patient', Available.type, 'Unknown')
})

test('a clock that is wrong is reported with its side and size, does not make a cluster unknown, and can be exempt', async (t) => {
  const { time } = await hubRunning(t)
  await accepted('skewed', [Available.available()])
  await leaseOf('skewed')
  await renew('skewed', time.now() - 3 * 3_600_000)
  const behind = await conditionOf('skewed', ClockSynced.type, 'False')
  assert.equal(behind.reason, 'ManagedClusterClockOutOfSync')
  assert.match(
    behind.message,
    /^The clock of the managed cluster is 3 hours behind the clock of the hub; 50 seconds are/,
  )
  assert.match(behind.message, /synchronise both clocks/)
  assert.equal(findCondition(await clusters().get('skewed'), Available.type)?.status, 'True')

  await renew('skewed', time.now())
  await conditionOf('skewed', ClockSynced.type, 'True')
  await renew('skewed', time.now() + 600_000)
  assert.match((await conditionOf('skewed', ClockSynced.type, 'False')).message, /10 minutes ahead of the clock/)

  await clusters().patch('skewed', { merge: { metadata: { annotations: { [skipClockCheck]: 'true' } } } })
  assert.match((await conditionOf('skewed', ClockSynced.type, 'True')).message, /^not checked: the annotation/)
})

test('a hub that starts declares the clusters unknown that were silent while others were not', async (t) => {
  const renewed = { gone: Date.now() - 60_000, here: Date.now() }
  for (const [name, at] of Object.entries(renewed)) {
    const then = timestamp(at)
    await accepted(name, [Available.available()])
    const cluster = await clusters().get(name)
    const conditions = cluster.status!.conditions!.map((c) => ({ ...c, lastTransitionTime: then }))
    await clusters().updateStatus({ ...cluster, status: { conditions } })
    await client.of(Lease).create({
      metadata: { name: leaseName, namespace: name },
      spec: { renewTime: microTimestamp(at) },
    })
  }
  await hubRunning(t)
  await conditionOf('gone', Available.type, 'Unknown')
  assert.equal(findCondition(await clusters().get('here'), Available.type)?.status, 'True')
})
