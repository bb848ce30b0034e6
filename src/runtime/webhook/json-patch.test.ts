import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { jsonPatch, type PatchOperation } from './json-patch.ts'

type Json = Record<string, unknown> | unknown[]

/** RFC 6902 for the operations that are produced, written from the RFC and not from the code under test. */
const apply = (patch: readonly PatchOperation[], document: unknown): unknown => {
  const root = { document: structuredClone(document) }
  for (const operation of patch) {
    const steps = operation.path.split('/').slice(1)
    const names = ['document', ...steps.map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))]
    const name = names.pop()!
    const parent = names.reduce<unknown>((at, step) => (at as Record<string, unknown>)[step], root) as Json
    assert.equal(Object.hasOwn(parent, name), operation.op !== 'add', `${operation.op} ${operation.path}`)
    if (operation.op === 'remove') delete (parent as Record<string, unknown>)[name]
    // not an assignment: a field may be called __proto__
    else
      Object.defineProperty(parent, name, {
        value: operation.value,
        enumerable: true,
        configurable: true,
        writable: true,
      })
  }
  return root.document
}

// as it comes over the wire: -0 becomes 0
const overTheWire = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T
const json = fc.jsonValue().map(overTheWire)
const names = fc.oneof(fc.string(), fc.constantFrom('a/b', 'm~n', '~1', '/', '', '0', '__proto__', 'metadata'))
const fields = fc.dictionary(names, json).map(overTheWire)

test('R0.30 a patch turns any document into any other', () => {
  fc.assert(
    fc.property(fc.oneof(fc.tuple(json, json), fc.tuple(fields, fields)), ([before, after]) => {
      assert.deepEqual(apply(jsonPatch(before, after), before), after)
    }),
  )
})

test('R0.30 what did not change is not in the patch', () => {
  fc.assert(fc.property(json, (value) => assert.deepEqual(jsonPatch(value, structuredClone(value)), [])))
  fc.assert(
    fc.property(fields, names, json, (object, name, value) => {
      const changed = { spec: { ...object, [name]: value }, other: object }
      const paths = jsonPatch({ spec: object, other: object }, changed).map((operation) => operation.path)
      const at = `/spec/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`
      assert.ok(
        paths.every((path) => path === at || path.startsWith(`${at}/`)),
        paths.join(' '),
      )
    }),
  )
})

test('R0.30 a patch goes into objects and lists, and replaces a list of another length', () => {
  const before = { labels: { 'a/b': '1', gone: 'x' }, list: [{ n: 1 }, { n: 2 }], grown: [1], type: {} }
  const after = { labels: { 'a/b': '2', 'm~n': 'y' }, list: [{ n: 1 }, { n: 3 }], grown: [1, 2], type: [] }
  assert.deepEqual(jsonPatch(before, after), [
    { op: 'remove', path: '/labels/gone' },
    { op: 'replace', path: '/labels/a~1b', value: '2' },
    { op: 'add', path: '/labels/m~0n', value: 'y' },
    { op: 'replace', path: '/list/1/n', value: 3 },
    { op: 'replace', path: '/grown', value: [1, 2] },
    { op: 'replace', path: '/type', value: [] },
  ])
})
