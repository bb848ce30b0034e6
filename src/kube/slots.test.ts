import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { Slots } from './slots.ts'

test('no more than the limit run at a time, and all in their order', async () => {
  const slots = new Slots(3)
  const started: number[] = []
  let running = 0
  let most = 0
  const work = async (n: number): Promise<number> => {
    started.push(n)
    most = Math.max(most, ++running)
    await turn()
    running--
    return n
  }

  const all = Array.from({ length: 20 }, (_, n) => n)
  const done = await Promise.all(all.map((n) => slots.run(() => work(n))))

  assert.deepEqual(done, all)
  assert.deepEqual(started, all)
  assert.equal(most, 3)
})

test('work that fails gives its slot back', async () => {
  const slots = new Slots(1)
  const failing = slots.run(() => Promise.reject(new Error('no')))
  const next = slots.run(async () => 'yes')

  await assert.rejects(failing, /no/)
  assert.equal(await next, 'yes')
})

test('whoever stops waiting leaves the line, and leaves nothing behind', async () => {
  const slots = new Slots(1)
  const first = Promise.withResolvers<void>()
  const running = slots.run(() => first.promise)
  const [leaves, stays] = [new AbortController(), new AbortController()]
  const left = slots.run(async () => assert.fail('it was not its turn'), leaves.signal)
  const stayed = slots.run(async () => 'my turn', stays.signal)

  leaves.abort(new Error('gone'))
  await assert.rejects(left, /gone/)
  await assert.rejects(
    slots.run(async () => 0, leaves.signal),
    /gone/,
  )
  first.resolve()
  await running

  assert.equal(await stayed, 'my turn')
  assert.equal(getEventListeners(stays.signal, 'abort').length, 0)
  assert.equal(getEventListeners(leaves.signal, 'abort').length, 0)
})
