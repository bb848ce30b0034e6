import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { failureOf } from '../../testkit/failures.ts'
import { eventually, startControlPlane, type ControlPlane } from '../../testkit/index.ts'
import { createRequest } from '../runtime/pki/index.ts'
import {
  CertificateSigningRequest,
  clientFor,
  ConfigMap,
  isConflict,
  isExpired,
  isNotFound,
  Namespace,
  resource,
  ServiceAccount,
  type Client,
  type KubeObject,
  type ObjectList,
  type ResourceClient,
} from './index.ts'

interface Deployment extends KubeObject {
  spec: { replicas?: number; selector: object; template: object }
  status?: { replicas?: number; observedGeneration?: number }
}
const Deployment = resource<Deployment>({
  group: 'apps',
  version: 'v1',
  kind: 'Deployment',
  plural: 'deployments',
  namespaced: true,
})

let plane: ControlPlane
let client: Client
before(async () => {
  // pages come from etcd, which forgets what is older than a second or two, so that continue tokens expire
  const apiServerFlags = { 'etcd-compaction-interval': '1s', 'feature-gates': 'ListFromCacheSnapshot=false' }
  plane = await startControlPlane({ controllerManager: false, apiServerFlags })
  client = plane.client()
})
after(() => plane?.stop())

/** A namespace of the test's own. */
const namespaceFor = async (name: string): Promise<string> => {
  await client.of(Namespace).create({ metadata: { name } })
  return name
}

/** Config maps named 0, 1, … */
const withConfigMaps = async (namespace: string, count: number): Promise<ResourceClient<ConfigMap>> => {
  const configMaps = client.of(ConfigMap, await namespaceFor(namespace))
  const names = Array.from({ length: count }, (_, n) => String(n))
  await Promise.all(
    names.map((name) => configMaps.create({ metadata: { name, labels: { odd: String(+name % 2) } }, data: { name } })),
  )
  return configMaps
}

const namesOf = (list: ObjectList<KubeObject>): string[] => list.items.map(({ metadata }) => metadata.name!).sort()

const deployment = (name: string): Deployment => ({
  metadata: { name },
  spec: {
    replicas: 1,
    selector: { matchLabels: { app: name } },
    template: { metadata: { labels: { app: name } }, spec: { containers: [{ name: 'a', image: 'a' }] } },
  },
})

test('R0.8 what was created can be read, changed and deleted', async () => {
  const configMaps = client.of(ConfigMap, await namespaceFor('crud'))
  const created = await configMaps.create({ metadata: { name: 'a' }, data: { x: '1' } })
  assert.ok(created.metadata.uid && created.metadata.namespace === 'crud')
  assert.deepEqual(await configMaps.get('a'), created)
  assert.deepEqual(await configMaps.find('a'), created)
  assert.equal(await configMaps.find('b'), undefined)

  const updated = await configMaps.update({ ...created, data: { x: '2' } })
  assert.deepEqual(updated.data, { x: '2' })
  assert.ok(isConflict(await failureOf(configMaps.update({ ...created, data: { x: '3' } }))))

  assert.equal(await configMaps.delete('a'), true)
  assert.equal(await configMaps.delete('a'), false)
  const generated = await configMaps.create({ metadata: { generateName: 'made-' } })
  assert.match(generated.metadata.name!, /^made-\w+/)
})

test('R0.8 an object that carries its namespace needs no client for it', async () => {
  const everywhere = client.of(ConfigMap)
  const metadata = { name: 'a', namespace: await namespaceFor('own') }
  const created = await everywhere.create({ metadata })
  await everywhere.update({ ...created, data: { x: '1' } })
  await everywhere.apply({ metadata, data: { y: '1' } }, { fieldManager: 'test' })
  const found = (await everywhere.list({ fieldSelector: 'metadata.namespace=own' })).items
  assert.deepEqual(
    found.map(({ data }) => data),
    [{ x: '1', y: '1' }],
  )
})

