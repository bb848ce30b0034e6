import { isAddOnName, longestAddOnName } from '../addons/contract.ts'
import { ManagedCluster } from '../api/index.ts'
import type { Client } from '../kube/index.ts'
import { UsageError, type Flags, type ValuesOf } from '../main/flags.ts'
import { keyAndValue } from './install-flags.ts'
import { clustersFlags, clustersOf, missing } from './names.ts'

/** Which add-ons, on which clusters. All clusters are meant only by who says so. */
export const addOnFlags = {
  names: { help: 'The add-ons, with commas or repeated', default: [], value: 'NAMES', completes: 'addons' },
  ...clustersFlags,
  'all-clusters': { help: 'On every cluster of this hub', default: false },
} as const satisfies Flags

export const checkedAddOn = (name: string): string => {
  if (isAddOnName(name)) return name
  throw new UsageError(
    `${JSON.stringify(name.slice(0, 80))} is no name for an add-on: at most ${longestAddOnName} of a-z, 0-9 and -, not beginning or ending with -`,
  )
}

/** The add-ons of --names and of the words. */
export const addOnsOf = (flags: ValuesOf<typeof addOnFlags>, words: readonly string[]): string[] => {
  const names = [...new Set([...flags.names, ...words].map(checkedAddOn))]
  if (names.length === 0) throw new UsageError('--names is missing: name the add-ons')
  return names
}

/** What the flags say about clusters, before anybody is asked. */
export const chosenClusters = (flags: ValuesOf<typeof addOnFlags>): string[] => {
  const clusters = clustersOf(flags)
  if (clusters.length > 0 && flags['all-clusters'])
    throw new UsageError('--clusters and --all-clusters say different things: give one of them')
  if (clusters.length === 0 && !flags['all-clusters'])
    throw new UsageError('--clusters is missing: name the clusters, or say --all-clusters')
  return clusters
}

/** The clusters themselves, each of which there is. */
export const clustersFor = async (
  client: Client,
  chosen: readonly string[],
  signal: AbortSignal,
): Promise<string[]> => {
  const { items } = await client.of(ManagedCluster).list({ metadataOnly: true, signal })
  const known = items.map(({ metadata }) => metadata.name!).toSorted()
  for (const name of chosen) if (!known.includes(name)) throw await missing('cluster', name, known)
  return chosen.length > 0 ? [...chosen] : known
}

/** `key=value` pairs of a flag. */
export const pairsOf = (flag: string, said: readonly string[]): Record<string, string> =>
  Object.fromEntries(said.map((one) => keyAndValue(flag, one)))
