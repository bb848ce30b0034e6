import type { ManagedCluster } from '../../api/index.ts'
import type { Lease } from '../../kube/index.ts'
import { findCondition, type Clock, type Informer } from '../../runtime/index.ts'
import { Available, ClockSynced } from '../contract.ts'
import { clusterOf, renewedAt } from './leases.ts'

interface Sources {
  clusters: Informer<ManagedCluster>
  leases: Informer<Lease>
  clock: Clock
}

/** How long each cluster has been silent. */
export interface SignsOfLife {
  /** The time since the last sign, less the time in which we could not have seen one. */
  silentMs(cluster: string): number
}

/**
 * Listens for clusters. A sign is a renewed lease, or an agent that says how its cluster is. What we see happen is timed by
 * our own clock, so that an agent with a wrong one is not taken for dead. Only for what had happened before we came do we
 * believe the time that is written there, unless that cluster's clock is known to be wrong.
 *
 * Two kinds of time do not count as silence: while our watch was cut, agents had most likely nobody to talk to either; and
 * before our start, the time in which no cluster at all was heard of, for then it was the API server that was away.
 */
export const signsOfLife = ({ clusters, leases, clock }: Sources): SignsOfLife => {
  /** By our clock, and by theirs. */
  const seen = new Map<string, number>()
  const written = new Map<string, number>()
  const hear = (cluster: string): unknown => seen.set(cluster, clock.now())
  const read = (cluster: string, at: number): unknown =>
    written.set(cluster, Math.max(written.get(cluster) ?? 0, Math.min(at, clock.now())))

  leases.on({
    added: (lease) => read(clusterOf(lease), renewedAt(lease)),
    updated: (lease, old) => lease.spec.renewTime !== old.spec.renewTime && hear(clusterOf(lease)),
  })
  clusters.on({
    added: (cluster) => read(cluster.metadata.name!, reportedAt(cluster)),
    updated: (cluster, old) => {
      const status = findCondition(cluster, Available.type)?.status
      const news = status !== findCondition(old, Available.type)?.status && status !== 'Unknown'
      if (news) hear(cluster.metadata.name!)
    },
    deleted: ({ metadata }) => {
      seen.delete(metadata.name!)
      written.delete(metadata.name!)
    },
  })

  let lonely: { from: number; to: number } | undefined
  const lastSign = (name: string, started: number): number => {
    const cluster = clusters.get(name)
    const isWrong = cluster !== undefined && findCondition(cluster, ClockSynced.type)?.status === 'False'
    return Math.max(seen.get(name) ?? 0, isWrong ? started : (written.get(name) ?? 0))
  }
  return {
    silentMs: (cluster) => {
      const now = clock.now()
      // Asked for the first time when all caches are complete.
      lonely ??= { from: newest(seen, written), to: now }
      const since = lastSign(cluster, lonely.to)
      const from = Math.max(lonely.from, since)
      const to = Math.max(lonely.to, from)
      // What both have in common is taken off once.
      const cut = leases.missedMs(since) - leases.missedMs(from) + leases.missedMs(to)
      return now - since - (to - from) - cut
    },
  }
}

const newest = (...maps: ReadonlyMap<string, number>[]): number =>
  maps.reduce((most, map) => map.values().reduce((a, b) => Math.max(a, b), most), 0)

/** When the agent last said that its cluster is well or not. Unknown is what the hub says. */
const reportedAt = (cluster: ManagedCluster): number => {
  const available = findCondition(cluster, Available.type)
  return available && available.status !== 'Unknown' ? Date.parse(available.lastTransitionTime) : 0
}
