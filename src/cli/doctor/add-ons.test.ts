/**
 * Where the registration of an add-on can wait. Each fault is planted, found by name, and healed by the printed command where one
 * can. What has to be old to be stuck is planted at the beginning, and healed in the order in which doctor shows it.
 */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import {
  AddOnTemplate,
  annotation,
  ClusterManagementAddOn,
  Klusterlet,
  label,
  ManagedClusterAddOn,
} from '../../api/index.ts'
import { CertificateSigningRequest, isConflict, Lease, Secret, ServiceAccount } from '../../kube/index.ts'
import { isTrue } from '../../runtime/index.ts'
import { eventually } from '../../../testkit/index.ts'
import { startDoctorScene, type DoctorScene } from '../../../testkit/doctor-scene.ts'
import { Pod } from '../../../testkit/runner/index.ts'

const patience = { timeoutMs: 120_000 }
const place = 'open-cluster-management-agent-addon'
const agentPlace = 'open-cluster-management-agent'
const group = AddOnTemplate.group

let scene: DoctorScene
before(async () => {
  scene = await startDoctorScene({ joined: true })
  await plant()
})
after(() => scene?.stop())

const addOns = () => scene.hub.client().of(ManagedClusterAddOn, 'c1')
const csrs = () => scene.hub.client().of(CertificateSigningRequest)
const enable = async (name: string, more: Partial<ManagedClusterAddOn> = {}): Promise<void> => {
  await addOns().create({ spec: {}, ...more, metadata: { ...more.metadata, name, namespace: 'c1' } })
}
type Status = NonNullable<ManagedClusterAddOn['status']>

/** As an add-on's own controller writes its status. */
const say = async (name: string, more: Status): Promise<void> =>
  eventually(async () => {
    const { status, ...rest } = await addOns().get(name)
    await addOns()
      .updateStatus({ ...rest, status: { ...status, ...more } })
      .catch((error: unknown) => {
        assert.ok(isConflict(error))
        throw error
      })
  }, patience)

const template = async (addonName: string, manifests: object[]): Promise<{ spec: object }> => {
  const spec = { addonName, agentSpec: { workload: { manifests } }, registration: [{ type: 'KubeClient' as const }] }
  await scene.hub
    .client()
    .of(AddOnTemplate)
    .create({ metadata: { name: addonName }, spec: spec as AddOnTemplate['spec'] })
  return { spec: { configs: [{ group, resource: AddOnTemplate.plural, name: addonName }] } }
}

/** The certificate request of an add-on, once there is one that nobody has answered. */
const requestOf = (name: string): Promise<string> =>
  eventually(async () => {
    const { items } = await csrs().list({ labelSelector: `${label.addOnName}=${name}` })
    return (
      items.find(({ status }) => !status?.conditions?.length)?.metadata.name ?? assert.fail(`${name} has not asked yet`)
    )
  }, patience)

const plant = async (): Promise<void> => {
  // The first by its name: on a slow machine others are missed by their leases too, and named behind it.
  const renewTime = '2020-01-01T00:00:00.000000Z'
  const leases = scene.managed.client().of(Lease, place)
  const spec = { holderIdentity: 'x', leaseDurationSeconds: 60, renewTime }
  await leases.create({ metadata: { name: 'a-leased', namespace: place }, spec })
  await enable('a-leased')
  await say('a-leased', { registrations: [] })
  await enable('ghost')
  await enable('with.dots')
  await say('with.dots', { registrations: [] })
  await enable('lost', { spec: { configs: [{ group, resource: AddOnTemplate.plural, name: 'nowhere-to-be-found' }] } })
  const config = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x', namespace: 'nowhere' } }
  const homeless = await template('homeless', [config])
  await enable('homeless', { ...homeless, metadata: { annotations: { [annotation.installNamespace]: 'nowhere' } } })
  for (const name of ['m-denied', 'n-unapproved']) {
    await enable(name)
    await say(name, { registrations: [{ type: 'kubeClient' }], healthCheck: { mode: 'Customized' } })
  }
  await enable('o-unsigned')
  const registrations = [{ type: 'customSigner' as const, customSigner: { signerName: 'example.com/nobody' } }]
  await say('o-unsigned', { registrations, healthCheck: { mode: 'Customized' } })
  await scene.hub.kubectl(['certificate', 'deny', await requestOf('m-denied')])
  await scene.hub.kubectl(['certificate', 'approve', await requestOf('o-unsigned')])
}

/** An agent that does nothing any more, until doctor replaces it. */
const freezeAgent = async (): Promise<void> => {
  const { items } = await scene.managed.client().of(Pod, agentPlace).list()
  for (const { metadata } of items)
    for (const pid of scene.runners.managed.pids(agentPlace, metadata.name!)) process.kill(pid, 'SIGSTOP')
}

test('R2.47 addon-not-installed: an add-on whose rule cannot be read is enabled by hand', async () => {
  const annotations = { 'addon.open-cluster-management.io/install-on': 'everywhere' }
  const catalogue = scene.hub.client().of(ClusterManagementAddOn)
  await catalogue.create({ metadata: { name: 'ruled', annotations }, spec: {} })
  const { command } = await scene.heals('addon-not-installed')
  assert.match(command, /^clusteradm addon enable --names ruled --clusters c1 /)
  await addOns().delete('ruled')
  await catalogue.delete('ruled')
})

