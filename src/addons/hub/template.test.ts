import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
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
import {
  AddOnDeploymentConfig,
  AddOnTemplate,
  ClusterManagementAddOn,
  conditionType,
  ManagedClusterAddOn,
} from '../../api/index.ts'
import { ClusterRole, isInvalid, Namespace, Role, RoleBinding, type Client } from '../../kube/index.ts'
import { resource } from '../../kube/resource.ts'
import { defaultSubject } from '../contract.ts'

let plane: ControlPlane
let admin: Client
before(async () => {
  plane = await startControlPlane({ audit: false })
  admin = plane.client()
  await installHubCrds(admin)
  for (const name of ['agents', 'shared']) await admin.of(Namespace).create({ metadata: { name } })
})
after(() => plane.stop())

const Deployment = resource({
  group: 'apps',
  version: 'v1',
  kind: 'Deployment',
  plural: 'deployments',
  namespaced: true,
})
const { available, configured, registrationApplied } = conditionType.addOn
const group = 'addon.open-cluster-management.io'

const template = (name: string, registration: AddOnTemplate['spec']['registration'] = []): AddOnTemplate => ({
  metadata: { name: `${name}-v1` },
  spec: {
    addonName: name,
    agentSpec: {
      workload: {
        manifests: [
          {
            apiVersion: 'apps/v1',
            kind: 'Deployment',
            metadata: { name, namespace: 'open-cluster-management-agent-addon' },
            spec: {
              selector: { matchLabels: { app: name } },
              template: {
                metadata: { labels: { app: name } },
                spec: {
                  containers: [
                    {
                      name: 'agent',
                      image: 'quay.io/example/agent:1',
                      args: ['--cluster={{CLUSTER_NAME}}', '--level={{ LEVEL }}', '--not={{.Ours}}'],
                    },
                  ],
                },
              },
            },
          },
        ],
      },
    },
    registration,
  },
})

