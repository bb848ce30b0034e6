import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Outages } from './outages.ts'

test('R0.14 the time without a connection is known, for any moment in the past', () => {
  const outages = new Outages()
  assert.equal(outages.missedMs(0, 100), 0)

  outages.begin(100)
  outages.begin(150) // it is lost already
  assert.equal(outages.missedMs(0, 160), 60, 'one that goes on counts')
  assert.equal(outages.missedMs(130, 160), 30, 'from then on only')

  outages.end(200)
  outages.end(900) // it is back already
  outages.begin(300)
  outages.end(310)
  assert.equal(outages.missedMs(0, 1000), 110)
  assert.equal(outages.missedMs(150, 1000), 60)
  assert.equal(outages.missedMs(250, 1000), 10)
  assert.equal(outages.missedMs(400, 1000), 0)
})
