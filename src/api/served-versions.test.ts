import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startControlPlane, type ControlPlane } from '../../testkit/index.ts'
import { Namespace, type Client } from '../kube/index.ts'
import { converting, webhookServer, type WebhookServer } from '../runtime/webhook/index.ts'
import { ClusterManagementAddOn, conversions, crds, installCrds, ManagedClusterAddOn } from './index.ts'

let plane: ControlPlane
let webhook: WebhookServer
let client: Client
before(async () => {
  plane = await startControlPlane({ controllerManager: false, audit: false })
  const certificate = plane.serverCertificate()
  webhook = webhookServer({
    host: '127.0.0.1',
    port: 0,
    certificate: () => certificate,
    routes: { '/convert': converting(conversions) },
  })
  await webhook.start()
  client = plane.client()
  const url = `https://127.0.0.1:${webhook.port}/convert`
  await installCrds(client, crds({ conversion: { url, caBundle: Buffer.from(plane.ca).toString('base64') } }))
  await client.of(Namespace).create({ metadata: { name: 'cluster1' } })
})
after(async () => {
  await webhook.stop()
  await plane.stop()
})

test('R0.35 an add-on written as v1alpha1 is read as v1beta1, and back, with nothing lost', async () => {
  const old = client.of(ManagedClusterAddOn.versions.v1alpha1, 'cluster1')
  const now = client.of(ManagedClusterAddOn, 'cluster1')
  await old.create({ metadata: { name: 'a', namespace: 'cluster1' }, spec: { installNamespace: 'addon-ns' } })
  const created = await old.get('a')
  await old.updateStatus({
    ...created,
    status: {
      kubeClientDriver: 'token',
      registrations: [
        {
          signerName: 'kubernetes.io/kube-apiserver-client',
          subject: { user: 'u', groups: ['g'], organizationUnit: [] },
        },
        { signerName: 'example.com/signer', subject: { user: 'x', groups: [], organizationUnit: ['ou'] } },
      ],
    },
  })

  const seen = await now.get('a')
  assert.deepEqual(
    seen.status?.registrations?.map((r) => r.type),
    ['kubeClient', 'customSigner'],
  )
  assert.equal(seen.status?.registrations?.[0]?.kubeClient?.driver, 'token')
  assert.deepEqual(seen.status?.registrations?.[1]?.customSigner?.subject?.organizationUnits, ['ou'])

  await now.patch('a', { merge: { metadata: { labels: { touched: 'yes' } } } })
  const back = await old.get('a')
  assert.equal(back.spec?.installNamespace, 'addon-ns')
  assert.equal(back.status?.kubeClientDriver, 'token')
  assert.equal(back.status?.registrations?.[1]?.signerName, 'example.com/signer')
  assert.equal(back.metadata.labels?.['touched'], 'yes')
})

test('R0.35 both versions can be listed, watched and applied at the same time', async () => {
  const old = client.of(ManagedClusterAddOn.versions.v1alpha1, 'cluster1')
  const now = client.of(ManagedClusterAddOn, 'cluster1')
  await now.apply({ metadata: { name: 'b', namespace: 'cluster1' } }, { fieldManager: 'new', force: true })
  await old.apply(
    { metadata: { name: 'b', namespace: 'cluster1' }, spec: { installNamespace: 'other' } },
    { fieldManager: 'old', force: true },
  )
  const [olds, news] = await Promise.all([old.list(), now.list()])
  assert.deepEqual(
    olds.items.map((o) => o.metadata.name),
    news.items.map((o) => o.metadata.name),
  )
  const stop = new AbortController()
  for await (const batch of await old.watch({ fieldSelector: 'metadata.name=b', signal: stop.signal })) {
    const [event] = batch
    assert.ok(event?.type === 'ADDED')
    assert.equal(event.object.apiVersion, 'addon.open-cluster-management.io/v1alpha1')
    assert.equal(event.object.spec?.installNamespace, 'other')
    break
  }
  stop.abort()
})

test('R0.35 ClusterManagementAddOn converts as well', async () => {
  const metadata = { name: 'a' }
  await client
    .of(ClusterManagementAddOn.versions.v1alpha1)
    .create({ metadata, spec: { supportedConfigs: [{ group: 'g', resource: 'r', defaultConfig: { name: 'n' } }] } })
  const seen = await client.of(ClusterManagementAddOn).get('a')
  assert.equal(seen.spec?.defaultConfigs?.[0]?.name, 'n')
})
