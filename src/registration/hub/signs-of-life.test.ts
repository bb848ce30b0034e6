import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../../testkit/index.ts'
import { conditionType, type ManagedCluster } from '../../api/index.ts'
import type { KubeObject, Lease } from '../../kube/index.ts'
import { microTimestamp, timestamp, type Handler, type Informer } from '../../runtime/index.ts'
import { signsOfLife } from './signs-of-life.ts'

/** What is known of an informer here: whom it tells, and how long it was deaf. */
const told = <T extends KubeObject>() => {
  const handlers: Handler<T>[] = []
  const objects = new Map<string, T>()
  const state = { missed: (_since: number) => 0, objects }
  const informer = {
    on: (h: Handler<T>) => handlers.push(h),
    missedMs: (since: number) => state.missed(since),
    get: (name: string) => objects.get(name),
  }
  return { informer: informer as unknown as Informer<T>, handler: () => handlers[0]!, state }
}

const lease = (namespace: string, renewed: number): Lease => ({
  metadata: { namespace, name: 'managed-cluster-lease' },
  spec: { renewTime: microTimestamp(renewed) },
})
const cluster = (name: string, status?: 'True' | 'False' | 'Unknown', since = 0): ManagedCluster => ({
  metadata: { name },
  spec: {},
  ...(status
    ? {
        status: {
          conditions: [
            {
              type: conditionType.managedCluster.available,
              status,
              reason: 'R',
              message: '',
              lastTransitionTime: timestamp(since),
            },
          ],
        },
      }
    : {}),
})

const minute = 60_000
const start = 1_000 * minute
const listening = () => {
  const clock = manualClock(start)
  const clusters = told<ManagedCluster>()
  const leases = told<Lease>()
  const life = signsOfLife({ clusters: clusters.informer, leases: leases.informer, clock })
  const initial = { initial: true }
  return {
    clock,
    life,
    missed: leases.state,
    known: clusters.state.objects,
    listed: (of: Lease) => leases.handler().added!(of, initial),
    renewed: (of: Lease, old: Lease) => leases.handler().updated!(of, old, { initial: false }),
    clusterListed: (of: ManagedCluster) => clusters.handler().added!(of, initial),
    clusterChanged: (of: ManagedCluster, old: ManagedCluster) =>
      clusters.handler().updated!(of, old, { initial: false }),
  }
}

test('a hub that starts believes the leases: who did not renew while others did is silent', () => {
  const { life, listed } = listening()
  listed(lease('alive', start))
  listed(lease('dead', start - 30 * minute))
  assert.equal(life.silentMs('alive'), 0)
  assert.equal(life.silentMs('dead'), 30 * minute)
})

test('time before the start in which nobody at all renewed is not held against anybody: the API server was away', () => {
  const { clock, life, listed } = listening()
  listed(lease('c1', start - 60 * minute))
  listed(lease('c2', start - 62 * minute))
  assert.equal(life.silentMs('c1'), 0)
  assert.equal(life.silentMs('c2'), 2 * minute)
  clock.advance(5 * minute)
  assert.equal(life.silentMs('c1'), 5 * minute)
})

test('time in which our own watch was cut does not count, whenever it was, and is not taken off twice', () => {
  const { clock, life, listed, missed } = listening()
  listed(lease('c1', start))
  life.silentMs('c1')
  clock.advance(20 * minute)
  missed.missed = (since) => Math.max(0, Math.min(10 * minute, start + 15 * minute - since))
  assert.equal(life.silentMs('c1'), 10 * minute)

  const second = listening()
  second.listed(lease('c1', start - 10 * minute))
  // cut for the last three minutes before the caches were complete: in the ten that do not count anyway
  second.missed.missed = (since) => Math.max(0, Math.min(3 * minute, start - since))
  assert.equal(second.life.silentMs('c1'), 0)
})

test('a renewal that is seen is timed by our clock: an agent whose clock is wrong is neither dead nor immortal', () => {
  for (const wrongBy of [-90 * minute, 90 * minute]) {
    const { clock, life, listed, renewed } = listening()
    listed(lease('c1', start))
    life.silentMs('c1')
    clock.advance(minute)
    renewed(lease('c1', clock.now() + wrongBy), lease('c1', start))
    assert.equal(life.silentMs('c1'), 0)
    clock.advance(4 * minute)
    assert.equal(life.silentMs('c1'), 4 * minute)
  }
})

test('a change of a lease that is no renewal is no sign of life', () => {
  const { clock, life, listed, renewed } = listening()
  listed(lease('c1', start))
  life.silentMs('c1')
  clock.advance(minute)
  renewed({ ...lease('c1', start), metadata: { ...lease('c1', start).metadata, labels: {} } }, lease('c1', start))
  assert.equal(life.silentMs('c1'), minute)
})

test('an agent that says how its cluster is lives, though its lease is old; what the hub says is no sign', () => {
  const { clock, life, listed, clusterListed, clusterChanged } = listening()
  listed(lease('other', start))
  listed(lease('c1', start - 10 * minute))
  clusterListed(cluster('c1', 'True', start - 2 * minute))
  assert.equal(life.silentMs('c1'), 2 * minute)
  clock.advance(10 * minute)
  clusterChanged(cluster('c1', 'Unknown'), cluster('c1', 'True'))
  assert.equal(life.silentMs('c1'), 12 * minute)
  clusterChanged(cluster('c1', 'False'), cluster('c1', 'Unknown'))
  assert.equal(life.silentMs('c1'), 0)
})

test('a cluster whose clock is known to be wrong is timed from our start: what it wrote before says nothing', () => {
  const { clock, life, listed, known } = listening()
  const type = conditionType.managedCluster.clockSynced
  const wrong = { type, status: 'False' as const, reason: 'R', message: '', lastTransitionTime: timestamp(0) }
  known.set('c1', { metadata: { name: 'c1' }, spec: {}, status: { conditions: [wrong] } })
  listed(lease('other', start))
  listed(lease('c1', start - 90 * minute))
  assert.equal(life.silentMs('c1'), 0)
  clock.advance(5 * minute)
  assert.equal(life.silentMs('c1'), 5 * minute)
})
