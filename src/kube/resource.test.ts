import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { ClusterRole, ConfigMap, Namespace, pathOf, type Client } from './index.ts'
import { ResourceClient } from './resource-client.ts'

test('R0.8 paths of collections, objects and sub-resources, in the core group and in others', () => {
  assert.equal(pathOf(ConfigMap), '/api/v1/configmaps')
  assert.equal(pathOf(ConfigMap, { namespace: 'a' }), '/api/v1/namespaces/a/configmaps')
  assert.equal(pathOf(ConfigMap, { namespace: 'a', name: 'b' }), '/api/v1/namespaces/a/configmaps/b')
  assert.equal(pathOf(Namespace, { namespace: 'a', name: 'b', subresource: 'status' }), '/api/v1/namespaces/b/status')
  assert.equal(
    pathOf(ClusterRole, { name: 'system:node' }),
    '/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode',
  )
})

test('R0.8 any name stays within its own part of the path', () => {
  const name = fc.string({ unit: 'binary', minLength: 1 }).filter((s) => s !== '.' && s !== '..' && s.isWellFormed())
  fc.assert(
    fc.property(name, name, (namespace, name) => {
      const path = pathOf(ConfigMap, { namespace, name, subresource: 'status' })
      const [, api, version, namespaces, inNamespace, plural, object, subresource, ...more] = path.split('/')
      assert.deepEqual(
        [api, version, namespaces, plural, subresource],
        ['api', 'v1', 'namespaces', 'configmaps', 'status'],
      )
      assert.equal(decodeURIComponent(inNamespace!), namespace)
      assert.equal(decodeURIComponent(object!), name)
      assert.deepEqual(more, [])
      // and a URL is not normalised into another one
      assert.equal(new URL(path, 'https://host').pathname, path)
      assert.doesNotMatch(path, /[?#\s]/)
    }),
  )
})

test('R0.8 what would name other objects than the one meant is refused before anything is sent', async () => {
  const nothing = { json: () => assert.fail('something was sent') } as unknown as Client
  const configMaps = new ResourceClient(nothing, ConfigMap, 'default')
  for (const name of ['', '.', '..', '\ud800']) {
    // without a name, this would be the path of all config maps
    await assert.rejects(configMaps.delete(name), /cannot be the name of a ConfigMap/)
    await assert.rejects(configMaps.get(name), /cannot be the name of a ConfigMap/)
    await assert.rejects(configMaps.update({ metadata: { name } }), /cannot be the name of a ConfigMap/)
  }
  await assert.rejects(configMaps.update({ metadata: {} }), /cannot be the name of a ConfigMap/)
  await assert.rejects(new ResourceClient(nothing, ConfigMap, '..').list(), /cannot be the namespace of a ConfigMap/)
})

test('R0.8 a namespace that is missing is named before anything is sent', async () => {
  const nothing = { json: () => assert.fail('something was sent') } as unknown as Client
  const everywhere = new ResourceClient(nothing, ConfigMap)
  const missing = /ConfigMap \w+ has no namespace: give one with client.of/
  await assert.rejects(everywhere.get('a'), missing)
  await assert.rejects(everywhere.create({ metadata: { name: 'a' } }), missing)
  await assert.rejects(everywhere.apply({ metadata: { name: 'a' } }, { fieldManager: 'test' }), missing)
  await assert.rejects(everywhere.deleteAll(), missing)
})
