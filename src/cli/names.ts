import { UsageError } from '../main/flags.ts'
import type { Cli } from './command.ts'
import { CliError } from './errors.ts'

const dnsLabel = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/

/** A name that becomes the name of a namespace, or an error with the rule and a name that would do. */
export const checkedName = (flag: string, name: string): string => {
  if (dnsLabel.test(name)) return name
  const fixed = name
    .toLowerCase()
    .replaceAll(/[^a-z0-9-]+/g, '-')
    .slice(0, 63)
    .replaceAll(/^-+|-+$/g, '')
  const next = fixed && dnsLabel.test(fixed) ? `; for example ${fixed}` : ''
  throw new UsageError(
    `${flag} ${JSON.stringify(name.slice(0, 80))} is not a DNS label: at most 63 of a-z, 0-9 and -, not beginning or ending with -${next}`,
  )
}

/** The clusters of --clusters and --cluster, each once. */
export const clustersOf = (flags: { clusters: string[]; cluster: string[] }): string[] => [
  ...new Set([...flags.clusters, ...flags.cluster].map((name) => checkedName('--clusters', name))),
]

/** For commands that act on clusters by name. */
export const clustersFlags = {
  clusters: { help: 'The clusters, with commas or repeated', default: [], value: 'NAMES', completes: 'clusters' },
  cluster: { help: 'One cluster', default: [], short: 'c', value: 'NAME', completes: 'clusters', hidden: true },
} as const

/** Something is not there. Says which names there are, the nearest first. */
export const missing = async (
  what: string,
  name: string,
  known: readonly string[],
  next?: string,
): Promise<CliError> => {
  const { closest } = await import('../kube/words/index.ts')
  const near = closest(name, known)
  const shown = known.slice(0, 10).join(', ') + (known.length > 10 ? ` and ${known.length - 10} more` : '')
  const others = known.length > 0 ? `there are ${shown}` : 'there are none'
  return new CliError(`there is no ${what} ${name}`, {
    next: [near === undefined ? others : `did you mean ${near}? ${others}`, ...(next ? [next] : [])].join('\n'),
  })
}

/** Says once that nothing will be changed. */
export const sayDryRun = (cli: Cli): void => {
  if (cli.flags['dry-run']) cli.progress.say(`${cli.program} is running in dry-run mode: nothing is changed`)
}
