import { createHash, X509Certificate } from 'node:crypto'
import { UsageError } from '../main/flags.ts'

const certificate = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g

/** A certificate of a bundle, and how a person pins it. */
export interface Pinned {
  pem: string
  /** `sha256:` and the hash of its public key, as kubeadm writes it: a renewed CA with the same key keeps it. */
  hash: string
}

/** The certificates of a PEM bundle. Throws when one of them cannot be read. */
export const pinsOf = (bundle: string): Pinned[] =>
  (bundle.match(certificate) ?? []).map((pem) => {
    const spki = new X509Certificate(pem).publicKey.export({ type: 'spki', format: 'der' })
    return { pem, hash: `sha256:${createHash('sha256').update(spki).digest('hex')}` }
  })

/** The hashes that a person gave, in one spelling. */
export const checkedHashes = (said: readonly string[]): string[] =>
  said.map((one) => {
    const hash = one.toLowerCase()
    if (/^sha256:[0-9a-f]{64}$/.test(hash)) return hash
    throw new UsageError(
      `--ca-hash takes sha256: and 64 hex digits, not ${JSON.stringify(one.slice(0, 80))}; get token on the hub prints it`,
    )
  })
