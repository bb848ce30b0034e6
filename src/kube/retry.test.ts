import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { laterMs, pause, spread } from './retry.ts'

const now = Date.parse('2026-03-01T12:00:00Z')
const later = (status: number, after?: string): number | undefined =>
  laterMs({ status, headers: { 'retry-after': after } }, now)

test('R0.9 a 429 waits as long as the server says, and a second when it does not', () => {
  assert.equal(later(429, '3'), 3000)
  assert.equal(later(429, ' 3 '), 3000)
  assert.equal(later(429, '0'), 0)
  assert.equal(later(429), 1000)
  assert.equal(later(429, ''), 1000)
  assert.equal(later(429, 'soon'), 1000)
})

test('R0.9 a 503 is sent again only where the server asks for it', () => {
  assert.equal(later(503, '1'), 1000)
  assert.equal(later(503), undefined)
  assert.equal(later(503, ''), undefined)
})

test('R0.9 every other answer is final, whatever it says about later', () => {
  for (const status of [200, 301, 400, 401, 404, 409, 410, 500, 502, 504]) assert.equal(later(status, '1'), undefined)
})

test('R0.9 Retry-After may be a date; one in the past is now', () => {
  assert.equal(later(429, 'Sun, 01 Mar 2026 12:00:05 GMT'), 5000)
  assert.equal(later(503, 'Sun, 01 Mar 2026 11:00:00 GMT'), 0)
  assert.equal(later(503, 'Sun, 01 Mar 2026 13:00:00 GMT'), 60_000)
})

test('R0.9 no server makes us wait for more than a minute, or for a negative time, whatever it writes', () => {
  fc.assert(
    fc.property(
      fc.oneof(fc.string(), fc.integer().map(String), fc.date({ noInvalidDate: true }).map(String)),
      (after) => {
        const ms = later(429, after)!
        assert.ok(ms >= 0 && ms <= 60_000, `${after}: ${ms}`)
      },
    ),
  )
})

test('R0.9 waits are spread over a quarter more, never less than asked', () => {
  assert.equal(
    spread(1000, () => 0),
    1000,
  )
  assert.equal(
    spread(1000, () => 0.5),
    1125,
  )
  assert.equal(
    spread(0, () => 0.9),
    0,
  )
})

test('a wait ends with the reason of its signal', async () => {
  const reason = new Error('not wanted any more')
  const controller = new AbortController()
  const waiting = pause(60_000, controller.signal)
  controller.abort(reason)

  await assert.rejects(waiting, reason)
  await assert.rejects(pause(0, controller.signal), reason)
  await pause(0)
})
