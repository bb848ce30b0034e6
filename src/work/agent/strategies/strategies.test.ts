import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eventually, startControlPlane, type ControlPlane } from '../../../../testkit/index.ts'
import { manifest, manifestCondition, quiet, startWorkScene } from '../../../../testkit/work-agent.ts'
import { AppliedManifestWork, installCrds, ManifestWork } from '../../../api/index.ts'
import { ConfigMap, resource, RoleBinding, Secret, type Unstructured } from '../../../kube/index.ts'
import type { ManifestConfig } from '../manifest.ts'

let plane: ControlPlane
before(async () => {
  plane = await startControlPlane({ controllerManager: false })
  await installCrds(plane.client(), [
    ManifestWork.crd({ conversion: 'none' }),
    AppliedManifestWork.crd({ conversion: 'none' }),
  ])
})
after(() => plane.stop())

const Deployment = resource({
  group: 'apps',
  version: 'v1',
  kind: 'Deployment',
  plural: 'deployments',
  namespaced: true,
})
const deployment = (name: string, image: string): Unstructured => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name, namespace: 'default' },
  spec: {
    replicas: 1,
    selector: { matchLabels: { app: name } },
    template: { metadata: { labels: { app: name } }, spec: { containers: [{ name: 'main', image }] } },
  },
})
const specOf = async (
  name: string,
): Promise<{ replicas: number; template: { spec: { containers: { image: string }[] } } }> =>
  (await plane.client().of(Deployment, 'default').get(name))['spec'] as Awaited<ReturnType<typeof specOf>>

const configured = (
  resourceName: string,
  name: string,
  updateStrategy: ManifestConfig['updateStrategy'],
): ManifestConfig => ({
  resourceIdentifier: { resource: resourceName, namespace: 'default', name },
  ...(updateStrategy && { updateStrategy }),
})

test('R1.52 Update adopts what exists and merges metadata; a roleRef that differs is replaced, an immutable field is explained', async (t) => {
  const scene = await startWorkScene(t, { hub: plane, cluster: 's1' })
  const maps = scene.local.of(ConfigMap, 'default')
  await maps.create({
    metadata: {
      name: 'theirs',
      labels: { theirs: 'label' },
      annotations: { theirs: 'note' },
      finalizers: ['test.lanyard.io/theirs'],
    },
    data: { old: 'x' },
  })
  await maps.create({ metadata: { name: 'frozen' }, immutable: true, data: { a: '0' } })
  const labelled = {
    ...manifest.configMap('default', 'theirs'),
    metadata: { name: 'theirs', namespace: 'default', labels: { ours: 'label' } },
  }
  await scene.create('adopt', [
    labelled,
    manifest.roleBinding('default', 'bound', 'view'),
    manifest.configMap('default', 'frozen'),
    {
      apiVersion: 'v1',
      kind: 'Secret',
      type: 'Opaque',
      metadata: { name: 'typed', namespace: 'default' },
      stringData: { a: 'b' },
    },
  ])
  const work = await scene.failed('adopt')

  const adopted = await maps.get('theirs')
  assert.deepEqual(adopted.data, { a: '1' })
  assert.deepEqual(adopted.metadata.labels, { theirs: 'label', ours: 'label' })
  assert.deepEqual(adopted.metadata.annotations, { theirs: 'note' })
  assert.deepEqual(adopted.metadata.finalizers, ['test.lanyard.io/theirs'])
  assert.match(
    manifestCondition(work, 2, 'Applied')?.message ?? '',
    /refuses the change: .*immutable.*; a field that cannot be changed/,
  )
  assert.equal(manifestCondition(work, 2, 'Available')?.status, 'True')

  await scene.change('adopt', (spec) => ({
    ...spec,
    workload: {
      manifests: [
        labelled,
        manifest.roleBinding('default', 'bound', 'edit'),
        {
          apiVersion: 'v1',
          kind: 'Secret',
          type: 'test.lanyard.io/other',
          metadata: { name: 'typed', namespace: 'default' },
          stringData: { a: 'c' },
        },
      ],
    },
  }))
  await scene.applied('adopt')
  assert.equal((await scene.local.of(RoleBinding, 'default').get('bound')).roleRef.name, 'edit')
  const secret = await scene.local.of(Secret, 'default').get('typed')
  assert.deepEqual([secret.type, secret.data], ['test.lanyard.io/other', { a: 'Yw==' }])
  assert.equal(await maps.find('frozen').then((m) => m?.data?.['a']), '0', 'it was never ours')
  await maps.patch('theirs', { merge: { metadata: { finalizers: null } } })
})

test('R1.52 CreateOnly makes what is missing and leaves alone what is there', async (t) => {
  const scene = await startWorkScene(t, { hub: plane, cluster: 's2' })
  const maps = scene.local.of(ConfigMap, 'default')
  await maps.create({ metadata: { name: 'there' }, data: { a: 'theirs' } })
  await scene.create('once', [manifest.configMap('default', 'there'), manifest.configMap('default', 'missing')], {
    manifestConfigs: [
      {
        resourceIdentifier: { resource: 'configmaps', namespace: '*', name: '*' },
        updateStrategy: { type: 'CreateOnly' },
      },
    ],
  })
  await scene.applied('once')
  assert.deepEqual((await maps.get('there')).data, { a: 'theirs' })
  assert.equal((await maps.get('there')).metadata.ownerReferences?.length, 1)
  await maps.patch('missing', { merge: { data: { a: 'changed' } } })
  await maps.delete('there')
  await eventually(async () => (await maps.get('there')).data?.['a'] === '1')
  assert.equal((await maps.get('missing')).data?.['a'], 'changed')
})

