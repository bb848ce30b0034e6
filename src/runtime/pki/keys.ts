import { createHash, generateKeyPairSync, sign, type KeyObject } from 'node:crypto'
import { bitString, element, oid, read, sequence } from './der.ts'

/** A new ECDSA P-256 private key, PKCS #8 PEM. */
export const newKey = (): string =>
  generateKeyPairSync('ec', {
    namedCurve: 'P-256',
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  }).privateKey

/** SubjectPublicKeyInfo: the algorithm of a public key and its bits. */
export const keyInfo = (key: KeyObject): Buffer => key.export({ type: 'spki', format: 'der' })

/** Left 160 bits of the SHA-256 of the key's bits: RFC 7093, method 1. */
export const keyIdentifier = (info: Uint8Array): Buffer => {
  const [outer] = read(info)
  const [, bits] = read(outer!.content)
  return createHash('sha256').update(bits!.content.subarray(1)).digest().subarray(0, 20)
}

// RSA wants an explicit NULL as its parameters, ECDSA none at all
const algorithms = new Map([
  ['ec', sequence(oid('1.2.840.10045.4.3.2'))],
  ['rsa', sequence(oid('1.2.840.113549.1.1.11'), element(0x05))],
])

/** What a private key signs with; a certificate repeats it inside its signed part. */
export const algorithmOf = (key: KeyObject): Buffer => {
  const algorithm = algorithms.get(key.asymmetricKeyType ?? '')
  if (!algorithm) throw new TypeError(`cannot sign with a key of type ${key.asymmetricKeyType}: use ECDSA or RSA`)
  return algorithm
}

/** The signed part with its signature: the outer form of certificates and requests alike. */
export const signed = (part: Buffer, key: KeyObject): Buffer =>
  sequence(part, algorithmOf(key), bitString(sign('sha256', part, key)))

/** PEM text of DER bytes. */
export const pem = (label: string, der: Buffer): string => {
  const lines = der.toString('base64').match(/.{1,64}/g) ?? []
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`
}
