import assert from 'node:assert/strict'
import { after, before, test, type TestContext } from 'node:test'
import { eventually, startControlPlane, type ControlPlane } from '../../../testkit/index.ts'
import {
  agentOf,
  can,
  clusterOf,
  createCluster,
  createWork,
  objectsOf,
  runHub,
  setAccepts,
} from '../../../testkit/registration-hub.ts'
import { crds, installCrds, label, ManagedCluster, ManifestWork } from '../../api/index.ts'
import { ClusterRole, ConfigMap, Event, Lease, Namespace, type Client } from '../../kube/index.ts'
import { findCondition, isTrue } from '../../runtime/index.ts'
import { Accepted, Deleting, rbac } from '../contract.ts'
import { nameRefusal } from './reserved-names.ts'

let plane: ControlPlane
let client: Client
before(async () => {
  plane = await startControlPlane({ audit: false })
  client = plane.client()
  await installCrds(client, crds({ conversion: 'none' }))
})
after(() => plane.stop())

const isAccepted = async (name: string): Promise<boolean> => isTrue((await clusterOf(client, name))!, Accepted.type)
const namespace = (name: string, labels: Record<string, string> = {}) =>
  client.of(Namespace).create({ metadata: { name, labels } })
const configMap = (in_: string, name: string) =>
  client.of(ConfigMap, in_).create({ metadata: { name, namespace: in_ } })
const isRefused = async (name: string, why: RegExp): Promise<void> => {
  await eventually(async () => {
    const condition = findCondition((await clusterOf(client, name))!, Accepted.type)
    assert.deepEqual([condition?.status, condition?.reason], ['False', 'Error'])
    assert.match(condition!.message, why)
  })
  assert.deepEqual(
    (await objectsOf(client, name)).filter((o) => !o.startsWith('Namespace')),
    [],
  )
}
const accepted = async (t: TestContext, name: string) => {
  const hub = await runHub(t, plane)
  await createCluster(client, name)
  await eventually(() => isAccepted(name))
  return hub
}

test('R1.16 names that stand for something else on a hub are refused', () => {
  const refused = ['default', 'kube-system', 'kube-x', 'open-cluster-management', 'open-cluster-management-hub']
  for (const name of [...refused, 'managed-clusters', 'work', 'registration', 'leaving'])
    assert.ok(nameRefusal(name), name)
  for (const name of ['c1', 'kubernetes', 'default-2', 'works', 'open-cluster-managements'])
    assert.equal(nameRefusal(name), undefined, name)
})

test('R1.16 a cluster with the name of a system namespace, or of what all clusters share, gets nothing', async (t) => {
  await runHub(t, plane)
  const shared = await eventually(() => client.of(ClusterRole).get(rbac.workRole))
  const before = (await client.of(Namespace).get('kube-system')).metadata.labels
  for (const name of ['kube-system', 'work', 'managed-clusters']) await createCluster(client, name)
  await isRefused('kube-system', /belongs to Kubernetes itself; delete this ManagedCluster and join .* another name/)
  await isRefused(
    'work',
    /ClusterRole open-cluster-management:managedcluster:work is one that all managed clusters share/,
  )
  await isRefused('managed-clusters', /group .*:managed-clusters is that of all managed clusters/)
  assert.equal(await client.of(Namespace).find('managed-clusters'), undefined)
  assert.deepEqual((await client.of(Namespace).get('kube-system')).metadata.labels, before)
  await setAccepts(client, 'work', false)
  await eventually(async () => {
    assert.equal(findCondition((await clusterOf(client, 'work'))!, Accepted.type)?.reason, 'HubClusterAdminDenied')
  })
  for (const name of ['kube-system', 'work']) {
    await client.of(ManagedCluster).delete(name)
    await eventually(async () => (await clusterOf(client, name)) === undefined)
  }
  assert.equal(
    (await client.of(ClusterRole).get(rbac.workRole)).metadata.resourceVersion,
    shared.metadata.resourceVersion,
  )
  assert.equal((await client.of(Namespace).get('kube-system')).metadata.deletionTimestamp, undefined)
})