test('R0.8 a list in pages is the same list, also when filtered or reduced to metadata', async () => {
  const configMaps = await withConfigMaps('pages', 7)
  const all = ['0', '1', '2', '3', '4', '5', '6']
  const pages = await eventually(() => Array.fromAsync(configMaps.pages({ limit: 3 })))

  assert.deepEqual(
    pages.map(({ items }) => items.length),
    [3, 3, 1],
  )
  for (const limit of [0, 1, 3, 7, 100, undefined]) assert.deepEqual(namesOf(await configMaps.list({ limit })), all)
  assert.deepEqual(namesOf(await configMaps.list({ limit: 1, resourceVersion: '0' })), all)
  assert.deepEqual(namesOf(await configMaps.list({ limit: 2, labelSelector: 'odd=1' })), ['1', '3', '5'])
  const reduced = await configMaps.list({ limit: 2, metadataOnly: true, labelSelector: 'odd=0' })
  assert.deepEqual(namesOf(reduced), ['0', '2', '4', '6'])
  assert.ok(reduced.items.every((item) => item.data === undefined && item.metadata.labels?.['odd'] === '0'))
  assert.ok(Number((await configMaps.list({ limit: 3 })).metadata.resourceVersion) > 0)
})

test('R0.8 a list whose continue token expires between two pages is fetched anew, and is whole', async (t) => {
  const configMaps = await withConfigMaps('expiry', 5)
  const { value: first } = await configMaps.pages({ limit: 2 }).next()
  const path = '/api/v1/namespaces/expiry/configmaps'
  const query = { limit: 2, continue: (first as ObjectList<ConfigMap>).metadata.continue }
  const expired = (): Promise<true> =>
    eventually(async () => {
      await configMaps.patch('0', { merge: { data: { at: String(Date.now()) } } })
      return client.json({ method: 'GET', path, query }).then(() => false, isExpired) as Promise<true>
    })
  // the credential is asked for before each request: that of the second page comes when its token is too old
  let requests = 0
  const { connection } = client
  const slow = clientFor({
    ...connection,
    credentials: async () => {
      if (++requests === 2) await expired()
      return connection.credentials()
    },
  })
  t.after(() => slow.close())

  const list = await slow.of(ConfigMap, 'expiry').list({ limit: 2 })

  assert.deepEqual(namesOf(list), ['0', '1', '2', '3', '4'])
  assert.equal(requests, 3)
})

test('R0.8 a dry run is checked like the real thing, and stores nothing', async () => {
  const configMaps = await withConfigMaps('dry', 1)
  const options = { dryRun: true }
  assert.ok((await configMaps.create({ metadata: { name: 'a' } }, options)).metadata.uid)
  await failureOf(configMaps.create({ metadata: { name: 'A B' } }, options))
  await configMaps.update({ metadata: { name: '0' }, data: { x: '1' } }, options)
  await configMaps.patch('0', { merge: { data: { x: '1' } } }, options)
  await configMaps.apply({ metadata: { name: 'b' } }, { fieldManager: 'test', ...options })
  assert.equal(await configMaps.delete('0', options), true)
  const { items } = await configMaps.list()
  assert.deepEqual(
    items.map(({ data }) => data),
    [{ name: '0' }],
  )
})

test('R0.8 only the object that was seen is deleted', async () => {
  const configMaps = await withConfigMaps('preconditions', 1)
  const { uid, resourceVersion } = (await configMaps.get('0')).metadata
  for (const preconditions of [{ uid: 'another' }, { uid, resourceVersion: '1' }])
    assert.ok(isConflict(await failureOf(configMaps.delete('0', { preconditions }))))
  assert.equal(await configMaps.delete('0', { preconditions: { uid, resourceVersion } }), true)
})

