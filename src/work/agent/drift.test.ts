import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eventually, startControlPlane, type ControlPlane } from '../../../testkit/index.ts'
import { manifest, manifestCondition, quiet, startWorkScene } from '../../../testkit/work-agent.ts'
import { AppliedManifestWork, installCrds, ManifestWork } from '../../api/index.ts'
import {
  ClusterRole,
  ConfigMap,
  Namespace,
  resource,
  RoleBinding,
  ServiceAccount,
  type Unstructured,
} from '../../kube/index.ts'

let plane: ControlPlane
before(async () => {
  plane = await startControlPlane({ controllerManager: false })
  await installCrds(plane.client(), [
    ManifestWork.crd({ conversion: 'none' }),
    AppliedManifestWork.crd({ conversion: 'none' }),
  ])
})
after(() => plane.stop())

const Service = resource({
  group: '',
  version: 'v1',
  kind: 'Service',
  plural: 'services',
  namespaced: true,
})
const Deployment = resource({
  group: 'apps',
  version: 'v1',
  kind: 'Deployment',
  plural: 'deployments',
  namespaced: true,
})
const deployment = (name: string, replicas?: number): Unstructured => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name, namespace: 'default' },
  spec: {
    ...(replicas !== undefined && { replicas }),
    selector: { matchLabels: { app: name } },
    template: { metadata: { labels: { app: name } }, spec: { containers: [{ name: 'main', image: 'none' }] } },
  },
})

test('R4.21 edits, deletions and stripped labels of delivered objects are repaired as they happen', async (t) => {
  const scene = await startWorkScene(t, { hub: plane, cluster: 'd1' })
  const { local } = scene
  await scene.create('rbac', [
    manifest.namespace('shop'),
    manifest.clusterRole('reader'),
    manifest.roleBinding('shop', 'readers', 'reader'),
    manifest.configMap('shop', 'settings'),
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'robot', namespace: 'shop' } },
  ])
  await scene.applied('rbac')
  const roles = local.of(ClusterRole)
  const isRight = async (): Promise<boolean> => {
    const { rules, metadata } = await roles.get('reader')
    return (
      rules?.length === 1 &&
      rules[0]?.verbs.join() === 'get' &&
      metadata.labels?.['test.lanyard.io/is'] === 'reader' &&
      metadata.ownerReferences?.length === 1
    )
  }

  await roles.patch('reader', { json: [{ op: 'replace', path: '/rules/0/verbs', value: ['*'] }] })
  await eventually(isRight)
  await roles.patch('reader', {
    json: [{ op: 'add', path: '/rules/-', value: { apiGroups: [''], resources: ['secrets'], verbs: ['get'] } }],
  })
  await eventually(isRight)
  await roles.patch('reader', { merge: { metadata: { labels: { 'test.lanyard.io/is': null, theirs: 'kept' } } } })
  await eventually(isRight)
  assert.equal((await roles.get('reader')).metadata.labels?.['theirs'], 'kept')
  await roles.patch('reader', { merge: { metadata: { ownerReferences: null } } })
  await eventually(isRight)
  await roles.delete('reader')
  await eventually(isRight)

  const bindings = local.of(RoleBinding, 'shop')
  await bindings.patch('readers', {
    merge: { subjects: [{ kind: 'User', name: 'mallory', apiGroup: 'rbac.authorization.k8s.io' }] },
  })
  await eventually(async () => (await bindings.get('readers')).subjects?.[0]?.name === 'ada')
  // Somebody made it anew with another role: a roleRef cannot be changed in place.
  const stolen = await bindings.get('readers')
  await bindings.delete('readers')
  await bindings
    .create({ metadata: { name: 'readers' }, roleRef: { ...stolen.roleRef, name: 'cluster-admin' } })
    .catch(() => {}) // the agent may have been quicker
  await eventually(async () => (await bindings.get('readers')).roleRef.name === 'reader')

  const maps = local.of(ConfigMap, 'shop')
  await maps.patch('settings', { merge: { data: { more: 'x' }, binaryData: { b: 'eA==' } } })
  await eventually(async () => {
    const { data, binaryData } = await maps.get('settings')
    assert.deepEqual([data, binaryData], [{ a: '1' }, undefined])
  })
  await local.of(ServiceAccount, 'shop').delete('robot')
  await eventually(() => local.of(ServiceAccount, 'shop').get('robot'))

  assert.match(scene.metrics.text(), /lanyard_work_drift_repairs_total\{kind="ClusterRole"\} [5-9]/)
  assert.match(scene.metrics.text(), /lanyard_work_works\{state="applied"\} 1/)
})

test('R4.21 a change while the agent is away is repaired when it is back', async (t) => {
  const scene = await startWorkScene(t, { hub: plane, cluster: 'd2' })
  const maps = scene.local.of(ConfigMap, 'default')
  await scene.create('away', [manifest.configMap('default', 'away-1'), manifest.configMap('default', 'away-2')])
  await scene.applied('away')
  await scene.stop()
  await maps.delete('away-1')
  await maps.patch('away-2', { merge: { data: { a: 'changed' } } })
  scene.start()
  await eventually(
    async () => (await maps.get('away-1')).data?.['a'] === '1' && (await maps.get('away-2')).data?.['a'] === '1',
  )
})

