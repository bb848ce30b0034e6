import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ClusterClaim } from '../../api/index.ts'
import { claimsFor, spokeOnly } from './claims.ts'

const claim = (name: string, value: string, labels: Record<string, string> = {}): ClusterClaim => ({
  metadata: { name, labels },
  spec: { value },
})
const rules = { maxCustom: 20, reservedSuffixes: [] }

test('R1.17 the id of the cluster is always told, and no ClusterClaim changes it', () => {
  assert.deepEqual(claimsFor('uid-1', [], rules).claims, [{ name: 'id.k8s.io', value: 'uid-1' }])
  assert.deepEqual(claimsFor('uid-1', [claim('id.k8s.io', 'other')], rules).claims, [
    { name: 'id.k8s.io', value: 'uid-1' },
  ])
})

test('R1.51 reserved claims come first, then the others, each in order', () => {
  const present = [
    claim('zone', 'a'),
    claim('Area', 'b'),
    claim('product.open-cluster-management.io', 'kind'),
    claim('b.acme.io', '2'),
  ]
  const { claims } = claimsFor('uid-1', present, { maxCustom: 20, reservedSuffixes: ['.acme.io'] })
  assert.deepEqual(
    claims.map(({ name }) => name),
    ['b.acme.io', 'id.k8s.io', 'product.open-cluster-management.io', 'Area', 'zone'],
  )
})

test('R1.51 of too many claims those that are reserved stay, and what is left out is named', () => {
  const many = Array.from({ length: 30 }, (_, i) => claim(`c${String(i).padStart(2, '0')}`, 'x'))
  const { claims, left } = claimsFor('uid-1', [...many, claim('platform.open-cluster-management.io', 'AWS')], rules)
  assert.equal(claims.length, 22)
  assert.deepEqual(
    left,
    Array.from({ length: 10 }, (_, i) => `c${i + 20}`),
  )
})

test('R1.51 claims that are private or empty are not told', () => {
  const present = [claim('secret', 'x', { [spokeOnly]: '' }), claim('empty', ''), { metadata: { name: 'none' } }]
  assert.deepEqual(claimsFor('uid-1', present, rules).claims, [{ name: 'id.k8s.io', value: 'uid-1' }])
})
