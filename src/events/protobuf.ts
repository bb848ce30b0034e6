/**
 * The part of Protocol Buffers that three small messages need. Strings are checked to be UTF-8, lengths are checked before
 * anything is taken, and fields that nobody knows are stepped over, as the format asks for.
 */

/** The bytes are not a message of the kind that was expected. */
export class MessageError extends Error {
  override name = 'MessageError'
}

const wire = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const

/** Writes fields into one buffer that grows. */
export class Writer {
  #buffer: Buffer
  #at: number

  /** `reserve` leaves room at the front, for a prefix that is known only at the end. */
  constructor({ size = 512, reserve = 0 } = {}) {
    this.#buffer = Buffer.allocUnsafe(Math.max(size, reserve))
    this.#at = reserve
  }

  /** What was written, with the room at the front. */
  finish(): Buffer {
    return this.#buffer.subarray(0, this.#at)
  }

  /** Also when it is empty: an absent string and an empty one differ inside a `oneof`. */
  string(field: number, value: string): void {
    const length = Buffer.byteLength(value)
    this.#head(field, length)
    this.#buffer.write(value, this.#at)
    this.#at += length
  }

  bytes(field: number, value: Uint8Array): void {
    this.#head(field, value.length)
    this.#buffer.set(value, this.#at)
    this.#at += value.length
  }

  /** A number as int32 and int64 have it: a negative one takes ten bytes. */
  integer(field: number, value: number | bigint): void {
    this.#room(20)
    this.#varint((field << 3) | wire.varint)
    let rest = BigInt.asUintN(64, BigInt(value))
    for (; rest > 0x7fn; rest >>= 7n) this.#buffer[this.#at++] = Number(rest & 0x7fn) | 0x80
    this.#buffer[this.#at++] = Number(rest)
  }

  /** A message within. Its length is known afterwards: what was written moves up by as much as the length takes. */
  message(field: number, write: () => void): void {
    this.#room(10)
    this.#varint((field << 3) | wire.bytes)
    const start = this.#at
    write()
    const length = this.#at - start
    const head = lengthOf(length)
    this.#room(head)
    this.#buffer.copyWithin(start + head, start, this.#at)
    this.#at = start
    this.#varint(length)
    this.#at += length
  }

  #head(field: number, length: number): void {
    this.#room(length + 10)
    this.#varint((field << 3) | wire.bytes)
    this.#varint(length)
  }

  #varint(value: number): void {
    let rest = value
    for (; rest > 0x7f; rest >>>= 7) this.#buffer[this.#at++] = (rest & 0x7f) | 0x80
    this.#buffer[this.#at++] = rest
  }

  #room(bytes: number): void {
    if (this.#at + bytes <= this.#buffer.length) return
    const grown = Buffer.allocUnsafe(Math.max(this.#buffer.length * 2, this.#at + bytes))
    this.#buffer.copy(grown, 0, 0, this.#at)
    this.#buffer = grown
  }
}

const lengthOf = (value: number): number => {
  let bytes = 1
  for (let rest = value; rest > 0x7f; rest >>>= 7) bytes++
  return bytes
}

/** One field: a number for varints, a view of the bytes for everything with a length. */
export interface Field {
  number: number
  value: bigint | Buffer
}

/** The fields of a message, in the order in which they stand. */
export function* fieldsOf(message: Buffer): Generator<Field> {
  let at = 0
  const varint = (): bigint => {
    let value = 0n
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = message[at++]
      if (byte === undefined) throw new MessageError('a number is cut off')
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return BigInt.asUintN(64, value)
    }
    throw new MessageError('a number is longer than ten bytes')
  }
  const take = (length: bigint): Buffer => {
    if (length > BigInt(message.length - at)) throw new MessageError('a field is longer than its message')
    return message.subarray(at, (at += Number(length)))
  }
  while (at < message.length) {
    const tag = varint()
    const number = Number(tag >> 3n)
    if (number < 1 || tag > 0xffffffffn) throw new MessageError('a field has a number that cannot be')
    switch (Number(tag & 7n)) {
      case wire.varint:
        yield { number, value: varint() }
        break
      case wire.bytes:
        yield { number, value: take(varint()) }
        break
      case wire.fixed64:
        take(8n)
        break
      case wire.fixed32:
        take(4n)
        break
      default:
        throw new MessageError('a field is of a type that cannot be')
    }
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

export const asBytes = ({ number, value }: Field): Buffer => {
  if (typeof value === 'bigint') throw new MessageError(`field ${number} is a number, and should have a length`)
  return value
}

export const asString = (field: Field): string => {
  try {
    return utf8.decode(asBytes(field))
  } catch (cause) {
    if (cause instanceof MessageError) throw cause
    throw new MessageError(`field ${field.number} is not UTF-8`)
  }
}

/** An int32, which may be negative. */
export const asInt32 = (field: Field): number => Number(BigInt.asIntN(32, asVarint(field)))

export const asInt64 = (field: Field): bigint => BigInt.asIntN(64, asVarint(field))

export const asVarint = ({ number, value }: Field): bigint => {
  if (typeof value !== 'bigint') throw new MessageError(`field ${number} has a length, and should be a number`)
  return value
}
