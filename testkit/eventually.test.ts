import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from './index.ts'

test('eventually returns what the check returned once it passes', async () => {
  let calls = 0
  const value = await eventually(() => {
    calls++
    assert.ok(calls > 1)
    return calls > 2 && { calls }
  })
  assert.deepEqual(value, { calls: 3 })
  await eventually(() => undefined)
  await eventually(async () => assert.ok(true))
})

test('eventually says what it saw last when it gives up', async () => {
  await assert.rejects(
    eventually(() => assert.equal(1, 2, 'one is not two'), { timeoutMs: 50, message: 'numbers did not change' }),
    (error: Error) => {
      assert.match(error.message, /^numbers did not change within 0.05 s; last seen: one is not two/)
      assert.ok(error.cause instanceof assert.AssertionError)
      return true
    },
  )
  await assert.rejects(
    eventually(async () => false, { timeoutMs: 50 }),
    /last seen: false/,
  )
})

test('eventually gives up on a check that never finishes', async () => {
  const stuck = eventually(() => new Promise<boolean>(() => {}), { timeoutMs: 50 })
  await assert.rejects(stuck, /the check never finished/)
})
