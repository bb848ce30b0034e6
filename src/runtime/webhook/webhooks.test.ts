import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eventually, startControlPlane, type ControlPlane } from '../../../testkit/index.ts'
import { ApiError, ConfigMap, CustomResourceDefinition, isInvalid, resource } from '../../kube/index.ts'
import type { Client, KubeObject, Unstructured } from '../../kube/index.ts'
import {
  caBundlePublisher,
  converting,
  mutating,
  MutatingWebhookConfiguration,
  validating,
  ValidatingWebhookConfiguration,
  webhookCertificates,
  webhookServer,
  type Webhook,
  type WebhookServer,
} from './index.ts'

interface Widget extends KubeObject {
  spec: { size?: number; colour?: string }
}
interface WidgetV2 extends KubeObject {
  spec: { dimensions: { size?: number }; colour?: string }
}
const group = 'webhook.test'
const names = { kind: 'Widget', plural: 'widgets', namespaced: true }
const Widget = resource<Widget>({ group, version: 'v1', ...names })
const WidgetV2 = resource<WidgetV2>({ group, version: 'v2', ...names })

const evenSize = validating<Widget>(({ object }) => {
  const size = object?.spec.size ?? 0
  if (size % 2) return { reason: 'Invalid', message: `${size} is odd: use an even number`, field: 'spec.size' }
  return size > 1000 ? { warnings: ['a widget this large\nis slow'] } : undefined
})

const defaultColour = mutating<Widget>(({ object }) => {
  object!.spec.colour ??= 'green'
  return object
})

const convertWidget = (object: Unstructured, toApiVersion: string): Unstructured => {
  const { size, dimensions, ...spec } = object['spec'] as Widget['spec'] & Partial<WidgetV2['spec']>
  if (size === 666) throw new Error('a size of 666 has no meaning in v2')
  return toApiVersion.endsWith('v2')
    ? { ...object, spec: { ...spec, dimensions: { size } } }
    : { ...object, spec: { ...spec, size: dimensions?.size } }
}

let plane: ControlPlane
let client: Client
let server: WebhookServer
let publish: ReturnType<typeof caBundlePublisher>
let caBundle: string

before(async () => {
  plane = await startControlPlane({ controllerManager: false })
  client = plane.client()
  publish = caBundlePublisher({
    client: plane.client({ user: 'publisher', groups: ['system:masters'], userAgent: 'publisher' }),
    validating: { names: ['widgets', 'not-there-yet'] },
    mutating: { labelSelector: 'ours=yes' },
    definitions: { names: ['widgets.webhook.test'] },
  })
  const certificates = webhookCertificates({
    client,
    namespace: 'default',
    secretName: 'webhooks',
    dnsNames: [],
    ipAddresses: ['127.0.0.1'],
  })
  await certificates.ensure()
  const routes = {
    '/even-size': evenSize,
    '/default-colour': defaultColour,
    '/convert': converting({ 'webhook.test/Widget': convertWidget }),
    '/broken': validating(() => {
      throw new Error('secret detail')
    }),
  }
  server = webhookServer({ host: '127.0.0.1', port: 0, certificate: certificates.current, routes })
  await server.start()
  await install()
  caBundle = certificates.current().caBundle
  assert.deepEqual(await publish(caBundle), [
    'ValidatingWebhookConfiguration widgets',
    'MutatingWebhookConfiguration widgets',
    'CustomResourceDefinition widgets.webhook.test',
  ])
  assert.deepEqual(await publish(caBundle), [])
  // all three have arrived when they all have their effect
  const odd = { metadata: { name: 'probe', namespace: 'default' }, spec: { size: 1 } }
  await eventually(() => assert.rejects(client.of(Widget).create(odd, { dryRun: true }), isInvalid))
  const plain = { metadata: { name: 'probe', namespace: 'default' }, spec: { dimensions: {} } }
  await eventually(async () => (await client.of(WidgetV2).create(plain, { dryRun: true })).spec.colour === 'green')
})
after(async () => {
  await server.stop()
  await plane.stop()
})

const clientConfig = (path: string) => ({ url: `https://127.0.0.1:${server.port}${path}` })

const install = async (): Promise<void> => {
  const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } }
  await client.of(CustomResourceDefinition).create({
    metadata: { name: 'widgets.webhook.test' },
    spec: {
      group,
      names,
      scope: 'Namespaced',
      versions: [
        { name: 'v1', served: true, storage: true, schema },
        { name: 'v2', served: true, storage: false, schema },
      ],
      conversion: {
        strategy: 'Webhook',
        webhook: { clientConfig: clientConfig('/convert'), conversionReviewVersions: ['v1'] },
      },
    },
  })
  const webhook = (path: string, resources: string[], apiGroups = [group]): Webhook => ({
    name: `${path.slice(1)}.webhook.test`,
    clientConfig: clientConfig(path),
    rules: [{ operations: ['CREATE', 'UPDATE'], apiGroups, apiVersions: ['v1'], resources }],
    admissionReviewVersions: ['v1'],
    sideEffects: 'None',
  })
  const broken = { ...webhook('/broken', ['configmaps'], ['']), objectSelector: { matchLabels: { break: 'yes' } } }
  await client.of(ValidatingWebhookConfiguration).create({
    metadata: { name: 'widgets' },
    webhooks: [webhook('/even-size', ['widgets']), broken],
  })
  await client.of(MutatingWebhookConfiguration).create({
    metadata: { name: 'widgets', labels: { ours: 'yes' } },
    webhooks: [webhook('/default-colour', ['widgets'])],
  })
}

