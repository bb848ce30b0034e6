import { closest } from '../kube/words/index.ts'

/** One flag of a program. Its default says its type; a list may be given several times or with commas. */
export interface Flag<T> {
  help: string
  default: T
  /** Other spellings that are accepted and not shown. */
  aliases?: readonly string[]
  /** One letter: `-o`. */
  short?: string
  /** What stands for the value in help. */
  value?: string
  /** The only values there are. Another one is refused with the nearest. */
  choices?: readonly string[]
  /** The value of a number that is given as a bare word: `-v`. */
  bare?: number
  /** A number of seconds, which may also be written `90s`, `5m` or `1h`. */
  seconds?: boolean
  /** What a shell completes its value with. */
  completes?: 'clusters' | 'clustersets' | 'contexts' | 'works' | 'addons'
  /** Understood and not shown. */
  hidden?: boolean
}

export type FlagValue = string | number | boolean | readonly string[]
export type Flags = Record<string, Flag<FlagValue>>
export type ValuesOf<F extends Flags> = {
  [K in keyof F]: F[K]['default'] extends boolean
    ? boolean
    : F[K]['default'] extends number
      ? number
      : F[K]['default'] extends string
        ? string
        : string[]
}

/** The person's words were off: shown without a stack, with the exit code that shells use for it. */
export class UsageError extends Error {
  override name = 'UsageError'
}

/** What a command line says. */
export interface Parsed<F extends Flags> {
  values: ValuesOf<F>
  /** The flags that were on it, by their own name. */
  given: ReadonlySet<string>
  /** What is not a flag, in order. */
  words: string[]
}

/** Reads the flags of a program that takes nothing else. */
export const parseFlags = <const F extends Flags>(args: readonly string[], flags: F): ValuesOf<F> => {
  const { values, words } = parseArguments(args, flags)
  if (words.length > 0) throw new UsageError(`"${words[0]}" is not a flag; --help lists the flags`)
  return values
}

/** Reads `--flag v`, `--flag=v`, `--flag`, `--no-flag`, `-f v`, `-fv` and words, in any order; after `--` all are words. */
export const parseArguments = <const F extends Flags>(args: readonly string[], flags: F): Parsed<F> => {
  const find = flagFinder(flags)
  const said = new Map<string, (string | boolean)[]>()
  const words: string[] = []
  const rest = [...args]
  while (rest.length > 0) {
    const arg = rest.shift()!
    if (arg === '--') {
      words.push(...rest)
      break
    }
    if (!isFlag(arg)) {
      words.push(arg)
      continue
    }
    const { name, value, negated } = find(arg)
    const flag = flags[name]!
    const values = said.get(name) ?? []
    said.set(name, values)
    values.push(negated ? false : (value ?? nextValue(name, flag, rest)))
    // `--clusters a, b`: the space was not meant to end the list.
    while (Array.isArray(flag.default) && String(values.at(-1)).endsWith(',') && rest[0] && !isFlag(rest[0]))
      values.push(rest.shift()!)
  }
  const values = Object.entries(flags).map(([name, flag]) => {
    const of = said.get(name)
    return [name, of ? valueOf(name, flag, of) : flag.default]
  })
  return { values: Object.fromEntries(values) as ValuesOf<F>, given: new Set(said.keys()), words }
}

/** Whether an argument is a flag; `-` alone is a file name by custom. */
export const isFlag = (arg: string): boolean => arg.startsWith('-') && arg !== '-'

export interface FoundFlag {
  name: string
  /** Undefined when it was not in the same argument. */
  value: string | undefined
  /** `--no-flag`. */
  negated: boolean
}

/** Knows every spelling of every flag: aliases, letters, and _ for -. */
export const flagFinder = (flags: Flags): ((arg: string) => FoundFlag) => {
  const names = new Map<string, string>()
  const letters = new Map<string, string>()
  for (const [name, flag] of Object.entries(flags)) {
    for (const one of [name, ...(flag.aliases ?? [])]) names.set(one, name)
    if (flag.short) letters.set(flag.short, name)
  }
  return (arg) => {
    const equals = arg.indexOf('=')
    const value = equals < 0 ? undefined : arg.slice(equals + 1)
    const written = equals < 0 ? arg : arg.slice(0, equals)
    if (!written.startsWith('--')) {
      const name = letters.get(written[1]!)
      if (!name) throw unknownFlag(written, names)
      if (written.length === 2) return { name, value, negated: false }
      if (typeof flags[name]!.default === 'boolean') throw new UsageError(`write the flags of ${arg} one by one`)
      return { name, value: arg.slice(2), negated: false }
    }
    const asked = written.slice(2).replaceAll('_', '-')
    const name = names.get(asked)
    if (name) return { name, value, negated: false }
    const positive = asked.startsWith('no-') ? names.get(asked.slice(3)) : undefined
    if (!positive || typeof flags[positive]!.default !== 'boolean' || value !== undefined)
      throw unknownFlag(written, names)
    return { name: positive, value, negated: true }
  }
}

