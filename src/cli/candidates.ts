import { flagFinder, isFlag, takesNext, type Flags } from '../main/flags.ts'
import type { KubeObject, Resource } from '../kube/index.ts'
import { findCommand } from './find.ts'
import { persistentFlags, type Branch, type Cli, type Command } from './command.ts'

/** Something that could come next, and what it means. */
export interface Candidate {
  word: string
  about: string
}

type Completes = NonNullable<Flags[string]['completes']>

/** What could stand in place of the last word, which is not finished. It never fails: a shell has no use for errors. */
export const candidatesFor = async (cli: Cli, root: Branch, words: readonly string[]): Promise<Candidate[]> => {
  const current = words.at(-1) ?? ''
  try {
    const { branch, rest } = findCommand(root, words.slice(0, -1))
    const command = branch.load ? (await branch.load()).command : undefined
    const flags: Flags = { ...persistentFlags, ...command?.flags }
    const found = (await valueCandidates(cli, flags, rest, current)) ?? [
      ...(isFlag(current) ? flagCandidates(flags) : []),
      ...(isFlag(current) || command ? [] : childCandidates(branch)),
      ...(isFlag(current) || !command ? [] : await wordCandidates(cli, command, flags, rest)),
    ]
    return found.filter(({ word }) => word.startsWith(current))
  } catch {
    return []
  }
}

const childCandidates = ({ commands = {} }: Branch): Candidate[] =>
  Object.entries(commands)
    .filter(([, { hidden }]) => !hidden)
    .map(([word, { about }]) => ({ word, about }))

const flagCandidates = (flags: Flags): Candidate[] =>
  Object.entries(flags)
    .filter(([, { hidden }]) => !hidden)
    .map(([name, { help }]) => ({ word: `--${name}`, about: help }))

/** The values of the flag that stands before the current word, or in it as `--flag=`; undefined when none does. */
const valueCandidates = async (
  cli: Cli,
  flags: Flags,
  rest: readonly string[],
  current: string,
): Promise<Candidate[] | undefined> => {
  const find = flagFinder(flags)
  const inside = /^--[^=]+=/.exec(current)?.[0]
  const before = inside ? inside.slice(0, -1) : rest.at(-1)
  if (before === undefined || !isFlag(before) || (!inside && before.includes('='))) return undefined
  const flag = flags[find(before).name]!
  if (!inside && !takesNext(flag, current)) return undefined
  const typed = inside ? current.slice(inside.length) : current
  // Of a list, what is before the last comma is settled.
  const settled = Array.isArray(flag.default) ? typed.slice(0, typed.lastIndexOf(',') + 1) : ''
  const values =
    flag.choices?.map((word) => ({ word, about: '' })) ??
    (flag.completes ? await namesOf(cli, flags, rest, flag.completes) : [])
  return values.map(({ word, about }) => ({ word: `${inside ?? ''}${settled}${word}`, about }))
}

const wordCandidates = async (
  cli: Cli,
  command: Command,
  flags: Flags,
  rest: readonly string[],
): Promise<Candidate[]> => {
  const { parseArguments } = await import('../main/flags.ts')
  const { words } = parseArguments(rest, flags)
  const args = command.args ?? []
  const arg = args[words.length] ?? (args.at(-1)?.many ? args.at(-1) : undefined)
  return arg?.completes ? namesOf(cli, flags, rest, arg.completes) : []
}

/** Names from the cluster that the line so far means. It has two seconds: a person waits. */
const namesOf = async (cli: Cli, flags: Flags, rest: readonly string[], what: Completes): Promise<Candidate[]> => {
  const [{ connect }, { parseArguments }] = await Promise.all([import('./cluster.ts'), import('../main/flags.ts')])
  const { values } = parseArguments(complete(rest, flags), flags)
  const { kubeconfig, context } = values as unknown as { kubeconfig: string; context: string }
  if (what === 'contexts') {
    const { loadKubeconfig } = await import('../kube/index.ts')
    const { contexts } = await loadKubeconfig({ path: kubeconfig || undefined, env: cli.env })
    return [...contexts].map(([word, { value }]) => ({ word, about: value.cluster ?? '' }))
  }
  const { client } = await connect({ ...cli, flags: { kubeconfig, context } })
  try {
    const api = await import('../api/index.ts')
    const kinds: Record<Exclude<Completes, 'contexts'>, Resource<KubeObject>> = {
      clusters: api.ManagedCluster,
      clustersets: api.ManagedClusterSet,
      works: api.ManifestWork,
      addons: api.ClusterManagementAddOn,
    }
    const kind = kinds[what]
    const { items } = await client.of(kind).list({ metadataOnly: true, timeoutMs: 2000, signal: cli.signal })
    return [...new Set(items.map(({ metadata }) => metadata.name!))].toSorted().map((word) => ({ word, about: '' }))
  } finally {
    client.close()
  }
}

// The flag whose value is being typed has none yet.
const complete = (rest: readonly string[], flags: Flags): string[] => {
  const last = rest.at(-1)
  if (last === undefined || !isFlag(last) || last.includes('=')) return [...rest]
  const flag = flags[flagFinder(flags)(last).name]!
  return takesNext(flag, undefined) ? rest.slice(0, -1) : [...rest]
}
