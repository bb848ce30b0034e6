/** Whoever is at work on a cluster while it is moved, or on the target before and meanwhile: waited for, and what is theirs is not lost. */
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
import { namespace } from '../../../testkit/identity-hub.ts'
import { eventually, manualClock } from '../../../testkit/index.ts'
import { interrupted } from '../../../testkit/move-scene.ts'
import { beginMove, letAda, moved, refused, unseen, type TwoHubs } from '../../../testkit/two-hubs.ts'
import { AWSCluster, Cluster } from '../../api/index.ts'
import { ConfigMap, type Client, type KubeObject, type ObjectMeta, type Resource } from '../../kube/index.ts'

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

test('R3.72 what somebody changes at the source after a move was cut off while it removed things is brought to the target by the next run, and the finalizers there stay', async (t) => {
  const { one, two, here, there } = hubs
  await unseen(here, 'freed/c', { spec: { sshKeyName: 'old' } })
  const finalizers = ['example.com/aws']
  await here.of(AWSCluster, 'freed').patch('c', { merge: { metadata: { finalizers } } })
  const proxy = await proxied(t, hubs, 'one')
  const no = { status: 403, body: { kind: 'Status', status: 'Failure', code: 403 } }
  proxy.answer({ method: 'DELETE', path: /awsclusters/ }, no)
  const { code } = await beginMove(moving('freed'), proxy, two).result
  assert.equal(code, 1)
  const free = await here.of(AWSCluster, 'freed').patch('c', { merge: { spec: { sshKeyName: 'new' } } })
  assert.equal(free.metadata.finalizers, undefined)

  await moved(moving('freed'), one, two)
  assert.deepEqual(await contents(here, 'freed'), [])
  const { metadata, spec } = await there.of(AWSCluster, 'freed').get('c')
  assert.deepEqual([spec?.sshKeyName, metadata.finalizers], ['new', finalizers])
})

test('R3.72 what is made anew at the source after it was copied is brought as it is then', async () => {
  const { one, two, here, there } = hubs
  await unseen(here, 'anew/c', { spec: { sshKeyName: 'old' } })
  assert.equal((await interrupted(moving('anew'), one, two, 'removing them from')).code, 130)
  const clusters = here.of(AWSCluster, 'anew')
  const { metadata, spec } = await clusters.get('c')
  await clusters.delete('c')
  const { namespace: space, name, ownerReferences } = metadata
  const made = { metadata: { namespace: space, name, ownerReferences }, spec: { ...spec, sshKeyName: 'new' } }
  await clusters.create(made)

  await moved(moving('anew'), one, two)
  assert.deepEqual(await contents(here, 'anew'), [])
  assert.equal((await there.of(AWSCluster, 'anew').get('c')).spec?.sshKeyName, 'new')
})

type Side = { kubeconfig: string }

const kinds = [Cluster, AWSCluster, capi.machines, ConfigMap] as Resource<KubeObject>[]

/** All of these that a namespace has on one side, as they are. */
const everythingIn = async (client: Client, space: string): Promise<KubeObject[]> => {
  const lists = await Promise.all(kinds.map(async (kind) => (await client.of(kind, space).list()).items))
  return lists.flat()
}

/** A machine and a note that a Cluster owns at the source. */
const withTwo = async (client: Client, space: string): Promise<void> => {
  const ownerReferences = [ownedBy(Cluster, await client.of(Cluster, space).get('c'))]
  const labels = { 'cluster.x-k8s.io/cluster-name': 'c' }
  const metadata = { namespace: space, ownerReferences, labels, annotations: { theirs: 'no' } }
  await client.of(capi.machines, space).create({
    metadata: { ...metadata, name: 'm', finalizers: ['machine.cluster.x-k8s.io'] },
    spec: { clusterName: 'c' },
    status: { nodeRef: { name: 'n' } },
  })
  await client.of(ConfigMap, space).create({ metadata: { ...metadata, name: 'note' }, data: { a: 'b' } })
}

