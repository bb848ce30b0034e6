/** What else there is of Cluster API: what goes along with a cluster, and whoever is at work on it while it is to be moved. */
import assert from 'node:assert/strict'
import { after, before, test, type TestContext } from 'node:test'
import { createCluster } from '../../../testkit/aws-network.ts'
import { capi, installClusterApi, ownedBy, referenceTo } from '../../../testkit/cluster-api.ts'
import { namespace } from '../../../testkit/identity-hub.ts'
import { eventually, manualClock, startFaultProxy, type FaultProxy } from '../../../testkit/index.ts'
import { beginMove, moved, refused, startTwoHubs, unseen, type TwoHubs } from '../../../testkit/two-hubs.ts'
import { AWSCluster, AWSClusterControllerIdentity, Cluster } from '../../api/index.ts'
import { ConfigMap, Secret, type Client, type KubeObject, type Resource } from '../../kube/index.ts'

let hubs: TwoHubs
before(async () => {
  hubs = await startTwoHubs()
  for (const client of [hubs.here, hubs.there]) {
    await installClusterApi(client)
    // Whom clusters act as here is not the point.
    const spec = { allowedNamespaces: {} }
    await client.of(AWSClusterControllerIdentity).create({ metadata: { name: 'default' }, spec })
  }
})
after(() => hubs.stop())

/** What is never let go of is given up before anybody loses patience. */
const moving = (space: string): string[] => ['-n', space, '--no-account-check', '--timeout', '60']
const pausedBy = 'cluster.x-k8s.io/paused'
const blockMove = 'clusterctl.cluster.x-k8s.io/block-move'

type Kinds = Record<string, Resource<KubeObject>>
const everyKind: Kinds = { ...capi, Cluster, AWSCluster, Secret, ConfigMap }

/** What is in a namespace, by kind. */
const contents = async (client: Client, space: string): Promise<string[]> => {
  const kinds = Object.values(everyKind).filter(({ namespaced }) => namespaced)
  const lists = await Promise.all(kinds.map(async (kind) => (await client.of(kind, space).list()).items))
  return lists.flatMap((items, at) => items.map(({ metadata }) => `${kinds[at]!.kind}/${metadata.name}`)).toSorted()
}

/** The target, with a server in front that can be told to fail. */
const proxied = async (t: TestContext): Promise<FaultProxy> => {
  const proxy = await startFaultProxy(hubs.two, { user: 'mover', groups: ['system:masters'] })
  t.after(() => proxy.stop())
  return proxy
}

const topologies = {
  v1beta1: (name: string, classNamespace?: string) => ({ class: name, ...(classNamespace ? { classNamespace } : {}) }),
  v1beta2: (name: string, space?: string) => ({ classRef: { name, ...(space ? { namespace: space } : {}) } }),
}

/** A class with a template that it owns by now, and one that it only names. */
const createClass = async (client: Client, space: string, name: string): Promise<KubeObject> => {
  await namespace(client, space)
  const spec = {
    infrastructure: { templateRef: referenceTo(capi.clusterTemplates, `${name}-owned`) },
    workers: { machineDeployments: [{ infrastructure: { ref: referenceTo(capi.clusterTemplates, `${name}-named`) } }] },
  }
  const created = await client.of(capi.classes, space).create({ metadata: { namespace: space, name }, spec })
  const ownerReferences = [ownedBy(capi.classes, created)]
  const templates = client.of(capi.clusterTemplates, space)
  const template = { spec: { template: { spec: { region: 'eu-west-1' } } } }
  await templates.create({ metadata: { namespace: space, name: `${name}-owned`, ownerReferences }, ...template })
  await templates.create({ metadata: { namespace: space, name: `${name}-named` }, ...template })
  return created
}

