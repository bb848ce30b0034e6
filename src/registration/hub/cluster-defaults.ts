import { label, type ManagedCluster } from '../../api/index.ts'
import { timestamp } from '../../runtime/index.ts'
import type { Mutate } from '../../runtime/webhook/index.ts'
import { clusterSet } from '../contract.ts'
import type { HubGates } from './hub.ts'

interface DefaultsOptions {
  gates: Pick<HubGates, 'defaultClusterSet'>
  now: () => number
}

/**
 * Fills in what whoever writes a ManagedCluster leaves to the hub: when a taint was added, and the set `default` for a cluster
 * that is in none.
 */
export const defaultCluster =
  ({ gates, now }: DefaultsOptions): Mutate<ManagedCluster> =>
  ({ object: cluster, oldObject: old }) => {
    if (!cluster) return undefined
    timeTaints(cluster, old, timestamp(now()))
    if (gates.defaultClusterSet) joinDefaultSet(cluster)
    return cluster
  }

// A taint that was there keeps its time, whatever the client has forgotten; how long it has been there is what counts.
const timeTaints = (cluster: ManagedCluster, old: ManagedCluster | undefined, timeAdded: string): void => {
  // The schema is checked only after this.
  const taints: unknown = cluster.spec?.taints
  if (!Array.isArray(taints)) return
  for (const taint of taints as Partial<Taint>[]) {
    if (typeof taint !== 'object' || taint === null || taint.timeAdded) continue
    taint.timeAdded = old?.spec.taints?.find((present) => isSame(present, taint))?.timeAdded ?? timeAdded
  }
}

type Taint = NonNullable<ManagedCluster['spec']['taints']>[number]

const isSame = (a: Partial<Taint>, b: Partial<Taint>): boolean =>
  a.key === b.key && (a.value ?? '') === (b.value ?? '') && a.effect === b.effect

const joinDefaultSet = (cluster: ManagedCluster): void => {
  if (cluster.metadata.labels?.[label.clusterSet]) return
  cluster.metadata.labels = { ...cluster.metadata.labels, [label.clusterSet]: clusterSet.default }
}
