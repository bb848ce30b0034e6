import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../../../testkit/manual-clock.ts'
import { digestOf } from '../digest.ts'
import { readToken } from './claims.ts'
import { endOf, isUsable, mustRefresh, refreshAt, type TokenState } from './refresh.ts'

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')

const tokenOf = (
  { account = 'c1-a-agent', uid = 'uid-1', namespace = 'c1' } = {},
  [iat, exp]: [number, number] = [0, 1000],
): string =>
  [
    encode({ alg: 'RS256' }),
    encode({ iat, exp, 'kubernetes.io': { namespace, serviceaccount: { name: account, uid } } }),
    'c2ln',
  ].join('.')

const stateOf = (token: string | undefined, change: Partial<TokenState> = {}): TokenState => ({
  secretName: 'ns/a-hub-kubeconfig',
  exists: true,
  token,
  claims: readToken(token),
  tokenDigest: token === undefined ? undefined : digestOf(token),
  hubDigest: 'hub',
  hub: 'hub',
  user: 'system:serviceaccount:c1:c1-a-agent',
  account: { namespace: 'c1', account: 'c1-a-agent', uid: 'uid-1' },
  received: undefined,
  now: 0,
  ...change,
})

test('R2.24 R2.25 R2.26 each reason to refresh a token is found, and the first one counts', () => {
  const good = tokenOf()
  const cases: [string | undefined, TokenState][] = [
    [undefined, stateOf(good)],
    ['SecretMissing', stateOf(undefined, { exists: false })],
    ['TokenMissing', stateOf(undefined)],
    ['TokenMissing', stateOf('')],
    ['TokenUnreadable', stateOf('rubbish')],
    ['TokenUnreadable', stateOf('a.b.c')],
    ['OtherAccount', stateOf(tokenOf({ account: 'c1-b-agent', uid: 'uid-2' }))],
    ['OtherAccount', stateOf(tokenOf({ namespace: 'c2' }))],
    ['AccountRecreated', stateOf(tokenOf({ uid: 'uid-0' }))],
    ['TokenReplaced', stateOf(good, { tokenDigest: 'another' })],
    ['HubChanged', stateOf(good, { hub: 'another' })],
    ['Expired', stateOf(good, { now: 1_000_000 })],
    ['NearExpiry', stateOf(good, { now: 850_000 })],
    // What another agent wrote has no digests: it is believed.
    [undefined, stateOf(good, { tokenDigest: undefined, hubDigest: undefined })],
    ['OtherAccount', stateOf(tokenOf({ namespace: 'c2' }), { account: undefined })],
    // Until the hub names the account, only the token itself is judged.
    [undefined, stateOf(tokenOf({ uid: 'uid-0' }), { account: undefined })],
    ['Expired', stateOf(good, { account: undefined, now: 1_000_000 })],
  ]
  for (const [reason, state] of cases) assert.equal(mustRefresh(state)?.reason, reason, JSON.stringify(state))
})

test('R2.24 a token is refreshed after 80 % of the lifetime it really has, and before 85 %, at a moment that follows from the token', () => {
  for (const lifetime of [600, 3600, 86_400, 31_536_000]) {
    const moments = Array.from({ length: 200 }, (_, i) => {
      const token = tokenOf({ uid: `uid-${i}` }, [1000, 1000 + lifetime])
      const at = refreshAt(stateOf(token))
      assert.equal(at, refreshAt(stateOf(token, { now: at })), 'asked again it is the same')
      return (at / 1000 - 1000) / lifetime
    })
    assert.ok(Math.min(...moments) >= 0.8 && Math.max(...moments) < 0.85)
    assert.ok(Math.max(...moments) - Math.min(...moments) > 0.03, 'a fleet is spread')
  }
})

