/** What runs stops running, or is taken away. Each fault is planted, found by name, and healed by the printed command. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ClusterPermission, ManagedCluster, ManifestWork } from '../../api/index.ts'
import { ClusterRoleBinding, ConfigMap, CustomResourceDefinition, Namespace } from '../../kube/index.ts'
import { ValidatingWebhookConfiguration } from '../../runtime/webhook/index.ts'
import { eventually, type ControlPlane } from '../../../testkit/index.ts'
import { startDoctorScene, type DoctorScene } from '../../../testkit/doctor-scene.ts'
import { Pod } from '../../../testkit/runner/index.ts'

let scene: DoctorScene
before(async () => {
  scene = await startDoctorScene({ joined: true })
})
after(() => scene?.stop())

const operators = 'open-cluster-management'
const [hubPlace, agentPlace] = ['open-cluster-management-hub', 'open-cluster-management-agent']
const scaled = (plane: ControlPlane, place: string, name: string): Promise<string> =>
  plane.kubectl(['-n', place, 'scale', 'deployment', name, '--replicas=0'])

/** An operator would bring back by itself what a test takes away. Waits until it is gone. */
const withoutOperator = async (plane: ControlPlane, name: string): Promise<void> => {
  await scaled(plane, operators, name)
  await eventually.watching(plane.client().of(Pod, operators), (pods) => assert.deepEqual(pods, []), {
    timeoutMs: 60_000,
  })
}

test('R1.64 agent-not-running: an agent that was scaled away comes back', async () => {
  await withoutOperator(scene.managed, 'klusterlet')
  await scaled(scene.managed, agentPlace, 'klusterlet-agent')
  assert.match((await scene.heals('agent-not-running')).command, /scale deployment klusterlet-agent --replicas=1$/)
})

test('R1.64 operator-not-running: the operator of the agent comes back', async () => {
  const { on, command } = await scene.heals('operator-not-running')
  assert.equal(on, 'managed')
  assert.match(command, /scale deployment klusterlet --replicas=1$/)
  await scene.healthy()
})

test('R1.64 lease-stale: an agent that hangs is replaced', async (t) => {
  const { items } = await scene.managed.client().of(Pod, agentPlace).list()
  const pids = items.flatMap(({ metadata }) => scene.runners.managed.pids(agentPlace, metadata.name!))
  assert.ok(pids.length > 0)
  await scene.hub
    .client()
    .of(ManagedCluster)
    .patch('c1', { merge: { spec: { leaseDurationSeconds: 1 } } })
  t.after(() =>
    scene.hub
      .client()
      .of(ManagedCluster)
      .patch('c1', { merge: { spec: { leaseDurationSeconds: 60 } } }),
  )
  for (const pid of pids) process.kill(pid, 'SIGSTOP')
  assert.match((await scene.heals('lease-stale')).command, /delete pod -l app=klusterlet-agent/)
})

test('R1.64 rbac-missing: the hub gives a cluster its rights again as soon as it runs', async () => {
  await withoutOperator(scene.hub, 'cluster-manager')
  await scaled(scene.hub, hubPlace, 'cluster-manager-hub')
  await scene.finds('hub-not-running')
  await scene.hub.client().of(ClusterRoleBinding).delete('open-cluster-management:managedcluster:c1')
  assert.match((await scene.heals('rbac-missing')).why, /ClusterRoleBinding open-cluster-management:managedcluster:c1/)
})

test('R1.64 hub-not-running: a hub that was scaled away comes back', async () => {
  await scaled(scene.hub, hubPlace, 'cluster-manager-hub')
  assert.match((await scene.heals('hub-not-running')).command, /scale deployment cluster-manager-hub --replicas=1$/)
})

test('R1.64 crd-missing: a kind that somebody deleted is served again', async () => {
  await scene.hub.client().of(CustomResourceDefinition).delete(`${ClusterPermission.plural}.${ClusterPermission.group}`)
  assert.match((await scene.heals('crd-missing')).command, /^clusteradm init --wait /)
  await scene.healthy()
})

test('R1.64 webhook-down: webhooks that the API server does not reach are set up again', async () => {
  const configurations = scene.hub.client().of(ValidatingWebhookConfiguration)
  const { items } = await configurations.list()
  const first = items.find(({ webhooks }) =>
    webhooks?.some(({ rules }) => rules?.some(({ resources }) => resources.includes('managedclusters'))),
  )
  const webhooks = first!.webhooks!.map((one) => ({
    ...one,
    clientConfig: { ...one.clientConfig, service: { ...one.clientConfig.service!, name: 'nobody' } },
  }))
  await configurations.update({ ...first!, webhooks })
  await scene.heals('webhook-down')
  await scene.healthy()
})

test('R1.64 namespace-terminating: what holds the namespace of a cluster lets it go, and the hub makes it anew', async () => {
  const held = { metadata: { name: 'held', namespace: 'c1', finalizers: ['example.com/hold'] } }
  await scene.hub.client().of(ConfigMap).create(held)
  await scene.hub.client().of(Namespace).delete('c1')
  assert.match((await scene.heals('namespace-terminating')).command, /patch configmaps held --type=json/)
  await scene.healthy()
})

test('R1.64 work-failing: a work whose namespace is missing is applied once there is one', async () => {
  const manifest = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'one', namespace: 'shop' }, data: {} }
  await scene.hub
    .client()
    .of(ManifestWork)
    .create({ metadata: { name: 'shop', namespace: 'c1' }, spec: { workload: { manifests: [manifest] } } })
  assert.match((await scene.heals('work-failing')).command, /^kubectl .*create namespace shop$/)
  await scene.healthy()
})
