import assert from 'node:assert/strict'
import { test } from 'node:test'
import { endOf, lookAgainAt, mustRefresh, refreshAt, type TokenState } from './refresh.ts'
import { inWords, validitySeconds } from './validity.ts'

const hour = 3_600_000
const begin = Date.parse('2026-01-01T00:00:00Z')
const good: TokenState = {
  status: {
    expirationTimestamp: '2026-01-01T10:00:00Z',
    tokenSecretRef: {
      name: 'a',
      lastRefreshTimestamp: '2026-01-01T00:00:00Z',
      digest: '0123456789abcdef',
      accountUID: 'u1',
      request: 'r1',
    },
  },
  secretTrouble: undefined,
  accountUid: 'u1',
  keyIsGone: false,
  request: 'r1',
  rotates: true,
  unreported: false,
  received: undefined,
  now: begin + hour,
}
const reasonOf = (change: Partial<TokenState>): string | undefined => mustRefresh({ ...good, ...change })?.reason

test('R5.14 R5.15 a token is renewed at 80 % of the lifetime that it really has, and up to 4 % later, the same for the same token', () => {
  const at = refreshAt(good)
  assert.ok(at >= begin + 8 * hour && at < begin + 8.4 * hour, new Date(at).toISOString())
  assert.equal(refreshAt({ ...good, now: begin + 2 * hour }), at)
  assert.equal(reasonOf({ now: at - 1 }), undefined)
  assert.equal(reasonOf({ now: at }), 'NearExpiry')
  assert.equal(lookAgainAt(good), at)
  const others = Array.from({ length: 50 }, (_, i) => {
    const tokenSecretRef = { ...good.status!.tokenSecretRef!, digest: `d${i}` }
    return refreshAt({ ...good, status: { ...good.status, tokenSecretRef } })
  })
  assert.ok(new Set(others).size > 45, 'a fleet that was made together does not come together')
})

test('R5.15 without rotation nothing is renewed by time, and there is something to say at 80 % and at the end', () => {
  const still = { ...good, rotates: false }
  assert.equal(mustRefresh({ ...still, now: begin + 9 * hour }), undefined)
  assert.equal(mustRefresh({ ...still, now: begin + 11 * hour }), undefined)
  assert.equal(lookAgainAt(still), refreshAt(still))
  assert.equal(lookAgainAt({ ...still, now: begin + 9 * hour }), begin + 10 * hour)
  assert.equal(lookAgainAt({ ...still, now: begin + 11 * hour }), undefined)
})

test('R5.14 a clock that differs from that of the cluster makes no difference to a token that was received here', () => {
  // The agent's clock is a day ahead: by its own, the token ended before it came.
  const day = 24 * hour
  const received = { digest: '0123456789abcdef', at: begin + day, lifetimeMs: 10 * hour }
  const ahead = { ...good, received, now: begin + day + hour }
  assert.equal(mustRefresh(ahead), undefined)
  assert.equal(endOf(ahead), begin + day + 10 * hour)
  assert.equal(mustRefresh({ ...ahead, received: undefined })?.reason, 'Expired')
  assert.equal(mustRefresh({ ...ahead, received: { ...received, digest: 'of another' } })?.reason, 'Expired')
})

test('R5.16 R5.19 R5.20 each change that makes a token worthless leads to a new one', () => {
  const ref = good.status!.tokenSecretRef!
  assert.equal(reasonOf({}), undefined)
  assert.equal(reasonOf({ status: undefined }), 'NoToken')
  assert.equal(reasonOf({ status: { ...good.status, tokenSecretRef: { ...ref, digest: undefined } } }), 'NoToken')
  assert.equal(reasonOf({ status: { tokenSecretRef: ref } }), 'NoToken')
  assert.equal(reasonOf({ accountUid: 'u2' }), 'AccountRecreated')
  assert.equal(reasonOf({ keyIsGone: true, rotates: false }), 'SigningKeyReplaced')
  assert.equal(reasonOf({ request: 'r2' }), 'RequestChanged')
  assert.equal(reasonOf({ unreported: true }), 'Unreported')
  for (const reason of ['SecretMissing', 'SecretChanged', 'NameTaken', 'SecretNotWritten'])
    assert.equal(reasonOf({ secretTrouble: { reason, message: '' } }), reason)
  // A cluster that grants nothing at all leads to another try, not to a wait.
  const lastRefreshTimestamp = '2026-01-01T10:00:00Z'
  assert.equal(
    refreshAt({ ...good, status: { ...good.status, tokenSecretRef: { ...ref, lastRefreshTimestamp } } }),
    -Infinity,
  )
})

test('R5.14 a validity is a duration as Go writes it, in whole seconds', () => {
  const seconds = { '4320h0m0s': 15_552_000, '10m': 600, '1h30m': 5400, '1.5h': 5400, '600s1ms': 600, '600000ms': 600 }
  for (const [text, expected] of Object.entries(seconds)) assert.equal(validitySeconds(text), expected, text)
  for (const text of ['', '10', 'm', '1d', '-1h', '1h ', 'ten minutes']) assert.equal(validitySeconds(text), undefined)
  assert.equal(inWords(86_400), '1d')
  assert.equal(inWords(15_552_000), '180d')
  assert.equal(inWords(5430), '1h30m')
  assert.equal(inWords(0), '0s')
})
