import { createHash, createPublicKey } from 'node:crypto'
import type { CertificateSigningRequest } from '../../../kube/index.ts'
import { createRequest, newKey, readRequest } from '../../../runtime/pki/index.ts'
import { pendingKey } from '../../contract.ts'
import type { SecretChange, SecretData } from '../driver.ts'
import { keyIn, type CertificateSubject } from './credential.ts'

/** What to ask the hub for. */
export interface Recipe {
  subject: CertificateSubject
  signerName: string
  /** What the CSR's name begins with. */
  prefix: string
  labels: Record<string, string>
  dnsNames?: readonly string[] | undefined
  expirationSeconds?: number | undefined
  /** Of the CSR's name; what does not fit is cut from the prefix. */
  longestName?: number | undefined
  /** Whom to ask for approval while it is missing. */
  approver: string
  /** What to do about a hub that signs nothing; unless told, how a cluster joins without certificates. */
  unsigned?: string | undefined
}

/** A key whose certificate is not issued yet, and the one CSR that it is for. */
export interface Pending {
  key: string
  name: string
}

/** What removes it again. */
export const noPending: SecretChange = { [pendingKey.key]: undefined, [pendingKey.csr]: undefined }

const usualLength = 63

/**
 * The CSR's name follows from key and content. Whoever starts again with the same saved key meets the same CSR, so there
 * is never a second one; and with another subject or signer it is another request.
 */
export const requestName = (recipe: Recipe, key: string): string => {
  const { prefix, subject, signerName, dnsNames = [], longestName = usualLength } = recipe
  const spki = createPublicKey(key).export({ type: 'spki', format: 'der' })
  const content = [subject.user, subject.groups, subject.organizationalUnits ?? [], dnsNames, signerName]
  const hash = createHash('sha256').update(spki).update(JSON.stringify(content)).digest('hex').slice(0, 20)
  return `${prefix.slice(0, longestName - hash.length - 1).replace(/[-.]+$/, '')}-${hash}`
}

/** A new key, made here. It never leaves but into the secret. */
export const newPending = (recipe: Recipe): Pending => {
  const key = newKey()
  return { key, name: requestName(recipe, key) }
}

/** The request that a process before us had under way, if it asked for the same. */
export const pendingIn = (recipe: Recipe, secret: SecretData): Pending | undefined => {
  const key = secret[pendingKey.key]
  if (!key || !keyIn(key)) return undefined
  const name = requestName(recipe, key)
  return name === secret[pendingKey.csr] ? { key, name } : undefined
}

/** The object to create. Signing with ECDSA draws new numbers each time; the key in it is what stays. */
export const csrObject = (recipe: Recipe, pending: Pending): CertificateSigningRequest => {
  const { subject, signerName, labels, dnsNames, expirationSeconds } = recipe
  const { csr } = createRequest({
    commonName: subject.user,
    organizations: subject.groups,
    organizationalUnits: subject.organizationalUnits,
    dnsNames,
    key: pending.key,
  })
  return {
    metadata: { name: pending.name, labels },
    spec: {
      request: Buffer.from(csr).toString('base64'),
      signerName,
      usages: ['digital signature', 'key encipherment', 'client auth'],
      ...(expirationSeconds === undefined ? {} : { expirationSeconds }),
    },
  }
}

/** Whether a CSR on the hub is for this private key. */
export const isFor = (csr: CertificateSigningRequest, key: string): boolean => {
  try {
    const { publicKey } = readRequest(Buffer.from(csr.spec.request, 'base64').toString('latin1'))
    return publicKey.spki.equals(createPublicKey(key).export({ type: 'spki', format: 'der' }))
  } catch {
    return false
  }
}
