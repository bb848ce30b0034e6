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
let managed: ControlPlane
before(async () => {
  ;[hub, managed] = await Promise.all([startControlPlane(), startControlPlane()])
})
after(() => Promise.all([hub.stop(), managed.stop()]))

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
