import type { ManagedCluster } from '../api/index.ts'
import type { ClusterRole, Lease } from '../kube/index.ts'
import { Joined, revokedOnAnnotation } from '../registration/contract.ts'
import { findCondition, firstOf, type Check } from '../runtime/index.ts'

/** What is known of a ManagedCluster when it is asked whether its cluster has left for good. */
export interface Departure {
  readonly cluster: ManagedCluster
  /** Its ClusterRole, where the hub remembers its clean-up: the agent cannot write there. */
  readonly role: ClusterRole | undefined
  readonly lease: Lease | undefined
  readonly now: number
  /** How long it must have been silent when its agent said that it leaves. */
  readonly leftMs: number
  /** The same when nobody said anything: it may have been denied for a while only. */
  readonly silentMs: number
}

const revokedAt = ({ role }: Departure): number => Date.parse(role?.metadata.annotations?.[revokedOnAnnotation] ?? '')

const saidGoodbye = ({ cluster }: Departure): boolean =>
  findCondition(cluster, Joined.type)?.reason === Joined.left().reason

/** The last sign of life: a heartbeat, or the moment from which on none was possible. */
const lastSign = (of: Departure): number => {
  const renewed = Date.parse(of.lease?.spec.renewTime ?? '')
  return Math.max(Number.isNaN(renewed) ? 0 : renewed, revokedAt(of))
}

const because = (reason: string, message: string) => ({ reason, message })

const checks: Check<Departure>[] = [
  ({ cluster }) => cluster.metadata.deletionTimestamp !== undefined && because('Deleting', 'it is being deleted'),
  ({ cluster }) => cluster.spec.hubAcceptsClient === true && because('InUse', 'the hub accepts it'),
  (s) => Number.isNaN(revokedAt(s)) && because('NotRevoked', 'it was never accepted, or its clean-up is not finished'),
  (s) => {
    const waitMs = saidGoodbye(s) ? s.leftMs : s.silentMs
    const silentMs = s.now - lastSign(s)
    const left = Math.ceil((waitMs - silentMs) / 60_000)
    return silentMs < waitMs && because('TooEarly', `it is kept for another ${left} minutes`)
  },
]

/** Why a ManagedCluster is kept; undefined when its cluster has left and it can go. */
export const whyKept = firstOf(checks)
