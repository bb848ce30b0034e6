import assert from 'node:assert/strict'
import { after, before, test, type TestContext } from 'node:test'
import { startAwsFront, type AwsFront } from '../../../../testkit/aws-front.ts'
import { startLocalEks, type LocalEks } from '../../../../testkit/eks/index.ts'
import { eventually, seededRandom } from '../../../../testkit/index.ts'
import { createIrsaCluster, grantsOf, leftInAws, mapRolesOf, runIrsaHub } from '../../../../testkit/irsa-hub.ts'
import { can, clusterOf, createCluster } from '../../../../testkit/registration-hub.ts'
import { group, ManagedCluster } from '../../../api/index.ts'
import { clusterPair, hubRoleName } from '../../../aws/index.ts'
import type { Client } from '../../../kube/index.ts'
import { findCondition, isTrue, silentLogger, systemClock } from '../../../runtime/index.ts'
import { Accepted } from '../../contract.ts'
import { drivers } from '../index.ts'

let eks: LocalEks
let admin: Client
before(async () => {
  eks = await startLocalEks({ access: 'access-entries', plane: { audit: false } })
  admin = eks.hub.client()
})
after(() => eks.stop())

const limit = { timeoutMs: 180_000 }
const arnOf = (name: string): string => `arn:aws:eks:us-west-2:222222222222:cluster/${name}`

const isAccepted = (name: string): Promise<void> =>
  eventually(async () => {
    const cluster = await clusterOf(admin, name)
    assert.ok(cluster && isTrue(cluster, Accepted.type), JSON.stringify(cluster?.status))
  }, limit)

/** Nothing of anybody: neither in AWS nor on the hub. */
const nothingIsLeft = (): Promise<void> =>
  eventually(async () => {
    assert.deepEqual(
      (await admin.of(ManagedCluster).list()).items.map(({ metadata }) => metadata.name),
      [],
    )
    assert.deepEqual([await leftInAws(eks), await grantsOf(admin)], [[], []])
    assert.doesNotMatch(await mapRolesOf(admin), /ocm-hub-/)
  }, limit)

/** Names of clusters, all created and accepted, then all deleted, while AWS is as the test has it. */
const comeAndGo = async (names: readonly string[]): Promise<void> => {
  await Promise.all(names.map((name) => createIrsaCluster(admin, name, arnOf(name))))
  await Promise.all(names.map(isAccepted))
  assert.equal((await leftInAws(eks)).length, 2 * names.length)
  await admin.of(ManagedCluster).deleteAll()
  await nothingIsLeft()
}

const through = async (t: TestContext): Promise<AwsFront> => startAwsFront(t, eks.endpoint)

test('R1.57 while AWS fails every third call, or throttles, clusters are accepted and go, and nothing is orphaned', async (t) => {
  const front = await through(t)
  const random = seededRandom(t)
  await runIrsaHub(t, eks, { endpoint: front.endpoint })
  let count = 0
  front.fault = () => (++count % 3 === 0 ? { status: 500, code: 'InternalFailure' } : undefined)
  await comeAndGo(['third-1', 'third-2', 'third-3'])
  front.fault = () => (random.next() < 0.3 ? { status: 400, code: 'Throttling' } : undefined)
  await comeAndGo(['slow-1', 'slow-2', 'slow-3'])
  // The call was made, and its answer lost.
  front.fault = () => undefined
  assert.ok(count > 6)
})

test('R1.57 R1.37 while AWS is away nobody is called accepted, the condition says why, RBAC is revoked at once, and all is made good when it returns', async (t) => {
  const front = await through(t)
  await runIrsaHub(t, eks, { endpoint: front.endpoint })
  front.fault = () => 'cut'
  await createIrsaCluster(admin, 'away', arnOf('away'))
  await eventually(async () => {
    const condition = findCondition((await clusterOf(admin, 'away'))!, Accepted.type)
    assert.equal(condition?.status, 'False', JSON.stringify(condition))
    assert.match(
      condition?.message ?? '',
      /cluster away: AWS does not let us make role .*no connection|SourceFailed|not be had/,
    )
  }, limit)
  front.fault = () => undefined
  await isAccepted('away')
  assert.equal(
    await can(admin, 'away', 'update', { group: group.cluster, resource: 'managedclusters', name: 'away' }),
    true,
  )

  front.fault = () => 'cut'
  await admin.of(ManagedCluster).delete('away')
  await eventually(
    async () =>
      assert.equal(
        await can(admin, 'away', 'get', { group: group.cluster, resource: 'managedclusters', name: 'away' }),
        false,
      ),
    limit,
  )
  assert.ok(await clusterOf(admin, 'away'), 'it stays until its role is gone')
  front.fault = () => undefined
  await nothingIsLeft()
})

