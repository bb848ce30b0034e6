import { UsageError, type Flags, type ValuesOf } from '../../main/flags.ts'
import { checkedName, clustersFlags, clustersOf } from '../names.ts'
import type { Scope } from './fleet.ts'

/** Which clusters a question about access is for. */
export const scopeFlags = {
  ...clustersFlags,
  clusters: { ...clustersFlags.clusters, help: 'These clusters only, with commas or repeated' },
  clusterset: { help: 'The clusters of this set only', default: '', value: 'NAME', completes: 'clustersets' },
} as const satisfies Flags

export const scopeOf = (flags: ValuesOf<typeof scopeFlags>): Scope => {
  const clusters = clustersOf(flags)
  if (clusters.length > 0 && flags.clusterset)
    throw new UsageError('--cluster and --clusterset say different things: give one of them')
  return { clusters, clusterSet: flags.clusterset }
}

export const accessNamespaceFlag = {
  namespace: { help: 'In this namespace of the clusters; in any if absent', default: '', short: 'n', value: 'NAME' },
} as const satisfies Flags

export const accessNamespace = ({ namespace }: { namespace: string }): string | undefined =>
  namespace ? checkedName('--namespace', namespace) : undefined