test('R3.72 R3.75 a ClusterClass goes along with the templates that it owns or names and with the clusters by it; it is paused by annotation, and is not left so when the move is cut in its last step', async (t) => {
  const { one, two, here, there } = hubs
  await createClass(here, 'classes', 'quick')
  await createCluster(here, 'classes/by-class')
  await here.of(Cluster, 'classes').patch('by-class', { merge: { spec: { topology: topologies.v1beta2('quick') } } })
  await here.of(capi.clusterTemplates, 'classes').create({ metadata: { namespace: 'classes', name: 'nobodys' } })
  const all = await contents(here, 'classes')
  const proxy = await proxied(t)
  const path = /clusterclasses/
  proxy.answer({ method: 'PATCH', path }, { status: 403, body: { kind: 'Status', status: 'Failure', code: 403 } })
  await here
    .of(capi.clusterTemplates, 'classes')
    .patch('quick-named', { merge: { metadata: { annotations: { [blockMove]: 'somebody' } } } })

  const move = beginMove(moving('classes'), one, proxy)
  await move.said(/AWSClusterTemplate classes\/quick-named is still being worked on by somebody/)
  const atSource = await here.of(capi.classes, 'classes').get('quick')
  assert.equal(atSource.metadata.annotations?.[pausedBy], 'true')
  await here
    .of(capi.clusterTemplates, 'classes')
    .patch('quick-named', { merge: { metadata: { annotations: { [blockMove]: null } } } })
  const { code } = await move.result
  assert.equal(code, 1)
  assert.deepEqual(await contents(here, 'classes'), ['AWSClusterTemplate/nobodys'])
  const classThere = () => there.of(capi.classes, 'classes').get('quick')
  assert.equal((await classThere()).metadata.annotations?.[pausedBy], 'true')

  await moved(moving('classes'), one, two)
  assert.deepEqual(
    await contents(there, 'classes'),
    all.filter((one) => one !== 'AWSClusterTemplate/nobodys'),
  )
  const { metadata } = await classThere()
  assert.equal(metadata.annotations?.[pausedBy], undefined)
  const owned = await there.of(capi.clusterTemplates, 'classes').get('quick-owned')
  assert.deepEqual(
    owned.metadata.ownerReferences?.map(({ uid }) => uid),
    [metadata.uid],
  )
  assert.equal((await there.of(Cluster, 'classes').get('by-class')).spec?.paused, undefined)
})

for (const [contract, topology] of Object.entries(topologies))
  test(`R3.74 a ClusterClass of another namespace (${contract}), and an identity of another provider in none, have to be on the target and the same: they are somebody else’s and do not go along`, async () => {
    const { one, two, here, there } = hubs
    const [shared, space] = [`shared-${contract}`, `by-shared-${contract}`]
    await createClass(here, shared, 'all')
    await createCluster(here, `${space}/c`)
    const identityRef = { kind: capi.globalIdentities.kind, name: contract }
    const merge = { spec: { topology: topology('all', shared), other: { identityRef } } }
    await here.of(Cluster, space).patch('c', { merge })
    const identity = { metadata: { name: contract }, spec: { secretName: 'k' } }
    await here.of(capi.globalIdentities).create(identity)

    const said = await refused(hubs, moving(space), /2 things stand in the way/)
    assert.match(said, new RegExp(`Cluster ${space}/c uses ClusterClass ${shared}/all, .* is not on the target`))
    assert.match(said, new RegExp(`uses VSphereClusterIdentity ${contract}, .* is not on the target`))
    await there.of(capi.globalIdentities).create(identity)
    await createClass(there, shared, 'all')
    const templates = there.of(capi.clusterTemplates, shared)
    await templates.patch('all-named', { merge: { spec: { template: { spec: { region: 'eu-north-1' } } } } })
    await refused(
      hubs,
      moving(space),
      new RegExp(
        `ClusterClass ${shared}/all uses AWSClusterTemplate ${shared}/all-named, .* another one on the target`,
      ),
    )
    await templates.patch('all-named', { merge: { spec: { template: { spec: { region: 'eu-west-1' } } } } })

    await moved(moving(space), one, two)
    assert.deepEqual(await contents(there, space), ['AWSCluster/c', 'Cluster/c'])
    assert.ok(await here.of(capi.classes, shared).find('all'))
  })

test('R3.75 a ClusterResourceSet goes along with its ConfigMaps and Secrets and the bindings that say where it was applied, and applies nothing before they are all there', async () => {
  const { one, two, here, there } = hubs
  await createCluster(here, 'sets/c')
  const metadata = { namespace: 'sets' }
  await here.of(ConfigMap, 'sets').create({ metadata: { ...metadata, name: 'cni' }, data: { 'cni.yaml': 'kind: X' } })
  await here
    .of(Secret, 'sets')
    .create({ metadata: { ...metadata, name: 'csi' }, stringData: { 'csi.yaml': 'kind: Y' } })
  await here.of(Secret, 'sets').create({ metadata: { ...metadata, name: 'not-ours' } })
  const resources = [
    { kind: 'ConfigMap', name: 'cni' },
    { kind: 'Secret', name: 'csi' },
  ]
  const set = await here
    .of(capi.resourceSets, 'sets')
    .create({ metadata: { ...metadata, name: 'base' }, spec: { resources } })
  const bindings = [{ clusterResourceSetName: 'base', resources: [{ applied: true, hash: 'h', ...resources[0] }] }]
  const ownerReferences = [ownedBy(capi.resourceSets, set)]
  await here
    .of(capi.bindings, 'sets')
    .create({ metadata: { ...metadata, name: 'c', ownerReferences }, spec: { bindings } })

  await moved(moving('sets'), one, two)

  assert.deepEqual(await contents(here, 'sets'), ['Secret/not-ours'])
  const setThere = await there.of(capi.resourceSets, 'sets').get('base')
  assert.equal(setThere.metadata.annotations?.[pausedBy], undefined)
  assert.ok(setThere.metadata.annotations?.['move.lanyard.io/moved-from'], 'it was paused there until all had come')
  const binding = await there.of(capi.bindings, 'sets').get('c')
  assert.deepEqual(binding['spec'], { bindings })
  assert.equal(binding.metadata.ownerReferences?.[0]?.uid, setThere.metadata.uid)
  const { data } = await there.of(ConfigMap, 'sets').get('cni')
  assert.deepEqual(data, { 'cni.yaml': 'kind: X' })
  assert.ok(await there.of(Secret, 'sets').find('csi'))
})

