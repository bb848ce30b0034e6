import assert from 'node:assert/strict'
import { after, before, test, type TestContext } from 'node:test'
import { hello } from '../../../examples/hello.ts'
import {
  asCluster,
  conditionOf,
  createClusters,
  declare,
  enable,
  installHubCrds,
  runAddOnHub,
  setPods,
  startAddOnWork,
} from '../../../testkit/add-on-hub.ts'
import { eventually, startControlPlane, type ControlPlane } from '../../../testkit/index.ts'
import { quiet } from '../../../testkit/work-agent.ts'
import {
  AddOnDeploymentConfig,
  ClusterManagementAddOn,
  conditionType,
  ManagedCluster,
  ManagedClusterAddOn,
  ManifestWork,
} from '../../api/index.ts'
import { ConfigMap, isConflict, Namespace, RoleBinding, Role, type Client } from '../../kube/index.ts'
import { installOnAnnotation, defaultInstallNamespace, defaultSubject } from '../contract.ts'
import { defineAddOn } from './definition.ts'

let plane: ControlPlane
let admin: Client
before(async () => {
  plane = await startControlPlane()
  admin = plane.client()
  await installHubCrds(admin)
  await admin.of(Namespace).create({ metadata: { name: defaultInstallNamespace } })
})
after(() => plane.stop())

const { available, manifestApplied, progressing, registrationApplied, configured } = conditionType.addOn

const is = (status: string, reason?: string) => (one?: { status: string; reason: string }) =>
  one?.status === status && (reason === undefined || one.reason === reason)

const scene = async (t: TestContext, cluster: string, addOns = [hello]) => {
  await runAddOnHub(t, plane, { addOns, userAgent: `hub-${cluster}` })
  await createClusters(admin, [cluster])
  await startAddOnWork(t, plane, cluster)
  return asCluster(plane, cluster)
}

const greeting = async (): Promise<string | undefined> =>
  (await admin.of(ConfigMap, defaultInstallNamespace).find('hello'))?.data?.['greeting']

test('R2.13 R2.14 an add-on of thirty lines is deployed, configured and healthy, and asks for its credential without driver and subject', async (t) => {
  await scene(t, 'd1')
  await enable(admin, 'd1', 'hello')
  await conditionOf(admin, 'd1', 'hello', available, is('True', 'WorkApplied'))
  assert.equal(await greeting(), 'Hello, d1')
  const { status } = await admin.of(ManagedClusterAddOn, 'd1').get('hello')
  assert.deepEqual(status?.registrations, [{ type: 'kubeClient' }])
  assert.equal(status?.namespace, defaultInstallNamespace)
  assert.equal(status?.healthCheck?.mode, 'Customized')
  await conditionOf(admin, 'd1', 'hello', registrationApplied, is('False', 'PermissionConfigPending'))

  await admin.of(AddOnDeploymentConfig, 'd1').create({
    metadata: { name: 'polite', namespace: 'd1' },
    spec: { customizedVariables: [{ name: 'GREETING', value: 'Good day' }] },
  })
  const configs = [
    { group: AddOnDeploymentConfig.group, resource: AddOnDeploymentConfig.plural, namespace: 'd1', name: 'polite' },
  ]
  await admin.of(ManagedClusterAddOn, 'd1').patch('hello', { merge: { spec: { configs } } })
  await eventually(async () => assert.equal(await greeting(), 'Good day, d1'), { timeoutMs: 60_000 })
  const changed = { spec: { customizedVariables: [{ name: 'GREETING', value: 'Welcome' }] } }
  await admin.of(AddOnDeploymentConfig, 'd1').patch('polite', { merge: changed })
  await eventually(async () => assert.equal(await greeting(), 'Welcome, d1'), { timeoutMs: 60_000 })
  await eventually(async () => {
    const [reference] = (await admin.of(ManagedClusterAddOn, 'd1').get('hello')).status?.configReferences ?? []
    assert.ok(reference?.desiredConfig?.specHash)
    assert.equal(reference.lastAppliedConfig?.specHash, reference.desiredConfig.specHash)
  })
  await conditionOf(admin, 'd1', 'hello', progressing, is('False', 'Completed'))

  await admin.of(ManagedClusterAddOn, 'd1').delete('hello')
  await eventually(async () => assert.equal(await greeting(), undefined), { timeoutMs: 60_000 })
})

