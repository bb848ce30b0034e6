import { flagFinder, isFlag, takesNext, UsageError } from '../main/flags.ts'
import { closest } from '../kube/words/index.ts'
import { persistentFlags, type Branch, type Tree } from './command.ts'

export interface Found {
  branch: Branch
  /** The words that led to it. */
  path: string[]
  /** What is left, flags that stood before the command included. */
  rest: string[]
}

const findFlag = flagFinder(persistentFlags)

/** Walks the tree along the words of the command line, past flags that every command has. */
export const findCommand = (root: Branch, args: readonly string[]): Found => {
  let branch = root
  const path: string[] = []
  const before: string[] = []
  let at = 0
  while (branch.commands && at < args.length) {
    const arg = args[at]!
    if (isFlag(arg)) {
      const taken = 1 + (valueFollows(arg, args[at + 1]) ? 1 : 0)
      before.push(...args.slice(at, at + taken))
      at += taken
      continue
    }
    const next = childOf(branch.commands, arg)
    if (!next) throw unknownCommand(branch.commands, path, arg)
    path.push(next[0])
    branch = next[1]
    at += 1
  }
  return { branch, path, rest: [...before, ...args.slice(at)] }
}

const childOf = (tree: Tree, word: string): [string, Branch] | undefined =>
  Object.entries(tree).find(([name, { aliases }]) => name === word || aliases?.includes(word))

// A flag that is not persistent belongs to the command behind it: what it takes is not known yet, but it is no command.
const valueFollows = (arg: string, next: string | undefined): boolean => {
  try {
    const { name, value } = findFlag(arg)
    const flag = persistentFlags[name as keyof typeof persistentFlags]
    return value === undefined && next !== undefined && takesNext(flag, next)
  } catch {
    return false
  }
}

const unknownCommand = (tree: Tree, path: readonly string[], word: string): UsageError => {
  const known = Object.entries(tree).flatMap(([name, { hidden, aliases }]) =>
    hidden ? [] : [name, ...(aliases ?? [])],
  )
  const near = closest(word, known)
  const whole = [...path, word].join(' ')
  const next =
    near === undefined
      ? `there ${path.length > 0 ? 'follows' : 'is'} ${known.join(', ')}`
      : `did you mean ${[...path, near].join(' ')}?`
  return new UsageError(`there is no command ${whole}; ${next}`)
}