test('R3.58 R3.75 a ClusterClass that is on the target already is kept there if it is the same, and what it owns with it; another one is refused', async () => {
  const { one, two, here, there } = hubs
  await createClass(here, 'twice', 'quick')
  await createCluster(here, 'twice/c')
  const known = await createClass(there, 'twice', 'quick')
  const classes = there.of(capi.classes, 'twice')
  await classes.patch('quick', { merge: { spec: { variables: ['more'] } } })
  await refused(
    hubs,
    moving('twice'),
    /ClusterClass twice\/quick exists on the target and did not come from this source/,
  )
  await classes.patch('quick', { merge: { spec: { variables: null } } })

  await moved(moving('twice'), one, two)
  assert.deepEqual(await contents(here, 'twice'), [])
  const { metadata } = await classes.get('quick')
  assert.deepEqual([metadata.uid, metadata.annotations], [known.metadata.uid, undefined])
  assert.equal((await there.of(Cluster, 'twice').get('c')).spec?.paused, undefined)
})

test('R3.75 what carries a label of clusterctl goes along: an object alone, one with all that it owns, and every object of a kind; others stay and are named', async () => {
  const { one, two, here, there } = hubs
  await createCluster(here, 'labels/c')
  const make = (kind: Resource<KubeObject>, name: string, more: KubeObject['metadata'] = {}): Promise<KubeObject> =>
    here.of(kind, 'labels').create({ metadata: { namespace: 'labels', name, ...more } })
  await make(ConfigMap, 'alone', { labels: { 'clusterctl.cluster.x-k8s.io/move': 'any' } })
  const top = await make(capi.looked, 'top', { labels: { 'clusterctl.cluster.x-k8s.io/move-hierarchy': '' } })
  const middle = await make(capi.looked, 'middle', { ownerReferences: [ownedBy(capi.looked, top)] })
  await make(Secret, 'below', { ownerReferences: [ownedBy(capi.looked, middle)] })
  await make(capi.carried, 'by-kind')
  await make(capi.looked, 'stays')
  await make(ConfigMap, 'stays')

  const { code, err } = await beginMove(moving('labels'), one, two).result
  assert.equal(code, 0, err)
  assert.match(err, /belong to no cluster and stay where they are: Looked labels\/stays\n/)
  assert.deepEqual(await contents(here, 'labels'), ['ConfigMap/stays', 'Looked/stays'])
  assert.deepEqual(await contents(there, 'labels'), [
    'AWSCluster/c',
    'Carried/by-kind',
    'Cluster/c',
    'ConfigMap/alone',
    'Looked/middle',
    'Looked/top',
    'Secret/below',
  ])
})

test('R3.56 a Secret of 1 MB and 300 objects in one namespace arrive as they were', async () => {
  const { one, two, here, there } = hubs
  await createCluster(here, 'large/c')
  const cluster = await here.of(Cluster, 'large').get('c')
  const ownerReferences = [ownedBy(Cluster, cluster)]
  // With names of keys and the encoding of the request it is just below what a Secret may hold.
  const data = { blob: Buffer.alloc(1_048_000, 'lanyard ').toString('base64') }
  await here.of(Secret, 'large').create({ metadata: { namespace: 'large', name: 'c-kubeconfig' }, data })
  const names = Array.from({ length: 297 }, (_, at) => `m-${at}`)
  for (let at = 0; at < names.length; at += 16)
    await Promise.all(
      names.slice(at, at + 16).map((name) =>
        here.of(capi.machines, 'large').create({
          metadata: { namespace: 'large', name, ownerReferences, finalizers: ['machine.cluster.x-k8s.io'] },
          spec: { clusterName: 'c', providerID: `aws:///${name}` },
          status: { nodeRef: { name } },
        }),
      ),
    )
  const before = await contents(here, 'large')
  assert.equal(before.length, 300)

  await moved(moving('large'), one, two)

  assert.deepEqual(await contents(here, 'large'), [])
  assert.deepEqual(await contents(there, 'large'), before)
  assert.deepEqual((await there.of(Secret, 'large').get('c-kubeconfig')).data, data)
  const { items } = await there.of(capi.machines, 'large').list()
  assert.ok(
    items.every(({ metadata, spec }) => (spec as { providerID: string }).providerID === `aws:///${metadata.name}`),
  )
})

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
    const proxy = await proxied(t)
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
