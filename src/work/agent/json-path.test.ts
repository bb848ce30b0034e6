import assert from 'node:assert/strict'
import { test } from 'node:test'
import { jsonPath, JsonPathError } from './json-path.ts'

const object = {
  metadata: { annotations: { 'a.b/c': 'dotted', "it's": 'quoted' } },
  status: {
    replicas: 3,
    empty: null,
    conditions: [
      { type: 'Ready', status: 'True', code: 1 },
      { type: 'Stuck', status: 'False', code: 5 },
    ],
    byName: { x: { n: 1 }, y: { n: 2 } },
  },
}
const valuesOf = (path: string): unknown[] => jsonPath(path)(object).map(({ value }) => value)

test('R1.52 JSON paths are read as kubectl users write them', () => {
  assert.deepEqual(valuesOf('.status.replicas'), [3])
  assert.deepEqual(valuesOf('{.status.replicas}'), [3])
  assert.deepEqual(valuesOf('$.status.replicas'), [3])
  assert.deepEqual(valuesOf('.status.conditions[0].type'), ['Ready'])
  assert.deepEqual(valuesOf('.status.conditions[-1].type'), ['Stuck'])
  assert.deepEqual(valuesOf('.status.conditions[*].type'), ['Ready', 'Stuck'])
  assert.deepEqual(valuesOf('.status.byName.*.n'), [1, 2])
  assert.deepEqual(valuesOf('.status.conditions[?(@.type=="Ready")].status'), ['True'])
  assert.deepEqual(valuesOf(".status.conditions[?(@.type=='Stuck')].status"), ['False'])
  assert.deepEqual(valuesOf('.status.conditions[?(@.code>1)].type'), ['Stuck'])
  assert.deepEqual(valuesOf('.status.conditions[?(@.code)].code'), [1, 5])
  assert.deepEqual(valuesOf('.status.conditions[?(@.type!="Ready")].type'), ['Stuck'])
  assert.deepEqual(valuesOf('.metadata.annotations.a\\.b/c'), ['dotted'])
  assert.deepEqual(valuesOf(".metadata.annotations['a.b/c']"), ['dotted'])
  assert.deepEqual(valuesOf('["metadata"]["annotations"]["it\'s"]'), ['quoted'])
  assert.deepEqual(valuesOf('.status.missing.deeper[3].x'), [])
  assert.deepEqual(valuesOf('.status.replicas.x'), [])
  assert.deepEqual(jsonPath('.status.conditions[?(@.type=="Stuck")].status')(object)[0]?.at, [
    'status',
    'conditions',
    1,
    'status',
  ])
})

test('R1.52 a path that cannot be read says where, and no object is reached through it', () => {
  for (const path of [
    '',
    'status',
    '.status[',
    '.status[abc]',
    '.a..b',
    '.a[?(type=="x")]',
    '.a[?(@.x=~"y")]',
    '.a[0:2]',
    '.a[?(@.b=="x"',
  ])
    assert.throws(() => jsonPath(path), JsonPathError, path)
  assert.throws(() => jsonPath('.status[abc]'), /character 8/)
  assert.deepEqual(valuesOf('.constructor.name'), [])
  assert.deepEqual(valuesOf('.__proto__'), [])
})
