import { createPrivateKey, createPublicKey, randomBytes, X509Certificate, type KeyObject } from 'node:crypto'
import { flags, integer, octetString, oid, read, sequence, tagged, taggedBytes, time, yes } from './der.ts'
import { critical, extension, extensionIds, placesExtension } from './extension.ts'
import { algorithmOf, keyIdentifier, keyInfo, newKey, pem, signed } from './keys.ts'
import { distinguishedName, type Places, type Subject } from './names.ts'

/** A certificate with its private key, both PEM. */
export interface KeyPair {
  cert: string
  key: string
}

/** What the holder of a certificate proves with it. */
export type Usage = 'server' | 'client'

/** What `issue` writes into a certificate. */
export interface Issue extends Subject, Places {
  usages: readonly Usage[]
  notBefore: Date
  notAfter: Date
}

const purposes: Record<Usage, string> = { server: '1.3.6.1.5.5.7.3.1', client: '1.3.6.1.5.5.7.3.2' }
const bit = { digitalSignature: 0, keyEncipherment: 2, keyCertSign: 5, crlSign: 6 }

/** A new self-signed authority, valid from `now`. */
export const createAuthority = (options: { commonName: string; validForMs: number; now: Date }): KeyPair => {
  const key = newKey()
  const publicKey = createPublicKey(key)
  const name = distinguishedName({ commonName: options.commonName })
  const cert = certificate(key, {
    issuer: name,
    subject: name,
    publicKey,
    notBefore: options.now,
    notAfter: new Date(options.now.getTime() + options.validForMs),
    extensions: [
      critical('basicConstraints', sequence(yes())),
      critical('keyUsage', flags(bit.digitalSignature, bit.keyCertSign, bit.crlSign)),
      extension('subjectKeyIdentifier', octetString(keyIdentifier(keyInfo(publicKey)))),
    ],
  })
  return { cert, key }
}

/** A certificate signed by the authority: for the public key given (PEM), else for a new ECDSA P-256 key. */
export function issue(authority: KeyPair, options: Issue & { publicKey: string }): { cert: string }
export function issue(authority: KeyPair, options: Issue): KeyPair
export function issue(authority: KeyPair, options: Issue & { publicKey?: string }): { cert: string; key?: string } {
  const key = options.publicKey ? undefined : newKey()
  const publicKey = createPublicKey(options.publicKey ?? key!)
  const issuer = identityOf(authority.cert)
  const cert = certificate(authority.key, {
    issuer: issuer.subject,
    subject: distinguishedName(options),
    publicKey,
    notBefore: options.notBefore,
    notAfter: options.notAfter,
    extensions: leafExtensions(options, publicKey, issuer.keyId),
  })
  return key ? { cert, key } : { cert }
}

const leafExtensions = (options: Issue, publicKey: KeyObject, issuerKeyId: Buffer | undefined): Buffer[] => {
  // an RSA key also encrypts in older TLS; an ECDSA key only signs (RFC 5480, 3)
  const uses =
    publicKey.asymmetricKeyType === 'rsa' ? [bit.digitalSignature, bit.keyEncipherment] : [bit.digitalSignature]
  const usages = options.usages.map((usage) => oid(purposes[usage]))
  return [
    critical('basicConstraints', sequence()),
    critical('keyUsage', flags(...uses)),
    ...(usages.length ? [extension('extendedKeyUsage', sequence(...usages))] : []),
    extension('subjectKeyIdentifier', octetString(keyIdentifier(keyInfo(publicKey)))),
    ...(issuerKeyId ? [extension('authorityKeyIdentifier', sequence(taggedBytes(0, issuerKeyId)))] : []),
    ...placesExtension(options),
  ]
}

interface Parts {
  issuer: Buffer
  subject: Buffer
  publicKey: KeyObject
  notBefore: Date
  notAfter: Date
  extensions: Buffer[]
}

const certificate = (signingKey: string, parts: Parts): string => {
  const key = createPrivateKey(signingKey)
  const part = sequence(
    tagged(0, integer(2)), // version 3
    serialNumber(),
    algorithmOf(key),
    parts.issuer,
    sequence(time(parts.notBefore), time(parts.notAfter)),
    parts.subject,
    keyInfo(parts.publicKey),
    tagged(3, sequence(...parts.extensions)),
  )
  return pem('CERTIFICATE', signed(part, key))
}

/** 16 random bytes; the first is from 1 to 127, so the number is positive and always as long. */
const serialNumber = (): Buffer => {
  const bytes = randomBytes(16)
  bytes[0] = bytes[0]! & 0x7f || 1
  return integer(BigInt(`0x${bytes.toString('hex')}`))
}

/** What certificates below this one must repeat: its subject byte for byte, and its key identifier if it has one. */
const identityOf = (cert: string): { subject: Buffer; keyId: Buffer | undefined } => {
  const [outer] = read(new X509Certificate(cert).raw)
  const [part] = read(outer!.content)
  const fields = read(part!.content)
  const list = fields.find((field) => field.tag === 0xa3)
  const extensions = list ? read(read(list.content)[0]!.content) : []
  const wanted = oid(extensionIds.subjectKeyIdentifier)
  const value = extensions
    .map((one) => read(one.content))
    .find(([id]) => id?.whole.equals(wanted))
    ?.at(-1)
  return { subject: fields[5]!.whole, keyId: value && read(value.content)[0]?.content }
}
