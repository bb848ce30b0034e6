import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { accept, eventually, sendTo, startAgent, startControlPlane, type ControlPlane } from '../../testkit/index.ts'
import { inventory } from '../../testkit/inventory.ts'
import { applyManifests, kubeconfigOfAccount } from '../../testkit/operator.ts'
import { mustRun } from '../../testkit/program.ts'
import { startRunner, type Runner } from '../../testkit/runner/index.ts'
import {
  ClusterManager,
  ManagedCluster,
  ManagedClusterAddOn,
  ManagedServiceAccount,
  ManifestWork,
} from '../api/index.ts'
import { ClusterRole, ConfigMap, Namespace, Secret, SubjectAccessReview } from '../kube/index.ts'
import { findCondition, isTrue } from '../runtime/index.ts'
import { hubInstall } from './install/index.ts'
import { Deployment } from './objects.ts'

let hub: ControlPlane
let managed: ControlPlane
let runner: Runner
before(async () => {
  ;[hub, managed] = await Promise.all([startControlPlane(), startControlPlane({ audit: false })])
  runner = await startRunner(hub)
})
after(async () => {
  await runner?.stop()
  await Promise.all([hub?.stop(), managed?.stop()])
})

const patience = { timeoutMs: 120_000 }
let untouched: string[]
/** Kubernetes itself removes certificate requests, an hour after they were answered. */
const objects = async (): Promise<string[]> =>
  (await inventory(hub)).filter((one) => !one.startsWith('certificatesigningrequests'))

/** What one account was refused, as `verb resource`. */
const refusals = async (user: string): Promise<string[]> => {
  const { entries } = await hub.requestsBy({ user: `system:serviceaccount:${user}` })
  assert.ok(entries.length > 0, `${user} asked for nothing`)
  return entries.filter(({ code }) => code === 403).map(({ verb, uri }) => `${verb} ${uri}`)
}

test('R1.58 the hub does all its work with the rights of its own account: it joins, approves, admits, converts, denies and removes, and is refused nothing', async () => {
  await applyManifests(hub, hubInstall())
  await sendTo(managed, hub)
  const admin = hub.client()
  await eventually(async () => {
    const { status } = await admin.of(Deployment, 'open-cluster-management').get('cluster-manager')
    assert.equal(status?.availableReplicas, 1)
  }, patience)
  untouched = await objects()
  await admin.of(ClusterManager).create({
    metadata: { name: 'cluster-manager' },
    spec: {
      registrationConfiguration: {
        autoApproveUsers: ['bootstrap'],
        featureGates: [{ feature: 'ManagedClusterAutoApproval', mode: 'Enable' }],
      },
    },
  })
  await eventually(async () => {
    const manager = await admin.of(ClusterManager).get('cluster-manager')
    assert.equal(findCondition(manager, 'HubRegistrationDegraded')?.status, 'False', JSON.stringify(manager.status))
    assert.equal(findCondition(manager, 'Progressing')?.status, 'False')
  }, patience)

  // One cluster needs no person; its agent gets works, and both versions of add-ons are served.
  const agent = await startAgent(managed, 'c1', { args: ['--service-accounts'] })
  await eventually(async () => {
    const cluster = await admin.of(ManagedCluster).get('c1')
    for (const type of ['HubAcceptedManagedCluster', 'ManagedClusterJoined', 'ManagedClusterConditionAvailable'])
      assert.ok(isTrue(cluster, type), JSON.stringify(cluster.status))
  }, patience)
  const manifest = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'a', namespace: 'default' },
    data: { b: 'c' },
  }
  await admin.of(ManifestWork, 'c1').create({
    metadata: { name: 'w', namespace: 'c1' },
    spec: { workload: { manifests: [manifest] } },
  })
  await eventually(async () => assert.ok(await managed.client().of(ConfigMap, 'default').find('a')), patience)
  const bad = { metadata: { name: 'bad', namespace: 'c1' }, spec: { workload: { manifests: [{}] } } }
  await assert.rejects(admin.of(ManifestWork, 'c1').create(bad), /manifest/)
  const old = ManagedClusterAddOn.versions.v1alpha1
  await admin.of(old, 'c1').create({ metadata: { name: 'x', namespace: 'c1' }, spec: { installNamespace: 'here' } })
  const seen = await admin.of(ManagedClusterAddOn.versions.v1beta1, 'c1').get('x')
  assert.equal(seen.metadata.annotations?.['addon.open-cluster-management.io/v1alpha1-install-namespace'], 'here')

  // It gives the add-on for service accounts its rights, watches over their tokens, and removes both.
  const [addOns, accounts] = [admin.of(ManagedClusterAddOn, 'c1'), admin.of(ManagedServiceAccount, 'c1')]
  await addOns.create({ metadata: { name: 'managed-serviceaccount', namespace: 'c1' } })
  await accounts.create({ metadata: { name: 'robot', namespace: 'c1' } })
  await eventually(async () => assert.ok(isTrue(await accounts.get('robot'), 'TokenReported')), patience)
  await admin.of(Secret, 'c1').delete('robot')
  await eventually(async () => assert.ok(await admin.of(Secret, 'c1').find('robot')), patience)
  await accounts.delete('robot')
  await addOns.delete('managed-serviceaccount')
  await eventually(async () => {
    assert.equal(await admin.of(Secret, 'c1').find('robot'), undefined)
    assert.equal(await admin.of(ManifestWork, 'c1').find('addon-managed-serviceaccount-deploy-0'), undefined)
  }, patience)

  // It is denied, let in again, and deleted; nothing of it stays.
  const clusters = admin.of(ManagedCluster)
  await clusters.patch('c1', { merge: { spec: { hubAcceptsClient: false } } })
  await eventually(async () => {
    const state = findCondition(await clusters.get('c1'), 'HubAcceptedManagedCluster')
    assert.equal(state?.status, 'False')
  }, patience)
  await accept(hub, 'c1')
  await eventually(async () => {
    assert.ok(isTrue(await clusters.get('c1'), 'HubAcceptedManagedCluster'))
  }, patience)
  // It leaves for good. One that waits to be let in is none of the job's business.
  await agent.process.kill()
  await admin.of(ManifestWork, 'c1').delete('w')
  await admin.of(ManifestWork, 'c1').patch('w', { merge: { metadata: { finalizers: null } } })
  await clusters.create({ metadata: { name: 'waiting' }, spec: { hubAcceptsClient: false } })
  await clusters.patch('c1', { merge: { spec: { hubAcceptsClient: false } } })
  const account = await kubeconfigOfAccount(hub, 'open-cluster-management-hub', 'cleanup-unjoined-sa')
  await eventually(async () => {
    await mustRun('lanyard', ['cleanup-unjoined', `--kubeconfig=${account}`, '--silent-seconds=0'], { plane: hub })
    assert.equal(await clusters.find('c1'), undefined)
    assert.equal(await admin.of(Namespace).find('c1'), undefined)
  }, patience)
  assert.ok(await clusters.find('waiting'))
  await clusters.delete('waiting')

  assert.deepEqual(await refusals('open-cluster-management-hub:registration-controller-sa'), [])
  assert.deepEqual(await refusals('open-cluster-management:cluster-manager'), [])
  assert.deepEqual(await refusals('open-cluster-management-hub:cleanup-unjoined-sa'), [])
})

