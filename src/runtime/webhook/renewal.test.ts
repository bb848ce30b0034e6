import assert from 'node:assert/strict'
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import { createAuthority, issue, type Issue } from '../pki/index.ts'
import { mustRenew, mustReplaceAuthority, retired, skewMs, type CertificateState } from './renewal.ts'

const hour = 3_600_000
const day = 24 * hour
const start = Date.parse('2026-03-01T12:00:00Z')

const authority = (now: number, commonName = 'test') => {
  const made = createAuthority({ commonName, now: new Date(now - skewMs), validForMs: 3000 * day })
  return { ...made, x509: new X509Certificate(made.cert), keyObject: createPrivateKey(made.key) }
}
const old = authority(start)
const other = authority(start)

const certificate = (from: { cert: string; key: string }, more: Partial<Issue> = {}) => {
  const { cert, key } = issue(from, {
    dnsNames: ['hooks.ns.svc', 'hooks.ns.svc.cluster.local'],
    ipAddresses: ['10.0.0.1', '::1'],
    usages: ['server'],
    notBefore: new Date(start - skewMs),
    notAfter: new Date(start + 90 * day),
    ...more,
  })
  return { serving: new X509Certificate(cert), servingKey: createPrivateKey(key) }
}

const sound: CertificateState = {
  authorities: [old.x509],
  authorityKey: old.keyObject,
  ...certificate(old),
  now: start + 2 * hour,
  renewAfter: 2 / 3,
  settleMs: hour,
  dnsNames: ['hooks.ns.svc', 'HOOKS.ns.svc.cluster.local'],
  ipAddresses: ['10.0.0.1', '0:0::1'],
}

const reasonsFor = (more: Partial<CertificateState>): (string | undefined)[] => {
  const state = { ...sound, ...more }
  return [mustReplaceAuthority(state)?.reason, mustRenew(state)?.reason]
}
const authorityReason = (more: Partial<CertificateState>) => mustReplaceAuthority({ ...sound, ...more })?.reason
const renewalReason = (more: Partial<CertificateState>) => mustRenew({ ...sound, ...more })?.reason

test('R0.31 a sound certificate is let be until two thirds of its lifetime are over', () => {
  assert.deepEqual(reasonsFor({}), [undefined, undefined])
  assert.deepEqual(reasonsFor({ now: start + 59.9 * day }), [undefined, undefined])
  assert.deepEqual(reasonsFor({ now: start + 60.1 * day }), [undefined, 'NearExpiry'])
  assert.deepEqual(reasonsFor({ now: start + 60.1 * day, renewAfter: 0.7 }), [undefined, undefined])
  assert.deepEqual(reasonsFor({ now: start + 90 * day }), [undefined, 'Expired'])
  assert.deepEqual(reasonsFor({ now: start - hour }), ['AuthorityNotYetValid', 'NotYetValid'])
})

test('R0.31 an authority is replaced when it is damaged, and at two thirds of its lifetime', () => {
  assert.equal(authorityReason({ authorities: [] }), 'AuthorityMissing')
  assert.equal(authorityReason({ authorityKey: undefined }), 'AuthorityKeyMissing')
  assert.equal(authorityReason({ authorityKey: other.keyObject }), 'AuthorityKeyMismatch')
  const { serving, servingKey } = sound
  assert.equal(authorityReason({ authorities: [serving!], authorityKey: servingKey }), 'NotAnAuthority')
  assert.equal(authorityReason({ now: start + 1999 * day }), undefined)
  assert.equal(authorityReason({ now: start + 2001 * day }), 'AuthorityNearExpiry')
})

test('R0.31 a certificate is renewed when it is damaged or not what callers need', () => {
  assert.equal(renewalReason({ serving: undefined }), 'CertificateMissing')
  assert.equal(renewalReason({ servingKey: undefined }), 'KeyMissing')
  assert.equal(renewalReason({ servingKey: other.keyObject }), 'KeyMismatch')
  assert.equal(renewalReason(certificate(other)), 'NotTrusted')
  assert.equal(renewalReason(certificate(old, { usages: ['client'] })), 'NotForServers')
  assert.equal(renewalReason(certificate(old, { dnsNames: ['hooks.ns.svc'] })), 'WrongNames')
  assert.equal(renewalReason(certificate(old, { ipAddresses: ['10.0.0.1'] })), 'WrongNames')
  assert.match(mustRenew({ ...sound, dnsNames: ['a.svc', 'b.svc'] })!.message, /a\.svc,b\.svc/)
})

test('R0.31 names too many are no reason: replicas of two versions do not fight over the certificate', () => {
  assert.equal(renewalReason({ dnsNames: ['hooks.ns.svc'], ipAddresses: [] }), undefined)
})

const young = authority(start + 30 * day)
const changing = { authorities: [young.x509, old.x509], authorityKey: young.keyObject }

test('R0.31 after a change of authority, the certificate changes when the new one is known everywhere', () => {
  const at = start + 30 * day
  assert.deepEqual(reasonsFor({ ...changing, now: at }), [undefined, undefined])
  assert.deepEqual(reasonsFor({ ...changing, now: at + hour - 1 }), [undefined, undefined])
  assert.deepEqual(reasonsFor({ ...changing, now: at + hour }), [undefined, 'AuthorityReplaced'])
})

test('R0.31 a certificate that is due waits for the new authority, an expired one does not', () => {
  const { serving, servingKey } = certificate(old, { notAfter: new Date(start + 30 * day + hour / 2) })
  const state = { ...changing, serving, servingKey }
  assert.equal(renewalReason({ ...state, now: start + 30 * day }), undefined)
  assert.equal(renewalReason({ ...state, now: start + 30 * day + hour / 2 }), 'Expired')
})

test('R0.31 an authority is retired when nobody uses what it signed, or when it has expired', () => {
  const at = start + 31 * day
  const renewed = certificate(young, { notBefore: new Date(at - skewMs) })
  assert.deepEqual(retired({ ...sound, ...changing, now: at }), [])
  assert.deepEqual(retired({ ...sound, ...changing, ...renewed, now: at + hour - 1 }), [])
  assert.deepEqual(retired({ ...sound, ...changing, ...renewed, now: at + hour }), [old.x509])
  assert.deepEqual(retired({ ...sound, ...changing, now: start + 3000 * day }), [old.x509])
  assert.deepEqual(retired({ ...sound, now: start + 3000 * day }), [])
})
