import { UsageError } from '../main/flags.ts'
import type { Argument } from './command.ts'

/** How a command is written: `get works [NAME...]`. */
export const wordsOf = (args: readonly Argument[]): string =>
  args
    .map(({ name, optional, many }) => {
      const word = many ? `${name}...` : name
      return optional ? ` [${word}]` : ` ${word}`
    })
    .join('')

/** Refuses words that are missing or too many, with the way it is written. */
export const checkWords = (command: string, args: readonly Argument[], words: readonly string[]): void => {
  const missing = args[words.length]
  const usage = `write ${command}${wordsOf(args)}`
  if (missing && !missing.optional) throw new UsageError(`${missing.name} is missing: ${missing.about}; ${usage}`)
  if (words.length > args.length && !args.at(-1)?.many)
    throw new UsageError(`"${words[args.length]}" is one word too many; ${usage}`)
}
