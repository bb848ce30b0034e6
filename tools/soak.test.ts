import assert from 'node:assert/strict'
import { test } from 'node:test'
import { durationMs } from './soak.ts'

test('a soak is as long as it is told', () => {
  assert.equal(durationMs('90s'), 90_000)
  assert.equal(durationMs('1h30m'), 5_400_000)
  assert.equal(durationMs('10'), undefined)
  assert.equal(durationMs(''), undefined)
})
