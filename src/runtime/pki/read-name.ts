import { read, type Element } from './der.ts'

/** A distinguished name that was read. */
export interface ReadSubject {
  /** Undefined when there is none. A name with several is refused: readers differ about which one counts. */
  commonName?: string | undefined
  organizations: string[]
  organizationalUnits: string[]
  /** Attributes of any other type that it has, as dotted object identifiers. */
  others: string[]
}

/** Reads a Name, and refuses what DER or we do not know. Values of one SET count like values of their own, as in Go. */
export const readName = (name: Element): ReadSubject => {
  const attributes = children(name, 0x30, 'a name').flatMap((rdn) => {
    const parts = children(rdn, 0x31, 'a part of a name')
    if (parts.length === 0) throw new RangeError('a part of a name is empty')
    return parts.map(readAttribute)
  })
  const of = (type: string): string[] => attributes.filter((a) => a.type === type).map((a) => a.value)
  const commonNames = of('2.5.4.3')
  if (commonNames.length > 1) throw new RangeError('a name has more than one common name')
  return {
    commonName: commonNames[0],
    organizations: of('2.5.4.10'),
    organizationalUnits: of('2.5.4.11'),
    others: [...new Set(attributes.map((a) => a.type).filter((type) => !known.has(type)))],
  }
}

const known = new Set(['2.5.4.3', '2.5.4.10', '2.5.4.11'])

const readAttribute = (attribute: Element): { type: string; value: string } => {
  const [type, value, ...more] = children(attribute, 0x30, 'an attribute of a name')
  if (type?.tag !== 0x06 || !value || more.length > 0) throw new RangeError('an attribute of a name is malformed')
  const id = oidText(type.content)
  return { type: id, value: known.has(id) ? stringOf(value) : '' }
}

// Older types (T61, BMP, Universal) say the same letters in other bytes: a place to hide, and nobody needs them.
const stringOf = ({ tag, content }: Element): string => {
  if (tag === 0x0c) return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(content)
  const text = content.toString('latin1')
  if (tag === 0x13 && /^[A-Za-z0-9 '()+,\-./:=?]*$/.test(text)) return text
  if (tag === 0x16 && /^[\x20-\x7e]*$/.test(text)) return text
  throw new RangeError('a value of a name is neither UTF-8 nor printable text')
}

/** The elements inside one that must have this tag. */
export const children = (of: Element | undefined, tag: number, what: string): Element[] => {
  if (of?.tag !== tag) throw new RangeError(`${what} is missing or of another type`)
  return read(of.content)
}

/** An object identifier in its dotted form. */
export const oidText = (content: Buffer): string => {
  const arcs: bigint[] = []
  let arc = 0n
  let begun = false
  for (const byte of content) {
    if (!begun && byte === 0x80) throw new RangeError('DER: an object identifier is not in its short form')
    arc = (arc << 7n) | BigInt(byte & 0x7f)
    begun = (byte & 0x80) !== 0
    if (begun) continue
    arcs.push(arc)
    arc = 0n
  }
  const [first, ...rest] = arcs
  if (begun || first === undefined) throw new RangeError('DER: an object identifier ends too early')
  const top = first < 80n ? first / 40n : 2n
  return [top, first - top * 40n, ...rest].join('.')
}
