import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eventually, startControlPlane, startHub, type ControlPlane } from '../../../testkit/index.ts'
import { ClusterProfile, label, ManagedCluster, ManagedClusterSetBinding } from '../../api/index.ts'
import { CustomResourceDefinition, Event, Namespace } from '../../kube/index.ts'
import { providerName } from './profile.ts'

let hub: ControlPlane
const slow = { timeoutMs: 60_000 }
const url = 'https://c1.example.com:6443'

before(async () => {
  hub = await startControlPlane({ controllerManager: false })
  await startHub(hub, { args: ['--feature-gates=ClusterProfile=true'] })
  const admin = hub.client()
  for (const name of ['apps', 'empty']) await admin.of(Namespace).create({ metadata: { name } })
  const spec = {
    hubAcceptsClient: true,
    managedClusterClientConfigs: [{ url, caBundle: Buffer.from(hub.ca).toString('base64') }],
  }
  await admin.of(ManagedCluster).create({ metadata: { name: 'c1' }, spec })
  await admin.of(ManagedCluster).create({ metadata: { name: 'c2' }, spec: { hubAcceptsClient: false } })
})
after(() => hub?.stop())

const bind = (namespace: string, clusterSet: string) =>
  hub
    .client()
    .of(ManagedClusterSetBinding)
    .create({ metadata: { name: clusterSet, namespace }, spec: { clusterSet } })
const profiles = () => hub.client().of(ClusterProfile)
const namesSeen = async (): Promise<string[]> =>
  (await profiles().list()).items.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`).toSorted()

test('R5.30 a namespace that is bound to a set has a ClusterProfile for each accepted cluster of it, which names our plug-in', async () => {
  await bind('apps', 'default')
  const profile = await eventually.watching(
    profiles(),
    (all) => {
      const found = all.find(({ status }) => status?.accessProviders?.length)
      return found ?? false
    },
    slow,
  )
  assert.deepEqual(await namesSeen(), ['apps/c1'])
  assert.deepEqual(profile.metadata.labels, {
    'x-k8s.io/cluster-manager': 'open-cluster-management',
    [label.clusterName]: 'c1',
    'multicluster.x-k8s.io/clusterset': 'default',
  })
  assert.deepEqual(profile.spec, { displayName: 'c1', clusterManager: { name: 'open-cluster-management' } })
  assert.deepEqual(profile.status?.accessProviders, [
    {
      name: providerName,
      cluster: {
        server: url,
        'certificate-authority-data': Buffer.from(hub.ca).toString('base64'),
        extensions: [{ name: 'client.authentication.k8s.io/exec', extension: { clusterName: 'c1' } }],
      },
    },
  ])
  assert.deepEqual(
    profile.status?.conditions?.map(({ type, status }) => `${type}=${status}`),
    ['ControlPlaneHealthy=Unknown', 'Joined=Unknown'],
  )
})

test('R5.30 what the cluster reports is followed, what others have added stays, and what was edited is put back', async () => {
  const theirs = { name: 'proxy', cluster: { server: 'https://proxy.example.com/c1' } }
  const at = hub.client().of(ClusterProfile, 'apps')
  const { status } = await at.get('c1')
  const accessProviders = [theirs, ...(status?.accessProviders ?? [])]
  await at.patch('c1', { merge: { status: { accessProviders } } }, { subresource: 'status' })
  await at.patch('c1', { merge: { metadata: { labels: { [label.clusterName]: null } }, spec: { displayName: 'x' } } })
  const now = '2026-01-01T00:00:00Z'
  const type = 'ManagedClusterConditionAvailable'
  const healthy = { type, status: 'True', reason: 'ManagedClusterAvailable', message: 'fine', lastTransitionTime: now }
  const claims = [{ name: 'region', value: 'eu' }]
  const told = { version: { kubernetes: 'v1.36.3' }, conditions: [healthy], clusterClaims: claims }
  await hub
    .client()
    .of(ManagedCluster)
    .patch('c1', { merge: { status: told } }, { subresource: 'status' })
  await eventually(async () => {
    const profile = await at.get('c1')
    assert.equal(profile.metadata.labels?.[label.clusterName], 'c1')
    assert.equal(profile.spec.displayName, 'c1')
    assert.equal(profile.status?.version?.kubernetes, 'v1.36.3')
    assert.deepEqual(profile.status.properties, claims)
    assert.deepEqual(profile.status.accessProviders?.map(({ name }) => name).toSorted(), ['lanyard', 'proxy'])
    assert.equal(profile.status.conditions?.find((one) => one.type === 'ControlPlaneHealthy')?.status, 'True')
  }, slow)
})

test('R5.30 a profile of another manager is left alone and an event says so; clusters and bindings that come and go are followed', async () => {
  const admin = hub.client()
  const spec = { clusterManager: { name: 'another' } }
  await admin.of(ClusterProfile).create({ metadata: { name: 'c1', namespace: 'empty' }, spec })
  await bind('empty', 'global')
  await admin.of(ManagedCluster).patch('c2', { merge: { spec: { hubAcceptsClient: true } } })
  await eventually(
    async () => assert.deepEqual(await namesSeen(), ['apps/c1', 'apps/c2', 'empty/c1', 'empty/c2']),
    slow,
  )
  await eventually(async () => {
    const { items } = await admin.of(Event, 'empty').list()
    const taken = items.find(({ reason }) => reason === 'NameTaken')
    assert.match(taken?.note ?? '', /empty\/c1 belongs to cluster manager another: it is left alone/)
  }, slow)

  await admin.of(ManagedCluster).patch('c2', { merge: { spec: { hubAcceptsClient: false } } })
  await eventually(async () => assert.deepEqual(await namesSeen(), ['apps/c1', 'empty/c1']), slow)
  await admin.of(ManagedClusterSetBinding, 'apps').delete('default')
  await admin.of(ManagedClusterSetBinding, 'empty').delete('global')
  await eventually(async () => assert.deepEqual(await namesSeen(), ['empty/c1']), slow)
  assert.deepEqual((await admin.of(ClusterProfile, 'empty').get('c1')).spec, spec)
})

test('R5.30 the kind is put on the hub only where nobody has: a CRD that is there stays as it is', async () => {
  const definitions = hub.client().of(CustomResourceDefinition)
  const name = 'clusterprofiles.multicluster.x-k8s.io'
  const { metadata } = await definitions.patch(name, { merge: { metadata: { labels: { whose: 'theirs' } } } })
  await startHub(hub, { name: 'second', args: ['--feature-gates=ClusterProfile=true'] })
  const found = await definitions.get(name)
  assert.equal(found.metadata.resourceVersion, metadata.resourceVersion)
})
