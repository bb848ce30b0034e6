/** What else there is of Cluster API: what goes along with a cluster. */
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
  referenceTo,
  startClusterApiHubs,
} from '../../../testkit/cluster-api.ts'
import { hubNamespace, namespace } from '../../../testkit/identity-hub.ts'
import { eventually } from '../../../testkit/index.ts'
import { runRestless } from '../../../testkit/move-controllers.ts'
import { mortal, runAbort, runMove, type End, type Write } from '../../../testkit/move-cuts.ts'
import { interrupted } from '../../../testkit/move-scene.ts'
import { beginMove, moved, refused, type TwoHubs } from '../../../testkit/two-hubs.ts'
import { AWSCluster, Cluster } from '../../api/index.ts'
import { ConfigMap, isNotFound, Secret, type Client, type KubeObject, type Resource } from '../../kube/index.ts'

let hubs: TwoHubs
before(async () => {
  hubs = await startClusterApiHubs()
})
after(() => hubs.stop())

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
  const proxy = await proxied(t, hubs)
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

/** A cluster with a machine, and a ClusterResourceSet with what says where it was applied. */
const withSet = async (client: Client, space: string): Promise<{ bindings: object[] }> => {
  await createCluster(client, `${space}/c`)
  await client.of(AWSCluster, space).patch('c', { merge: { metadata: { finalizers: ['example.com/aws'] } } })
  const metadata = { namespace: space }
  const ofCluster = [ownedBy(Cluster, await client.of(Cluster, space).get('c'))]
  await client.of(capi.machines, space).create({
    metadata: { ...metadata, name: 'm', ownerReferences: ofCluster },
    spec: { clusterName: 'c' },
    status: { nodeRef: { name: 'n' } },
  })
  await client.of(ConfigMap, space).create({ metadata: { ...metadata, name: 'cni' }, data: { 'cni.yaml': 'kind: X' } })
  const resources = [{ kind: 'ConfigMap', name: 'cni' }]
  const set = await client
    .of(capi.resourceSets, space)
    .create({ metadata: { ...metadata, name: 'base' }, spec: { resources } })
  const bindings = [{ clusterResourceSetName: 'base', resources: [{ applied: true, hash: 'h', ...resources[0] }] }]
  const ofSet = [ownedBy(capi.resourceSets, set)]
  await client
    .of(capi.bindings, space)
    .create({ metadata: { ...metadata, name: 'c', ownerReferences: ofSet }, spec: { bindings } })
  return { bindings }
}

const atSource = 'example.com/source'
const finalizersOf = async (client: Client, kind: Resource<KubeObject>, key: string): Promise<string[]> => {
  const [space, name] = key.split('/') as [string, string]
  return (await client.of(kind, space).get(name)).metadata.finalizers ?? []
}

/** A run by somebody far away: whatever controllers do in answer to a request is done before the next one arrives. */
const fromAfar = async (space: string, held: RegExp, run: (...ends: [End, End]) => Promise<void>): Promise<void> => {
  const sides = [hubs.here, hubs.there]
  const find = (side: number, path: string) => sides[side]!.json<KubeObject>({ method: 'GET', path }).catch(ifGone)
  const ends = [hubs.one, hubs.two].map((plane) => ({ client: plane.client(), own: hubNamespace })) as [End, End]
  const before = async ({ side, method, path }: Write): Promise<void> => {
    if (method === 'DELETE' && held.test(path))
      await eventually(async () => {
        const object = await find(side, path)
        return !object || (object.metadata.finalizers ?? []).length > 0
      })
    if (method === 'POST' && path.endsWith('bindings'))
      await eventually(async () => (await find(side, `${path}/c`)) !== undefined)
    // Whoever follows a machine reads in its Cluster that it is paused.
    if (method === 'DELETE' && path.endsWith('/clusters/c'))
      assert.deepEqual((await sides[side]!.of(capi.machines, space).list()).items, [])
  }
  const mover = mortal(
    ends.map(({ client }) => client),
    { before },
  )
  await run(...ends).finally(mover.revive)
}

const ifGone = (error: unknown): undefined => {
  if (!isNotFound(error)) throw error
}

test('R3.72 R3.75 R3.77 controllers that write to what is paused, and are faster than whoever moves: those that put their finalizers back keep nothing at the source, or on the target when the move is given up, and those that begin a record on the target get the one that comes; nobody sees an AWSCluster being deleted', async (t) => {
  const { one, two, here, there } = hubs
  const { bindings } = await withSet(here, 'restless')
  const whole = await contents(here, 'restless')
  const they = await runRestless(t, here, 'restless', { finalizer: atSource })
  await runRestless(t, there, 'restless', { finalizer: 'example.com/target' })
  const theirs: [Resource<KubeObject>, string][] = [
    [Cluster, 'c'],
    [capi.machines, 'm'],
    [capi.resourceSets, 'base'],
  ]
  for (const [kind, name] of theirs)
    await eventually(async () => (await finalizersOf(here, kind, `restless/${name}`)).includes(atSource))

  const held = /\/(clusters|machines|clusterresourcesets)\/[^/]+$/
  const stopped = await interrupted([...moving('restless'), '--hub-namespace', hubNamespace], one, two, 'removing them')
  assert.equal(stopped.code, 130, stopped.err)
  await fromAfar('restless', held, (from, to) => runAbort(from, to, 'restless'))
  await eventually(async () => assert.deepEqual(await contents(there, 'restless'), []))
  assert.deepEqual(await contents(here, 'restless'), whole)

  await fromAfar('restless', held, (from, to) => runMove(from, to, 'restless', { checkAccount: false }))
  await eventually(async () => assert.deepEqual(await contents(here, 'restless'), []))
  const seen = ['Cluster/c', 'ClusterResourceSet/base', 'Machine/m']
  await eventually(() => assert.deepEqual([...they.sawLeaving()].toSorted(), seen))
  assert.deepEqual(await contents(there, 'restless'), whole)
  assert.deepEqual((await there.of(capi.bindings, 'restless').get('c'))['spec'], { bindings })
  assert.deepEqual(await finalizersOf(there, capi.machines, 'restless/m'), [atSource, 'example.com/target'])
  assert.deepEqual(await finalizersOf(there, AWSCluster, 'restless/c'), ['example.com/aws'])
  assert.equal((await there.of(Cluster, 'restless').get('c')).spec?.paused, undefined)
})

test('R3.72 an AWSCluster that gets a finalizer back each time is not deleted with it, for whoever put it there might remove a network: it is said, and the next run completes when they have stopped', async (t) => {
  const { one, two, here, there } = hubs
  await withSet(here, 'stubborn')
  const whole = await contents(here, 'stubborn')
  const they = await runRestless(t, here, 'stubborn', { finalizer: atSource, holdsAwsClusters: true })
  await runRestless(t, there, 'stubborn', { finalizer: 'example.com/target' })
  const run = (from: End, to: End): Promise<void> => runMove(from, to, 'stubborn', { checkAccount: false })
  await assert.rejects(fromAfar('stubborn', /\/awsclusters\/[^/]+$/, run), {
    message:
      /AWSCluster stubborn\/c is written to at the source again and again.*example.com\/source.*stop the controller/,
  })
  const { metadata } = await here.of(AWSCluster, 'stubborn').get('c')
  assert.equal(metadata.deletionTimestamp, undefined)
  assert.ok(!they.sawLeaving().has('AWSCluster/c'))

  await they.stop()
  await moved(moving('stubborn'), one, two)
  assert.deepEqual(await contents(there, 'stubborn'), whole)
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