test('R2.14 R2.17 what the agent fills in is kept, and permissions follow the declared subject', async (t) => {
  const agent = await scene(t, 'd2')
  await enable(admin, 'd2', 'hello')
  const csr = defaultSubject('csr', 'd2', 'hello')
  await declare(agent, 'd2', 'hello', 'csr', { user: csr.user, groups: [...csr.groups] })
  await conditionOf(admin, 'd2', 'hello', registrationApplied, is('True', 'SetPermissionApplied'))
  const bound = async (): Promise<string[] | undefined> =>
    (await admin.of(RoleBinding, 'd2').find('open-cluster-management:hello:agent'))?.subjects?.map(
      ({ kind, name }) => `${kind} ${name}`,
    )
  assert.deepEqual(await bound(), [
    'User system:open-cluster-management:cluster:d2:addon:hello:agent:hello',
    'Group system:open-cluster-management:cluster:d2:addon:hello',
  ])

  await declare(agent, 'd2', 'hello', 'token', { user: defaultSubject('token', 'd2', 'hello').user })
  await eventually(async () => assert.deepEqual(await bound(), ['ServiceAccount d2-hello-agent']), {
    timeoutMs: 60_000,
  })
  // A write of the hub after that: the item is as the agent left it.
  await admin.of(ManagedClusterAddOn, 'd2').patch('hello', { merge: { spec: { configs: [] } } })
  await conditionOf(admin, 'd2', 'hello', configured, (one) => one?.observedGeneration === 2)
  const { status } = await admin.of(ManagedClusterAddOn, 'd2').get('hello')
  assert.deepEqual(status?.registrations, [
    {
      type: 'kubeClient',
      kubeClient: { driver: 'token', subject: { user: 'system:serviceaccount:d2:d2-hello-agent' } },
    },
  ])

  await admin.of(ManagedClusterAddOn, 'd2').delete('hello')
  await eventually(async () => assert.equal(await bound(), undefined), { timeoutMs: 60_000 })
})

test('R2.17 permissions and works that somebody changes or removes on the hub come back', async (t) => {
  const agent = await scene(t, 'd3')
  await enable(admin, 'd3', 'hello')
  await declare(agent, 'd3', 'hello', 'token', { user: defaultSubject('token', 'd3', 'hello').user })
  await conditionOf(admin, 'd3', 'hello', registrationApplied, is('True'))
  await conditionOf(admin, 'd3', 'hello', manifestApplied, is('True'))
  const name = 'open-cluster-management:hello:agent'
  const look = async () => {
    const [role, binding, work] = await Promise.all([
      admin.of(Role, 'd3').get(name),
      admin.of(RoleBinding, 'd3').get(name),
      admin.of(ManifestWork, 'd3').get('addon-hello-deploy-0'),
    ])
    return [role.rules, binding.subjects, binding.roleRef, work.spec.workload]
  }
  const before = await look()
  const breakages: (() => Promise<unknown>)[] = [
    () => admin.of(Role, 'd3').delete(name),
    () =>
      admin.of(Role, 'd3').patch(name, { merge: { rules: [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }] } }),
    () => admin.of(RoleBinding, 'd3').delete(name),
    () => admin.of(RoleBinding, 'd3').patch(name, { merge: { subjects: [{ kind: 'User', name: 'eve' }] } }),
    () => admin.of(ManifestWork, 'd3').delete('addon-hello-deploy-0'),
    () =>
      admin.of(ManifestWork, 'd3').patch('addon-hello-deploy-0', { merge: { spec: { workload: { manifests: [] } } } }),
  ]
  for (const breakIt of breakages) {
    await breakIt()
    await eventually(async () => assert.deepEqual(await look(), before), { timeoutMs: 60_000 })
  }
  await conditionOf(admin, 'd3', 'hello', manifestApplied, is('True'))
})

test('R2.20 an add-on that is deployed and registered costs a restarted hub no write', async (t) => {
  const agent = await scene(t, 'd4')
  await enable(admin, 'd4', 'hello')
  await declare(agent, 'd4', 'hello', 'token', { user: defaultSubject('token', 'd4', 'hello').user })
  await conditionOf(admin, 'd4', 'hello', registrationApplied, is('True'))
  await conditionOf(admin, 'd4', 'hello', available, is('True'))
  await quiet(plane, 'hub-d4')
  const { hub } = await runAddOnHub(t, plane, { addOns: [hello], userAgent: 'again-d4' })
  await eventually(() => hub.manager.unready().length === 0)
  await quiet(plane, 'again-d4')
  const { writes, entries } = await plane.requestsBy('again-d4')
  assert.equal(writes, 0, JSON.stringify(entries.filter(({ verb }) => !['get', 'list', 'watch'].includes(verb))))
})

