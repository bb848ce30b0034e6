/** DER (X.690), as much of it as X.509 certificates and PKCS #10 requests need: functions that encode, and a small reader. */

const tags = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  oid: 0x06,
  utf8String: 0x0c,
  printableString: 0x13,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
}

/** One element: tag, definite length, content. */
export const element = (tag: number, ...content: Uint8Array[]): Buffer => {
  const body = Buffer.concat(content)
  return Buffer.concat([Buffer.from([tag]), lengthOf(body.length), body])
}

/** Short form below 128; above, the number of length bytes and then the length, in as few bytes as possible. */
const lengthOf = (length: number): Buffer => {
  if (length < 0x80) return Buffer.from([length])
  const bytes = bytesOf(BigInt(length))
  return Buffer.concat([Buffer.from([0x80 | bytes.length]), bytes])
}

/** Big-endian bytes of a non-negative number, without leading zeros; zero is one byte. */
const bytesOf = (value: bigint): Buffer => {
  const hex = value.toString(16)
  return Buffer.from(hex.length % 2 ? `0${hex}` : hex, 'hex')
}

export const sequence = (...content: Uint8Array[]): Buffer => element(tags.sequence, ...content)

/** SET OF: DER wants the members in the order of their encodings. */
export const set = (...content: Uint8Array[]): Buffer =>
  element(tags.set, ...content.toSorted((a, b) => Buffer.compare(a, b)))

/** A non-negative integer. A first bit of 1 would make it negative, so a zero byte goes before it. */
export const integer = (value: bigint | number): Buffer => {
  if (value < 0) throw new RangeError(`DER integer ${value} is negative; only 0 and above are used here`)
  const bytes = bytesOf(BigInt(value))
  return element(tags.integer, bytes[0]! & 0x80 ? Buffer.concat([Buffer.of(0), bytes]) : bytes)
}

/** TRUE; DER leaves out a FALSE that is the default, so it is never written. */
export const yes = (): Buffer => element(tags.boolean, Buffer.of(0xff))

/** An object identifier from its dotted form. */
export const oid = (dotted: string): Buffer => {
  const arcs = dotted.split('.').map((arc) => {
    if (!/^\d+$/.test(arc)) throw new RangeError(`object identifier ${JSON.stringify(dotted)} is not numbers and dots`)
    return BigInt(arc)
  })
  const [first, second, ...rest] = arcs
  if (first === undefined || second === undefined || first > 2n || (first < 2n && second > 39n))
    throw new RangeError(`object identifier ${JSON.stringify(dotted)} does not begin with a valid pair of numbers`)
  return element(tags.oid, ...[first * 40n + second, ...rest].map(base128))
}

const base128 = (arc: bigint): Buffer => {
  const digits = [Number(arc & 0x7fn)]
  for (let rest = arc >> 7n; rest > 0n; rest >>= 7n) digits.unshift(Number(rest & 0x7fn) | 0x80)
  return Buffer.from(digits)
}

/** A bit string; `unusedBits` of its last byte do not count. */
export const bitString = (bytes: Uint8Array, unusedBits = 0): Buffer =>
  element(tags.bitString, Buffer.of(unusedBits), bytes)

/** A bit string of named flags (bit 0 is the first): DER drops the zeros at its end. */
export const flags = (...bits: number[]): Buffer => {
  const last = Math.max(...bits)
  const bytes = Buffer.alloc((last >> 3) + 1)
  for (const bit of bits) bytes[bit >> 3]! |= 0x80 >> (bit & 7)
  return bitString(bytes, 7 - (last & 7))
}

export const octetString = (bytes: Uint8Array): Buffer => element(tags.octetString, bytes)

/** Text as PrintableString where its small alphabet is enough, else as UTF8String: what Go's x509 writes too. */
export const text = (value: string): Buffer => {
  if (!value.isWellFormed()) throw new RangeError(`${JSON.stringify(value)} is not well-formed Unicode`)
  const tag = /^[A-Za-z0-9 '()+,\-./:=?]*$/.test(value) ? tags.printableString : tags.utf8String
  return element(tag, Buffer.from(value, 'utf8'))
}

/** A moment, to the second: UTCTime from 1950 to 2049 and GeneralizedTime outside, as RFC 5280 says. */
export const time = (moment: Date): Buffer => {
  const year = moment.getUTCFullYear()
  if (!(year >= 0 && year <= 9999)) throw new RangeError(`date ${String(moment)} cannot be written in a certificate`)
  const digits = moment
    .toISOString()
    .replace(/\.\d+Z$/, '')
    .replace(/[-:T]/g, '')
  return year >= 1950 && year < 2050
    ? element(tags.utcTime, Buffer.from(`${digits.slice(2)}Z`))
    : element(tags.generalizedTime, Buffer.from(`${digits}Z`))
}

/** A context tag around whole elements (EXPLICIT, or IMPLICIT over something constructed). */
export const tagged = (number: number, ...content: Uint8Array[]): Buffer => element(0xa0 | number, ...content)

/** A context tag in place of a primitive's own (IMPLICIT). */
export const taggedBytes = (number: number, bytes: Uint8Array): Buffer => element(0x80 | number, bytes)

/** An element that was read; `whole` is its encoding, byte for byte. */
export interface Element {
  tag: number
  content: Buffer
  whole: Buffer
}

/** Reads the elements that follow one another in `bytes`; refuses what is not DER. */
export const read = (bytes: Uint8Array): Element[] => {
  const input = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const elements: Element[] = []
  for (let start = 0; start < input.length;) {
    const one = readAt(input, start)
    elements.push(one)
    start += one.whole.length
  }
  return elements
}

const readAt = (input: Buffer, start: number): Element => {
  const tag = input[start]!
  if ((tag & 0x1f) === 0x1f) throw new RangeError('DER: tags above 30 are not used in certificates')
  const first = input[start + 1]
  if (first === undefined) throw new RangeError('DER: ends after a tag')
  const lengthBytes = first < 0x80 ? 0 : first & 0x7f
  const from = start + 2 + lengthBytes
  if (first === 0x80 || lengthBytes > 4 || from > input.length) throw new RangeError('DER: bad length')
  const length = lengthBytes ? input.readUIntBE(start + 2, lengthBytes) : first
  if (!input.subarray(start + 1, from).equals(lengthOf(length)))
    throw new RangeError('DER: length not in its short form')
  if (from + length > input.length) throw new RangeError('DER: ends inside an element')
  return { tag, content: input.subarray(from, from + length), whole: input.subarray(start, from + length) }
}
