import assert from 'node:assert/strict'
import { after, before, test, type TestContext } from 'node:test'
import { eventually, startControlPlane, type ControlPlane } from '../../../testkit/index.ts'
import { jumpingClock } from '../../../testkit/jumping-clock.ts'
import {
  agentOf,
  can,
  clusterOf,
  createCluster,
  createWork,
  objectsOf,
  plainDriver,
  runHub,
  setAccepts,
  type TestHubOptions,
} from '../../../testkit/registration-hub.ts'
import {
  crds,
  finalizer,
  group,
  installCrds,
  ManagedCluster,
  ManagedClusterAddOn,
  ManifestWork,
} from '../../api/index.ts'
import { ClusterRole, Event, isForbidden, Lease, Namespace, type Client } from '../../kube/index.ts'
import { findCondition, isTrue } from '../../runtime/index.ts'
import { Accepted, Deleting, rbac, revokedOnAnnotation } from '../contract.ts'
import { leavingBinding } from './permissions.ts'
import { cleanupPriority } from './records.ts'

let plane: ControlPlane
let client: Client
before(async () => {
  plane = await startControlPlane({ audit: false })
  client = plane.client()
  await installCrds(client, crds({ conversion: 'none' }))
})
after(() => plane.stop())

const hour = 3_600_000
const works = (namespace: string) => ({ group: group.work, resource: 'manifestworks', namespace })
const addOns = (namespace: string) => ({ group: group.addon, resource: 'managedclusteraddons', namespace })
const leases = (namespace: string) => ({ group: 'coordination.k8s.io', resource: 'leases', namespace })
const itself = (name: string) => ({ group: group.cluster, resource: 'managedclusters', name })

/** An accepted cluster with a hub, a clock to move, and its agent's own client. */
const accepted = async (t: TestContext, name: string, options: TestHubOptions = {}) => {
  const clock = jumpingClock()
  const driver = plainDriver()
  const hub = await runHub(t, plane, {
    clock,
    ...options,
    settings: { farewellMs: hour, drivers: [driver], ...options.settings },
  })
  await createCluster(client, name)
  await eventually(async () => isTrue((await clusterOf(client, name))!, Accepted.type))
  const { username: user, groups } = agentOf(name)
  return { hub, clock, driver, agent: plane.client({ user, groups }) }
}

const condition = async (name: string, type: string) => findCondition((await clusterOf(client, name))!, type)
const isGone = async (name: string): Promise<boolean> => (await clusterOf(client, name)) === undefined
const isReadOnly = async (name: string): Promise<void> => {
  assert.deepEqual(
    await Promise.all([
      can(client, name, 'get', itself(name)),
      can(client, name, 'update', itself(name)),
      can(client, name, 'patch', { ...itself(name), subresource: 'status' }),
      can(client, name, 'create', { group: 'certificates.k8s.io', resource: 'certificatesigningrequests' }),
      can(client, name, 'update', leases(name)),
      can(client, name, 'get', addOns(name)),
      can(client, name, 'create', { group: '', resource: 'events', namespace: name }),
    ]),
    [true, false, false, false, false, false, false],
  )
}
const mayRemoveWorks = async (name: string): Promise<boolean> => {
  const may = await Promise.all(
    ['get', 'list', 'watch', 'update', 'patch'].map((v) => can(client, name, v, works(name))),
  )
  assert.equal(new Set(may).size, 1, `all or none: ${may.join()}`)
  assert.equal(await can(client, name, 'delete', works(name)), false)
  return may[0]!
}

