import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { compare, inTurn, median, medians, rounded } from './measure.ts'

test('the median is the middle value, or the mean of the two in the middle', () => {
  assert.equal(median([3, 100, 1]), 3)
  assert.equal(median([4, 1, 2, 100]), 3)
  assert.throws(() => median([]), /median of nothing/)
})

test('no single outlier moves the median beyond its neighbours', () => {
  const steady = fc.array(fc.double({ min: 10, max: 20, noNaN: true }), { minLength: 3, maxLength: 9 })
  fc.assert(
    fc.property(steady, fc.double({ noNaN: true }), (values, outlier) => {
      const middle = median([...values, outlier])
      assert.ok(middle >= Math.min(...values) && middle <= Math.max(...values))
    }),
  )
})

test('the values that are measured are not reordered', () => {
  const values = [3, 1, 2]
  median(values)
  assert.deepEqual(values, [3, 1, 2])
})

test('each figure has a median of its own', () => {
  const rounds = [
    { cpuMs: 10, rssMB: 70 },
    { cpuMs: 30, rssMB: 60 },
    { cpuMs: 20, rssMB: 500 },
  ]
  assert.deepEqual(medians(rounds), { cpuMs: 20, rssMB: 70 })
})

test('figures keep three digits that matter', () => {
  assert.deepEqual(rounded({ a: 1234.56, b: 12.345, c: 0.123456, d: 0 }), { a: 1235, b: 12.3, c: 0.123, d: 0 })
})

const comparison = {
  bench: 'informer.start',
  about: { objects: 5 },
  ours: [{ cpuMs: 100, ms: 900 }],
  baseline: [{ cpuMs: 300, ms: 300 }],
  versus: 'the other',
  atMost: { cpuMs: 1 / 3 },
}

test('R0.41 a line says what was measured, beside what, and whether the target is met', () => {
  assert.deepEqual(JSON.parse(JSON.stringify(compare(comparison))), {
    bench: 'informer.start',
    objects: 5,
    rounds: 1,
    cpuMs: 100,
    ms: 900,
    baseline: { cpuMs: 300, ms: 300 },
    ratio: { cpuMs: 0.333, ms: 3 },
    target: 'cpuMs at most 0.333 of the other',
    ok: true,
  })
})

test('R0.41 a ratio above its limit is not ok, however it is rounded', () => {
  assert.equal(compare({ ...comparison, ours: [{ cpuMs: 100.01, ms: 900 }] }).ok, false)
})

test('R0.41 a figure with a limit that was not measured is not ok', () => {
  assert.equal(compare({ ...comparison, atMost: { rssMB: 1 } }).ok, false)
  assert.equal(compare({ ...comparison, baseline: [{ ms: 1 }] }).ok, false)
})

test('the sides take turns in going first', async () => {
  const order: string[] = []
  const side = (name: string) => async () => {
    order.push(name)
    return name
  }
  for (const round of [0, 1, 2])
    assert.deepEqual(await inTurn(round, side('A'), side('B')), { ours: 'A', baseline: 'B' })
  assert.deepEqual(order, ['A', 'B', 'B', 'A', 'A', 'B'])
})
