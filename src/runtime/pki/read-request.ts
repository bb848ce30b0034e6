import { createPublicKey, verify, type KeyObject } from 'node:crypto'
import { read, type Element } from './der.ts'
import { extensionIds } from './extension.ts'
import { readPem } from './pem.ts'
import { children, oidText, readName, type ReadSubject } from './read-name.ts'

/** Where the names in a request point to, other than its subject. */
export interface ReadPlaces {
  dnsNames: string[]
  /** As bytes in hex: they are looked for, not looked up. */
  ipAddresses: string[]
  emails: string[]
  uris: string[]
  /** How many names there are of kinds that nobody uses. */
  others: number
}

/** A PKCS #10 request that was read. Nothing in it can be trusted but, where `signatureValid`, that its maker holds the key. */
export interface ReadRequest extends ReadPlaces {
  subject: ReadSubject
  publicKey: { kind: string; bits: number; curve?: string | undefined; spki: Buffer }
  signatureValid: boolean
  /** Extensions asked for besides alternative names, and attributes besides extensions: dotted object identifiers. */
  otherExtensions: string[]
  otherAttributes: string[]
}

export type RequestFault =
  | 'TooLarge'
  | 'NotPem'
  | 'SeveralPemBlocks'
  | 'WrongPemType'
  | 'NotDer'
  | 'NotARequest'
  | 'UnreadableKey'

/** Why a text is no certificate request that we would read. */
export class RequestError extends Error {
  override name = 'RequestError'
  readonly reason: RequestFault

  constructor(reason: RequestFault, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.reason = reason
  }
}

/** Larger ones are not read at all: an honest request has a few hundred bytes. */
export const largestRequest = 64 * 1024

/** Reads one PEM block with one certificate request, strictly: whatever could be read in two ways is a `RequestError`. */
export const readRequest = (pem: string): ReadRequest => {
  const size = Buffer.byteLength(pem)
  if (size > largestRequest)
    throw new RequestError('TooLarge', `the request has ${size} bytes; at most ${largestRequest} are read`)
  const blocks = readPem(pem)
  const first = blocks?.[0]
  if (!blocks || !first) throw new RequestError('NotPem', 'the request is not one clean PEM block')
  if (blocks.length > 1) throw new RequestError('SeveralPemBlocks', `the request has ${blocks.length} PEM blocks`)
  if (first.label !== 'CERTIFICATE REQUEST')
    throw new RequestError('WrongPemType', `the request is a "${first.label}", not a "CERTIFICATE REQUEST"`)
  const outer = inDer(() => read(first.der))
  if (outer.length !== 1) throw new RequestError('NotDer', 'bytes follow the request')
  return asRequest(outer[0]!)
}

const inDer = <T>(step: () => T): T => {
  try {
    return step()
  } catch (cause) {
    if (cause instanceof RequestError) throw cause
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new RequestError(why.startsWith('DER') ? 'NotDer' : 'NotARequest', `the request is malformed: ${why}`, cause)
  }
}

const asRequest = (outer: Element): ReadRequest =>
  inDer(() => {
    const [info, algorithm, signature, ...more] = children(outer, 0x30, 'the request')
    const [version, name, key, attributes, ...rest] = children(info, 0x30, 'its signed part')
    if (more.length > 0 || rest.length > 0) throw new RangeError('it has more parts than a request can have')
    if (version?.tag !== 0x02 || !version.content.equals(Buffer.of(0))) throw new RangeError('its version is not 1')
    if (!name || key?.tag !== 0x30) throw new RangeError('it has no subject or no key')
    const publicKey = keyOf(key.whole)
    return {
      subject: readName(name),
      ...readAttributes(children(attributes, 0xa0, 'its list of attributes')),
      publicKey: {
        kind: publicKey.asymmetricKeyType ?? 'unknown',
        bits: bitsOf(publicKey),
        curve: publicKey.asymmetricKeyDetails?.namedCurve,
        spki: key.whole,
      },
      signatureValid: isSigned(info!.whole, algorithm, signature, publicKey),
    }
  })

const keyOf = (spki: Buffer): KeyObject => {
  try {
    return createPublicKey({ key: spki, format: 'der', type: 'spki' })
  } catch (cause) {
    throw new RequestError('UnreadableKey', 'the public key in the request cannot be read', cause)
  }
}

