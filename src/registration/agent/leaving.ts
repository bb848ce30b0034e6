import type { ManagedCluster } from '../../api/index.ts'
import { findCondition, firstOf, isTrue, type Clock, type Reason } from '../../runtime/index.ts'
import { Accepted, ClockSynced, Joined } from '../contract.ts'
import type { Contact } from './contact.ts'

/** How an agent stands with a hub, for the decisions whether to stay there and what to say meanwhile. */
export interface Standing {
  readonly server: string
  readonly name: string
  readonly now: number
  /** The bootstrap secret leads elsewhere now. */
  readonly moved?: Reason | undefined
  /** Why our credential cannot be used. */
  readonly unusable?: Reason | undefined
  readonly contact: Contact
  /** As last seen. */
  readonly cluster?: ManagedCluster | undefined
  /** We have seen the ManagedCluster, and it is no more. */
  readonly deleted?: boolean | undefined
  readonly otherHubs: boolean
  /** How long a 401 may be a mistake. */
  readonly refusalMs: number
  /** How long a hub may be silent while there are others. */
  readonly timeoutMs: number
}

/** Whether the hub once looked at the cluster and does not want it: one that nobody has looked at yet only waits. */
export const isDenied = (cluster: ManagedCluster | undefined): boolean =>
  cluster !== undefined && !cluster.spec.hubAcceptsClient && findCondition(cluster, Accepted.type) !== undefined

export const isAccepted = (cluster: ManagedCluster | undefined): cluster is ManagedCluster =>
  cluster !== undefined && cluster.spec.hubAcceptsClient === true && isTrue(cluster, Accepted.type)

const lasts = (of: { since: number } | undefined, ms: number, now: number): boolean =>
  of !== undefined && now - of.since >= ms

const text = (reason: string, message: string): Reason => ({ reason, message })

/** Why the agent has to leave a hub where it has joined, or let its credential go; undefined when it stays. */
export const whyLeave = firstOf<Standing>([
  (s) => s.moved,
  (s) => s.unusable,
  (s) =>
    // One that was deleted has lost its credential with that, and does not ask again by itself.
    s.deleted !== true &&
    lasts(s.contact.refused, s.refusalMs, s.now) &&
    text('CredentialRefused', `hub ${s.server} refuses the credential: ${s.contact.refused?.why}`),
  (s) => s.otherHubs && s.deleted === true && text('Deleted', `cluster ${s.name} was deleted on hub ${s.server}`),
  (s) => s.otherHubs && isDenied(s.cluster) && text('Denied', `hub ${s.server} has denied cluster ${s.name}`),
  (s) =>
    s.otherHubs &&
    lasts(s.contact.unreachable, s.timeoutMs, s.now) &&
    text(
      'HubUnreachable',
      `hub ${s.server} has not answered for ${s.timeoutMs / 1000} s: ${s.contact.unreachable?.why}`,
    ),
])

/** What an agent that has a credential waits for; undefined when all is well. */
export const whatToWaitFor = firstOf<Standing>([
  (s) =>
    s.deleted !== true &&
    s.contact.refused &&
    text('Refused', `hub ${s.server} to take the credential again: ${s.contact.refused.why}`),
  (s) => s.contact.unreachable && text('Unreachable', `hub ${s.server} to answer: ${s.contact.unreachable.why}`),
  (s) =>
    s.deleted === true &&
    text(
      'Deleted',
      `ManagedCluster ${s.name}, which was deleted on hub ${s.server}: to join again, delete the hub kubeconfig secret`,
    ),
  (s) =>
    isDenied(s.cluster) &&
    text(
      'Denied',
      `hub ${s.server}, which has denied cluster ${s.name}, to accept it again: clusteradm accept --clusters ${s.name}`,
    ),
  (s) => {
    const said = s.cluster?.spec.hubAcceptsClient ? findCondition(s.cluster, Accepted.type) : undefined
    return said?.status === 'False' && text('Error', `hub ${s.server} to finish its acceptance: ${said.message}`)
  },
  (s) =>
    !isAccepted(s.cluster) &&
    text('NotAccepted', `hub ${s.server} to accept cluster ${s.name}: clusteradm accept --clusters ${s.name}`),
  (s) =>
    findCondition(s.cluster!, ClockSynced.type)?.status === 'False' &&
    text('ClockOutOfSync', `the clock of this cluster to agree with the one of hub ${s.server}: check NTP on both`),
  (s) => !isTrue(s.cluster!, Joined.type) && text('NotReported', `the first status report to hub ${s.server}`),
])

/** When time alone can change the decision next. */
export const nextLook = ({ contact, refusalMs, timeoutMs, otherHubs }: Standing, expiresAt = Infinity): number =>
  Math.min(
    expiresAt,
    contact.refused ? contact.refused.since + refusalMs : Infinity,
    contact.unreachable && otherHubs ? contact.unreachable.since + timeoutMs : Infinity,
  )

export interface Lookout {
  /** The decision now, and when to look again at the latest. */
  look: () => { reason: Reason | undefined; nextAt: number }
  /** Calls back whenever something that `look` reads has changed. */
  subscribe: (changed: () => void) => (() => void)[]
  clock: Clock
}

/** Settles with the first reason; rejects when the signal comes first. */
export const untilReason = ({ look, subscribe, clock }: Lookout, signal: AbortSignal): Promise<Reason> =>
  new Promise((resolve, reject) => {
    let cancel = (): void => {}
    let ends: (() => void)[] = []
    let over = false
    const end = (settle: () => void): void => {
      over = true
      cancel()
      for (const stop of ends) stop()
      signal.removeEventListener('abort', abort)
      settle()
    }
    const abort = (): void => end(() => reject(signal.reason as Error))
    const check = (): void => {
      if (over) return
      cancel()
      try {
        const { reason, nextAt } = look()
        if (reason) return end(() => resolve(reason))
        if (Number.isFinite(nextAt)) cancel = clock.after(Math.max(nextAt - clock.now(), 1), check)
      } catch (error) {
        end(() => reject(error)) // a driver's mistake is not for whoever told us of a change
      }
    }
    if (signal.aborted) return abort()
    signal.addEventListener('abort', abort, { once: true })
    ends = subscribe(check)
    check()
    if (over) for (const stop of ends) stop()
  })