const clusterRole = async (name: string): Promise<void> => {
  const rules = [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get'] }]
  await admin.of(ClusterRole).create({ metadata: { name }, rules })
  await admin.of(Role, 'shared').create({ metadata: { name, namespace: 'shared' }, rules })
}

test('R2.39 an add-on needs no code: a template is deployed with its variables, settings, credentials and permissions', async (t) => {
  await runAddOnHub(t, plane)
  await createClusters(admin, ['t1'])
  await startAddOnWork(t, plane, 't1')
  await clusterRole('reader')
  await admin.of(AddOnDeploymentConfig, 'agents').create({
    metadata: { name: 'settings', namespace: 'agents' },
    spec: {
      agentInstallNamespace: 'agents',
      customizedVariables: [{ name: 'LEVEL', value: 'debug' }],
      nodePlacement: { nodeSelector: { disk: 'ssd' }, tolerations: [{ key: 'dedicated', operator: 'Exists' }] },
      registries: [{ source: 'quay.io/example', mirror: 'mirror.local/x' }],
      proxyConfig: { httpsProxy: 'http://proxy:3128', noProxy: '.svc' },
      resourceRequirements: [{ containerID: 'deployments:*:agent', resources: { limits: { memory: '64Mi' } } }],
    },
  })
  await admin.of(AddOnTemplate).create(
    template('no-code', [
      {
        type: 'KubeClient',
        kubeClient: {
          hubPermissions: [
            { type: 'CurrentCluster', currentCluster: { clusterRoleName: 'reader' } },
            {
              type: 'SingleNamespace',
              singleNamespace: { namespace: 'shared', roleRef: { kind: 'Role', name: 'reader' } },
            },
          ],
        },
      },
    ]),
  )
  await admin.of(ClusterManagementAddOn).create({
    metadata: { name: 'no-code' },
    spec: {
      defaultConfigs: [
        { group, resource: 'addontemplates', name: 'no-code-v1' },
        { group, resource: 'addondeploymentconfigs', namespace: 'agents', name: 'settings' },
      ],
    },
  })
  await enable(admin, 't1', 'no-code')
  const deployment = await eventually(() => admin.of(Deployment, 'agents').get('no-code'), { timeoutMs: 60_000 })
  const pods = (deployment['spec'] as { template: { spec: Record<string, unknown> } }).template.spec
  const [container] = pods['containers'] as Record<string, unknown>[]
  assert.equal(container!['image'], 'mirror.local/x/agent:1')
  assert.deepEqual(container!['args'], ['--cluster=t1', '--level=debug', '--not={{.Ours}}'])
  assert.deepEqual(container!['resources'], { limits: { memory: '64Mi' } })
  assert.deepEqual(pods['nodeSelector'], { disk: 'ssd' })
  assert.deepEqual(pods['tolerations'], [{ key: 'dedicated', operator: 'Exists' }])
  const env = Object.fromEntries((container!['env'] as { name: string; value: string }[]).map((e) => [e.name, e.value]))
  assert.equal(env['HUB_KUBECONFIG'], '/managed/hub-kubeconfig/kubeconfig')
  assert.equal(env['INSTALL_NAMESPACE'], 'agents')
  assert.equal(env['https_proxy'], 'http://proxy:3128')
  assert.equal(env['LEVEL'], 'debug')
  const [volume] = pods['volumes'] as { secret: { secretName: string } }[]
  assert.equal(volume!.secret.secretName, 'no-code-hub-kubeconfig')

  const agent = asCluster(plane, 't1')
  await declare(agent, 't1', 'no-code', 'token', { user: defaultSubject('token', 't1', 'no-code').user })
  await conditionOf(admin, 't1', 'no-code', registrationApplied, (one) => one?.status === 'True')
  const own = await admin.of(RoleBinding, 't1').get('open-cluster-management:no-code:clusterrole:reader:agent')
  const shared = await admin.of(RoleBinding, 'shared').get('open-cluster-management:t1:no-code:role:reader:agent')
  for (const { subjects } of [own, shared]) assert.equal(subjects?.[0]?.name, 't1-no-code-agent')

  const down = await conditionOf(admin, 't1', 'no-code', available, (one) => one?.reason === 'ProbeUnavailable')
  assert.match(down!.message, /no pod is ready of Deployment agents\/no-code/)
  await setPods(plane, 'agents', 'Running')
  await conditionOf(admin, 't1', 'no-code', available, (one) => one?.reason === 'ProbeAvailable')

  await admin.of(ManagedClusterAddOn, 't1').delete('no-code')
  await eventually(
    async () => {
      assert.equal(await admin.of(Deployment, 'agents').find('no-code'), undefined)
      assert.deepEqual((await admin.of(RoleBinding, 'shared').list()).items, [])
    },
    { timeoutMs: 60_000 },
  )
})

test('R2.39 a template of another add-on, one that is missing, and one that cannot work are told in a condition', async (t) => {
  await runAddOnHub(t, plane)
  await createClusters(admin, ['t2'])
  const use = (name: string) => ({ spec: { configs: [{ group, resource: 'addontemplates', name }] } })
  await enable(admin, 't2', 'fine')
  await admin.of(AddOnTemplate).create(template('fine'))
  await admin.of(AddOnTemplate).create(template('double', [{ type: 'KubeClient' }, { type: 'KubeClient' }]))
  await admin.of(ManagedClusterAddOn, 't2').patch('fine', { merge: use('fine-v1') })
  await conditionOf(admin, 't2', 'fine', configured, (one) => one?.status === 'True')

  await admin.of(ManagedClusterAddOn, 't2').patch('fine', { merge: use('gone') })
  const gone = await conditionOf(admin, 't2', 'fine', configured, (one) => one?.status === 'False')
  assert.match(gone!.message, /AddOnTemplate gone does not exist: create it/)
  await admin.of(AddOnTemplate).create(template('other'))
  await admin.of(ManagedClusterAddOn, 't2').patch('fine', { merge: use('other-v1') })
  const misfit = /AddOnTemplate other-v1 is for add-on other: name one whose spec.addonName is fine/
  await conditionOf(admin, 't2', 'fine', configured, (one) => misfit.test(one?.message ?? ''))
  await enable(admin, 't2', 'double', use('double-v1'))
  const said = await conditionOf(admin, 't2', 'double', configured, (one) => one?.status === 'False')
  assert.match(said!.message, /asks for 2 kubeClient credentials.*ask for one/)
})

test('R2.12 a template whose fields do not fit together is refused by the API server', async () => {
  const half = template('half', [{ type: 'CustomSigner' }])
  await assert.rejects(admin.of(AddOnTemplate).create(half), isInvalid)
  const wrong = template('wrong', [
    { type: 'KubeClient', kubeClient: { hubPermissions: [{ type: 'SingleNamespace' }] } },
  ])
  await assert.rejects(admin.of(AddOnTemplate).create(wrong), /singleNamespace/)
})
