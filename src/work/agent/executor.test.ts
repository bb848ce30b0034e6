import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eventually, startControlPlane, type ControlPlane } from '../../../testkit/index.ts'
import { manifest, manifestCondition, startWorkScene } from '../../../testkit/work-agent.ts'
import { AppliedManifestWork, installCrds, ManifestWork } from '../../api/index.ts'
import { ClusterRole, ClusterRoleBinding, ConfigMap, Role, RoleBinding } from '../../kube/index.ts'
import { executorUser, workAgentExecutor, type Executor } from '../contract.ts'

let plane: ControlPlane
before(async () => {
  plane = await startControlPlane({ controllerManager: false, audit: false })
  await installCrds(plane.client(), [
    ManifestWork.crd({ conversion: 'none' }),
    AppliedManifestWork.crd({ conversion: 'none' }),
  ])
})
after(() => plane.stop())

const account = { namespace: 'default', name: 'deployer' }
const executor: Executor = { subject: { type: 'ServiceAccount', serviceAccount: account } }

test('R1.52 an executor delivers what it may, is told what it may not, and cannot give rights that it lacks', async (t) => {
  const scene = await startWorkScene(t, { hub: plane, cluster: 'e1' })
  const { local } = scene
  const rbac = { apiGroup: 'rbac.authorization.k8s.io' }
  const verbs = ['get', 'create', 'update', 'patch', 'delete']
  await local.of(Role, 'default').create({
    metadata: { name: 'deployer' },
    rules: [
      { apiGroups: [''], resources: ['configmaps'], verbs },
      { apiGroups: ['rbac.authorization.k8s.io'], resources: ['roles'], verbs },
    ],
  })
  await local.of(RoleBinding, 'default').create({
    metadata: { name: 'deployer' },
    roleRef: { ...rbac, kind: 'Role', name: 'deployer' },
    subjects: [{ kind: 'User', ...rbac, name: executorUser(account) }],
  })
  const role = (name: string, resource: string) => ({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'Role',
    metadata: { name, namespace: 'default' },
    rules: [{ apiGroups: [''], resources: [resource], verbs: ['get'] }],
  })
  await scene.create(
    'by-deployer',
    [
      manifest.configMap('default', 'mine'),
      manifest.clusterRole('not-mine'),
      role('fair', 'configmaps'),
      role('too-much', 'secrets'),
    ],
    { executor },
  )
  const work = await scene.failed('by-deployer')
  const says = (ordinal: number): string => manifestCondition(work, ordinal, 'Applied')?.message ?? ''
  assert.equal(manifestCondition(work, 0, 'Applied')?.status, 'True')
  assert.match(says(1), /system:serviceaccount:default:deployer may not get clusterroles\.rbac\.authorization\.k8s\.io/)
  assert.equal(manifestCondition(work, 2, 'Applied')?.status, 'True')
  assert.match(says(3), /may not give these rights: .*attempting to grant RBAC permissions not currently held/s)
  assert.equal(await local.of(ClusterRole).find('not-mine'), undefined)
  assert.equal(await local.of(Role, 'default').find('too-much'), undefined)

  // What it may not give, it may not give by a change either.
  await scene.change('by-deployer', (spec) => ({
    ...spec,
    workload: { manifests: [manifest.configMap('default', 'mine'), role('fair', 'secrets')] },
  }))
  assert.match(
    manifestCondition(await scene.failed('by-deployer'), 1, 'Applied')?.message ?? '',
    /may not give these rights/,
  )
  assert.deepEqual((await local.of(Role, 'default').get('fair')).rules?.[0]?.resources, ['configmaps'])

  await local.of(Role, 'default').patch('deployer', {
    json: [{ op: 'add', path: '/rules/-', value: { apiGroups: [''], resources: ['secrets'], verbs: ['get'] } }],
  })
  await scene.applied('by-deployer')
})

test('R4.23 a work whose executor is the work agent itself is delivered with the rights of the agent', async (t) => {
  const scene = await startWorkScene(t, { hub: plane, cluster: 'e2' })
  await scene.create('by-agent', [manifest.clusterRole('agents-own')], { executor: workAgentExecutor })
  await scene.applied('by-agent')
})

test('R1.52 works that name no executor have the default one, and what it may not do is tried again', async (t) => {
  const scene = await startWorkScene(t, { hub: plane, cluster: 'e3', executorDefault: executor })
  await scene.local.of(ConfigMap, 'default').delete('mine')
  await scene.create('defaulted', [manifest.configMap('default', 'mine'), manifest.configMap('kube-system', 'theirs')])
  const work = await scene.failed('defaulted')
  assert.equal(manifestCondition(work, 0, 'Applied')?.status, 'True')
  assert.match(manifestCondition(work, 1, 'Applied')?.message ?? '', /may not get configmaps in namespace kube-system/)
  assert.equal(manifestCondition(work, 1, 'Available')?.status, 'False')
  await eventually(() =>
    /lanyard_work_apply_failures_total\{kind="ConfigMap"\} ([2-9]|\d\d)/.test(scene.metrics.text()),
  )
})

test('R1.52 a kind that the agent itself may not touch fails alone, with what is missing; the rest is applied', async (t) => {
  const admin = plane.client()
  const rbac = { apiGroup: 'rbac.authorization.k8s.io' }
  const verbs = ['*']
  await admin.of(ClusterRole).create({
    metadata: { name: 'small-agent' },
    rules: [
      { apiGroups: [''], resources: ['configmaps'], verbs },
      { apiGroups: ['work.open-cluster-management.io'], resources: ['*'], verbs },
    ],
  })
  await admin.of(ClusterRoleBinding).create({
    metadata: { name: 'small-agent' },
    roleRef: { ...rbac, kind: 'ClusterRole', name: 'small-agent' },
    subjects: [{ kind: 'User', ...rbac, name: 'small-agent' }],
  })
  const scene = await startWorkScene(t, { hub: plane, cluster: 'e4', localUser: 'small-agent' })
  await scene.create('partly', [manifest.clusterRole('forbidden'), manifest.configMap('default', 'allowed')])
  const work = await scene.failed('partly')
  assert.match(
    manifestCondition(work, 0, 'Applied')?.message ?? '',
    /Forbidden: .*cannot create resource "clusterroles".*give the agent that right/,
  )
  assert.equal(manifestCondition(work, 0, 'Available')?.reason, 'FetchingResourceFailed')
  assert.equal(manifestCondition(work, 1, 'Applied')?.status, 'True')
  // Protected all the same.
  await admin.of(ConfigMap, 'default').delete('allowed')
  await eventually(() => admin.of(ConfigMap, 'default').get('allowed'))
})
