import { createPrivateKey, X509Certificate } from 'node:crypto'
import type { Reason } from '../checks.ts'
import { createAuthority, issue } from '../pki/index.ts'
import type { Held } from './held.ts'
import {
  hasSettled,
  mustRenew,
  mustReplaceAuthority,
  retired,
  signerOf,
  skewMs,
  type CertificateState,
} from './renewal.ts'

/** What new certificates are like. */
export interface Recipe {
  /** Names the authority to people who look at it. */
  commonName: string
  caValidityMs: number
  validityMs: number
}

/** What the Secret should hold, and why it should change; without reasons it holds it already. */
export interface Rotation {
  held: Held
  reasons: Reason[]
}

/**
 * Decides what changes now. An authority is replaced in three steps, each some time after the one before, so that no call fails:
 * the new one is trusted too; the serving certificate comes from the new one; the old one is trusted no more.
 * What this process still remembers is used where the Secret was damaged: callers trust it already.
 */
export const rotate = (state: CertificateState, recipe: Recipe, remembered?: Held): Rotation => {
  const reasons: Reason[] = []
  let next = state

  const replace = mustReplaceAuthority(next)
  if (replace) {
    reasons.push(replace)
    next = withNewAuthority(next, recipe, remembered)
  }
  const renew = mustRenew(next)
  if (renew) {
    reasons.push(renew)
    next = withRemembered(next, remembered) ?? withNewCertificate(next, recipe)
  }
  const old = retired(next)
  if (old.length > 0) {
    reasons.push({ reason: 'AuthorityRetired', message: `${old.length} earlier authority is trusted no more` })
    next = { ...next, authorities: next.authorities.filter((one) => !old.includes(one)) }
  }

  const { authorities, authorityKey, serving, servingKey } = next
  return { held: { authorities, authorityKey, serving, servingKey }, reasons }
}

const withNewAuthority = (s: CertificateState, recipe: Recipe, remembered: Held | undefined): CertificateState => {
  const { cert, key } = createAuthority({
    commonName: recipe.commonName,
    now: new Date(s.now - skewMs),
    validForMs: recipe.caValidityMs + skewMs,
  })
  const earlier = [...s.authorities, ...(remembered?.authorities ?? [])]
  const distinct = new Map(earlier.map((one) => [one.fingerprint256, one])).values()
  return { ...s, authorities: [new X509Certificate(cert), ...distinct], authorityKey: createPrivateKey(key) }
}

/** While callers do not know the authority yet, the certificate that was in use until now serves best. */
const withRemembered = (s: CertificateState, remembered: Held | undefined): CertificateState | undefined => {
  if (!remembered || hasSettled(s, signerOf(s)!)) return undefined
  const next = { ...s, serving: remembered.serving, servingKey: remembered.servingKey }
  return mustRenew(next) ? undefined : next
}

const withNewCertificate = (s: CertificateState, { validityMs }: Recipe): CertificateState => {
  const signer = signerOf(s)!
  const authority = { cert: String(signer), key: s.authorityKey!.export({ type: 'pkcs8', format: 'pem' }) }
  const { cert, key } = issue(authority, {
    dnsNames: s.dnsNames,
    ipAddresses: s.ipAddresses,
    usages: ['server'],
    notBefore: new Date(s.now - skewMs),
    // Nothing outlives the authority that vouches for it.
    notAfter: new Date(Math.min(s.now + validityMs, signer.validToDate.getTime())),
  })
  const next = { ...s, serving: new X509Certificate(cert), servingKey: createPrivateKey(key) }
  // Else every pass would find a reason and write a new one, for ever.
  const still = mustRenew(next)
  if (still) throw new Error(`a certificate cannot be made as it is asked for: ${still.message}`)
  return next
}