test('R1.52 ReadOnly neither makes, owns nor changes, but reports', async (t) => {
  const scene = await startWorkScene(t, { hub: plane, cluster: 's3' })
  const maps = scene.local.of(ConfigMap, 'default')
  await maps.create({ metadata: { name: 'looked-at' }, data: { colour: 'green' } })
  const config: ManifestConfig = {
    ...configured('configmaps', 'looked-at', { type: 'ReadOnly' }),
    feedbackRules: [{ type: 'JSONPaths', jsonPaths: [{ name: 'colour', path: '.data.colour' }] }],
  }
  await scene.create('look', [manifest.configMap('default', 'looked-at')], { manifestConfigs: [config] })
  const work = await scene.applied('look')
  assert.deepEqual(work.status?.resourceStatus?.manifests?.[0]?.statusFeedback?.values, [
    { name: 'colour', fieldValue: { type: 'String', string: 'green' } },
  ])
  const { data, metadata } = await maps.get('looked-at')
  assert.deepEqual([data, metadata.ownerReferences], [{ colour: 'green' }, undefined])

  await maps.delete('looked-at')
  const gone = await scene.failed('look')
  assert.equal(manifestCondition(gone, 0, 'Available')?.reason, 'ResourceNotAvailable')
  await scene.hub.of(ManifestWork, 's3').delete('look')
  await scene.deleted('look')
})

test('R1.52 ServerSideApply owns its fields alone, tells of conflicts, and takes over when forced', async (t) => {
  const scene = await startWorkScene(t, { hub: plane, cluster: 's4', userAgent: 'ssa-agent' })
  const maps = scene.local.of(ConfigMap, 'default')
  await maps.apply(
    { metadata: { name: 'shared', namespace: 'default' }, data: { a: 'theirs', other: 'kept' } },
    { fieldManager: 'them' },
  )
  const config = (force: boolean): ManifestConfig[] => [
    configured('configmaps', 'shared', { type: 'ServerSideApply', serverSideApply: { force } }),
  ]
  await scene.create('ssa', [manifest.configMap('default', 'shared')], { manifestConfigs: config(false) })
  const work = await scene.failed('ssa')
  assert.match(
    manifestCondition(work, 0, 'Applied')?.message ?? '',
    /others own fields of it: \.data\.a \(conflict with "them"/,
  )

  await scene.change('ssa', (spec) => ({ ...spec, manifestConfigs: config(true) }))
  await scene.applied('ssa')
  assert.deepEqual((await maps.get('shared')).data, { a: '1', other: 'kept' })
  await maps.patch('shared', { merge: { data: { a: 'drifted', other: 'theirs' } } })
  await eventually(async () => (await maps.get('shared')).data?.['a'] === '1')
  assert.equal((await maps.get('shared')).data?.['other'], 'theirs')
  await quiet(plane, 'ssa-agent')
  const since = new Date()
  await maps.patch('shared', { merge: { metadata: { annotations: { note: 'x' } } } })
  await quiet(plane, 'ssa-agent')
  assert.equal((await plane.requestsBy('ssa-agent', { since })).writes, 0)
})

test('R1.52 ignoreFields leave to others what they changed, always or until the manifest changes', async (t) => {
  const scene = await startWorkScene(t, { hub: plane, cluster: 's5' })
  const deployments = scene.local.of(Deployment, 'default')
  const ssa = (name: string, condition: 'OnSpokePresent' | 'OnSpokeChange', fields: object): ManifestConfig => ({
    resourceIdentifier: { group: 'apps', resource: 'deployments', namespace: 'default', name },
    updateStrategy: {
      type: 'ServerSideApply',
      serverSideApply: { force: true, ignoreFields: [{ condition, ...fields }] },
    },
  })
  const manifestConfigs = [
    ssa('present', 'OnSpokePresent', { jsonPointers: ['/spec/replicas'] }),
    ssa('change', 'OnSpokeChange', { jsonPaths: ['.spec.replicas'] }),
    ssa('jq', 'OnSpokePresent', { jqPathExpressions: ['.spec.replicas'] }),
  ]
  const manifests = (image: string): Unstructured[] =>
    ['present', 'change', 'jq'].map((name) => deployment(name, image))
  await scene.create('ignore', manifests('one'), { manifestConfigs })
  const work = await scene.failed('ignore')
  assert.equal(manifestCondition(work, 0, 'Applied')?.status, 'True')
  assert.equal(manifestCondition(work, 2, 'Applied')?.reason, 'AppliedManifestSSAIgnoreFieldError')

  for (const name of ['present', 'change'])
    await deployments.patch(name, { merge: { spec: { replicas: 4 } } }, { fieldManager: 'scaler' })
  for (const name of ['present', 'change'])
    await deployments.patch(name, {
      json: [{ op: 'replace', path: '/spec/template/spec/containers/0/image', value: 'drift' }],
    })
  for (const name of ['present', 'change'])
    await eventually(async () => {
      const spec = await specOf(name)
      assert.deepEqual([spec.replicas, spec.template.spec.containers[0]?.image], [4, 'one'])
    })

  await scene.change('ignore', (spec) => ({ ...spec, workload: { manifests: manifests('two') } }))
  await eventually(async () => {
    const [present, change] = [await specOf('present'), await specOf('change')]
    assert.deepEqual(
      [present.template.spec.containers[0]?.image, change.template.spec.containers[0]?.image],
      ['two', 'two'],
    )
    assert.deepEqual([present.replicas, change.replicas], [4, 1])
  })
})