test('R1.56 R1.57 a denied cluster loses access at once, and its works can still be removed; then it can do nothing', async (t) => {
  const { agent, driver } = await accepted(t, 'd1')
  await createWork(client, 'd1', 'w1')
  await agent.of(Lease, 'd1').list()
  await setAccepts(client, 'd1', false)

  await eventually(() => isReadOnly('d1'))
  assert.equal(await mayRemoveWorks('d1'), true)
  await eventually(async () => {
    const denied = await condition('d1', Accepted.type)
    assert.deepEqual([denied?.status, denied?.reason], ['False', 'HubClusterAdminDenied'])
    assert.match(
      denied!.message,
      /^Denied by hub cluster admin; until .* its agent may still remove its works \(1 left\)/,
    )
  })
  await assert.rejects(agent.of(Lease, 'd1').list(), isForbidden)
  assert.equal((await agent.of(ManagedCluster).get('d1')).spec.hubAcceptsClient, false)
  assert.equal(driver.asked.includes('revoke d1'), false)

  await client.of(ManifestWork, 'd1').delete('w1')
  await agent.of(ManifestWork, 'd1').patch('w1', { merge: { metadata: { finalizers: [] } } })
  await eventually(async () => !(await mayRemoveWorks('d1')))
  await eventually(async () => {
    assert.equal((await condition('d1', Accepted.type))?.message, 'Denied by hub cluster admin')
    assert.deepEqual(
      driver.asked.filter((a) => a.startsWith('revoke')),
      ['revoke d1'],
    )
  })
  await isReadOnly('d1')
  assert.deepEqual(await objectsOf(client, 'd1'), [
    `ClusterRole ${rbac.cluster('d1')}`,
    `ClusterRoleBinding ${rbac.cluster('d1')}`,
    'Namespace d1',
  ])

  // A work that somebody makes now opens nothing again, and nothing is revoked twice.
  await createWork(client, 'd1', 'late')
  await client.of(ManagedCluster).patch('d1', { merge: { metadata: { annotations: { touched: 'yes' } } } })
  await createCluster(client, 'd1-later')
  await eventually(async () => isTrue((await clusterOf(client, 'd1-later'))!, Accepted.type))
  assert.equal(await mayRemoveWorks('d1'), false)
  assert.equal(driver.asked.filter((a) => a === 'revoke d1').length, 1)
})

test('R1.56 R1.57 works that the agent has let go, or never took on, keep no access: it ends with the last one that is held, and they stay', async (t) => {
  const { agent, driver } = await accepted(t, 'd4')
  await createWork(client, 'd4', 'held')
  await createWork(client, 'd4', 'foreign', { finalizers: ['example.com/theirs'] })
  await createWork(client, 'd4', 'never-taken-on', {})
  await setAccepts(client, 'd4', false)
  await eventually(async () => {
    assert.match((await condition('d4', Accepted.type))!.message, /its agent may still remove its works \(1 left\)/)
  })
  assert.equal(await mayRemoveWorks('d4'), true)
  assert.equal(driver.asked.includes('revoke d4'), false)

  // As an agent does that leaves: what the work brought is gone, and the work itself belongs to the hub's people.
  await agent.of(ManifestWork, 'd4').patch('held', { merge: { metadata: { finalizers: [] } } })
  await eventually(async () => {
    assert.equal((await condition('d4', Accepted.type))!.message, 'Denied by hub cluster admin')
    assert.equal(await mayRemoveWorks('d4'), false)
  })
  assert.deepEqual(
    driver.asked.filter((a) => a.startsWith('revoke')),
    ['revoke d4'],
  )
  const { items } = await client.of(ManifestWork, 'd4').list()
  const left = items.filter(({ metadata }) => !metadata.deletionTimestamp).map(({ metadata }) => metadata.name!)
  assert.deepEqual(left.toSorted(), ['foreign', 'held', 'never-taken-on'])

  // With the cluster they go, too.
  await client.of(ManifestWork, 'd4').patch('foreign', { merge: { metadata: { finalizers: [] } } })
  await client.of(ManagedCluster).delete('d4')
  await eventually(() => isGone('d4'))
  await eventually(async () => assert.deepEqual(await objectsOf(client, 'd4'), []))
})

