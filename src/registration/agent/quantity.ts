/**
 * Amounts of cpu, memory and everything else that nodes count, without rounding. The smallest unit that Kubernetes knows is
 * the nano; amounts are whole numbers of them, as BigInt: a fleet has more bytes than a double has digits.
 */
export interface Quantity {
  readonly nano: bigint
  /** How it likes to be written: 1024-based only when it was given so. */
  readonly binary: boolean
}

export const zero: Quantity = { nano: 0n, binary: false }

const one = 1_000_000_000n
const decimal = ['n', 'u', 'm', '', 'k', 'M', 'G', 'T', 'P', 'E']
const binary = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei']

const form = /^([+-]?)(\d*)(?:\.(\d*))?(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?\d{1,3}))?$/

/** Undefined when the text is no quantity. What is finer than a nano is rounded away from zero, as the API server does. */
export const parseQuantity = (text: string | number): Quantity | undefined => {
  const match = form.exec(String(text).trim())
  if (!match) return undefined
  const [, sign, whole = '', fraction = '', suffix = '', exponent] = match
  if (whole === '' && fraction === '') return undefined
  const isBinary = suffix.endsWith('i')
  const factor = isBinary ? 1024n ** BigInt(binary.indexOf(suffix)) : 1n
  const power = 9 - fraction.length + (isBinary ? 0 : decimalPower(suffix, exponent))
  const digits = BigInt(whole + fraction) * factor
  const nano = power >= 0 ? digits * 10n ** BigInt(power) : divideUp(digits, 10n ** BigInt(-power))
  return { nano: sign === '-' ? -nano : nano, binary: isBinary }
}

const decimalPower = (suffix: string, exponent: string | undefined): number =>
  exponent === undefined ? 3 * decimal.indexOf(suffix) - 9 : Number(exponent)

const divideUp = (a: bigint, b: bigint): bigint => (a + b - 1n) / b

/** The first amount that is not zero decides how the sum is written. */
export const add = (a: Quantity, b: Quantity): Quantity => ({
  nano: a.nano + b.nano,
  binary: a.nano === 0n ? b.binary : a.binary,
})

/** The canonical form: no fraction, the largest suffix that loses nothing. Fractions and small amounts are never 1024-based. */
export const formatQuantity = ({ nano, binary: isBinary }: Quantity): string => {
  const sign = nano < 0n ? '-' : ''
  const size = nano < 0n ? -nano : nano
  if (size === 0n) return '0'
  if (isBinary && size % one === 0n && size >= 1024n * one) return sign + scaled(size / one, 1024n, binary)
  return sign + scaled(size, 1000n, decimal)
}

const scaled = (amount: bigint, base: bigint, suffixes: readonly string[]): string => {
  let [rest, index] = [amount, 0]
  while (rest % base === 0n && index < suffixes.length - 1) [rest, index] = [rest / base, index + 1]
  return `${rest}${suffixes[index]}`
}

/** Adds up resource lists name by name. Values that are no quantities do not count. */
export const sum = (lists: Iterable<Readonly<Record<string, string | number>>>): Record<string, string> => {
  const total = new Map<string, Quantity>()
  for (const list of lists)
    for (const [name, text] of Object.entries(list)) {
      const quantity = parseQuantity(text)
      if (quantity) total.set(name, add(total.get(name) ?? zero, quantity))
    }
  return Object.fromEntries([...total].map(([name, quantity]) => [name, formatQuantity(quantity)]))
}

/** Whether two texts mean the same amount: `1000m` and `1` do. */
export const sameQuantity = (a: string | number | undefined, b: string | number | undefined): boolean => {
  if (a === b) return true
  if (a === undefined || b === undefined) return false
  const [x, y] = [parseQuantity(a), parseQuantity(b)]
  return x !== undefined && y !== undefined && x.nano === y.nano
}