const curveBits: Record<string, number> = { prime256v1: 256, secp384r1: 384, secp521r1: 521 }

const bitsOf = (key: KeyObject): number => {
  const { modulusLength, namedCurve } = key.asymmetricKeyDetails ?? {}
  if (modulusLength !== undefined) return modulusLength
  return namedCurve === undefined ? 256 : (curveBits[namedCurve] ?? 0)
}

/** Signature algorithms by object identifier: the kind of key, and the digest. SHA-1 is not among them. */
const algorithms: Record<string, { kind: string; digest: string | null }> = {
  '1.2.840.10045.4.3.2': { kind: 'ec', digest: 'sha256' },
  '1.2.840.10045.4.3.3': { kind: 'ec', digest: 'sha384' },
  '1.2.840.10045.4.3.4': { kind: 'ec', digest: 'sha512' },
  '1.2.840.113549.1.1.11': { kind: 'rsa', digest: 'sha256' },
  '1.2.840.113549.1.1.12': { kind: 'rsa', digest: 'sha384' },
  '1.2.840.113549.1.1.13': { kind: 'rsa', digest: 'sha512' },
  '1.3.101.112': { kind: 'ed25519', digest: null },
}

const isSigned = (
  part: Buffer,
  algorithm: Element | undefined,
  signature: Element | undefined,
  key: KeyObject,
): boolean => {
  const [id] = children(algorithm, 0x30, 'its signature algorithm')
  if (id?.tag !== 0x06) throw new RangeError('its signature algorithm has no identifier')
  if (signature?.tag !== 0x03 || signature.content[0] !== 0) throw new RangeError('its signature is not whole bytes')
  const known = algorithms[oidText(id.content)]
  if (!known || known.kind !== key.asymmetricKeyType) return false
  return verify(known.digest, part, key, signature.content.subarray(1))
}

type Asked = ReadPlaces & Pick<ReadRequest, 'otherExtensions' | 'otherAttributes'>

const extensionRequest = '1.2.840.113549.1.9.14'

const readAttributes = (attributes: Element[]): Asked => {
  const read = attributes.map((one) => {
    const [type, values, ...more] = children(one, 0x30, 'an attribute')
    if (type?.tag !== 0x06 || more.length > 0) throw new RangeError('an attribute is malformed')
    return { id: oidText(type.content), values: children(values, 0x31, 'the values of an attribute') }
  })
  const asks = read.filter(({ id }) => id === extensionRequest).flatMap(({ values }) => values)
  if (asks.length > 1) throw new RangeError('it asks for extensions more than once')
  const extensions = asks.length ? children(asks[0], 0x30, 'the list of extensions').map(readExtension) : []
  if (new Set(extensions.map(({ id }) => id)).size < extensions.length)
    throw new RangeError('it asks for the same extension twice')
  const names = extensions.find(({ id }) => id === extensionIds.subjectAltName)
  return {
    ...readPlaces(names?.value),
    otherExtensions: extensions.filter((one) => one !== names).map(({ id }) => id),
    otherAttributes: read.filter(({ id }) => id !== extensionRequest).map(({ id }) => id),
  }
}

const readExtension = (extension: Element): { id: string; value: Buffer } => {
  const parts = children(extension, 0x30, 'an extension')
  const [type, ...rest] = parts
  const value = rest.at(-1)
  const critical = rest.length === 2 ? rest[0] : undefined
  if (type?.tag !== 0x06 || value?.tag !== 0x04 || rest.length > 2 || (critical && critical.tag !== 0x01))
    throw new RangeError('an extension is malformed')
  return { id: oidText(type.content), value: value.content }
}

const readPlaces = (value: Buffer | undefined): ReadPlaces => {
  const [list, ...more] = value ? read(value) : []
  if (more.length > 0) throw new RangeError('bytes follow the alternative names')
  const names = value ? children(list, 0x30, 'the list of alternative names') : []
  const of = (tag: number): Buffer[] => names.filter((one) => one.tag === tag).map(({ content }) => content)
  const texts = (tag: number): string[] => of(tag).map((content) => content.toString('latin1'))
  return {
    emails: texts(0x81),
    dnsNames: texts(0x82),
    uris: texts(0x86),
    ipAddresses: of(0x87).map((content) => content.toString('hex')),
    others: names.filter(({ tag }) => ![0x81, 0x82, 0x86, 0x87].includes(tag)).length,
  }
}