test('R1.66 nobody of the hub can hand out more than it has: neither the hub nor its operator may widen a role or bind another', async () => {
  const admin = hub.client()
  const may = async (user: string, verb: string, group: string, resource: string, name?: string): Promise<boolean> => {
    const review = await admin.of(SubjectAccessReview).create({
      metadata: {},
      spec: { user: `system:serviceaccount:${user}`, resourceAttributes: { verb, group, resource, name } },
    })
    return review.status!.allowed
  }
  const rbac = 'rbac.authorization.k8s.io'
  const [operator, process] = [
    'open-cluster-management:cluster-manager',
    'open-cluster-management-hub:registration-controller-sa',
  ]
  for (const user of [operator, process]) {
    assert.equal(await may(user, 'escalate', rbac, 'clusterroles'), false, user)
    assert.equal(await may(user, 'bind', rbac, 'clusterroles', 'cluster-admin'), false, user)
    assert.equal(await may(user, 'impersonate', '', 'users'), false, user)
    assert.equal(await may(user, 'create', '', 'pods'), false, user)
  }
  // The hub may list, because it looks through a namespace before it deletes it; the operator needs none of that.
  for (const verb of ['get', 'list']) assert.equal(await may(operator, verb, '', 'secrets', 'any'), false)
  for (const verb of ['create', 'update', 'patch']) assert.equal(await may(operator, verb, rbac, 'clusterroles'), false)
  assert.equal(await may(operator, 'bind', rbac, 'clusterroles', 'open-cluster-management:cluster-manager:hub'), true)
  const cleanup = 'open-cluster-management-hub:cleanup-unjoined-sa'
  assert.equal(await may(cleanup, 'delete', 'cluster.open-cluster-management.io', 'managedclusters'), true)
  assert.equal(await may(cleanup, 'update', 'cluster.open-cluster-management.io', 'managedclusters'), false)
  const shared = await admin.of(ClusterRole).get('open-cluster-management:cluster-manager:hub')
  assert.ok(shared.rules!.every(({ verbs }) => !verbs.includes('*')))
})

test('R1.66 a hub that has worked leaves nothing behind when its ClusterManager is deleted', async () => {
  const managers = hub.client().of(ClusterManager)
  await managers.delete('cluster-manager')
  await eventually(async () => assert.equal(await managers.find('cluster-manager'), undefined), patience)
  await eventually(async () => assert.deepEqual(await objects(), untouched), patience)
  assert.deepEqual(await refusals('open-cluster-management:cluster-manager'), [])
})
