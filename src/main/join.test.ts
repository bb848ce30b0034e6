import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import {
  accept,
  eventually,
  sendTo,
  startAgent,
  startControlPlane,
  startHub,
  type ControlPlane,
} from '../../testkit/index.ts'
import { ManagedCluster, ManifestWork } from '../api/index.ts'
import { ClusterRole, ConfigMap, Namespace, Secret } from '../kube/index.ts'
import { isTrue } from '../runtime/index.ts'

let hub: ControlPlane
let other: ControlPlane
let managed: ControlPlane
before(async () => {
  ;[hub, other, managed] = await Promise.all([startControlPlane(), startControlPlane(), startControlPlane()])
})
after(() => Promise.all([hub.stop(), other.stop(), managed.stop()]))

const work = (cluster: string): ManifestWork => ({
  metadata: { name: 'first', namespace: cluster },
  spec: {
    workload: {
      manifests: [
        {
          apiVersion: 'v1',
          kind: 'ConfigMap',
          metadata: { name: 'hello', namespace: 'delivered' },
          data: { from: 'hub' },
        },
        { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'delivered' } },
        {
          apiVersion: 'rbac.authorization.k8s.io/v1',
          kind: 'ClusterRole',
          metadata: { name: 'delivered-reader' },
          rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }],
        },
      ],
    },
  },
})

test('R1.45 R1.50 R1.51 R1.52 a cluster joins a hub, both real: created, accepted, certificate issued, joined, available, work applied and reported', async () => {
  await startHub(hub)
  await sendTo(managed, hub)
  const agent = await startAgent(managed, 'c1')
  await accept(hub, 'c1')
  await agent.process.ready()

  const admin = hub.client()
  await eventually.watching(admin.of(ManagedCluster), ([cluster]) => {
    assert.equal(cluster?.metadata.name, 'c1')
    for (const type of ['HubAcceptedManagedCluster', 'ManagedClusterJoined', 'ManagedClusterConditionAvailable'])
      assert.ok(isTrue(cluster, type), `${type} of ${JSON.stringify(cluster.status?.conditions)}`)
    assert.equal(cluster.status?.version?.kubernetes, 'v1.36.3')
  })
  const { data } = await managed.client().of(Secret, 'open-cluster-management-agent').get('hub-kubeconfig-secret')
  assert.deepEqual(Object.keys(data!).sort(), ['agent-name', 'cluster-name', 'kubeconfig', 'tls.crt', 'tls.key'])

  await admin.of(ManifestWork, 'c1').create(work('c1'))
  const there = managed.client()
  await eventually(async () => {
    assert.ok(await there.of(Namespace).find('delivered'))
    assert.ok(await there.of(ClusterRole).find('delivered-reader'))
    assert.deepEqual((await there.of(ConfigMap, 'delivered').get('hello')).data, { from: 'hub' })
    const reported = await admin.of(ManifestWork, 'c1').get('first')
    assert.ok(isTrue(reported, 'Applied') && isTrue(reported, 'Available'), JSON.stringify(reported.status))
    assert.equal(reported.status?.resourceStatus?.manifests?.length, 3)
  })
})

test('R1.17 the cluster joins a second hub beside the first, under the same id; each has its own works there, and one that goes takes its own', async () => {
  await startHub(other)
  const namespace = 'second-agent'
  await sendTo(managed, other, { namespace })
  const agent = await startAgent(managed, 'c1-elsewhere', { namespace })
  await accept(other, 'c1-elsewhere')
  await agent.process.ready()
  const ids = await Promise.all(
    [hub, other].map((one) =>
      eventually.watching(one.client().of(ManagedCluster), ([cluster]) => {
        assert.ok(isTrue(cluster!, 'ManagedClusterConditionAvailable'))
        const id = cluster!.status?.clusterClaims?.find(({ name }) => name === 'id.k8s.io')?.value
        assert.ok(id)
        return id
      }),
    ),
  )
  const { uid } = (await managed.client().of(Namespace).get('kube-system')).metadata
  assert.deepEqual(ids, [uid, uid])

  // A work of the same name as the first hub's.
  const configMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'theirs', namespace: 'default' } }
  const works = other.client().of(ManifestWork, 'c1-elsewhere')
  const metadata = { name: 'first', namespace: 'c1-elsewhere' }
  await works.create({ metadata, spec: { workload: { manifests: [configMap] } } })
  const there = managed.client()
  await eventually(async () => assert.ok(await there.of(ConfigMap, 'default').find('theirs')))
  await works.delete('first')
  await eventually(async () => assert.equal(await there.of(ConfigMap, 'default').find('theirs'), undefined))
  assert.deepEqual((await there.of(ConfigMap, 'delivered').get('hello')).data, { from: 'hub' })
  assert.ok(await hub.client().of(ManifestWork, 'c1').find('first'))
})