test('R2.13 add-ons are installed by label, belong to their ClusterManagementAddOn, and go when the label goes', async (t) => {
  await scene(t, 'd5')
  await admin.of(ManagedCluster).patch('d5', { merge: { metadata: { labels: { env: 'prod' } } } })
  const catalogue = await admin.of(ClusterManagementAddOn).create({
    metadata: { name: 'hello', annotations: { [installOnAnnotation]: 'env=prod' } },
    spec: { installStrategy: { type: 'Placements', placements: [{ namespace: 'default', name: 'somewhere' }] } },
  })
  const installed = await eventually(
    async () => {
      const addOn = await admin.of(ManagedClusterAddOn, 'd5').get('hello')
      assert.equal(addOn.metadata.ownerReferences?.[0]?.uid, catalogue.metadata.uid)
      return addOn
    },
    { timeoutMs: 60_000 },
  )
  assert.ok(installed)
  await eventually(async () => {
    const { status } = await admin.of(ClusterManagementAddOn).get('hello')
    const [condition] = status?.installProgressions?.[0]?.conditions ?? []
    assert.match(condition?.message ?? '', /no placements: set the annotation/)
  })
  await enable(admin, 'd5', 'byhand')
  await admin.of(ManagedCluster).patch('d5', { merge: { metadata: { labels: { env: null } } } })
  await eventually(async () => assert.equal(await admin.of(ManagedClusterAddOn, 'd5').find('hello'), undefined), {
    timeoutMs: 60_000,
  })
  assert.ok(await admin.of(ManagedClusterAddOn, 'd5').find('byhand'))
  await admin.of(ClusterManagementAddOn).delete('hello')
})

test('R2.13 when nothing is heard of a cluster nothing is known of its add-ons, and its labels tell', async (t) => {
  await scene(t, 'd6')
  await enable(admin, 'd6', 'hello')
  await conditionOf(admin, 'd6', 'hello', available, is('True'))
  const label = async () =>
    (await admin.of(ManagedCluster).get('d6')).metadata.labels?.['feature.open-cluster-management.io/addon-hello']
  await eventually(async () => assert.equal(await label(), 'available'), { timeoutMs: 60_000 })
  const say = async (status: 'Unknown' | 'True') => {
    for (;;) {
      const cluster = await admin.of(ManagedCluster).get('d6')
      const condition = {
        type: conditionType.managedCluster.available,
        status,
        reason: 'ManagedClusterLeaseUpdateStopped',
        message: 'Registration agent stopped updating its lease.',
        lastTransitionTime: '2026-01-01T00:00:00Z',
      }
      const others = cluster.status?.conditions?.filter(({ type }) => type !== condition.type) ?? []
      try {
        await admin.of(ManagedCluster).updateStatus({ ...cluster, status: { conditions: [...others, condition] } })
        return
      } catch (error) {
        if (!isConflict(error)) throw error
      }
    }
  }
  await say('Unknown')
  await conditionOf(admin, 'd6', 'hello', available, is('Unknown', 'ManagedClusterLeaseUpdateStopped'))
  await eventually(async () => assert.equal(await label(), 'unreachable'), { timeoutMs: 60_000 })
  await say('True')
  await conditionOf(admin, 'd6', 'hello', available, is('True'))
})

test('R2.18 pre-delete jobs run before the add-on goes, with its access to the hub still there', async (t) => {
  const job = {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: {
      name: 'farewell',
      namespace: defaultInstallNamespace,
      annotations: { 'addon.open-cluster-management.io/addon-pre-delete': '' },
    },
    spec: {
      template: { spec: { restartPolicy: 'Never', containers: [{ name: 'farewell', image: 'example.com/farewell' }] } },
    },
  }
  const departing = defineAddOn({ ...hello, manifests: async (context) => [...(await hello.manifests(context)), job] })
  const agent = await scene(t, 'd7', [departing])
  await enable(admin, 'd7', 'hello')
  await declare(agent, 'd7', 'hello', 'token', { user: defaultSubject('token', 'd7', 'hello').user })
  await conditionOf(admin, 'd7', 'hello', registrationApplied, is('True'))
  await conditionOf(admin, 'd7', 'hello', manifestApplied, is('True'))
  assert.equal(await admin.of(ManifestWork, 'd7').find('addon-hello-pre-delete'), undefined)

  await admin.of(ManagedClusterAddOn, 'd7').delete('hello')
  await conditionOf(admin, 'd7', 'hello', 'HookManifestCompleted', is('False'))
  await eventually(() => plane.kubectl(['get', 'job', '-n', defaultInstallNamespace, 'farewell']), {
    timeoutMs: 60_000,
  })
  assert.ok(await admin.of(RoleBinding, 'd7').find('hello-token-role'))
  assert.ok(await admin.of(RoleBinding, 'd7').find('open-cluster-management:hello:agent'))
  assert.equal(await greeting(), 'Hello, d7')

  await setPods(plane, defaultInstallNamespace, 'Succeeded')

  await eventually(
    async () => {
      assert.equal(await admin.of(ManagedClusterAddOn, 'd7').find('hello'), undefined)
      assert.equal(await admin.of(RoleBinding, 'd7').find('hello-token-role'), undefined)
      assert.equal(await admin.of(RoleBinding, 'd7').find('open-cluster-management:hello:agent'), undefined)
      assert.deepEqual(
        (await admin.of(ManifestWork, 'd7').list()).items.map(({ metadata }) => metadata.name),
        [],
      )
      assert.equal(await greeting(), undefined)
    },
    { timeoutMs: 60_000 },
  )
})