test('R1.52 what the server and controllers fill in survives, and costs no writes', async (t) => {
  const scene = await startWorkScene(t, { hub: plane, cluster: 'd3', userAgent: 'filled-agent' })
  const { local } = scene
  const service = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'front', namespace: 'default' },
    spec: { selector: { app: 'front' }, ports: [{ port: 80 }], type: 'NodePort' },
  }
  await scene.create('filled', [
    service,
    deployment('web'),
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'puller', namespace: 'default' } },
  ])
  await scene.applied('filled')
  const before = await local.of(Service, 'default').get('front')

  await local.of(ServiceAccount, 'default').patch('puller', { merge: { secrets: [{ name: 'made-by-a-controller' }] } })
  await local.of(Deployment, 'default').patch('web', { merge: { spec: { replicas: 5 } } }, { subresource: 'scale' })
  await scene.change('filled', (spec) => {
    const [first, ...rest] = spec.workload!.manifests! as Unstructured[]
    return {
      ...spec,
      workload: { manifests: [{ ...first!, metadata: { ...first!.metadata, labels: { new: 'label' } } }, ...rest] },
    }
  })
  await eventually(async () => (await local.of(Service, 'default').get('front')).metadata.labels?.['new'] === 'label')
  await scene.applied('filled')
  const specOf = (object: Unstructured): unknown => object['spec']
  assert.deepEqual(specOf(await local.of(Service, 'default').get('front')), specOf(before))
  assert.equal((await local.of(ServiceAccount, 'default').get('puller')).secrets?.length, 1)
  assert.equal((specOf(await local.of(Deployment, 'default').get('web')) as { replicas: number }).replicas, 5)

  // A status that changes all the time is nobody's drift.
  await quiet(plane, 'filled-agent')
  const since = new Date()
  for (let i = 1; i <= 5; i++)
    await local
      .of(Deployment, 'default')
      .patch('web', { merge: { status: { replicas: i, observedGeneration: 1 } } }, { subresource: 'status' })
  await quiet(plane, 'filled-agent')
  assert.equal((await plane.requestsBy('filled-agent', { since })).writes, 0)

  // An addition to the spec is.
  await local.of(Deployment, 'default').patch('web', { merge: { spec: { template: { spec: { hostNetwork: true } } } } })
  await eventually(async () => {
    const spec = specOf(await local.of(Deployment, 'default').get('web')) as {
      template: { spec: { hostNetwork?: boolean } }
    }
    return spec.template.spec.hostNetwork === undefined
  })
})

test('R4.21 the agent does not fight another controller for ever, and says who it is', async (t) => {
  const scene = await startWorkScene(t, { hub: plane, cluster: 'd4', repairsPerMinute: 4 })
  const maps = scene.local.of(ConfigMap, 'default')
  await scene.create('fought', [manifest.configMap('default', 'fought'), manifest.configMap('default', 'calm')])
  await scene.applied('fought')

  const rival = async (): Promise<boolean> => {
    const { data } = await maps.get('fought')
    if (data?.['a'] === '1')
      await maps.patch('fought', { merge: { data: { a: 'rival' } } }, { fieldManager: 'rival-controller' })
    const work = await scene.work('fought')
    return manifestCondition(work!, 0, 'Applied')?.status === 'False'
  }
  await eventually(rival)
  const work = await scene.failed('fought')
  assert.match(
    manifestCondition(work, 0, 'Applied')?.message ?? '',
    /rival-controller changes it back: it was repaired 4 times in a minute/,
  )
  assert.equal(manifestCondition(work, 1, 'Applied')?.status, 'True')
  // The others are still protected.
  await maps.delete('calm')
  await eventually(() => maps.get('calm'))
})

test('R1.52 watches are as narrow as can be, and go when no work needs them', async (t) => {
  const scene = await startWorkScene(t, { hub: plane, cluster: 'd5' })
  const watches = (): number => Number(/lanyard_work_watches (\d+)/.exec(scene.metrics.text())?.[1])
  await scene.create('few', [manifest.configMap('default', 'few-1'), manifest.configMap('default', 'few-2')])
  await scene.applied('few')
  await eventually(() => watches() === 2)
  await scene.local.of(Namespace).create({ metadata: { name: 'd5-more' } })
  const many = Array.from({ length: 6 }, (_, i) => manifest.configMap(i % 2 ? 'default' : 'd5-more', `many-${i}`))
  await scene.create('many', many)
  await scene.applied('many')
  await eventually(() => watches() === 2) // one for each namespace now
  await scene.local.of(ConfigMap, 'default').delete('few-1')
  await eventually(() => scene.local.of(ConfigMap, 'default').get('few-1'))
  await scene.hub.of(ManifestWork, 'd5').deleteAll()
  await scene.deleted('few')
  await scene.deleted('many')
  await eventually(() => watches() === 0)
})