test('R1.16 a namespace that somebody uses is not taken over, until that person says so', async (t) => {
  await namespace('payments')
  await configMap('payments', 'settings')
  await namespace('of-another', { [label.clusterName]: 'another' })
  await namespace('empty')
  await runHub(t, plane)
  for (const name of ['payments', 'of-another', 'empty']) await createCluster(client, name)

  await isRefused('payments', /was there before and holds ConfigMap settings; .*kubectl label namespace payments/)
  await isRefused('of-another', /is labelled open-cluster-management.io\/cluster-name=another/)
  await eventually(() => isAccepted('empty'))
  await client.of(Namespace).patch('payments', { merge: { metadata: { labels: { [label.clusterName]: 'payments' } } } })
  await eventually(() => isAccepted('payments'))
})

test('R1.41 a label that somebody took off the namespace comes back, also when works are in it', async (t) => {
  await accepted(t, 'relabelled')
  await createWork(client, 'relabelled', 'w', {})
  await client.of(Namespace).patch('relabelled', { merge: { metadata: { labels: { [label.clusterName]: null } } } })
  await eventually(
    async () => (await client.of(Namespace).get('relabelled')).metadata.labels?.[label.clusterName] === 'relabelled',
  )
})

test('R1.56 the namespace of a deleted cluster stays while something that a person made is in it, and an event says what', async (t) => {
  await accepted(t, 'kept')
  await configMap('kept', 'precious')
  await client.of(Lease, 'kept').create({ metadata: { name: 'managed-cluster-lease', namespace: 'kept' }, spec: {} })
  await client.of(ManagedCluster).delete('kept')
  await eventually(async () => (await clusterOf(client, 'kept')) === undefined)

  assert.deepEqual(await objectsOf(client, 'kept'), ['Namespace kept'])
  assert.ok(await client.of(ConfigMap, 'kept').find('precious'))
  assert.equal(await client.of(Lease, 'kept').find('managed-cluster-lease'), undefined)
  await eventually(async () => {
    const { items } = await client.of(Event, 'default').list()
    const note = items.find((e) => e.regarding.name === 'kept' && e.reason === 'NamespaceKept')?.note
    assert.match(note ?? '', /namespace kept stays, because people made things in it: ConfigMap precious/)
  })
})

test('R1.41 when somebody deletes the namespace of an accepted cluster, its agent removes the works and it is made anew', async (t) => {
  await accepted(t, 'deleted-ns')
  await createWork(client, 'deleted-ns', 'w')
  const { uid } = (await client.of(Namespace).get('deleted-ns')).metadata
  await client.of(Namespace).delete('deleted-ns')
  await eventually(async () => {
    const condition = findCondition((await clusterOf(client, 'deleted-ns'))!, Accepted.type)
    assert.match(condition!.message, /its namespace is being deleted, and its agent has 1 works to remove first/)
  })
  const { username: user, groups } = agentOf('deleted-ns')
  const agent = plane.client({ user, groups })
  await eventually(
    async () => (await agent.of(ManifestWork, 'deleted-ns').get('w')).metadata.deletionTimestamp !== undefined,
  )
  await agent.of(ManifestWork, 'deleted-ns').patch('w', { merge: { metadata: { finalizers: [] } } })
  await eventually(async () => {
    assert.notEqual((await client.of(Namespace).get('deleted-ns')).metadata.uid, uid)
    assert.equal((await objectsOf(client, 'deleted-ns')).length, 5)
    assert.ok(await isAccepted('deleted-ns'))
  })
})

test('R1.57 when namespace and cluster are deleted together, the agent still removes its works, and both go', async (t) => {
  await accepted(t, 'both')
  await createWork(client, 'both', 'w')
  await client.of(Namespace).delete('both')
  await eventually(
    async () => (await client.of(ManifestWork, 'both').get('w')).metadata.deletionTimestamp !== undefined,
  )
  await client.of(ManagedCluster).delete('both')
  const { username: user, groups } = agentOf('both')
  const agent = plane.client({ user, groups })
  await eventually(async () => {
    assert.equal(findCondition((await clusterOf(client, 'both'))!, Deleting.type)?.reason, 'ResourceRemaining')
    assert.equal(
      await can(client, 'both', 'update', { group: 'coordination.k8s.io', resource: 'leases', namespace: 'both' }),
      false,
    )
  })
  await agent.of(ManifestWork, 'both').patch('w', { merge: { metadata: { finalizers: [] } } })
  await eventually(async () => {
    assert.equal(await clusterOf(client, 'both'), undefined)
    assert.equal(await client.of(Namespace).find('both'), undefined)
    assert.deepEqual(await objectsOf(client, 'both'), [])
  })
})