test('R1.57 a denied cluster whose works are stuck loses all access when its time is up, and is let in again by a person', async (t) => {
  const { clock, driver } = await accepted(t, 'd2')
  await createWork(client, 'd2', 'stuck')
  await setAccepts(client, 'd2', false)
  await eventually(() => isReadOnly('d2'))
  await eventually(async () => (await condition('d2', Accepted.type))?.reason === 'HubClusterAdminDenied')
  clock.jump(hour / 2)
  await client.of(ManagedCluster).patch('d2', { merge: { metadata: { annotations: { touched: 'yes' } } } })
  assert.equal(await mayRemoveWorks('d2'), true)

  clock.jump(hour)
  await eventually(async () => !(await mayRemoveWorks('d2')))
  await eventually(() => driver.asked.includes('revoke d2'))
  assert.equal((await client.of(ManifestWork, 'd2').get('stuck')).metadata.deletionTimestamp, undefined)

  await setAccepts(client, 'd2', true)
  await eventually(async () => isTrue((await clusterOf(client, 'd2'))!, Accepted.type))
  await eventually(async () => {
    assert.equal(await can(client, 'd2', 'update', itself('d2')), true)
    assert.equal(await can(client, 'd2', 'update', leases('d2')), true)
    assert.equal(await mayRemoveWorks('d2'), true)
    const role = await client.of(ClusterRole).get(rbac.cluster('d2'))
    assert.deepEqual(role.metadata.annotations ?? {}, {})
    assert.equal((await objectsOf(client, 'd2')).includes(`RoleBinding ${leavingBinding('d2')}`), false)
  })

  // The next farewell has its own time.
  await setAccepts(client, 'd2', false)
  await eventually(() => isReadOnly('d2'))
  assert.equal(await mayRemoveWorks('d2'), true)
})

test('R1.57 access is gone while a driver is still slow or fails, also of an agent that wrote its own condition', async (t) => {
  let broken = true
  const revoke = async (): Promise<void> => {
    if (broken) throw new Error('AWS does not answer')
  }
  const driver = plainDriver({ revoke })
  const { agent } = await accepted(t, 'd3', { settings: { drivers: [driver] } })
  const mine = await agent.of(ManagedCluster).get('d3')
  const conditions = mine.status!.conditions!.map((c) => ({
    ...c,
    status: 'False' as const,
    reason: 'HubClusterAdminDenied',
  }))
  await agent.of(ManagedCluster).patch('d3', { merge: { status: { conditions } } }, { subresource: 'status' })
  await setAccepts(client, 'd3', false)

  await eventually(() => isReadOnly('d3'))
  await eventually(async () => {
    assert.match((await condition('d3', Accepted.type))!.message, /not removed yet: AWS does not answer/)
  })
  broken = false
  await eventually(async () => {
    assert.equal((await condition('d3', Accepted.type))!.message, 'Denied by hub cluster admin')
    assert.ok((await client.of(ClusterRole).get(rbac.cluster('d3'))).metadata.annotations![revokedOnAnnotation])
  })
})

test('R1.56 a deleted cluster takes everything with it that was made for it', async (t) => {
  const { driver } = await accepted(t, 'x1')
  await client.of(Lease, 'x1').create({ metadata: { name: 'managed-cluster-lease', namespace: 'x1' }, spec: {} })
  await client.of(ManagedCluster).delete('x1')
  await eventually(() => isGone('x1'))
  await eventually(async () => assert.deepEqual(await objectsOf(client, 'x1'), []))
  assert.equal(await client.of(Namespace).find('x1'), undefined)
  assert.ok(driver.asked.includes('revoke x1'))
})

test('R1.56 R1.57 works and add-ons of a deleted cluster go in their order, by its agent, which has no other access', async (t) => {
  const { agent, driver } = await accepted(t, 'x2')
  const held = { finalizers: [finalizer.manifestWork] }
  await createWork(client, 'x2', 'last', { ...held, annotations: { [cleanupPriority]: '50' } })
  await createWork(client, 'x2', 'first', held)
  await client.of(ManagedClusterAddOn, 'x2').create({
    metadata: { name: 'addon', namespace: 'x2', finalizers: ['example.com/hook'] },
    spec: {},
  })
  await client.of(ManagedCluster).delete('x2')

  await eventually(() => isReadOnly('x2'))
  assert.equal(await mayRemoveWorks('x2'), true)
  const goes = async (): Promise<string[]> => {
    const all = [
      ...(await client.of(ManifestWork, 'x2').list()).items,
      ...(await client.of(ManagedClusterAddOn, 'x2').list()).items,
    ]
    return all.filter((o) => o.metadata.deletionTimestamp).map((o) => o.metadata.name!)
  }
  await eventually(async () => assert.deepEqual(await goes(), ['addon']))
  await eventually(async () => {
    const deleting = await condition('x2', Deleting.type)
    assert.deepEqual([deleting?.status, deleting?.reason], ['False', 'ResourceRemaining'])
    assert.match(deleting!.message, /^2 ManifestWorks and 1 ManagedClusterAddOns remain, 3 of them held/)
    assert.match(deleting!.message, /ManagedClusterAddOn addon, ManifestWork first, ManifestWork last; the agent may/)
  })
  const release = { merge: { metadata: { finalizers: [] } } }
  await client.of(ManagedClusterAddOn, 'x2').patch('addon', release)
  await eventually(async () => assert.deepEqual(await goes(), ['first']))
  await agent.of(ManifestWork, 'x2').patch('first', release)
  await eventually(async () => assert.deepEqual(await goes(), ['last']))
  assert.equal(driver.asked.includes('revoke x2'), false)
  await agent.of(ManifestWork, 'x2').patch('last', release)

  await eventually(() => isGone('x2'))
  assert.ok(driver.asked.includes('revoke x2'))
  await eventually(async () => assert.deepEqual(await objectsOf(client, 'x2'), []))
})

