import assert from 'node:assert/strict'
import { test } from 'node:test'
import { crds } from './index.ts'
import { isObject } from './lossless.ts'
import type { JsonSchema } from './schema.ts'

const forbidden = [
  '$ref',
  'definitions',
  'dependencies',
  'deprecated',
  'discriminator',
  'id',
  'patternProperties',
  'readOnly',
  'uniqueItems',
  'writeOnly',
  'xml',
]

/** Keywords that may stand in a schema but not below not, anyOf, oneOf and allOf. */
const onlyOutside = ['description', 'type', 'default', 'additionalProperties', 'nullable']

/** What the API server would call non-structural, and what our own rules ask for beyond that. */
const problems = (at: string, schema: JsonSchema): string[] => {
  const found: string[] = []
  const say = (problem: string) => found.push(`${at}: ${problem}`)
  const typeless =
    schema['x-kubernetes-int-or-string'] === true || schema['x-kubernetes-preserve-unknown-fields'] === true
  if (!schema.type && !typeless) say('has no type')
  for (const keyword of forbidden) if (keyword in schema) say(`has ${keyword}`)
  if (schema.properties && schema.additionalProperties) say('has both properties and additionalProperties')
  if (schema.type === 'array' && !schema.items) say('has no items')
  for (const name of schema.required ?? [])
    if (!schema.properties?.[name]) say(`requires ${name}, which it does not have`)
    else if (isObject(schema.default) && !(name in schema.default)) say(`has a default without ${name}`)
  for (const junctor of ['not', 'anyOf', 'oneOf', 'allOf']) {
    if (schema['x-kubernetes-int-or-string'] === true) continue // its anyOf of types is the one exception
    for (const branch of [schema[junctor] ?? []].flat() as JsonSchema[])
      for (const keyword of onlyOutside) if (keyword in branch) say(`has ${keyword} below ${junctor}`)
  }
  for (const key of (schema['x-kubernetes-list-map-keys'] ?? []) as string[]) {
    const field = schema.items?.properties?.[key]
    if (!field) say(`has the key ${key}, which its items do not have`)
    else if (!schema.items?.required?.includes(key) && !('default' in field)) say(`has items without a ${key}`)
  }
  for (const [name, field] of Object.entries(schema.properties ?? {})) {
    if (!field.description) found.push(`${at}.${name}: has no description`)
    found.push(...problems(`${at}.${name}`, field))
  }
  if (schema.items) found.push(...problems(`${at}[]`, schema.items))
  if (schema.additionalProperties) found.push(...problems(`${at}{}`, schema.additionalProperties))
  return found
}

/** The whole schema but for the three fields that the API server knows itself. */
const ownFields = ({ properties, ...root }: JsonSchema): JsonSchema => {
  const { apiVersion: _, kind: __, metadata: ___, ...own } = properties ?? {}
  return { ...root, properties: own }
}

for (const crd of crds({ conversion: 'none', borrowed: true }))
  test(`R0.32 the schema of ${crd.metadata.name} is structural and described`, () => {
    for (const { name, schema } of crd.spec.versions) {
      const { openAPIV3Schema } = schema as { openAPIV3Schema: JsonSchema }
      assert.deepEqual(problems(name, ownFields(openAPIV3Schema)), [])
    }
    assert.equal(crd.spec.versions.filter(({ storage }) => storage).length, 1)
  })

test('R0.32 the checker finds what it looks for', () => {
  const bad: JsonSchema = {
    type: 'object',
    properties: {
      a: { description: 'No type.' },
      b: { type: 'array', description: 'No items.', uniqueItems: true },
      c: { type: 'string', description: 'Typed below not.', not: { type: 'string' } },
    },
    required: ['d'],
  }
  assert.deepEqual(problems('root', bad), [
    'root: requires d, which it does not have',
    'root.a: has no type',
    'root.b: has uniqueItems',
    'root.b: has no items',
    'root.c: has type below not',
  ])
})

/** The paths of all fields, in all versions. */
const fieldsIn = (at: string, { properties = {}, items, additionalProperties }: JsonSchema): string[] => [
  ...Object.entries(properties).flatMap(([name, field]) => [`${at}.${name}`, ...fieldsIn(`${at}.${name}`, field)]),
  ...(items ? fieldsIn(at, items) : []),
  ...(additionalProperties ? fieldsIn(at, additionalProperties) : []),
]

test('R3.27 no kind of AWS has a field for a key: identities refer to Secrets', () => {
  const ofAws = crds({ conversion: 'none' }).filter(({ spec }) => spec.group === 'infrastructure.cluster.x-k8s.io')
  const fields = ofAws.flatMap(({ spec }) =>
    spec.versions.flatMap(({ schema }) =>
      fieldsIn(spec.names.kind, (schema as { openAPIV3Schema: JsonSchema }).openAPIV3Schema),
    ),
  )
  const suspicious = fields.filter((field) => /access.?key|secret|password|token|credential/i.test(field))
  assert.ok(
    suspicious.length > 0 && suspicious.every((field) => /^AWSClusterStaticIdentity\.spec\.secretRef\b/.test(field)),
    suspicious.join(),
  )
})
