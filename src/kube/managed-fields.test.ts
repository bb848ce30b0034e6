import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { withoutManagedFields } from './managed-fields.ts'

interface Event {
  type: string
  object: { metadata: Record<string, unknown>; [field: string]: unknown }
}

const eventOf = (metadata: object, more: object = {}): string =>
  JSON.stringify({ type: 'ADDED', object: { apiVersion: 'v1', kind: 'Thing', metadata, ...more } })

/** The long way, which the short one must agree with. */
const parsedAndDropped = (text: string): Event => {
  const event = JSON.parse(text) as Event
  delete event.object.metadata['managedFields']
  return event
}

// Text that could be taken for something else: brackets, quotes, backslashes, the key itself.
const awkward = fc.oneof(
  fc.string(),
  fc.string({ unit: fc.constantFrom('"', '\\', '{', '}', '[', ']', ',', ':', 'a', '\n') }),
  fc.constantFrom('managedFields', '"managedFields":[', '}],"name":"x"', '\\"managedFields\\":[{}]'),
)
const json = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    awkward,
    fc.boolean(),
    fc.integer(),
    fc.constant(null),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(awkward, tie('value'), { maxKeys: 3 }),
  ),
})).value

test('R0.41 R0.8 the managedFields of an object go before it is parsed, and nothing else does', () => {
  const metadata = fc.dictionary(fc.oneof(awkward, fc.constantFrom('name', 'labels', 'zeta')), json, { maxKeys: 4 })
  fc.assert(
    fc.property(metadata, metadata, json, json, fc.boolean(), (before, after, fields, spec, present) => {
      const text = eventOf({ ...before, ...(present ? { managedFields: fields } : {}), ...after }, { spec })
      const cut = withoutManagedFields(text)
      assert.deepEqual(JSON.parse(cut), parsedAndDropped(text))
      if (present) assert.ok(cut.length < text.length, 'it was cut before it was parsed')
    }),
    { numRuns: 2000 },
  )
})

test('R0.8 managedFields elsewhere stay: of an object in a work, in a schema, in an annotation', () => {
  const inside = { metadata: { name: 'inside', managedFields: [{ manager: 'kubectl' }] } }
  const text = eventOf({ name: 'work', annotations: { managedFields: '"managedFields":[]' } }, { spec: [inside] })
  assert.equal(withoutManagedFields(text), text)
})

test('R0.8 a text that is not as servers write it is left for the parser to judge', () => {
  for (const text of ['', '{', '[]', '{"type":"ADDED","object":{"metadata":{"managedFields":[', ' {"type":"ADDED"}'])
    assert.equal(withoutManagedFields(text), text)
})
