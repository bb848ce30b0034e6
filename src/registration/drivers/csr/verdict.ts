import { createPublicKey } from 'node:crypto'
import type { CertificateSigningRequest } from '../../../kube/index.ts'
import { readChain, validityOf } from '../../../runtime/pki/index.ts'
import { wrongSubject } from './credential.ts'
import type { Pending, Recipe } from './request.ts'

/** How a CSR of ours stands. */
export type Verdict =
  | { kind: 'pending' }
  /** Approved, and not signed yet. */
  | { kind: 'approved' }
  /** PEM, leaf first. */
  | { kind: 'issued'; certificate: string; notBefore: number; notAfter: number }
  /** Nothing will come of it; a new one may be tried later. */
  | { kind: 'refused'; at: number; why: string; next: string }

/** Reads it off the object. */
export const verdictOf = (
  csr: CertificateSigningRequest,
  { recipe, pending, server, now }: { recipe: Recipe; pending: Pending; server: string; now: number },
): Verdict => {
  const { name } = csr.metadata
  const condition = (type: string) => csr.status?.conditions?.find((one) => one.type === type)
  const timeOf = (type: string): number => {
    const { lastUpdateTime, lastTransitionTime } = condition(type) ?? {}
    return Date.parse(lastUpdateTime ?? lastTransitionTime ?? '') || now
  }
  const denied = condition('Denied')
  if (denied) {
    const next = `if it was denied by mistake, remove it on the hub (kubectl delete csr ${name}) and a new one is made at once`
    return { kind: 'refused', at: timeOf('Denied'), why: `CSR ${name} was denied: ${textOf(denied)}`, next }
  }
  const failed = condition('Failed')
  if (failed) {
    const why = `the hub's signer ${recipe.signerName} could not sign CSR ${name}: ${textOf(failed)}`
    return { kind: 'refused', at: timeOf('Failed'), why, next: recipe.unsigned ?? signerHint(server) }
  }
  if (csr.status?.certificate) {
    const certificate = Buffer.from(csr.status.certificate, 'base64').toString('utf8')
    const checked = checkIssued(certificate, recipe, pending, now)
    if (!('wrong' in checked)) return { kind: 'issued', certificate, ...checked }
    const why = `the certificate that the hub issued for CSR ${name} cannot be used: ${checked.wrong}`
    return {
      kind: 'refused',
      at: timeOf('Approved'),
      why,
      next: `ask the hub's administrator about its signer ${recipe.signerName}`,
    }
  }
  return { kind: condition('Approved') ? 'approved' : 'pending' }
}

const textOf = ({ reason, message }: { reason?: string | undefined; message?: string | undefined }): string =>
  [reason, message].filter(Boolean).join(': ') || 'no reason was given'

/** EKS hands out no client certificates; elsewhere the controller manager may lack the signing key. */
export const signerHint = (server: string): string =>
  isEks(server)
    ? 'this hub is EKS, which signs no client certificates: join with --registration-auth aws-irsa'
    : 'the hub signs no client certificates (its kube-controller-manager has no signing key, or it is EKS): join with --registration-auth aws-irsa, or ask its administrator'

const isEks = (server: string): boolean => /\.eks\.amazonaws\.com(?:\.cn)?(?::\d+)?$/.test(new URL(server).host)

const checkIssued = (
  pem: string,
  { subject }: Recipe,
  pending: Pending,
  now: number,
): { wrong: string } | { notBefore: number; notAfter: number } => {
  try {
    const chain = readChain(pem)
    const leaf = chain[0]!
    const validity = validityOf(chain)
    if (!leaf.publicKey.equals(createPublicKey(pending.key))) return { wrong: 'it is for another key' }
    const mismatch = wrongSubject(leaf, subject)
    if (mismatch) return { wrong: mismatch.message }
    return now >= validity.notAfter ? { wrong: 'it has expired by the clock of this machine' } : validity
  } catch {
    return { wrong: 'it is not a chain of certificates' }
  }
}
