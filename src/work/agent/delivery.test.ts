import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eventually, startControlPlane, type ControlPlane } from '../../../testkit/index.ts'
import { manifest, manifestCondition, quiet, startWorkScene } from '../../../testkit/work-agent.ts'
import { AppliedManifestWork, finalizer, installCrds, ManifestWork } from '../../api/index.ts'
import { ClusterRole, ClusterRoleBinding, ConfigMap, CustomResourceDefinition, Namespace } from '../../kube/index.ts'

let hub: ControlPlane
let managed: ControlPlane
before(async () => {
  ;[hub, managed] = await Promise.all([
    startControlPlane({ controllerManager: false }),
    startControlPlane({ controllerManager: false }),
  ])
  await installCrds(hub.client(), [ManifestWork.crd({ conversion: 'none' })])
  await installCrds(managed.client(), [AppliedManifestWork.crd({ conversion: 'none' })])
})
after(() => Promise.all([hub.stop(), managed.stop()]))

test('R1.52 a work of a namespace, a ClusterRole and a ConfigMap is applied in an order that works, and reported', async (t) => {
  const scene = await startWorkScene(t, { hub, managed, cluster: 'c1' })

  await scene.create('base', [
    manifest.configMap('shop', 'settings'),
    manifest.clusterRole('shop-reader'),
    manifest.namespace('shop'),
  ])
  const work = await scene.applied('base')

  const settings = await scene.local.of(ConfigMap, 'shop').get('settings')
  assert.deepEqual(settings.data, { a: '1' })
  assert.ok(work.metadata.finalizers?.includes(finalizer.manifestWork))
  const metas = work.status?.resourceStatus?.manifests?.map(({ resourceMeta: m }) => [
    m.ordinal,
    m.resource,
    m.namespace,
    m.name,
  ])
  assert.deepEqual(metas, [
    [0, 'configmaps', 'shop', 'settings'],
    [1, 'clusterroles', undefined, 'shop-reader'],
    [2, 'namespaces', undefined, 'shop'],
  ])
  const said = work.status?.conditions?.map(({ type, status, reason }) => [type, status, reason])
  assert.deepEqual(said, [
    ['Applied', 'True', 'AppliedManifestWorkComplete'],
    ['Available', 'True', 'ResourcesAvailable'],
  ])
  assert.equal(manifestCondition(work, 1, 'Applied')?.reason, 'AppliedManifestComplete')

  const record = await scene.record('base')
  assert.equal(record?.spec.manifestWorkName, 'base')
  const recorded = await eventually(async () => {
    const refs = (await scene.record('base'))?.status?.appliedResources
    return refs?.every(({ uid }) => uid) && refs
  })
  assert.equal(recorded?.length, 3)
  assert.equal(settings.metadata.ownerReferences?.[0]?.uid, record?.metadata.uid)
  assert.equal(settings.metadata.ownerReferences?.[0]?.controller, undefined)
})

test('R1.52 what leaves a work is removed, and all of it goes with the work, also when the agent was away meanwhile', async (t) => {
  const scene = await startWorkScene(t, { hub, managed, cluster: 'c2' })
  const maps = scene.local.of(ConfigMap, 'default')
  await scene.create('two', [manifest.configMap('default', 'stays'), manifest.configMap('default', 'leaves')])
  await scene.applied('two')

  await scene.change('two', (spec) => ({ ...spec, workload: { manifests: [manifest.configMap('default', 'stays')] } }))
  await eventually(async () => (await maps.find('leaves')) === undefined)
  await scene.applied('two')
  assert.ok(await maps.find('stays'))

  await scene.stop()
  await scene.hub.of(ManifestWork, 'c2').delete('two')
  assert.ok(await scene.work('two'), 'the finalizer holds it')
  scene.start()
  await scene.deleted('two')
  assert.equal(await maps.find('stays'), undefined)
  assert.equal(await scene.record('two'), undefined)
})

test('R1.52 a kind that is not served yet is applied when its CRD appears, without a restart', async (t) => {
  const scene = await startWorkScene(t, { hub, managed, cluster: 'c3' })
  const widget = {
    apiVersion: 'test.lanyard.io/v1',
    kind: 'Widget',
    metadata: { name: 'w1', namespace: 'default' },
    spec: { size: 1 },
  }
  await scene.create('early', [widget, manifest.configMap('default', 'beside')])
  const early = await scene.failed('early')
  assert.match(manifestCondition(early, 0, 'Applied')?.message ?? '', /does not serve Widget of test\.lanyard\.io\/v1/)
  assert.equal(manifestCondition(early, 1, 'Applied')?.status, 'True')

  await scene.local.of(CustomResourceDefinition).create(widgets)
  await scene.applied('early')

  // The CRD and its objects in one work.
  await scene.hub.of(ManifestWork, 'c3').delete('early')
  await scene.deleted('early')
  await scene.local.of(CustomResourceDefinition).delete(widgets.metadata.name)
  await scene.create('both', [
    widget,
    { ...widgets, apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' },
  ])
  await scene.applied('both')
})

test('R1.52 broken manifests say what is wrong with them, and the rest of the work is applied', async (t) => {
  const scene = await startWorkScene(t, { hub, managed, cluster: 'c4' })
  await scene.create('mixed', [
    manifest.configMap('default', 'good'),
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { generateName: 'x-', namespace: 'default' } },
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'homeless' } },
    manifest.configMap('default', 'good', { a: '2' }),
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'Not A Name', namespace: 'default' } },
    manifest.configMap('no-such-namespace', 'lost'),
    {
      apiVersion: 'work.open-cluster-management.io/v1',
      kind: 'AppliedManifestWork',
      metadata: { name: 'forged' },
      spec: { manifestWorkName: 'x' },
    },
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'bad-data', namespace: 'default' }, data: 'text' },
    manifest.clusterRole('good-role'),
  ])
  const work = await scene.failed('mixed')
  const says = (ordinal: number): string => manifestCondition(work, ordinal, 'Applied')?.message ?? ''
  assert.equal(manifestCondition(work, 0, 'Applied')?.status, 'True')
  assert.match(says(1), /generateName/)
  assert.match(says(2), /add metadata\.namespace/)
  assert.match(says(3), /same object as manifest 0/)
  assert.match(says(4), /Invalid/)
  assert.match(says(5), /namespaces "no-such-namespace" not found/)
  assert.match(says(6), /record that the agent itself keeps/)
  assert.match(says(7), /BadRequest|Invalid/)
  assert.equal(manifestCondition(work, 8, 'Applied')?.status, 'True')
  assert.match(work.status?.conditions?.[0]?.message ?? '', /^7 of 9 manifests failed: manifest 1 \(ConfigMap\)/)
  assert.deepEqual((await scene.local.of(ConfigMap, 'default').get('good')).data, { a: '1' })
  assert.ok(await scene.local.of(ClusterRole).find('good-role'))

  // What was missing comes: nobody has to touch the work.
  await scene.local.of(Namespace).create({ metadata: { name: 'no-such-namespace' } })
  await eventually(() => scene.local.of(ConfigMap, 'no-such-namespace').get('lost'))
})

