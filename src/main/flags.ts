import { parseArgs } from 'node:util'

/** One flag of a program. Its default says its type; a list may be given several times or with commas. */
export interface Flag<T> {
  help: string
  default: T
  /** Other spellings that are accepted and not shown. */
  aliases?: readonly string[]
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

/** Reads `--flag v`, `--flag=v`, `--flag` and `--no-flag` for the flags that there are. */
export const parseFlags = <const F extends Flags>(args: readonly string[], flags: F): ValuesOf<F> => {
  const names = new Map<string, string>()
  for (const [name, flag] of Object.entries(flags))
    for (const one of [name, ...(flag.aliases ?? [])]) names.set(one, name)
  const options = Object.fromEntries(
    [...names].map(([one, name]) => {
      const type = typeof flags[name]!.default === 'boolean' ? ('boolean' as const) : ('string' as const)
      return [one, { type, multiple: true as const }]
    }),
  )
  let given: Record<string, (string | boolean)[] | undefined>
  try {
    given = parseArgs({ args: [...args], options, allowNegative: true }).values
  } catch (error) {
    throw new UsageError(`${(error as Error).message.split('. ')[0]}; --help lists the flags`, { cause: error })
  }
  const values = Object.entries(flags).map(([name, flag]) => {
    const said = [name, ...(flag.aliases ?? [])].flatMap((one) => given[one] ?? [])
    return [name, said.length ? valueOf(name, flag.default, said) : flag.default]
  })
  return Object.fromEntries(values) as ValuesOf<F>
}

const valueOf = (name: string, like: FlagValue, said: (string | boolean)[]): FlagValue => {
  const last = said.at(-1)!
  if (Array.isArray(like)) return said.flatMap((one) => String(one).split(',').filter(Boolean))
  if (typeof like !== 'number') return last
  const number = Number(last)
  if (last === '' || !Number.isFinite(number)) throw new UsageError(`--${name} takes a number, not "${last}"`)
  return number
}

/** The flags as a person reads them. */
export const helpText = (usage: string, about: string, flags: Flags): string => {
  const rows = Object.entries(flags).map(([name, flag]) => {
    const shown = Array.isArray(flag.default) ? flag.default.join(',') : String(flag.default)
    const preset = shown === '' || flag.default === false ? '' : ` (${shown})`
    return [`  --${name}`, `${flag.help}${preset}`] as const
  })
  const width = Math.max(...rows.map(([left]) => left.length)) + 2
  return [`Usage: ${usage}`, '', about, '', ...rows.map(([left, right]) => left.padEnd(width) + right), ''].join('\n')
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
