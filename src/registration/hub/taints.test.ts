import assert from 'node:assert/strict'
import { test } from 'node:test'
import { conditionType, type ManagedCluster } from '../../api/index.ts'
import { timestamp } from '../../runtime/index.ts'
import { taintKey } from '../contract.ts'
import { wantedTaints } from './taints.ts'

const now = Date.parse('2026-01-01T00:00:00Z')
const timeAdded = timestamp(now)
type Taints = NonNullable<ManagedCluster['spec']['taints']>

const tainted = (available: 'True' | 'False' | 'Unknown' | undefined, taints?: Taints): Taints =>
  wantedTaints(
    {
      metadata: { name: 'c1' },
      spec: { taints },
      status: {
        conditions: available
          ? [
              {
                type: conditionType.managedCluster.available,
                status: available,
                reason: 'R',
                message: '',
                lastTransitionTime: timeAdded,
              },
            ]
          : [],
      },
    },
    now,
  )

const unreachable = { key: taintKey.unreachable, effect: 'NoSelect', timeAdded } as const
const unavailable = { key: taintKey.unavailable, effect: 'NoSelect', timeAdded } as const
const theirs = { key: 'gpu', value: 'broken', effect: 'PreferNoSelect' } as const

test('a cluster that nothing is heard of is unreachable, one that is not well is unavailable, a good one is neither', () => {
  assert.deepEqual(tainted(undefined), [unreachable])
  assert.deepEqual(tainted('Unknown'), [unreachable])
  assert.deepEqual(tainted('False'), [unavailable])
  assert.deepEqual(tainted('True'), [])
})

test('one of our taints takes the place of the other, and the taints of others stay', () => {
  assert.deepEqual(tainted('False', [unreachable, theirs]), [theirs, unavailable])
  assert.deepEqual(tainted('Unknown', [theirs, unavailable]), [theirs, unreachable])
  assert.deepEqual(tainted('True', [unreachable, theirs, unavailable]), [theirs])
})

test('a taint that is right keeps its time; one with another effect or value, or a second one, is not right', () => {
  const earlier = { ...unreachable, timeAdded: '2025-12-31T00:00:00Z' }
  assert.deepEqual(tainted('Unknown', [earlier, theirs]), [earlier, theirs])
  assert.deepEqual(tainted('Unknown', [{ ...earlier, effect: 'PreferNoSelect' }]), [unreachable])
  assert.deepEqual(tainted('Unknown', [{ ...earlier, value: 'x' }]), [unreachable])
  assert.deepEqual(tainted('Unknown', [earlier, unreachable]), [earlier])
})