test('R1.57 a deleted cluster whose agent is gone is let go when its time is up, and an event says what may be left there', async (t) => {
  const { clock } = await accepted(t, 'x3')
  await createWork(client, 'x3', 'abandoned')
  await createWork(client, 'x3', 'abandoned-too', {
    finalizers: [finalizer.manifestWork],
    annotations: { [cleanupPriority]: '1' },
  })
  await client.of(ManagedCluster).delete('x3')
  await eventually(async () => (await condition('x3', Deleting.type))?.reason === 'ResourceRemaining')
  assert.equal(await mayRemoveWorks('x3'), true)

  clock.jump(hour + 1000)
  await eventually(() => isGone('x3'))
  await eventually(async () => !(await mayRemoveWorks('x3')))
  await eventually(async () => assert.deepEqual(await objectsOf(client, 'x3'), []))
  await eventually(async () => {
    const { items } = await client.of(Event, 'default').list()
    const told = items.filter((e) => e.regarding.name === 'x3' && e.reason === 'AgentTimeIsUp').map((e) => e.note)
    assert.match(told.join(), /may still be there: ManifestWork abandoned/)
    assert.match(told.join(), /may still be there: ManifestWork abandoned-too/)
  })
})

test('R1.57 a cluster that was denied and whose time is over gets no new access by being deleted', async (t) => {
  const { clock } = await accepted(t, 'x4')
  await createWork(client, 'x4', 'w')
  await setAccepts(client, 'x4', false)
  await eventually(async () => (await condition('x4', Accepted.type))?.reason === 'HubClusterAdminDenied')
  clock.jump(hour + 1000)
  await eventually(async () => !(await mayRemoveWorks('x4')))
  await client
    .of(ManifestWork, 'x4')
    .patch('w', { merge: { metadata: { finalizers: [finalizer.manifestWork, 'example.com/theirs'] } } })
  await client.of(ManagedCluster).delete('x4')

  await eventually(async () => {
    assert.match((await condition('x4', Deleting.type))!.message, /the time of the agent was up .* may still be there/)
    const work = await client.of(ManifestWork, 'x4').get('w')
    assert.deepEqual(work.metadata.finalizers, ['example.com/theirs'])
  })
  assert.equal(await mayRemoveWorks('x4'), false)
  await client.of(ManifestWork, 'x4').patch('w', { merge: { metadata: { finalizers: [] } } })
  await eventually(() => isGone('x4'))
})

test('R1.56 with the cleanup of resources off, works are left to people, for at most the time of a farewell', async (t) => {
  const { clock } = await accepted(t, 'x5', { gates: { resourceCleanup: false } })
  await createWork(client, 'x5', 'theirs', {})
  await client.of(ManagedCluster).delete('x5')
  await eventually(async () => (await condition('x5', Deleting.type))?.reason === 'ResourceRemaining')
  assert.equal((await client.of(ManifestWork, 'x5').get('theirs')).metadata.deletionTimestamp, undefined)
  clock.jump(hour + 1000)
  await eventually(() => isGone('x5'))
  assert.ok(await client.of(ManifestWork, 'x5').find('theirs'))
  assert.deepEqual(await objectsOf(client, 'x5'), ['Namespace x5'])
})