/** Whether the flag takes the argument after it as its value. */
export const takesNext = (flag: Flag<FlagValue>, next: string | undefined): boolean =>
  typeof flag.default !== 'boolean' && (flag.bare === undefined || /^\d+$/.test(next ?? ''))

const nextValue = (name: string, flag: Flag<FlagValue>, rest: string[]): string | boolean => {
  if (typeof flag.default === 'boolean') return true
  if (!takesNext(flag, rest[0])) return String(flag.bare)
  const value = rest.shift()
  // A value may begin with - only after =: otherwise one that was forgotten would swallow the next flag.
  if (value === undefined || (isFlag(value) && !/^-\d/.test(value)))
    throw new UsageError(`--${name} needs a value: --${name} ${flag.value ?? 'VALUE'}`)
  return value
}

const unknownFlag = (written: string, names: ReadonlyMap<string, string>): UsageError => {
  const near = closest(written.replace(/^-+/, ''), [...names.keys()])
  const next = near === undefined ? '--help lists the flags' : `did you mean --${near}?`
  return new UsageError(`there is no flag ${written}; ${next}`)
}

const valueOf = (name: string, flag: Flag<FlagValue>, said: (string | boolean)[]): FlagValue => {
  const last = said.at(-1)!
  if (Array.isArray(flag.default)) {
    const values = said.flatMap((one) => String(one).split(','))
    return values.map((one) => checked(name, flag, one.trim())).filter(Boolean)
  }
  if (typeof flag.default === 'boolean') return booleanOf(name, last)
  if (typeof flag.default === 'number') return numberOf(name, flag, String(last))
  return checked(name, flag, String(last))
}

const booleanOf = (name: string, said: string | boolean): boolean => {
  if (typeof said === 'boolean') return said
  if (said === 'true' || said === 'false') return said === 'true'
  throw new UsageError(`--${name} takes true or false, not "${said}"`)
}

const perUnit: Record<string, number> = { s: 1, m: 60, h: 3600 }

const numberOf = (name: string, flag: Flag<FlagValue>, said: string): number => {
  const [, count, unit] = (flag.seconds && /^(\d+)([smh])$/.exec(said)) || []
  if (count && unit) return Number(count) * perUnit[unit]!
  const number = Number(said)
  const like = flag.seconds ? 'a number of seconds, or 90s, 5m, 1h' : 'a number'
  if (said === '' || !Number.isFinite(number)) throw new UsageError(`--${name} takes ${like}, not "${said}"`)
  return number
}

const checked = (name: string, { choices }: Flag<FlagValue>, said: string): string => {
  if (!choices || said === '' || choices.includes(said)) return said
  const near = closest(said, choices)
  const next = near === undefined ? '' : `; did you mean ${near}?`
  throw new UsageError(`--${name} takes ${choices.join(', ')}, not "${said}"${next}`)
}

/** The flags as a person reads them. */
export const helpText = (usage: string, about: string, flags: Flags): string =>
  [`Usage: ${usage}`, '', about, '', ...flagRows(flags), ''].join('\n')

/** A line for each flag, with its default. */
export const flagRows = (flags: Flags): string[] => {
  const rows = Object.entries(flags)
    .filter(([, flag]) => !flag.hidden)
    .map(([name, flag]) => {
      const shown = Array.isArray(flag.default) ? flag.default.join(',') : String(flag.default)
      const preset = shown === '' || flag.default === false || flag.bare !== undefined ? '' : ` (${shown})`
      const left = `${flag.short ? `-${flag.short}, ` : ''}--${name}${flag.value ? ` ${flag.value}` : ''}`
      return [`  ${left}`, `${flag.help}${preset}`] as const
    })
  const width = Math.max(...rows.map(([left]) => left.length)) + 2
  return rows.map(([left, right]) => left.padEnd(width) + right)
}

/** `Gate=true,Other=false` over the defaults; a gate that does not exist is an error that lists those that do. */
export const parseGates = <G extends Record<string, boolean>>(said: readonly string[], defaults: G): G => {
  const gates: Record<string, boolean> = { ...defaults }
  const known = new Map(Object.keys(defaults).map((name) => [name.toLowerCase(), name]))
  for (const one of said) {
    const [name = '', value] = one.split('=')
    const gate = known.get(name.toLowerCase())
    if (!gate)
      throw new UsageError(`--feature-gates: there is no gate ${name}; there are ${Object.keys(defaults).join(', ')}`)
    if (value !== 'true' && value !== 'false')
      throw new UsageError(`--feature-gates: write ${name}=true or ${name}=false, not ${one}`)
    gates[gate] = value === 'true'
  }
  return gates as G
}