test('R2.47 addon-unavailable: an add-on that stopped renewing its lease is named', async () => {
  const { why, command } = await scene.finds('addon-unavailable')
  assert.match(why, /^add-on a-leased: a-leased add-on is not available: it stopped renewing its lease\./)
  assert.match(command, new RegExp(`-n ${place} get pods,leases$`))
  await addOns().delete('a-leased')
})

test('R2.47 addon-unknown: an add-on that nobody on the hub knows goes', async () => {
  const { why, command } = await scene.heals('addon-unknown')
  assert.match(why, /^add-on ghost: the hub has no ClusterManagementAddOn ghost/)
  assert.match(command, /-n c1 delete managedclusteraddon ghost$/)
})

test('R2.47 addon-invalid: an add-on with a name that cannot be used goes', async () => {
  assert.match((await scene.heals('addon-invalid')).command, /delete managedclusteraddon with\.dots$/)
})

test('R2.47 addon-misconfigured: what an add-on is configured with and does not exist is named', async () => {
  const { why, command } = await scene.finds('addon-misconfigured')
  assert.match(why, /AddOnTemplate nowhere-to-be-found does not exist: create it, or remove it from spec\.configs/)
  assert.match(command, /-n c1 edit managedclusteraddon lost$/)
  await addOns().delete('lost')
})

test('R2.47 addon-not-deployed and addon-namespace-missing: an install namespace that is made heals both', async () => {
  await scene.finds('addon-not-deployed')
  assert.match((await scene.heals('addon-namespace-missing')).command, /create namespace nowhere$/)
  await eventually(async () => assert.ok(isTrue(await addOns().get('homeless'), 'ManifestApplied')), patience)
  await addOns().delete('homeless')
})

test('R2.47 addon-csr-denied: the refused request goes, and the agent asks anew', async () => {
  assert.match((await scene.heals('addon-csr-denied')).command, /delete csr addon-c1-m-denied-/)
})

test('R2.47 addon-csr-pending: a request that nobody has answered is approved, and the add-on gets its certificate', async () => {
  await scene.hub.kubectl(['certificate', 'approve', await requestOf('m-denied')])
  assert.match((await scene.heals('addon-csr-pending')).command, /certificate approve addon-c1-n-unapproved-/)
  for (const name of ['m-denied', 'n-unapproved'])
    await eventually(async () => assert.ok(isTrue(await addOns().get(name), 'ClusterCertificateRotated')), patience)
})

test('R2.47 addon-signer-missing: a signer that nobody serves is named', async () => {
  const { why, command } = await scene.finds('addon-signer-missing')
  assert.match(why, /nobody on the hub signs for example\.com\/nobody/)
  assert.match(command, /describe csr addon-c1-o-unsigned-/)
  for (const name of ['m-denied', 'n-unapproved', 'o-unsigned']) await addOns().delete(name)
  await scene.healthy()
})

test('R2.47 addon-account-missing: an account of the same name that somebody else made gives way', async () => {
  // A lifetime that no hub issues, for the next test: it is shown when this is healed, and old by then.
  const driver = { authType: 'token', token: { expirationSeconds: 60 } }
  const spec = { registrationConfiguration: { addOnKubeClientRegistrationDriver: driver } }
  await scene.managed.client().of(Klusterlet).patch('klusterlet', { merge: { spec } })
  const metadata = { name: 'c1-taken-agent', namespace: 'c1' }
  await scene.hub.client().of(ServiceAccount).create({ metadata })
  for (const name of ['hello', 'taken']) await enable(name, await template(name, []))
  const { why, command } = await scene.heals('addon-account-missing')
  assert.match(why, /c1-taken-agent exists and was not made for this add-on/)
  assert.match(command, /-n c1 delete serviceaccount c1-taken-agent$/)
})

test('R2.47 addon-credential-failing: a lifetime that no hub issues is taken out of the Klusterlet', async () => {
  const { why, command } = await scene.heals('addon-credential-failing')
  assert.match(why, /--addon-token-expiration-seconds .* is 60/)
  assert.match(command, /patch klusterlet klusterlet --type=json/)
  for (const name of ['hello', 'taken'])
    await eventually(async () => assert.ok(isTrue(await addOns().get(name), 'AddonTokenRefreshed')), patience)
  await addOns().delete('taken')
})

test('R2.47 addon-token-expired, addon-secret-missing, addon-registration-failed: an agent that hangs is replaced, and puts all right', async () => {
  const secrets = scene.managed.client().of(Secret, place)
  const name = 'hello-hub-kubeconfig'
  await freezeAgent()
  const data = { expiration: Buffer.from('2020-01-01T00:00:00Z').toString('base64') }
  await secrets.patch(name, { merge: { data } })
  const subject = { user: 'system:serviceaccount:kube-system:admin' }
  await say('hello', { registrations: [{ type: 'kubeClient', kubeClient: { driver: 'token', subject } }] })
  await scene.finds('addon-token-expired')
  await secrets.delete(name)
  await scene.finds('addon-secret-missing')
  const { why, command } = await scene.heals('addon-registration-failed')
  assert.match(why, /kube-system:admin.* is no account of this add-on/)
  assert.match(command, /delete pod -l app=klusterlet-agent/)
  await eventually(async () => assert.ok((await secrets.get(name)).data?.['token']), patience)
})