test('R1.52 in a steady state the agent asks for nothing and writes nothing, and after a restart it writes nothing', async (t) => {
  const scene = await startWorkScene(t, { hub, managed, cluster: 'c5', userAgent: 'steady-agent' })
  const role = { ...manifest.clusterRole('steady-role') }
  await scene.create('steady', [
    manifest.namespace('steady'),
    manifest.configMap('steady', 'settings'),
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'password', namespace: 'steady' },
      stringData: { word: 'x' },
    },
    role,
    manifest.roleBinding('steady', 'readers', 'steady-role'),
  ])
  await scene.applied('steady')
  await quiet(managed, 'steady-agent')
  await quiet(hub, 'steady-agent')

  const since = new Date()
  // Somebody else's objects of the same kinds are no concern of ours.
  for (let i = 0; i < 20; i++) await scene.local.of(ConfigMap, 'default').create({ metadata: { name: `other-${i}` } })
  await scene.stop()
  scene.start()
  await scene.create('marker', [manifest.configMap('default', 'marker')])
  await scene.applied('marker')
  await quiet(managed, 'steady-agent')

  const isOfSteady = (name: string | undefined): boolean => !name?.includes('marker')
  for (const plane of [hub, managed]) {
    const { entries } = await plane.requestsBy('steady-agent', { since })
    const writes = entries.filter(({ verb, name }) => !['get', 'list', 'watch'].includes(verb) && isOfSteady(name))
    assert.deepEqual(
      writes.map(({ verb, uri }) => `${verb} ${uri}`),
      [],
    )
  }
  assert.equal(
    (await scene.local.of(ConfigMap, 'default').list()).items.filter((m) => m.metadata.name?.startsWith('other-'))
      .length,
    20,
  )
})

const widgets = {
  metadata: { name: 'widgets.test.lanyard.io' },
  spec: {
    group: 'test.lanyard.io',
    names: { kind: 'Widget', plural: 'widgets' },
    scope: 'Namespaced' as const,
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
}

test('R1.52 a kind that disappears and returns is reported, and delivered again', async (t) => {
  const scene = await startWorkScene(t, { hub, managed, cluster: 'c6' })
  const crds = scene.local.of(CustomResourceDefinition)
  const gadgets = {
    metadata: { name: 'gadgets.test.lanyard.io' },
    spec: { ...widgets.spec, names: { kind: 'Gadget', plural: 'gadgets' } },
  }
  await crds.create(gadgets)
  const gadget = { apiVersion: 'test.lanyard.io/v1', kind: 'Gadget', metadata: { name: 'g1', namespace: 'default' } }
  await scene.create('gadget', [gadget, manifest.configMap('default', 'beside-gadget')])
  await scene.applied('gadget')
  await crds.delete(gadgets.metadata.name)
  const gone = await scene.failed('gadget')
  await eventually(async () =>
    /does not serve Gadget/.test(manifestCondition((await scene.work('gadget'))!, 0, 'Applied')?.message ?? ''),
  )
  assert.equal(manifestCondition(gone, 1, 'Applied')?.status, 'True')
  await eventually(async () => (await crds.find(gadgets.metadata.name)) === undefined)
  await crds.create(gadgets)
  await scene.applied('gadget')
})

test('R1.52 an agent that may not keep its records says so on the work, and applies nothing', async (t) => {
  const scene = await startWorkScene(t, { hub, managed, cluster: 'c7', localUser: 'blind' })
  const rbac = { apiGroup: 'rbac.authorization.k8s.io' }
  await scene.local.of(ClusterRole).create({
    metadata: { name: 'blind' },
    rules: [{ apiGroups: ['*'], resources: ['*'], verbs: ['get', 'list', 'watch'] }],
  })
  await scene.local.of(ClusterRoleBinding).create({
    metadata: { name: 'blind' },
    roleRef: { ...rbac, kind: 'ClusterRole', name: 'blind' },
    subjects: [{ kind: 'User', ...rbac, name: 'blind' }],
  })
  await scene.create('refused', [manifest.configMap('default', 'refused')])
  const work = await scene.failed('refused')
  assert.match(work.status?.conditions?.[0]?.message ?? '', /cannot be recorded.*Forbidden/)
})
