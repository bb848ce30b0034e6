import type { ManagedCluster } from '../../api/index.ts'
import { findCondition, watching, type ConditionState, type Reconcile } from '../../runtime/index.ts'
import { ClockSynced, silenceMs, skipClockCheck } from '../contract.ts'
import { reportConditions } from './cluster-writes.ts'
import type { Hub } from './hub.ts'
import { clusterLeases, clusterOf, renewedAt } from './leases.ts'

/**
 * Says whether the clocks of hub and cluster agree: a renewal that arrives now should say now. Certificates and tokens of a
 * cluster whose clock is wrong are not valid yet, or not any more. Only a renewal that we see happen tells anything, and only
 * a changed verdict is worth a reconcile.
 */
export const clock = (hub: Hub): void => {
  const leases = clusterLeases(hub)
  /** By how much each cluster's clock was behind ours at its last renewal. */
  const behind = new Map<string, number>()

  const verdict = (cluster: ManagedCluster): ConditionState | undefined => {
    if (isExempt(cluster)) return ClockSynced.synced(`not checked: the annotation ${skipClockCheck} is set`)
    const behindMs = behind.get(cluster.metadata.name!)
    return behindMs === undefined ? undefined : clockState(behindMs, silenceMs(cluster.spec.leaseDurationSeconds))
  }
  const isNews = (cluster: ManagedCluster): boolean => {
    const state = verdict(cluster)
    const present = findCondition(cluster, ClockSynced.type)
    return state !== undefined && (present?.status !== state.status || present.message !== state.message)
  }

  const reconcile: Reconcile = async (name, signal) => {
    const cluster = hub.clusters.get(name)
    if (!cluster) behind.delete(name)
    else if (isNews(cluster)) await reportConditions(hub, cluster, [verdict(cluster)!], signal)
    return {}
  }

  hub.manager.controller({
    name: 'clock',
    reconcile,
    watches: [
      watching(hub.clusters, undefined, (cluster, old) => (old ? isExempt(cluster) !== isExempt(old) : true)),
      (enqueue) =>
        leases.on({
          updated: (lease, old, { initial }) => {
            // What a list shows happened at some time in the past.
            if (initial || lease.spec.renewTime === old.spec.renewTime) return
            const name = clusterOf(lease)
            const cluster = hub.clusters.get(name)
            behind.set(name, lateness(hub.clock.now() - renewedAt(lease), leases.missedMs(renewedAt(lease))))
            if (cluster && isNews(cluster)) enqueue(name)
          },
        }),
    ],
  })
}

/** What a renewal lags behind our clock, less what our own watch was cut meanwhile: it brings old news when it is back. */
const lateness = (behindMs: number, missedMs: number): number =>
  behindMs > 0 ? Math.max(0, behindMs - missedMs) : behindMs

const isExempt = (cluster: ManagedCluster): boolean => cluster.metadata.annotations?.[skipClockCheck] === 'true'

/** Whether a clock that is so much behind (or, below zero, ahead) is as good as ours. */
export const clockState = (behindMs: number, allowedMs: number): ConditionState => {
  const apart = Math.abs(behindMs)
  if (apart < allowedMs) return ClockSynced.synced()
  const side = behindMs > 0 ? 'behind' : 'ahead of'
  return ClockSynced.outOfSync(
    `The clock of the managed cluster is ${inWords(apart)} ${side} the clock of the hub; ${inWords(allowedMs)} are allowed. ` +
      'Its certificates and tokens may be refused, and it may be shown as unknown: synchronise both clocks (NTP).',
  )
}

/** Coarse on purpose: a message that changed with each renewal would be a write with each renewal. */
const inWords = (ms: number): string => {
  const [size, unit] =
    ms >= 172_800_000 ? [86_400_000, 'days'] : ms >= 7_200_000 ? [3_600_000, 'hours'] : [60_000, 'minutes']
  return ms < 120_000 ? `${Math.round(ms / 1000)} seconds` : `${Math.round(ms / size)} ${unit}`
}
