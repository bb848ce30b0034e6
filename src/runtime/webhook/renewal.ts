import type { X509Certificate } from 'node:crypto'
import { firstOf, type Check } from '../checks.ts'
import type { Held } from './held.ts'

/** What a decision about renewal depends on. */
export interface CertificateState extends Held {
  now: number
  /** The share of its lifetime after which a certificate is renewed; replicas differ in it, so that one is first. */
  renewAfter: number
  /** How long it takes at most until every caller trusts a new authority, and every replica uses a new certificate. */
  settleMs: number
  dnsNames: readonly string[]
  ipAddresses: readonly string[]
}

/** Certificates begin this much before they are made: the clock of whoever checks them may be behind ours. */
export const skewMs = 5 * 60_000

/** Why a new authority is needed; undefined when the one that signs is good. */
export const authorityReasons: Check<CertificateState>[] = [
  (s) => s.authorities.length === 0 && { reason: 'AuthorityMissing', message: 'ca.crt holds no readable certificate' },
  (s) => !s.authorityKey && { reason: 'AuthorityKeyMissing', message: 'ca.key holds no readable private key' },
  (s) => !signerOf(s) && { reason: 'AuthorityKeyMismatch', message: 'ca.key belongs to no certificate in ca.crt' },
  (s) => !signerOf(s)!.ca && { reason: 'NotAnAuthority', message: 'the certificate of ca.key may not sign others' },
  (s) => early(s, signerOf(s)!) && { reason: 'AuthorityNotYetValid', message: begins('authority', signerOf(s)!) },
  (s) => due(s, signerOf(s)!) && { reason: 'AuthorityNearExpiry', message: ends('authority', signerOf(s)!) },
]

/** Why a new serving certificate is needed; undefined when the present one is good. The authority is good by now. */
export const renewalReasons: Check<CertificateState>[] = [
  (s) => !s.serving && { reason: 'CertificateMissing', message: 'tls.crt holds no readable certificate' },
  (s) => !s.servingKey && { reason: 'KeyMissing', message: 'tls.key holds no readable private key' },
  (s) => !s.serving!.checkPrivateKey(s.servingKey!) && { reason: 'KeyMismatch', message: 'tls.key is not of tls.crt' },
  (s) => !issuerOf(s) && { reason: 'NotTrusted', message: 'tls.crt is signed by no certificate in ca.crt' },
  (s) => !isForServers(s.serving!) && { reason: 'NotForServers', message: 'tls.crt may not be used by a server' },
  // Names too many are let be: during an upgrade the old replicas want fewer names than the new ones.
  (s) =>
    missingNames(s).length > 0 && { reason: 'WrongNames', message: `tls.crt is not for ${missingNames(s).join()}` },
  (s) => early(s, s.serving!) && { reason: 'NotYetValid', message: begins('certificate', s.serving!) },
  (s) => s.now >= s.serving!.validToDate.getTime() && { reason: 'Expired', message: ends('certificate', s.serving!) },
  // These two can wait until every caller trusts the new authority: before, they would refuse what it signs.
  (s) =>
    hasSettled(s, signerOf(s)!) &&
    due(s, s.serving!) && { reason: 'NearExpiry', message: ends('certificate', s.serving!) },
  (s) =>
    hasSettled(s, signerOf(s)!) &&
    issuerOf(s) !== signerOf(s) && {
      reason: 'AuthorityReplaced',
      message: 'tls.crt is signed by an earlier authority',
    },
]

/** The first reason for a new authority. */
export const mustReplaceAuthority = firstOf(authorityReasons)
/** The first reason for a new serving certificate. */
export const mustRenew = firstOf(renewalReasons)

/** Authorities that nothing depends on any more: expired, or replaced so long ago that no replica uses what they signed. */
export const retired = (s: CertificateState): X509Certificate[] => {
  const signer = signerOf(s)
  const replaced = issuerOf(s) === signer && hasSettled(s, s.serving!)
  return s.authorities.filter((one) => one !== signer && (replaced || !one.ca || s.now >= one.validToDate.getTime()))
}

/** The authority whose key we have. */
export const signerOf = ({ authorities, authorityKey }: Held): X509Certificate | undefined =>
  authorityKey && authorities.find((one) => one.checkPrivateKey(authorityKey))

const issuerOf = ({ authorities, serving }: Held): X509Certificate | undefined =>
  authorities.find((one) => serving!.checkIssued(one) && serving!.verify(one.publicKey))

/** Whether it has been there for so long that everybody knows it. */
export const hasSettled = (s: CertificateState, certificate: X509Certificate): boolean =>
  s.now >= certificate.validFromDate.getTime() + skewMs + s.settleMs

const early = (s: CertificateState, certificate: X509Certificate): boolean =>
  s.now < certificate.validFromDate.getTime()

const due = (s: CertificateState, { validFromDate, validToDate }: X509Certificate): boolean => {
  const from = validFromDate.getTime()
  return s.now >= from + (validToDate.getTime() - from) * s.renewAfter
}

const serverAuth = '1.3.6.1.5.5.7.3.1'

// Node's `keyUsage` is the extended one.
const isForServers = ({ keyUsage }: X509Certificate): boolean => keyUsage?.includes(serverAuth) ?? false

const missingNames = ({ serving, dnsNames, ipAddresses }: CertificateState): string[] => {
  const names = (serving!.subjectAltName ?? '').toLowerCase().split(', ')
  return [
    ...dnsNames.filter((name) => !names.includes(`dns:${name.toLowerCase()}`)),
    ...ipAddresses.filter((address) => serving!.checkIP(address) === undefined),
  ]
}

const begins = (what: string, { validFromDate }: X509Certificate): string =>
  `the ${what} is valid only from ${validFromDate.toISOString()}`

const ends = (what: string, { validToDate }: X509Certificate): string =>
  `the ${what} is valid until ${validToDate.toISOString()}`
