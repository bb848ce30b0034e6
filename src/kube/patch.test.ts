import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { failureOf } from '../../testkit/failures.ts'
import { startControlPlane, type ControlPlane } from '../../testkit/index.ts'
import { ConfigMap, isConflict, isInvalid, isNotFound, ServiceAccount, type ResourceClient } from './index.ts'

let plane: ControlPlane
let configMaps: ResourceClient<ConfigMap>
before(async () => {
  plane = await startControlPlane({ controllerManager: false })
  configMaps = plane.client().of(ConfigMap, 'default')
})
after(() => plane?.stop())

test('R0.8 a JSON patch does its steps in order, all or none', async () => {
  await configMaps.create({ metadata: { name: 'json' }, data: { a: '1', b: '2' } })
  const patched = await configMaps.patch('json', {
    json: [
      { op: 'test', path: '/data/a', value: '1' },
      { op: 'replace', path: '/data/a', value: '3' },
      { op: 'remove', path: '/data/b' },
    ],
  })
  assert.deepEqual(patched.data, { a: '3' })

  const untrue = {
    json: [
      { op: 'remove', path: '/data/a' },
      { op: 'test', path: '/metadata/name', value: 'other' },
    ],
  }
  assert.ok(isInvalid(await failureOf(configMaps.patch('json', untrue))))
  assert.deepEqual((await configMaps.get('json')).data, { a: '3' })
})

test('R0.8 a merge patch adds, replaces and removes by null', async () => {
  await configMaps.create({ metadata: { name: 'merge' }, data: { a: '1', b: '2' } })
  const patched = await configMaps.patch('merge', { merge: { data: { a: null, b: '3', c: '4' } } })
  assert.deepEqual(patched.data, { b: '3', c: '4' })

  const stale = { merge: { metadata: { resourceVersion: '1' }, data: { a: '9' } } }
  assert.ok(isConflict(await failureOf(configMaps.patch('merge', stale))))
  assert.ok(isNotFound(await failureOf(configMaps.patch('none', { merge: {} }))))
})

test('R0.8 a strategic merge patch merges lists by their keys', async () => {
  const accounts = plane.client().of(ServiceAccount, 'default')
  await accounts.create({ metadata: { name: 'strategic' }, secrets: [{ name: 'a' }, { name: 'b' }] })
  const patched = await accounts.patch('strategic', {
    strategic: { secrets: [{ name: 'c' }, { name: 'a', $patch: 'delete' }] },
  })
  assert.deepEqual(patched.secrets, [{ name: 'c' }, { name: 'b' }])
})

test('R0.8 apply creates, then changes and drops what its manager owns, and leaves the rest', async () => {
  const metadata = { name: 'applied' }
  const created = await configMaps.apply({ metadata, data: { a: '1', b: '1' } }, { fieldManager: 'one' })
  assert.ok(created.metadata.uid)
  await configMaps.apply({ metadata, data: { c: '1' } }, { fieldManager: 'two' })

  const changed = await configMaps.apply({ metadata, data: { a: '2' } }, { fieldManager: 'one' })

  assert.deepEqual(changed.data, { a: '2', c: '1' })
})

test('R0.8 apply does not take what another manager owns, unless it is forced', async () => {
  const metadata = { name: 'contested' }
  await configMaps.apply({ metadata, data: { a: 'one' } }, { fieldManager: 'one' })

  const error = await failureOf(configMaps.apply({ metadata, data: { a: 'two' } }, { fieldManager: 'two' }))
  assert.ok(isConflict(error))
  assert.deepEqual(
    error.details.causes?.map(({ reason, field }) => [reason, field]),
    [['FieldManagerConflict', '.data.a']],
  )
  assert.equal((await configMaps.get('contested')).data?.['a'], 'one')

  const forced = await configMaps.apply({ metadata, data: { a: 'two' } }, { fieldManager: 'two', force: true })
  assert.equal(forced.data?.['a'], 'two')
})

test('R0.8 what came from a list, without kind and version, can be applied as it is', async () => {
  await configMaps.create({ metadata: { name: 'listed' }, data: { a: '1' } }, { fieldManager: 'creator' })
  const { items } = await configMaps.list({ fieldSelector: 'metadata.name=listed' })
  assert.equal(items[0]!.kind, undefined)
  const object = {
    ...items[0]!,
    metadata: { name: 'listed' },
    apiVersion: undefined,
    kind: undefined,
    data: { b: '2' },
  }
  assert.deepEqual((await configMaps.apply(object, { fieldManager: 'test' })).data, { a: '1', b: '2' })
  const { managedFields } = (await configMaps.get('listed')).metadata
  assert.deepEqual((managedFields as { manager: string }[]).map(({ manager }) => manager).sort(), ['creator', 'test'])
})
