import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KubeObject } from '../../kube/index.ts'
import { noContention, noteRepair } from './contention.ts'
import { Freshest } from '../../runtime/index.ts'
import { meaningOf, type Memory } from './memory.ts'
import { scopeOf, scopesFor, widthFor } from './watch-plan.ts'

const memory = (change: Partial<Memory> = {}): Memory => ({
  hash: 'h',
  seen: { uid: 'u', resourceVersion: '5', generation: 1 },
  behind: undefined,
  content: undefined,
  holds: ({ metadata }) => metadata.labels?.['ours'] === 'yes',
  report: { states: [] },
  reported: false,
  lookAt: Infinity,
  failures: 0,
  contention: noContention(),
  ...change,
})
const object = (change: KubeObject['metadata'] = {}): KubeObject => ({
  metadata: { uid: 'u', resourceVersion: '6', generation: 1, labels: { ours: 'yes' }, ...change },
})

test('R4.21 a change matters unless only the status, or what is not ours, changed', () => {
  assert.equal(meaningOf(object(), undefined), 'look')
  assert.equal(meaningOf(object({ resourceVersion: '5', labels: {} }), memory()), 'nothing')
  assert.equal(meaningOf(object(), memory()), 'nothing')
  assert.equal(meaningOf(object(), memory({ reported: true })), 'values')
  assert.equal(meaningOf(object({ generation: 2 }), memory()), 'look')
  assert.equal(meaningOf(object({ generation: undefined }), memory()), 'look')
  assert.equal(meaningOf(object({ labels: {} }), memory()), 'look')
  assert.equal(meaningOf(object({ uid: 'other' }), memory()), 'look')
  assert.equal(meaningOf(object({ deletionTimestamp: 'now' }), memory()), 'look')
})

test('R4.21 from the tenth repair in a minute on an object is left alone, longer each time', () => {
  const limits = { repairsPerMinute: 10 }
  let contention = noContention()
  for (let i = 0; i < 30; i++) contention = noteRepair(contention, i * 10_000, limits)
  assert.equal(contention.until, 0, 'six a minute are no fight')
  contention = noContention()
  const fight = (from: number): void => {
    for (let i = 0; i < 10; i++) contention = noteRepair(contention, from + i, limits)
  }
  const pauses = [1, 2, 3, 4, 5, 6].map(() => {
    const from = contention.until
    fight(from)
    return Math.round((contention.until - from) / 60_000)
  })
  assert.deepEqual(pauses, [1, 2, 4, 8, 10, 10])
  fight(contention.until + 3_600_000)
  assert.equal(contention.rounds, 1, 'after a calm hour it begins anew')
})

test('R1.52 a kind is watched by object, by namespace or whole, and never narrower while it is in use', () => {
  assert.equal(widthFor(['a/x', 'b/y', 'c/z'], 0), 0)
  assert.equal(widthFor(['a/x', 'a/y', 'a/z', 'b/x'], 0), 1)
  assert.equal(widthFor(['a/x'], 1), 1)
  assert.equal(widthFor(['a/1', 'b/1', 'c/1', 'd/1', 'e/1'], 0), 2)
  assert.equal(widthFor(['w', 'x', 'y', 'z'], 0), 2)
  assert.equal(widthFor(['x'], 2), 2)
  for (const width of [0, 1, 2] as const)
    for (const key of ['a/x', 'a/y', 'b/x']) assert.ok(scopesFor(['a/x', 'a/y', 'b/x'], width).has(scopeOf(key, width)))
})

test('R1.52 what was written is believed until the watch brings something else', () => {
  const at = (resourceVersion: string): KubeObject => ({ metadata: { resourceVersion } })
  const freshest = new Freshest<KubeObject>()
  const two = freshest.wrote('k', at('1'), at('2'))
  assert.equal(freshest.of('k', at('1')), two)
  const three = freshest.wrote('k', two, at('3'))
  assert.equal(freshest.of('k', at('2')), three)
  assert.equal(freshest.of('k', at('9'))?.metadata.resourceVersion, '9')
  assert.equal(freshest.of('k', at('1'))?.metadata.resourceVersion, '1', 'forgotten by then')
  freshest.wrote('k', at('1'), at('2'))
  assert.equal(freshest.of('k', undefined), undefined, 'it is gone')
})
