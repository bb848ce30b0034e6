/** A block of IPv4 addresses. */
export interface Block {
  first: number
  bits: number
}

/** Undefined when the text is no IPv4 block, or names an address inside one instead of its first. */
export const parseBlock = (text: string): Block | undefined => {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})\/(\d{1,2})$/.exec(text)
  if (!match) return undefined
  const octets = match.slice(1, 5).map(Number)
  const bits = Number(match[5])
  if (octets.some((octet) => octet > 255) || bits > 32) return undefined
  const first = octets.reduce((sum, octet) => sum * 256 + octet, 0)
  return first % 2 ** (32 - bits) === 0 ? { first, bits } : undefined
}

export const formatBlock = ({ first, bits }: Block): string =>
  `${[24, 16, 8, 0].map((shift) => Math.floor(first / 2 ** shift) % 256).join('.')}/${bits}`

/** At least `count` equal parts, in their order: as many as the next power of two. */
export const split = ({ first, bits }: Block, count: number): Block[] => {
  const more = Math.ceil(Math.log2(Math.max(count, 1)))
  const size = 2 ** (32 - bits - more)
  return Array.from({ length: 2 ** more }, (_, i) => ({ first: first + i * size, bits: bits + more }))
}

export const overlap = (a: Block, b: Block): boolean =>
  a.first < b.first + 2 ** (32 - b.bits) && b.first < a.first + 2 ** (32 - a.bits)

export const within = (inner: Block, outer: Block): boolean => inner.bits >= outer.bits && overlap(inner, outer)

/** Undefined when the text is no IPv6 block; otherwise as AWS writes it. */
export const canonicalIpv6 = (text: string): string | undefined => {
  const [address, bits, ...rest] = text.split('/')
  if (!address?.includes(':') || !/^\d{1,3}$/.test(bits ?? '') || Number(bits) > 128 || rest.length > 0)
    return undefined
  const host = URL.parse(`http://[${address}]`)?.hostname
  return host && `${host.slice(1, -1)}/${Number(bits)}`
}