const widget = (name: string, spec: Widget['spec']): Widget => ({ metadata: { name, namespace: 'default' }, spec })
const kubectlApply = (object: Widget, ...args: string[]): Promise<string> =>
  plane.kubectl(['apply', '-f', '-', ...args], {
    input: JSON.stringify({ apiVersion: 'webhook.test/v1', kind: 'Widget', ...object }),
  })

test('R0.30 a validating webhook denies, and the client gets the message and the field', async () => {
  const error = await client
    .of(Widget)
    .create(widget('odd', { size: 3 }))
    .catch((caught: unknown) => caught)
  assert.ok(error instanceof ApiError && isInvalid(error))
  assert.match(error.serverMessage, /even-size\.webhook\.test.* denied the request: spec\.size: 3 is odd: use an even/)
  assert.deepEqual(error.details.causes, [
    { reason: 'FieldValueInvalid', field: 'spec.size', message: '3 is odd: use an even number' },
  ])
})

test('R0.30 a person with kubectl sees the message and the field, and warnings', async () => {
  const denied = /The Widget "odd" is invalid: spec\.size: 3 is odd: use an even number/
  await assert.rejects(kubectlApply(widget('odd', { size: 3 })), denied)
  const warned = kubectlApply(widget('large', { size: 2000 }), '--warnings-as-errors')
  await assert.rejects(warned, /Warning: a widget this large is slow/)
})

test('R0.30 a webhook that fails denies, says which one it was, and no more', async () => {
  const object = { metadata: { name: 'broken', namespace: 'default', labels: { break: 'yes' } } }
  const error = await client
    .of(ConfigMap)
    .create(object)
    .catch((caught: unknown) => caught)
  assert.ok(error instanceof ApiError)
  assert.equal(error.status, 500)
  assert.match(error.serverMessage, /webhook \/broken failed; its log says why/)
  assert.doesNotMatch(error.serverMessage, /secret detail/)
})

test('R0.30 a mutating webhook fills in a field, and leaves one that is set', async () => {
  const widgets = client.of(Widget)
  assert.equal((await widgets.create(widget('plain', { size: 2 }))).spec.colour, 'green')
  assert.equal((await widgets.create(widget('red', { colour: 'red' }))).spec.colour, 'red')
  assert.deepEqual((await client.of(Widget, 'default').get('plain')).spec, { size: 2, colour: 'green' })
})

test('R0.30 objects are converted both ways, one by one and in lists', async () => {
  const v1 = client.of(Widget, 'default')
  const v2 = client.of(WidgetV2, 'default')
  const written = await v1.create(widget('from-v1', { size: 4 }))
  const read = await v2.get('from-v1')
  assert.deepEqual(read.spec, { dimensions: { size: 4 }, colour: 'green' })
  assert.equal(read.apiVersion, 'webhook.test/v2')
  const { managedFields: _v1, ...before } = written.metadata
  const { managedFields: _v2, ...after } = read.metadata
  assert.deepEqual(after, before)

  const metadata = { name: 'from-v2', namespace: 'default', labels: { made: 'v2' }, finalizers: ['webhook.test/f'] }
  await v2.create({ metadata, spec: { dimensions: { size: 6 } } })
  const back = await v1.get('from-v2')
  assert.deepEqual(back.spec, { size: 6, colour: 'green' })
  assert.deepEqual([back.metadata.labels, back.metadata.finalizers], [{ made: 'v2' }, ['webhook.test/f']])

  const { items } = await v2.list()
  const sizes = Object.fromEntries(items.map((item) => [item.metadata.name, item.spec.dimensions.size]))
  assert.deepEqual([sizes['from-v1'], sizes['from-v2']], [4, 6])
})

test('R0.30 an object that cannot be converted is named to whoever asks for it', async () => {
  await client.of(Widget).create(widget('beast', { size: 666 }))
  const refused = /Widget default\/beast of webhook\.test\/v1 cannot be converted to webhook\.test\/v2: a size of 666/
  await assert.rejects(client.of(WidgetV2, 'default').get('beast'), refused)
  await client.of(Widget, 'default').delete('beast')
})

test('R0.31 a bundle is written where it is missing, and nothing is read again that did not change', async () => {
  const reads = async (since: Date) => (await plane.requestsBy('publisher', { since })).byVerb
  await publish(caBundle) // the API server has written a status into the CRD since the last time
  let since = new Date()
  assert.deepEqual(await publish(caBundle), [])
  assert.deepEqual(await reads(since), { list: 4 })

  const configurations = client.of(ValidatingWebhookConfiguration)
  const path = '/webhooks/1/clientConfig/caBundle'
  await configurations.patch('widgets', { json: [{ op: 'remove', path }] })
  const late = { name: 'late.webhook.test', clientConfig: clientConfig('/even-size'), sideEffects: 'None' } as const
  const webhooks = [{ ...late, admissionReviewVersions: ['v1'] }]
  await configurations.create({ metadata: { name: 'not-there-yet' }, webhooks })
  since = new Date()
  assert.deepEqual(await publish(caBundle), [
    'ValidatingWebhookConfiguration widgets',
    'ValidatingWebhookConfiguration not-there-yet',
  ])
  assert.deepEqual(await reads(since), { list: 4, get: 2, update: 2 })
  for (const name of ['widgets', 'not-there-yet'])
    for (const webhook of (await configurations.get(name)).webhooks!)
      assert.equal(Buffer.from(webhook.clientConfig.caBundle!, 'base64').toString(), caBundle)
})
