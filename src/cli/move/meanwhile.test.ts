/** Whoever is at work on a cluster while it is to be moved: waited for, and what they change is not lost. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { createCluster } from '../../../testkit/aws-network.ts'
import {
  blockMove,
  capi,
  contents,
  moving,
  ownedBy,
  pausedBy,
  proxied,
  startClusterApiHubs,
} from '../../../testkit/cluster-api.ts'
import { eventually, manualClock } from '../../../testkit/index.ts'
import { beginMove, moved, refused, unseen, type TwoHubs } from '../../../testkit/two-hubs.ts'
import { AWSCluster, Cluster } from '../../api/index.ts'
import type { Client } from '../../kube/index.ts'

let hubs: TwoHubs
before(async () => {
  hubs = await startClusterApiHubs()
})
after(() => hubs.stop())

const hold = (client: Client, key: string, value: string | null): Promise<unknown> => {
  const [space, name] = key.split('/') as [string, string]
  return client.of(AWSCluster, space).patch(name, { merge: { metadata: { annotations: { [blockMove]: value } } } })
}

test('R3.68 R3.72 whoever works on a cluster holds the move after the pause; it is named, and the move goes on when it lets go', async () => {
  const { one, two, here, there } = hubs
  await unseen(here, 'held/c')
  await hold(here, 'held/c', 'true')

  const move = beginMove(moving('held'), one, two)
  await move.said(/AWSCluster held\/c is still being worked on \(/)
  assert.equal((await here.of(Cluster, 'held').get('c')).spec?.paused, true)
  assert.deepEqual(await contents(there, 'held'), [])
  await hold(here, 'held/c', null)

  const { code, err } = await move.result
  assert.equal(code, 0, err)
  assert.deepEqual(await contents(there, 'held'), ['AWSCluster/c', 'Cluster/c'])
  assert.equal((await there.of(AWSCluster, 'held').get('c')).metadata.annotations?.[blockMove], undefined)
})

for (const [contract, said] of [
  ['v1beta1', (status: string) => ({ v1beta2: { conditions: [{ type: 'Paused', status }] } })],
  ['v1beta2', (status: string) => ({ conditions: [{ type: 'Paused', status }] })],
] as const)
  test(`R3.72 a controller that says when it has seen a pause (${contract}) is waited for`, async () => {
    const { one, two, here, there } = hubs
    const space = `aware-${contract}`
    await createCluster(here, `${space}/c`)
    const ownerReferences = [ownedBy(Cluster, await here.of(Cluster, space).get('c'))]
    const metadata = { namespace: space, name: 'm', ownerReferences }
    const status = { nodeRef: { name: 'n' }, ...said('False') }
    const machines = here.of(capi.machines, space)
    await machines.create({ metadata, spec: { clusterName: 'c' }, status })

    const move = beginMove(moving(space), one, two)
    await move.said(new RegExp(`the controller of Machine ${space}/m has not seen the pause yet`))
    assert.deepEqual(await contents(there, space), [])
    await machines.patch('m', { merge: { status: said('True') } })
    const { code, err } = await move.result
    assert.equal(code, 0, err)
    assert.deepEqual(await contents(there, space), ['AWSCluster/c', 'Cluster/c', 'Machine/m'])
  })

test('R3.72 a controller that never says that it has seen the pause is not waited for longer than 30 s: one that starts later sees the pause first', async () => {
  const { one, two, here, there } = hubs
  await createCluster(here, 'unaware/c')
  const status = { conditions: [{ type: 'Paused', status: 'False' }], nodeRef: { name: 'n' } }
  const ownerReferences = [ownedBy(Cluster, await here.of(Cluster, 'unaware').get('c'))]
  await here
    .of(capi.machines, 'unaware')
    .create({ metadata: { namespace: 'unaware', name: 'm', ownerReferences }, status })
  const clock = manualClock(Date.now())
  const move = beginMove(moving('unaware'), one, two, { clock })
  await move.said(/has not seen the pause yet/)
  const timers = clock.pending
  clock.advance(29_000)
  await eventually(() => clock.pending === timers) // it has looked again, and waits on
  assert.deepEqual(await contents(there, 'unaware'), [])
  clock.advance(1000)
  const { code, err } = await move.result
  assert.equal(code, 0, err)
  assert.deepEqual(await contents(there, 'unaware'), ['AWSCluster/c', 'Cluster/c', 'Machine/m'])
})

test('R3.72 a cluster that comes into the namespace during a move, or is unpaused by somebody, stops it before anything is copied; the next run takes all', async () => {
  const { one, two, here, there } = hubs
  await unseen(here, 'changed/c')
  await hold(here, 'changed/c', 'true')
  const first = beginMove(moving('changed'), one, two)
  await first.said(/still being worked on/)
  await createCluster(here, 'changed/late')
  const came = await first.result
  assert.equal(came.code, 1)
  assert.match(came.err, /luster changed\/late came into the namespace, or was unpaused[^]*run the same command again/)

  const second = beginMove(moving('changed'), one, two)
  await second.said(/still being worked on/)
  await here.of(Cluster, 'changed').patch('late', { merge: { spec: { paused: null } } })
  const woken = await second.result
  assert.equal(woken.code, 1)
  assert.match(woken.err, /Cluster changed\/late came into the namespace, or was unpaused/)
  assert.deepEqual(await contents(there, 'changed'), [])

  await hold(here, 'changed/c', null)
  await moved(moving('changed'), one, two)
  assert.deepEqual(await contents(here, 'changed'), [])
  assert.deepEqual(await contents(there, 'changed'), ['AWSCluster/c', 'AWSCluster/late', 'Cluster/c', 'Cluster/late'])
})

test('R3.72 R3.74 what is deleted at the source before it was copied is not brought back to life on the target: it is said, the move is given up, and its own hub removes it', async () => {
  const { one, two, here, there } = hubs
  await unseen(here, 'leaving/c')
  const clusters = here.of(AWSCluster, 'leaving')
  await clusters.patch('c', { merge: { metadata: { finalizers: ['example.com/aws'] } } })
  await hold(here, 'leaving/c', 'true')
  const move = beginMove(moving('leaving'), one, two)
  await move.said(/still being worked on/)
  await clusters.delete('c')
  const { code, err } = await move.result
  assert.equal(code, 1)
  assert.match(err, /AWSCluster leaving\/c was deleted while it was being moved[^]*--abort/)
  await refused(hubs, moving('leaving'), /AWSCluster leaving\/c is being deleted, and a move has paused it[^]*--abort/)

  await moved(['-n', 'leaving', '--abort'], one, two)
  const { metadata } = await clusters.get('c')
  assert.equal(metadata.annotations?.[pausedBy], undefined)
  await refused(hubs, moving('leaving'), /AWSCluster leaving\/c is being deleted[^]*wait until it is gone/)
  assert.deepEqual(await contents(there, 'leaving'), [])
  await clusters.patch('c', { merge: { metadata: { finalizers: null } } })
})

const edits = {
  changes: { sshKeyName: 'new' },
  // What is missing is seen less easily than what is different.
  'takes away': { additionalTags: { gone: null } },
}

for (const [does, spec] of Object.entries(edits))
  test(`R3.72 what somebody ${does} at the source after it was copied is not lost: the object is not deleted, it is said, and the next run brings it as it is then`, async (t) => {
    const { one, two, here, there } = hubs
    const space = `edited-${does.replace(' ', '-')}`
    await unseen(here, `${space}/c`, { spec: { sshKeyName: 'old', additionalTags: { gone: 'soon', stays: 'here' } } })
    const proxy = await proxied(t, hubs)
    const posts = { method: 'POST', path: new RegExp(`namespaces/${space}/awsclusters$`) }
    // By then everything was read at the source; the answer that it was made is kept back until somebody has changed it.
    const move = beginMove(moving(space), one, proxy, {
      onSaid: (text) => text.startsWith('creating them') && proxy.stall(posts),
    })
    await eventually(() => proxy.open(posts) > 0, { timeoutMs: 60_000 })
    const edited = await here.of(AWSCluster, space).patch('c', { merge: { spec } })
    proxy.release()

    const { code, err } = await move.result
    assert.equal(code, 1)
    assert.match(err, /AWSCluster .* was changed at the source after it was copied[^]*run the same command again/)
    assert.deepEqual((await here.of(AWSCluster, space).get('c')).spec, edited.spec)
    await moved(moving(space), one, two)
    assert.deepEqual(await contents(here, space), [])
    assert.deepEqual((await there.of(AWSCluster, space).get('c')).spec, edited.spec)
  })