test('R0.8 how dependents are treated is up to the caller', async () => {
  const deployments = client.of(Deployment, await namespaceFor('propagation'))
  for (const [policy, finalizer] of [
    ['Foreground', 'foregroundDeletion'],
    ['Orphan', 'orphan'],
  ] as const) {
    await deployments.create(deployment(finalizer.toLowerCase()))
    await deployments.delete(finalizer.toLowerCase(), { propagationPolicy: policy })
    assert.deepEqual((await deployments.get(finalizer.toLowerCase())).metadata.finalizers, [finalizer])
  }
  await deployments.create(deployment('background'))
  await deployments.delete('background', { propagationPolicy: 'Background', gracePeriodSeconds: 0 })
  assert.equal(await deployments.find('background'), undefined)
})

test('R0.8 all that match a label are deleted in one request', async () => {
  const configMaps = await withConfigMaps('collection', 6)
  const before = (await plane.requestsBy('lanyard-testkit')).byVerb['deletecollection'] ?? 0
  await configMaps.deleteAll({ labelSelector: 'odd=1' })
  assert.deepEqual(namesOf(await configMaps.list()), ['0', '2', '4'])
  await configMaps.deleteAll()
  assert.deepEqual(namesOf(await configMaps.list()), [])
  assert.equal((await plane.requestsBy('lanyard-testkit')).byVerb['deletecollection'], before + 2)
})

test('R0.8 sub-resources: status and scale of a deployment', async () => {
  const deployments = client.of(Deployment, await namespaceFor('subresources'))
  const created = await deployments.create(deployment('a'))
  const scaled = { ...created, spec: { ...created.spec, replicas: 9 }, status: { replicas: 3, observedGeneration: 1 } }

  const { spec, status, metadata } = await deployments.updateStatus(scaled)
  assert.equal(spec.replicas, 1) // only the status is taken
  assert.equal(status?.replicas, 3)
  assert.ok(isConflict(await failureOf(deployments.updateStatus(created))))
  assert.equal(
    (await deployments.patch('a', { merge: { status: { replicas: 4 } } }, { subresource: 'status' })).status?.replicas,
    4,
  )

  interface Scale extends KubeObject {
    spec: { replicas: number }
  }
  const scale = await deployments.subresource<Scale>('a', 'scale', { method: 'GET' })
  await deployments.subresource('a', 'scale', { method: 'PUT', body: { ...scale, spec: { replicas: 5 } } })
  assert.equal((await deployments.get('a')).spec.replicas, 5)
  assert.notEqual(metadata.resourceVersion, scale.metadata.resourceVersion)
  assert.ok(isNotFound(await failureOf(deployments.subresource('b', 'scale', { method: 'GET' }))))
})

test('R0.8 sub-resources: the token of a service account and the approval of a certificate request', async () => {
  const accounts = client.of(ServiceAccount, await namespaceFor('tokens'))
  await accounts.create({ metadata: { name: 'robot' } })
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 600 } }
  const { status } = await accounts.subresource<{ status: { token: string } }>('robot', 'token', {
    method: 'POST',
    body,
  })
  const robot = clientFor({ ...client.connection, credentials: async () => ({ ca: plane.ca, token: status.token }) })
  assert.match(
    (await failureOf(robot.of(ConfigMap, 'tokens').list())).message,
    /"system:serviceaccount:tokens:robot" cannot list/,
  )
  robot.close()

  const requests = client.of(CertificateSigningRequest)
  const request = Buffer.from(createRequest({ commonName: 'ada' }).csr).toString('base64')
  const spec = { request, signerName: 'kubernetes.io/kube-apiserver-client', usages: ['client auth'] }
  const created = await requests.create({ metadata: { name: 'ada' }, spec })
  const approved = { type: 'Approved' as const, status: 'True' as const, reason: 'Test', message: 'by a test' }
  await requests.update({ ...created, status: { conditions: [approved] } }, { subresource: 'approval' })
  assert.equal((await requests.get('ada')).status?.conditions?.[0]?.type, 'Approved')
})