test('R2.24 R2.27 through twenty lifetimes by a clock, a look at the time that was computed always comes before the end', () => {
  const clock = manualClock(Date.UTC(2030, 0, 1))
  const issue = (serial: number): string =>
    tokenOf({ uid: `uid-${serial}` }, [clock.now() / 1000, clock.now() / 1000 + 600])
  let state = stateOf(issue(0))
  const account = (serial: number) => ({ namespace: 'c1', account: 'c1-a-agent', uid: `uid-${serial}` })
  for (let life = 0; life < 20; life++) {
    state = stateOf(issue(life), { account: account(life), now: clock.now() })
    assert.equal(mustRefresh(state), undefined)
    const at = refreshAt(state)
    clock.advance(at - clock.now() - 1000)
    assert.equal(mustRefresh({ ...state, now: clock.now() }), undefined, 'not a second before')
    clock.advance(1000)
    assert.equal(mustRefresh({ ...state, now: clock.now() })?.reason, 'NearExpiry')
    assert.ok(clock.now() < state.claims!.expiresAt)
    clock.advance(500)
  }
})

test('R2.24 clocks that differ do not make an agent ask again and again: a token begins when it came', () => {
  const token = tokenOf()
  const ahead = 10_000_000
  const received = { digest: digestOf(token), at: ahead, under: 'uid-1' }
  assert.equal(mustRefresh(stateOf(token, { now: ahead }))?.reason, 'Expired', 'by its own words it is over')
  assert.equal(mustRefresh(stateOf(token, { now: ahead, received })), undefined)
  assert.equal(mustRefresh(stateOf(token, { now: ahead + 850_000, received }))?.reason, 'NearExpiry')
  assert.equal(endOf(stateOf(token, { now: ahead, received })), ahead + 1_000_000)
  // The clock was mended: its own words count again.
  assert.equal(mustRefresh(stateOf(token, { now: 10_000, received })), undefined)
  assert.equal(mustRefresh(stateOf(token, { now: 850_000, received }))?.reason, 'NearExpiry')
})

test('R2.25 a condition that is behind the account makes nobody ask twice', () => {
  const token = tokenOf({ uid: 'uid-2' })
  const received = { digest: digestOf(token), at: 0, under: 'uid-1' }
  assert.equal(mustRefresh(stateOf(token, { received })), undefined, 'the hub named uid-1 and gave a token of uid-2')
  const account = { namespace: 'c1', account: 'c1-a-agent', uid: 'uid-3' }
  assert.equal(mustRefresh(stateOf(token, { received, account }))?.reason, 'AccountRecreated')
})

test('R2.28 a token that is due can still be used; any other reason means that it cannot', () => {
  assert.ok(isUsable(stateOf(tokenOf(), { now: 900_000 })))
  assert.ok(!isUsable(stateOf(tokenOf(), { now: 1_000_000 })))
  assert.ok(!isUsable(stateOf('rubbish')))
})

test('R2.26 only what the TokenRequest API issues is read as a token', () => {
  const [head, , tail] = tokenOf().split('.')
  const about = { namespace: 'c1', serviceaccount: { name: 'a', uid: 'u' } }
  const payloads: unknown[] = [
    null,
    7,
    [],
    {},
    { exp: 1, 'kubernetes.io': about },
    { iat: 1, 'kubernetes.io': about },
    { iat: 5, exp: 5, 'kubernetes.io': about },
    { iat: 9, exp: 5, 'kubernetes.io': about },
    { iat: '1', exp: '5', 'kubernetes.io': about },
    { iat: 1, exp: 5, 'kubernetes.io': null },
    { iat: 1, exp: 5, 'kubernetes.io': { namespace: 'c1' } },
    { iat: 1, exp: 5, 'kubernetes.io': { namespace: 'c1', serviceaccount: { name: 'a' } } },
  ]
  for (const payload of payloads) assert.equal(readToken(`${head}.${encode(payload)}.${tail}`), undefined)
  for (const text of [undefined, '', 'a.b', 'a.b.c.d', `${head}..${tail}`, `${tokenOf()}\n`, ` ${tokenOf()}`])
    assert.equal(readToken(text), undefined, JSON.stringify(text))
  assert.deepEqual(readToken(`${head}.${encode({ iat: 1, exp: 5, 'kubernetes.io': about })}.${tail}`), {
    namespace: 'c1',
    account: 'a',
    uid: 'u',
    issuedAt: 1000,
    expiresAt: 5000,
  })
})
