import assert from 'node:assert/strict'
import { test } from 'node:test'
import { condition, findCondition, isTrue, microTimestamp, setConditions, timestamp } from './conditions.ts'

const Accepted = condition('Accepted', {
  accepted: { status: 'True', reason: 'AdminAccepted', message: 'Accepted by hub cluster admin' },
  denied: { status: 'False', reason: 'AdminDenied' },
})
const at = (now: number, generation = 1) => ({ now, generation })

test('R0.27 a condition is written with its time and the generation it speaks of', () => {
  assert.deepEqual(setConditions(undefined, [Accepted.accepted()], at(1_000_000, 7)), [
    {
      type: 'Accepted',
      status: 'True',
      reason: 'AdminAccepted',
      message: 'Accepted by hub cluster admin',
      lastTransitionTime: '1970-01-01T00:16:40Z',
      observedGeneration: 7,
    },
  ])
})

test('R0.27 the transition time moves only when the status does', () => {
  const first = setConditions([], [Accepted.accepted()], at(0))
  const reworded = setConditions(first, [Accepted.accepted('by ada')], at(60_000, 2))
  assert.deepEqual(reworded[0], { ...first[0], message: 'by ada', observedGeneration: 2 })
  const denied = setConditions(reworded, [Accepted.denied('by ada')], at(120_000, 2))
  assert.equal(denied[0]!.lastTransitionTime, '1970-01-01T00:02:00Z')
})

test('R0.27 when nothing differs the same array comes back, so that nothing is written', () => {
  const first = setConditions([], [Accepted.accepted()], at(0))
  assert.equal(setConditions(first, [Accepted.accepted()], at(60_000)), first)
})

test("R0.27 other writers' conditions are kept, in their order", () => {
  const other = { type: 'Joined', status: 'True', reason: 'R', message: '', lastTransitionTime: timestamp(0) } as const
  const result = setConditions([other], [Accepted.denied()], at(0))
  assert.equal(result[0], other)
  assert.equal(result[1]!.type, 'Accepted')
})

test('R0.27 conditions are found, and only True is true', () => {
  const object = { metadata: {}, status: { conditions: setConditions([], [Accepted.denied()], at(0)) } }
  assert.equal(findCondition(object, Accepted.type)?.reason, 'AdminDenied')
  assert.equal(isTrue(object, 'Accepted'), false)
  assert.equal(isTrue({ metadata: {} }, 'Accepted'), false)
})

test('R0.24 a MicroTime has exactly six digits, which the API server insists on', () => {
  assert.equal(microTimestamp(1234), '1970-01-01T00:00:01.234000Z')
})
