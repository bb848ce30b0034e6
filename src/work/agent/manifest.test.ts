import assert from 'node:assert/strict'
import { test } from 'node:test'
import { configFor, readManifest, staysBehind, type ManifestConfig } from './manifest.ts'
import { inRanks, rankOf } from './order.ts'

test('R1.52 manifests of any shape are read without a throw, and say what is wrong with them', () => {
  const problem = (source: unknown): string => readManifest(source, 0).problem ?? ''
  for (const junk of [undefined, null, 7, 'text', [], {}, { apiVersion: {} }])
    assert.match(problem(junk), /no apiVersion/)
  assert.match(problem({ apiVersion: 'v1' }), /no kind/)
  assert.match(problem({ apiVersion: 'v1', kind: 'ConfigMap' }), /no metadata\.name/)
  assert.match(problem({ apiVersion: 'v1', kind: 'ConfigMap', metadata: [] }), /no metadata\.name/)
  assert.match(
    problem({ apiVersion: 'v1', kind: 'ConfigMapList', metadata: { name: 'x' }, items: [] }),
    /each of its items/,
  )
  const good = readManifest(
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'x', namespace: 'n', uid: 'u', resourceVersion: '1', managedFields: [] },
      status: {},
    },
    3,
  )
  assert.equal(good.problem, undefined)
  assert.deepEqual([good.group, good.version, good.ordinal], ['apps', 'v1', 3])
  assert.deepEqual(good.object, { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'x', namespace: 'n' } })
})

test('R1.52 text in a Secret becomes data, as the server makes it', () => {
  const secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 's', namespace: 'n' },
    data: { a: 'YQ==', b: 'Yg==' },
    stringData: { b: 'c' },
  }
  assert.deepEqual(readManifest(secret, 0).object['data'], { a: 'YQ==', b: 'Yw==' })
  assert.equal('stringData' in readManifest(secret, 0).object, false)
})

test('R1.52 the config that names an object exactly goes before one that matches it', () => {
  const config = (namespace: string, name: string, type: 'CreateOnly' | 'ReadOnly'): ManifestConfig => ({
    resourceIdentifier: { resource: 'configmaps', namespace, name },
    updateStrategy: { type },
  })
  const spec = { manifestConfigs: [config('*', 'a*c*', 'ReadOnly'), config('n', 'abc', 'CreateOnly')] }
  const typeOf = (namespace: string, name: string): string | undefined =>
    configFor(spec, { group: '', resource: 'configmaps', namespace, name }).updateStrategy?.type
  assert.equal(typeOf('n', 'abc'), 'CreateOnly')
  assert.equal(typeOf('m', 'abc'), 'ReadOnly')
  assert.equal(typeOf('m', 'axxcyy'), 'ReadOnly')
  assert.equal(typeOf('m', 'ab'), undefined)
  assert.equal(typeOf('m', 'xac'), undefined)
  assert.deepEqual(configFor(spec, { group: 'apps', resource: 'configmaps', namespace: 'n', name: 'abc' }), {})
})

test('R1.52 what stays behind is named exactly', () => {
  const of = { group: '', resource: 'configmaps', namespace: 'n', name: 'x' }
  const selectively = (name: string) => ({
    deleteOption: {
      propagationPolicy: 'SelectivelyOrphan' as const,
      selectivelyOrphans: { orphaningRules: [{ ...of, name }] },
    },
  })
  assert.equal(staysBehind({}, of), false)
  assert.equal(staysBehind({ deleteOption: { propagationPolicy: 'Orphan' } }, of), true)
  assert.equal(staysBehind(selectively('x'), of), true)
  assert.equal(staysBehind(selectively('*'), of), false)
})

test('R1.52 ranks: what others need comes first, unknown kinds last, and the order of the work is kept within one', () => {
  const kinds = [
    'Widget',
    'Deployment',
    'Service',
    'ConfigMap',
    'ServiceAccount',
    'RoleBinding',
    'Role',
    'Namespace',
    'Gadget',
  ]
  const sorted = inRanks(kinds.map((kind) => ({ kind, rank: rankOf(kind) }))).flat()
  assert.deepEqual(
    sorted.map(({ kind }) => kind),
    ['Namespace', 'Role', 'RoleBinding', 'ServiceAccount', 'ConfigMap', 'Service', 'Deployment', 'Widget', 'Gadget'],
  )
})
