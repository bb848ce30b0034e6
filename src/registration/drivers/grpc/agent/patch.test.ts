import assert from 'node:assert/strict'
import { test } from 'node:test'
import { merged, patched, PatchFailed } from './patch.ts'

test('R0.10 a merge patch changes what it names, takes away what is null, and replaces lists', () => {
  const base = { a: 1, b: { c: [1, 2], d: 'x' }, e: 'y' }
  assert.deepEqual(merged(base, { b: { c: [3], d: null }, e: undefined, f: { g: null, h: 1 } }), {
    a: 1,
    b: { c: [3] },
    e: 'y',
    f: { h: 1 },
  })
  assert.deepEqual(base, { a: 1, b: { c: [1, 2], d: 'x' }, e: 'y' })
  assert.deepEqual(merged('text', { a: { b: null } }), { a: {} })
})

test('R0.10 a JSON patch tests, adds, replaces and removes in order, and changes nothing that was given', () => {
  const base = { status: { conditions: [{ type: 'A' }, { type: 'B' }] }, 'a/b': { '~': 1 } }
  const copy = structuredClone(base)
  const after = patched(base, [
    { op: 'test', path: '/status/conditions/1', value: { type: 'B' } },
    { op: 'replace', path: '/status/conditions/0', value: { type: 'C' } },
    { op: 'remove', path: '/status/conditions/1' },
    { op: 'add', path: '/status/conditions/-', value: { type: 'D' } },
    { op: 'add', path: '/status/conditions/0', value: { type: 'E' } },
    { op: 'test', path: '/status/namespace', value: null },
    { op: 'add', path: '/status/namespace', value: 'n' },
    { op: 'replace', path: '/a~1b/~0', value: 2 },
    { op: 'test', path: '/nowhere/at/all', value: null },
  ])
  assert.deepEqual(after, {
    status: { conditions: [{ type: 'E' }, { type: 'C' }, { type: 'D' }], namespace: 'n' },
    'a/b': { '~': 2 },
  })
  assert.deepEqual(base, copy)
})

test('R0.10 a JSON patch whose test does not hold, or whose path leads nowhere, fails as a whole', () => {
  const base = { list: [1], a: { b: 1 } }
  const bad = [
    { op: 'test', path: '/a/b', value: 2 },
    { op: 'test', path: '/a/c', value: 1 },
    { op: 'remove', path: '/a/c' },
    { op: 'replace', path: '/a/c', value: 1 },
    { op: 'add', path: '/c/d', value: 1 },
    { op: 'add', path: '/list/2', value: 1 },
    { op: 'replace', path: '/list/1', value: 1 },
    { op: 'remove', path: '/list/-' },
    { op: 'replace', path: '/list/01', value: 1 },
    { op: 'add', path: '/a/b/c', value: 1 },
  ]
  for (const operation of bad) assert.throws(() => patched(base, [operation]), PatchFailed, JSON.stringify(operation))
})
