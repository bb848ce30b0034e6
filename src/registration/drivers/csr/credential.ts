import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto'
import { firstOf, timestamp, type Reason } from '../../../runtime/index.ts'
import { readChain, validityOf, type ReadCertificate } from '../../../runtime/pki/index.ts'
import { secretKey } from '../../contract.ts'
import type { SecretData } from '../driver.ts'

/** Whom a certificate must name: user and groups to Kubernetes. */
export interface CertificateSubject {
  user: string
  groups: readonly string[]
  organizationalUnits?: readonly string[] | undefined
}

interface CredentialState {
  secret: SecretData
  subject: CertificateSubject
  now: number
  chain?: ReadCertificate[] | undefined
  key?: KeyObject | undefined
}

/** A certificate that begins this much later than our clock says is taken for valid: clocks differ. */
const skewMs = 5 * 60_000
/** A renewal begins at least this long before the end, so that short certificates are renewed at once. */
const leastSpareMs = 30_000

const found = (state: CredentialState): { leaf: ReadCertificate; chain: ReadCertificate[]; key: KeyObject } => ({
  leaf: state.chain![0]!,
  chain: state.chain!,
  key: state.key!,
})

const unusableChecks = firstOf<CredentialState>([
  ({ secret }) => {
    const missing = [secretKey.certificate, secretKey.key].filter((name) => !secret[name])
    return (
      missing.length > 0 && { reason: 'CertificateMissing', message: `the secret has no ${missing.join(' and no ')}` }
    )
  },
  ({ chain }) =>
    !chain && { reason: 'CertificateUnreadable', message: `${secretKey.certificate} is not a chain of certificates` },
  ({ key }) => !key && { reason: 'KeyUnreadable', message: `${secretKey.key} is not a private key` },
  (state) =>
    !found(state).leaf.publicKey.equals(createPublicKey(found(state).key)) && {
      reason: 'KeyMismatch',
      message: `${secretKey.key} is not the key of ${secretKey.certificate}`,
    },
  (state) => {
    const { notAfter } = validityOf(found(state).chain)
    return (
      state.now >= notAfter && {
        reason: 'CertificateExpired',
        message: `the certificate ended at ${timestamp(notAfter)}`,
      }
    )
  },
  (state) => {
    const { notBefore } = validityOf(found(state).chain)
    return (
      state.now + skewMs < notBefore && {
        reason: 'CertificateNotYetValid',
        message: `the certificate begins at ${timestamp(notBefore)}, and the clock here says ${timestamp(state.now)}`,
      }
    )
  },
  (state) => wrongSubject(found(state).leaf, state.subject),
])

/** Why the certificate in a secret cannot be used for this subject. */
export const unusable = (secret: SecretData, subject: CertificateSubject, now: number): Reason | undefined =>
  unusableChecks({ secret, subject, now, chain: chainIn(secret), key: keyIn(secret[secretKey.key]) })

/** Why a certificate is not for this subject: the user, the groups and the units must be the same, in any order. */
export const wrongSubject = ({ subject: has }: ReadCertificate, wanted: CertificateSubject): Reason | undefined => {
  const differs =
    has.commonName !== wanted.user ||
    !sameSet(has.organizations, wanted.groups) ||
    !sameSet(has.organizationalUnits, wanted.organizationalUnits ?? [])
  if (!differs) return undefined
  const message = `the certificate is for ${has.commonName ?? 'nobody'} (${has.organizations.join(', ')}), not for ${wanted.user} (${wanted.groups.join(', ')})`
  return { reason: 'SubjectMismatch', message }
}

const sameSet = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((one) => b.includes(one)) && b.every((one) => a.includes(one))

/** At a random point when 75 to 80 % of the real lifetime are over; at once when there is nothing to wait for. */
export const renewAt = (secret: SecretData, random: () => number): number => {
  const chain = chainIn(secret)
  if (!chain) return 0
  const { notBefore, notAfter } = validityOf(chain)
  const part = 0.75 + 0.05 * random()
  return Math.min(notBefore + (notAfter - notBefore) * part, notAfter - leastSpareMs)
}

/** When the first certificate of the chain ends. */
export const expiresAt = (secret: SecretData): number | undefined => {
  const chain = chainIn(secret)
  return chain && validityOf(chain).notAfter
}

const chainIn = (secret: SecretData): ReadCertificate[] | undefined => {
  try {
    return readChain(secret[secretKey.certificate] ?? '')
  } catch {
    return undefined
  }
}

/** A private key in PEM; undefined when it cannot be read. */
export const keyIn = (pem: string | undefined): KeyObject | undefined => {
  try {
    return pem ? createPrivateKey(pem) : undefined
  } catch {
    return undefined // and whatever it was goes into no message
  }
}
