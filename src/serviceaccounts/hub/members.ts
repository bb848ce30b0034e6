import { isMember, type ManagedCluster } from '../../api/index.ts'
import type { Hub } from './hub.ts'

/** What a namespace is to ManagedServiceAccounts. */
export type Place = { kind: 'cluster' } | { kind: 'sets'; sets: string[]; missing: string[] } | { kind: 'none' }

/** The namespace of a cluster counts as that, whatever is bound there. */
export const placeOf = (hub: Hub, namespace: string): Place => {
  if (hub.clusters.get(namespace)) return { kind: 'cluster' }
  const bound = hub.bindings.list(namespace).filter(({ metadata }) => !metadata.deletionTimestamp)
  if (bound.length === 0) return { kind: 'none' }
  const names = bound.map(({ spec }) => spec.clusterSet)
  const isThere = (set: string): boolean => hub.sets.get(set) !== undefined
  return { kind: 'sets', sets: names.filter(isThere), missing: names.filter((set) => !isThere(set)) }
}

/** The accepted clusters of any of these sets, each once, by name. */
export const clustersOf = (hub: Hub, sets: readonly string[]): string[] => {
  const found = sets.flatMap((name) => hub.sets.get(name) ?? [])
  return hub.clusters
    .list()
    .filter((one) => one.spec.hubAcceptsClient === true && !one.metadata.deletionTimestamp)
    .filter((one) => found.some((set) => isMember(set, one)))
    .map(({ metadata }) => metadata.name!)
    .toSorted()
}

/** Whether a change of a cluster matters here: it came, went, or was accepted, denied or put into another set. */
export const isOtherCluster = (now: ManagedCluster, old?: ManagedCluster): boolean =>
  !old ||
  now.spec.hubAcceptsClient !== old.spec.hubAcceptsClient ||
  now.metadata.deletionTimestamp !== old.metadata.deletionTimestamp ||
  JSON.stringify(now.metadata.labels) !== JSON.stringify(old.metadata.labels)
