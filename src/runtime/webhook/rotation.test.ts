import assert from 'node:assert/strict'
import type { X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { rounds } from '../../../testkit/index.ts'
import { decode, encode, servingOf, type Held } from './held.ts'
import { signerOf } from './renewal.ts'
import { rotate } from './rotation.ts'

const hour = 3_600_000
const day = 24 * hour
const start = Date.parse('2026-03-01T12:00:00Z')
const settings = { settleMs: hour, renewAfter: 2 / 3, dnsNames: ['hooks.ns.svc'], ipAddresses: [] }
const recipe = { commonName: 'hooks', caValidityMs: 300 * day, validityMs: 90 * day }
const nothing = decode()

const at = (now: number, held: Held, remembered?: Held, as = recipe) =>
  rotate({ ...held, ...settings, now }, as, remembered)
const names = ({ reasons }: ReturnType<typeof rotate>): string[] => reasons.map((one) => one.reason)

/** Whether a caller that trusts the first accepts a server that uses the second. */
const accepts = (caller: Held, { serving }: Held, now = start): boolean =>
  caller.authorities.some((one) => serving!.checkIssued(one) && serving!.verify(one.publicKey) && isValid(one, now)) &&
  isValid(serving!, now)
const isValid = (one: X509Certificate, now: number): boolean =>
  one.validFromDate.getTime() <= now && now <= one.validToDate.getTime()

test('R0.31 from nothing come an authority and a certificate, and then nothing more', () => {
  const made = at(start, nothing)
  assert.deepEqual(names(made), ['AuthorityMissing', 'CertificateMissing'])
  assert.equal(made.held.authorities.length, 1)
  assert.ok(accepts(made.held, made.held))
  assert.deepEqual(names(at(start + hour, made.held)), [])
  assert.deepEqual(names(at(start + 30 * day, made.held)), [])
})

test('R0.31 what the Secret holds is what was written into it', () => {
  const { held } = at(start, nothing)
  const read = decode(encode(held))
  assert.deepEqual(servingOf(read), servingOf(held))
  assert.deepEqual(names(at(start, read)), [])
  assert.match(servingOf(held).key, /^-----BEGIN PRIVATE KEY-----/)
})

test('R0.31 an authority changes in three steps: trusted, used, and the old one forgotten', () => {
  const first = at(start, nothing).held
  const renewed = at(start + 61 * day, first).held
  assert.equal(signerOf(renewed), signerOf(first))

  const trusted = at(start + 201 * day, at(start + 140 * day, renewed).held)
  assert.deepEqual(names(trusted), ['AuthorityNearExpiry'])
  assert.equal(trusted.held.authorities.length, 2)
  assert.deepEqual(names(at(start + 201 * day + hour / 2, trusted.held)), [])

  const used = at(start + 201 * day + hour, trusted.held)
  assert.deepEqual(names(used), ['NearExpiry'])
  assert.equal(used.held.authorities.length, 2)
  assert.deepEqual(names(at(start + 201 * day + 1.5 * hour, used.held)), [])

  const alone = at(start + 201 * day + 2 * hour, used.held)
  assert.deepEqual(names(alone), ['AuthorityRetired'])
  assert.deepEqual(alone.held.authorities, [signerOf(trusted.held)])
  assert.deepEqual(names(at(start + 201 * day + 3 * hour, alone.held)), [])
})

test('R0.31 a certificate never outlives its authority', () => {
  const short = { ...recipe, caValidityMs: 10 * day }
  const { held } = rotate({ ...nothing, ...settings, now: start }, short)
  assert.equal(held.serving!.validToDate.getTime(), start + 10 * day)
})

test('R0.31 what can never be is an error, not a new certificate every minute', () => {
  const impossible = { ...recipe, validityMs: 0 }
  assert.throws(() => rotate({ ...nothing, ...settings, now: start }, impossible), /cannot be made as it is asked for/)
})

test('R0.31 a Secret that was deleted gets a new authority, and callers that know only the old one go on', () => {
  const before = at(start, nothing).held
  const repaired = at(start + day, nothing, before)
  assert.notEqual(signerOf(repaired.held)!.fingerprint256, signerOf(before)!.fingerprint256)
  assert.ok(accepts(before, repaired.held))
  const later = at(start + day + hour, repaired.held, repaired.held)
  assert.deepEqual(names(later), ['AuthorityReplaced'])
})

const shortLived = { ...recipe, caValidityMs: 90 * day, validityMs: 30 * day }
const step = fc.record({
  who: fc.constantFrom('replica a', 'replica b', 'caller'),
  minutes: fc.nat(15),
  quietDays: fc.oneof(
    { weight: 4, arbitrary: fc.constant(0) },
    { weight: 1, arbitrary: fc.integer({ min: 5, max: 8 }) },
  ),
  damage: fc.oneof(
    { weight: 9, arbitrary: fc.constant('none') },
    { weight: 1, arbitrary: fc.constantFrom('ca.crt', 'ca.key', 'tls.crt', 'tls.key', 'all') },
  ),
})

test('R0.31 no call fails, whoever looks when, and whatever happens to the Secret meanwhile', () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 40, maxLength: 80 }), (steps) => {
      let now = start
      let lastTogether = now
      let secret = encode(at(now, nothing, undefined, shortLived).held)
      const views = { 'replica a': decode(secret), 'replica b': decode(secret), caller: decode(secret) }
      const look = (who: keyof typeof views): void => {
        const replica = who === 'caller' ? 'replica a' : who // a replica tells the caller what it sees
        views[replica] = at(now, decode(secret), views[replica], shortLived).held
        views[who] = views[replica]
        secret = encode(views[replica])
      }
      const everyone = (): void => {
        for (const who of ['replica a', 'replica b', 'caller'] as const) look(who)
        lastTogether = now
      }
      for (const { who, minutes, quietDays, damage } of steps) {
        // each may lag behind the Secret, but never by as much as the time to settle
        if (now + minutes * 60_000 - lastTogether >= settings.settleMs) everyone()
        now += minutes * 60_000
        if (quietDays > 0) {
          // before a quiet time, whatever had begun comes to its end
          for (let i = 0; i < 3; i++, now += settings.settleMs) everyone()
          now += quietDays * day
          lastTogether = now
        }
        if (damage === 'all') secret = {}
        else if (damage !== 'none') secret = { ...secret, [damage]: Buffer.from('rubbish').toString('base64') }
        look(who)
        for (const replica of ['replica a', 'replica b'] as const)
          assert.ok(accepts(views.caller, views[replica], now), `the caller refuses ${replica}`)
      }
      everyone()
      assert.deepEqual(names(at(now, decode(secret), undefined, shortLived)), [])
    }),
    { numRuns: rounds(20) },
  )
})
