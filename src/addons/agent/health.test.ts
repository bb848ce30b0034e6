import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startAddOnScene } from '../../../testkit/add-on-agent.ts'
import { eventually, startControlPlane } from '../../../testkit/index.ts'
import { crds, installCrds, type ManagedClusterAddOn } from '../../api/index.ts'
import { Lease } from '../../kube/index.ts'
import { microTimestamp } from '../../runtime/index.ts'
import { healthOf } from './health.ts'

const addOn: ManagedClusterAddOn = { metadata: { name: 'a' }, status: {} }
const leaseAt = (ms: number): Lease => ({ metadata: { name: 'a' }, spec: { renewTime: microTimestamp(ms) } })

test('an add-on is available while it renews its lease, and five minutes after the last renewal it is not', () => {
  const grace = 5 * 60_000
  assert.equal(healthOf(addOn, undefined, 0)?.condition?.reason, 'ManagedClusterAddOnLeaseNotFound')
  const young = { ...addOn, metadata: { name: 'a', creationTimestamp: '1970-01-01T00:00:00Z' } }
  assert.deepEqual(healthOf(young, undefined, 59_000), { until: 60_000 }, 'it is being installed')
  assert.equal(healthOf(young, undefined, 60_000)?.condition?.status, 'Unknown')
  const unserved = { metadata: young.metadata }
  assert.deepEqual(healthOf(unserved, undefined, 60_000), { until: grace }, 'its controller has not begun')
  assert.equal(healthOf(unserved, undefined, grace)?.condition?.status, 'Unknown')
  assert.equal(healthOf(addOn, leaseAt(1000), 1000)?.condition?.status, 'True')
  assert.equal(healthOf(addOn, leaseAt(1000), 1000)?.until, 1000 + grace)
  assert.equal(healthOf(addOn, leaseAt(1000), 999 + grace)?.condition?.status, 'True')
  assert.equal(healthOf(addOn, leaseAt(1000), 1000 + grace)?.condition?.reason, 'ManagedClusterAddOnLeaseUpdateStopped')
  assert.equal(healthOf(addOn, { metadata: {}, spec: {} }, 0)?.condition?.status, 'False', 'a lease without a time')
  assert.equal(healthOf({ ...addOn, status: { healthCheck: { mode: 'Customized' } } }, undefined, 0), undefined)
})

test('the lease of an add-on on the managed cluster decides whether the hub sees it as available', async (t) => {
  const plane = await startControlPlane()
  t.after(() => plane.stop())
  await installCrds(plane.client(), crds({ conversion: 'none' }))
  const scene = await startAddOnScene(t, { plane, cluster: 'c1' })
  const leases = scene.hub.of(Lease, scene.namespace)
  await scene.create('a', [])
  await eventually(async () => {
    scene.clock.jump(10_000)
    assert.match((await scene.condition('a', 'Available'))?.message ?? '', /no lease/)
  })
  await leases.create({
    metadata: { name: 'a', namespace: scene.namespace },
    spec: { renewTime: microTimestamp(scene.clock.now()) },
  })
  await scene.says('a', 'Available', 'True')
  const renew = () => leases.patch('a', { merge: { spec: { renewTime: microTimestamp(scene.clock.now()) } } })
  const { writes } = await plane.requestsBy(scene.userAgent)
  await renew()
  await renew()
  await eventually(async () => {
    scene.clock.jump(60_000)
    assert.equal((await scene.condition('a', 'Available'))?.status, 'False')
  })
  assert.equal((await plane.requestsBy(scene.userAgent)).writes, writes + 1, 'renewals in time are no news')
  await renew()
  await scene.says('a', 'Available', 'True')
  await leases.delete('a')
  await scene.says('a', 'Available', 'Unknown')
})
