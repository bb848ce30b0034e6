import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Joined, revokedOnAnnotation } from '../registration/contract.ts'
import { whyKept, type Departure } from './unjoined.ts'

const now = Date.parse('2026-06-01T12:00:00Z')
const ago = (minutes: number): string => new Date(now - minutes * 60_000).toISOString()
const day = 24 * 60

const left = (change: Partial<Departure> = {}): Departure => ({
  cluster: {
    metadata: { name: 'c1' },
    spec: { hubAcceptsClient: false },
    status: { conditions: [{ ...Joined.left(), lastTransitionTime: ago(60) }] },
  },
  role: { metadata: { name: 'r', annotations: { [revokedOnAnnotation]: ago(60) } }, rules: [] },
  lease: { metadata: { name: 'l' }, spec: { renewTime: ago(61) } },
  now,
  leftMs: 15 * 60_000,
  silentMs: 7 * day * 60_000,
  ...change,
})
const silent = { metadata: { name: 'c1' }, spec: { hubAcceptsClient: false } }

test('R1.58 a ManagedCluster goes when its agent has left and the hub has cleaned up', () => {
  assert.equal(whyKept(left()), undefined)
  assert.equal(whyKept(left({ lease: undefined })), undefined)
})

test('R1.58 it stays while it is in use, waits to be accepted, is not cleaned up, or was heard of lately', () => {
  const reason = (change: Partial<Departure>): string | undefined => whyKept(left(change))?.reason
  assert.equal(reason({ cluster: { ...silent, spec: { hubAcceptsClient: true } } }), 'InUse')
  assert.equal(reason({ role: undefined }), 'NotRevoked', 'one that nobody ever accepted has no role')
  assert.equal(reason({ role: { metadata: { name: 'r' }, rules: [] } }), 'NotRevoked')
  assert.equal(reason({ lease: { metadata: { name: 'l' }, spec: { renewTime: ago(5) } } }), 'TooEarly')
  const deleting = { ...silent, metadata: { name: 'c1', deletionTimestamp: ago(1) } }
  assert.equal(reason({ cluster: deleting }), 'Deleting')
})

test('R1.58 one that was denied without a word is kept for days: it may be let in again', () => {
  assert.equal(whyKept(left({ cluster: silent }))?.reason, 'TooEarly')
  const role = { metadata: { name: 'r', annotations: { [revokedOnAnnotation]: ago(8 * day) } }, rules: [] }
  const lease = { metadata: { name: 'l' }, spec: { renewTime: ago(8 * day) } }
  assert.equal(whyKept(left({ cluster: silent, role, lease })), undefined)
  assert.equal(
    whyKept(left({ cluster: silent, role, lease: { ...lease, spec: { renewTime: ago(day) } } }))?.reason,
    'TooEarly',
  )
})
