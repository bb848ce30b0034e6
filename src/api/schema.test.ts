import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Condition, LabelSelector } from '../kube/index.ts'
import { conditions } from './conditions.ts'
import type { AWSClusterStaticIdentity, ManagedCluster, ManagedClusterAddOn } from './index.ts'
import { labelSelector } from './label-selector.ts'
import {
  array,
  boolean,
  embeddedObject,
  type Infer,
  integer,
  intOrString,
  map,
  nullable,
  object,
  string,
} from './schema.ts'

/** True only when either is as good as the other; `assert.ok(true satisfies Same<…>)` fails to compile otherwise. */
type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false

const port = object('A port.', {
  number: integer('Its number.', { minimum: 1, maximum: 65535 }),
  'protocol?': string('What it speaks.', { enum: ['tcp', 'udp'], default: 'tcp' }),
})

test('R0.32 a definition gives its TypeScript type', () => {
  assert.ok(true satisfies Same<Infer<typeof port>, { number: number; protocol?: 'tcp' | 'udp' | undefined }>)
  const nested = object('All.', {
    ports: array('Ports.', port, { keys: ['number'] }),
    'labels?': nullable(map('Labels.', string())),
    'size?': intOrString('Size.'),
    on: boolean('On.'),
    'manifest?': embeddedObject('An object.'),
  })
  assert.ok(
    true satisfies Same<
      Infer<typeof nested>,
      {
        ports: { number: number; protocol?: 'tcp' | 'udp' | undefined }[]
        on: boolean
        labels?: Record<string, string> | null | undefined
        size?: number | string | undefined
        manifest?: Record<string, unknown> | undefined
      }
    >,
  )
})

test('R0.32 types of kinds fit those that all kinds share', () => {
  const both = { conditions: conditions('Any.'), selector: labelSelector('Any.') }
  assert.ok(true satisfies Same<Infer<typeof both.conditions>, Condition[]>)
  assert.ok(true satisfies Same<Infer<typeof both.selector>, LabelSelector>)
  assert.ok(true satisfies Same<ManagedCluster['spec']['hubAcceptsClient'], boolean | undefined>)
  assert.ok(
    true satisfies Same<AWSClusterStaticIdentity['spec']['secretRef'], string | { namespace: string; name: string }>,
  )
  type Registration = NonNullable<NonNullable<ManagedClusterAddOn['status']>['registrations']>[number]
  assert.ok(true satisfies Same<Registration['type'], 'kubeClient' | 'customSigner'>)
  // @ts-expect-error a driver is csr or token
  const wrong: Registration = { type: 'kubeClient', kubeClient: { driver: 'grpc' } }
  assert.ok(wrong)
})

test('R0.32 the same definition gives its OpenAPI schema', () => {
  assert.deepEqual(port.json, {
    description: 'A port.',
    type: 'object',
    required: ['number'],
    properties: {
      number: { description: 'Its number.', type: 'integer', format: 'int32', minimum: 1, maximum: 65535 },
      protocol: { description: 'What it speaks.', type: 'string', enum: ['tcp', 'udp'], default: 'tcp' },
    },
  })
})

test('R0.32 lists say how server-side apply merges them', () => {
  const listType = (list: { json: Record<string, unknown> }) => list.json['x-kubernetes-list-type']
  assert.equal(listType(array('Replaced.', string())), 'atomic')
  assert.equal(listType(array('Merged.', string(), { set: true })), 'set')
  assert.equal(listType(array('Merged by key.', port, { keys: ['number'] })), 'map')
})

test('R0.32 rules are CEL validations, and null is accepted only where it is said', () => {
  const rules = [{ rule: 'self.a > 0', message: 'a is above 0' }]
  const json = nullable(object('Any.', { a: integer('A.') }, { rules })).json
  assert.deepEqual(json['x-kubernetes-validations'], rules)
  assert.equal(json['nullable'], true)
  assert.equal(object('Any.', {}).json['nullable'], undefined)
})