test('R3.74 R3.77 a move is not given up while somebody acts on the target, or without the rights on either side: it is said, nothing is changed, and it is given up when that is mended', async () => {
  const { one, two, here, there } = hubs
  const abort = ['-n', 'back', '--abort', '--timeout', '60']
  await unseen(here, 'back/c')
  await withTwo(here, 'back')
  const whole = await contents(here, 'back')
  assert.equal((await interrupted(moving('back'), one, two, 'removing them from')).code, 130)
  assert.deepEqual(await contents(there, 'back'), whole)
  const refusedNow = async (says: RegExp, sides: Parameters<typeof refused>[3] = {}): Promise<void> => {
    const before = await Promise.all([everythingIn(here, 'back'), everythingIn(there, 'back')])
    await refused(hubs, abort, says, sides)
    assert.deepEqual(await Promise.all([everythingIn(here, 'back'), everythingIn(there, 'back')]), before)
  }

  const annotate = (paused: string | null) => ({ merge: { metadata: { annotations: { [pausedBy]: paused } } } })
  await there.of(AWSCluster, 'back').patch('c', annotate(null))
  await refusedNow(
    /somebody has ended the pause of AWSCluster back\/c on the target[^]*kubectl -n back annotate awsclusters.infrastructure.cluster.x-k8s.io c cluster.x-k8s.io\/paused=true/,
  )
  await there.of(AWSCluster, 'back').patch('c', annotate('true'))
  // Those who follow its machines would act.
  const clusters = there.of(Cluster, 'back')
  await clusters.patch('c', { merge: { ...annotate('true').merge, spec: { paused: null } } })
  await refusedNow(
    /ended the pause of Cluster back\/c on the target[^]*patch clusters.cluster.x-k8s.io c --type=merge -p '{"spec":{"paused":true}}'/,
  )
  await clusters.patch('c', { merge: { spec: { paused: true } } })

  for (const client of [here, there]) await letAda(client, ['get', 'list'])
  const [from, to] = [one, two].map((plane) => ({ kubeconfig: plane.kubeconfigFor({ user: 'ada' }) })) as [Side, Side]
  await refusedNow(/you may not patch clusters.cluster.x-k8s.io in namespace back at the source[^]*--context/, { from })
  await refusedNow(/you may not delete machines.cluster.x-k8s.io in namespace back at the target[^]*--to-context/, {
    to,
  })

  for (const client of [here, there]) await letAda(client, ['get', 'list', 'patch', 'delete'])
  const asked = ['auth', 'can-i', 'patch', 'machines.cluster.x-k8s.io', '-n', 'back']
  await eventually(() => one.kubectl(asked, from)) // fails until the answer is yes
  await eventually(() => two.kubectl(asked, to))
  await moved(abort, from, to)
  assert.deepEqual([await contents(here, 'back'), await contents(there, 'back')], [whole, []])
  assert.equal((await here.of(Cluster, 'back').get('c')).spec?.paused, undefined)
})

test('R3.58 R3.77 what was on the target before gets its owners and is not changed otherwise; when the move is given up it is as it was; one that is made different meanwhile is not overwritten', async () => {
  const { one, two, here, there } = hubs
  await unseen(here, 'theirs/c')
  await withTwo(here, 'theirs')
  await namespace(there, 'theirs')
  const owner = await there.of(ConfigMap, 'theirs').create({ metadata: { namespace: 'theirs', name: 'owner' } })
  const ownOwner = { ...ownedBy({ group: '', version: 'v1', kind: 'ConfigMap' }, owner), apiVersion: 'v1' }
  const metadata: ObjectMeta = {
    namespace: 'theirs',
    labels: { own: 'label', 'cluster.x-k8s.io/cluster-name': 'another' },
    annotations: { theirs: 'yes' },
    finalizers: ['example.com/theirs'],
    ownerReferences: [ownOwner],
  }
  await there
    .of(capi.machines, 'theirs')
    .create({ metadata: { ...metadata, name: 'm' }, spec: { clusterName: 'c', more: 'of it' }, status: { own: 1 } })
  const notes = there.of(ConfigMap, 'theirs')
  await notes.create({ metadata: { namespace: 'theirs', name: 'note' }, data: { a: 'b' } })
  const asTheyAre = async (): Promise<KubeObject[]> =>
    (await everythingIn(there, 'theirs'))
      .filter(({ metadata: { name } }) => name !== 'c')
      .map(({ metadata: { resourceVersion: _version, managedFields: _fields, ...rest }, ...object }) => ({
        ...object,
        metadata: rest,
      }))
  const before = await asTheyAre()
  const ownersThere = async (): Promise<(string[] | undefined)[]> =>
    (await asTheyAre()).map((one) => one.metadata.ownerReferences?.map(({ name }) => name))

  assert.equal((await interrupted(moving('theirs'), one, two, 'removing them from')).code, 130)
  assert.deepEqual(await ownersThere(), [['owner', 'c'], ['c'], undefined])
  const withoutOwners = (objects: KubeObject[]) =>
    objects.map(({ metadata: { ownerReferences: _owners, ...rest }, ...object }) => ({ ...object, metadata: rest }))
  assert.deepEqual(withoutOwners(await asTheyAre()), withoutOwners(before))
  await notes.patch('note', { merge: { data: { a: 'other' } } })
  await refused(
    hubs,
    moving('theirs'),
    /ConfigMap theirs\/note exists on the target with another content, and is no copy/,
  )
  await notes.patch('note', { merge: { data: { a: 'b' } } })

  await moved(['-n', 'theirs', '--abort'], one, two)
  assert.deepEqual(await asTheyAre(), before)
  assert.deepEqual(await contents(there, 'theirs'), ['ConfigMap/note', 'ConfigMap/owner', 'Machine/m'])

  await moved(moving('theirs'), one, two)
  assert.deepEqual(await contents(here, 'theirs'), [])
  assert.deepEqual(withoutOwners(await asTheyAre()), withoutOwners(before))
  assert.deepEqual(await ownersThere(), [['owner', 'c'], ['c'], undefined])
  await there.of(capi.machines, 'theirs').patch('m', { merge: { metadata: { finalizers: null } } })
})