test('R1.57 R1.36 a hub that is killed at any call of AWS leaves nothing behind: the next one finishes', async (t) => {
  const front = await through(t)
  // Which call of a life is the last: until a whole life takes fewer.
  for (let last = 1, died = true; died; last++) {
    const name = `kill-${last}`
    let calls = 0
    const running: { hub?: { stop(): Promise<void> } } = {}
    died = false
    front.fault = () => {
      if (++calls !== last) return undefined
      died = true
      void running.hub?.stop()
      // Half of them are made and their answer is lost, half never arrive.
      return last % 2 === 0 ? 'cut' : undefined
    }
    const hub = (running.hub = await runIrsaHub(t, eks, {
      endpoint: front.endpoint,
      ...(last % 3 === 0 ? { awsAccess: 'aws-auth' } : {}),
    }))
    await createIrsaCluster(admin, name, arnOf(name))
    await eventually(async () => died || isTrue((await clusterOf(admin, name))!, Accepted.type), limit)
    const lived = !died
    if (lived) await admin.of(ManagedCluster).delete(name)
    await eventually(
      async () => died || ((await grantsOf(admin)).length === 0 && !(await clusterOf(admin, name))),
      limit,
    )
    if (!died) {
      await nothingIsLeft()
      continue
    }
    await hub.stop()
    front.fault = () => undefined
    const next = await runIrsaHub(t, eks, { endpoint: front.endpoint })
    if (await clusterOf(admin, name)) {
      if (!lived) await isAccepted(name) // it was alone, and nobody has denied it
      await admin.of(ManagedCluster).delete(name)
    }
    await nothingIsLeft()
    await next.stop()
    assert.ok(last < 30, 'a life of a cluster takes fewer calls than that')
  }
})

test('R1.57 a cluster whose finalizer somebody took off is cleaned up all the same', async (t) => {
  const hub = await runIrsaHub(t, eks)
  await createIrsaCluster(admin, 'torn', arnOf('torn'))
  await isAccepted('torn')
  await hub.stop()
  await admin.of(ManagedCluster).patch('torn', { merge: { metadata: { finalizers: null } } })
  await admin.of(ManagedCluster).delete('torn')
  assert.equal((await leftInAws(eks)).length, 2)
  await runIrsaHub(t, eks)
  await nothingIsLeft()
})

test('R1.56 in a steady state no call of AWS is made, whatever else happens to clusters', async (t) => {
  const front = await through(t)
  await runIrsaHub(t, eks, { endpoint: front.endpoint })
  const names = ['calm-1', 'calm-2']
  await Promise.all(names.map((name) => createIrsaCluster(admin, name, arnOf(name))))
  await Promise.all(names.map(isAccepted))
  // Who we are, how the hub maps, and for each cluster a role, a policy and an entry.
  const after = front.calls.length
  assert.ok(after <= 2 + 3 * names.length, `${after} calls`)
  for (const name of names)
    await admin.of(ManagedCluster).patch(name, { merge: { metadata: { labels: { touched: 'yes' } } } })
  // The next one that comes shows that the queue has been worked through.
  await createIrsaCluster(admin, 'calm-3', arnOf('calm-3'))
  await isAccepted('calm-3')
  assert.equal(front.calls.length, after + 3)
  await admin.of(ManagedCluster).deleteAll()
  await nothingIsLeft()
})

test('R1.57 R1.8 an AWS that takes calls and never answers holds up neither clusters by certificate nor those of other roles, and is made good when it answers', async (t) => {
  const front = await through(t)
  const events = { record: () => {} }
  const usual = { client: admin, events, clock: systemClock, log: silentLogger }
  const csr = drivers.csr.hub({ ...usual, gates: { managedClusterAutoApproval: false }, autoApproveUsers: [] })
  await runIrsaHub(t, eks, { endpoint: front.endpoint, beside: [csr] })
  await createIrsaCluster(admin, 'before', arnOf('before'))
  await isAccepted('before') // the hub knows who it is and how it maps
  const hung = hubRoleName(clusterPair(eks.hubArn, arnOf('hung')))
  const isHung = (name: string): Promise<void> =>
    eventually(() => assert.ok(front.calls.some(({ parameters }) => parameters.get('RoleName') === name)), limit)

  front.fault = () => 'hang'
  await createIrsaCluster(admin, 'hung', arnOf('hung'))
  await isHung(hung)
  await createCluster(admin, 'certified')
  await isAccepted('certified')

  front.fault = ({ parameters }) => (parameters.get('RoleName') === hung ? 'hang' : undefined)
  await createIrsaCluster(admin, 'other', arnOf('other'))
  await isAccepted('other')
  await eventually(async () => {
    const condition = findCondition((await clusterOf(admin, 'hung'))!, Accepted.type)
    assert.equal(condition?.status, 'False')
    assert.match(condition?.message ?? '', /cluster hung: AWS does not let us make role .*no answer within 20 s/)
  }, limit)

  front.fault = () => undefined
  await isAccepted('hung')
  await admin.of(ManagedCluster).deleteAll()
  await nothingIsLeft()
})
