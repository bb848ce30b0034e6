import { flagRows } from '../main/flags.ts'
import { persistentFlags, type Branch, type Command, type Tree } from './command.ts'
import { wordsOf } from './words.ts'

/** A word that more follow: what can follow, one line each. */
export const groupHelp = (program: string, path: readonly string[], branch: Branch): string => {
  const whole = [program, ...path].join(' ')
  const text = [`Usage: ${whole} COMMAND [flags]`, '', `${branch.about}.`, '']
  for (const [title, commands] of groupsOf(branch.commands!)) {
    if (title) text.push(`${title}:`)
    text.push(...commands, '')
  }
  text.push(`${whole} COMMAND --help explains one.`, '')
  return text.join('\n')
}

const groupsOf = (tree: Tree): Map<string, string[]> => {
  const shown = Object.entries(tree).filter(([, { hidden }]) => !hidden)
  const width = Math.max(...shown.map(([name]) => name.length)) + 3
  const groups = new Map<string, string[]>()
  for (const [name, { about, group = '' }] of shown) {
    const rows = groups.get(group) ?? []
    groups.set(group, rows)
    rows.push(`  ${name.padEnd(width)}${about}`)
  }
  return groups
}

/** One command: what it does, how it is written, its flags and examples. */
export const commandHelp = (program: string, path: readonly string[], command: Command): string => {
  const { text, flags, args = [], examples = [] } = command
  const lines = [`Usage: ${[program, ...path].join(' ')}${wordsOf(args)} [flags]`, '', text, '']
  const width = Math.max(0, ...args.map(({ name }) => name.length)) + 3
  if (args.length > 0) lines.push(...args.map(({ name, about }) => `  ${name.padEnd(width)}${about}`), '')
  if (examples.length > 0) lines.push('Examples:', ...examples.map((one) => `  ${program} ${one}`), '')
  if (Object.keys(flags).length > 0) lines.push('Flags:', ...flagRows(flags), '')
  lines.push('Flags of every command:', ...flagRows(persistentFlags), '')
  return lines.join('\n')
}
