import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eventually, startControlPlane, type ControlPlane } from '../../testkit/index.ts'
import { CustomResourceDefinition, KindMapper, type Unstructured } from './index.ts'

let plane: ControlPlane
before(async () => (plane = await startControlPlane({ controllerManager: false })))
after(() => plane?.stop())

const definition = (plural: string, kind: string): CustomResourceDefinition => ({
  metadata: { name: `${plural}.example.com` },
  spec: {
    group: 'example.com',
    names: { kind, plural },
    scope: 'Namespaced',
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
})

test('R0.8 a kind is found with its plural, scope and verbs, in the core group and in others', async () => {
  const kinds = new KindMapper(plane.client())
  const { verbs, ...secret } = (await kinds.find({ apiVersion: 'v1', kind: 'Secret' }))!
  assert.deepEqual(secret, { group: '', version: 'v1', kind: 'Secret', plural: 'secrets', namespaced: true })
  assert.ok(verbs.includes('watch') && verbs.includes('deletecollection'))
  const role = await kinds.of({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name: 'a' },
  })
  assert.equal(role.plural, 'clusterroles')
  assert.equal(role.namespaced, false)
})

test('R0.8 a kind that is not served is undefined, or an error that says what is missing', async () => {
  const kinds = new KindMapper(plane.client())
  assert.equal(await kinds.find({ apiVersion: 'v1', kind: 'Scroll' }), undefined)
  assert.equal(await kinds.find({ apiVersion: 'none.example/v1', kind: 'Secret' }), undefined)
  await assert.rejects(
    kinds.of({ apiVersion: 'none.example/v1', kind: 'Scroll', metadata: { name: 'a' } }),
    /^Error: https:\S+ does not serve Scroll of none.example\/v1: install its CRD, or check the spelling$/,
  )
  await assert.rejects(kinds.of({ metadata: { name: 'a' } }), /object a has no apiVersion or kind: add both/)
  await assert.rejects(kinds.of({} as Unstructured), /object \(without a name\) has no apiVersion or kind/)
})

test('R0.8 an apiVersion that anybody wrote cannot lead to another path', async () => {
  const kinds = new KindMapper(plane.client({ user: 'path-finder', groups: ['system:masters'] }))
  const hostile = [
    '',
    '/',
    'v1/',
    '/v1',
    'a/b/c',
    '../api/v1',
    'v1/../../version',
    'v1?x=',
    'v1#',
    'v1/namespaces%2fa',
    'v1\n',
  ]
  for (const apiVersion of hostile) assert.equal(await kinds.find({ apiVersion, kind: 'Secret' }), undefined)
  assert.equal((await plane.requestsBy({ user: 'path-finder' })).total, 0)
})

test('R0.8 a group and version is asked for once by many, and once more for a kind that is not there', async () => {
  const kinds = new KindMapper(plane.client({ user: 'asks-once', groups: ['system:masters'] }))
  const asked = async (): Promise<number> => (await plane.requestsBy({ user: 'asks-once' })).total

  await Promise.all(['Secret', 'ConfigMap', 'Pod'].map((kind) => kinds.find({ apiVersion: 'v1', kind })))
  await kinds.find({ apiVersion: 'v1', kind: 'Secret' })
  assert.equal(await asked(), 1)

  await Promise.all(Array.from({ length: 5 }, () => kinds.find({ apiVersion: 'v1', kind: 'Scroll' })))
  assert.equal(await asked(), 2)

  await kinds.find({ apiVersion: 'none.example/v1', kind: 'Scroll' })
  assert.equal(await asked(), 3)
})

test('R0.8 a kind whose CRD is installed after the first look is found', async () => {
  const client = plane.client()
  const kinds = new KindMapper(client)
  const scroll = { apiVersion: 'example.com/v1', kind: 'Scroll' }
  assert.equal(await kinds.find(scroll), undefined)

  await client.of(CustomResourceDefinition).create(definition('scrolls', 'Scroll'))
  const found = await eventually(async () => (await kinds.find(scroll)) ?? false)
  assert.equal(found.plural, 'scrolls')

  await client.of(CustomResourceDefinition).create(definition('quills', 'Quill'))
  await eventually(async () => (await kinds.find({ ...scroll, kind: 'Quill' })) ?? false)
  assert.equal((await client.of(found, 'default').list()).items.length, 0)
  assert.ok((await kinds.groupVersions()).includes('example.com/v1'))
})

test('R0.8 whoever stops waiting does not end the question for the others', async () => {
  const kinds = new KindMapper(plane.client())
  const stop = new AbortController()
  const left = kinds.find({ apiVersion: 'v1', kind: 'Secret' }, { signal: stop.signal })
  const stayed = kinds.find({ apiVersion: 'v1', kind: 'Secret' })
  stop.abort(new Error('gone'))

  await assert.rejects(left, /gone/)
  assert.equal((await stayed)?.plural, 'secrets')
})

test('R0.8 a question that failed is asked again', async () => {
  const client = plane.client()
  const kinds = new KindMapper(client)
  await assert.rejects(kinds.served('apps/v1', { timeoutMs: 0 }), /no answer within 0 s/)
  assert.ok((await kinds.served('apps/v1')).some(({ kind }) => kind === 'Deployment'))
})

test('R0.8 groups and versions: the core first, then each group with its preferred version first', async () => {
  const versions = await new KindMapper(plane.client()).groupVersions()
  assert.equal(versions[0], 'v1')
  assert.ok(versions.includes('apps/v1'))
  assert.ok(
    versions.indexOf('autoscaling/v2') < (versions.indexOf('autoscaling/v1') + versions.length) % versions.length,
  )
})
