import { firstOf, timestamp, type Check } from '../../runtime/index.ts'
import { digestOf, type Status } from '../contract.ts'

/** A token that this process received itself: when, by its own clock, and for how long it is good. */
export interface Received {
  readonly digest: string
  readonly at: number
  readonly lifetimeMs: number
}

/** Everything that decides whether a new token is needed. The token itself is not among it: the agent cannot read it back. */
export interface TokenState {
  readonly status: Status | undefined
  /** Why the Secret is not as it was written, in the words of whoever noticed; undefined when nobody did. */
  readonly secretTrouble: { readonly reason: string; readonly message: string } | undefined
  /** Of the account as it is on this cluster. */
  readonly accountUid: string
  /** The cluster no longer takes what the key of the token has signed. */
  readonly keyIsGone: boolean
  /** The digest of what is asked for. */
  readonly request: string
  readonly rotates: boolean
  /** The Secret has a token that the status knows nothing of: its report failed, and the spec may be another one by now. */
  readonly unreported: boolean
  readonly received: Received | undefined
  readonly now: number
}

/** The specification's share of the lifetime, and how much later a token may be renewed so that a fleet does not come at once. */
const share = 0.8
const spread = 0.04

type Lived = Pick<TokenState, 'status' | 'received' | 'now'>

/** Begin and length by the clock of this cluster where we know them: clocks differ, and lifetimes do not. */
const lifeOf = ({ status, received, now }: Lived): { from: number; ms: number } | undefined => {
  const { tokenSecretRef, expirationTimestamp } = status ?? {}
  if (!tokenSecretRef || !expirationTimestamp) return undefined
  if (received && received.digest === tokenSecretRef.digest && received.at <= now)
    return { from: received.at, ms: received.lifetimeMs }
  const from = Date.parse(tokenSecretRef.lastRefreshTimestamp)
  return { from, ms: Date.parse(expirationTimestamp) - from }
}

/** From when on the token should be renewed. It follows from the token, so that nobody draws twice. */
export const refreshAt = (state: Lived): number => {
  const life = lifeOf(state)
  if (!life || !(life.ms > 0)) return -Infinity
  const jitter = Number.parseInt(digestOf(state.status!.tokenSecretRef!.digest).slice(0, 8), 16) / 2 ** 32
  return life.from + life.ms * (share + spread * jitter)
}

/** When it ends. */
export const endOf = (state: Lived): number => {
  const life = lifeOf(state)
  return life ? life.from + life.ms : -Infinity
}

/** Why a new token is needed now; the order is the policy. */
export const refreshReasons: readonly Check<TokenState>[] = [
  (s) => !s.status?.tokenSecretRef?.digest && { reason: 'NoToken', message: 'no token was reported yet' },
  (s) => !s.status?.expirationTimestamp && { reason: 'NoToken', message: 'nothing is known of the token' },
  // Whoever says so: the hub sees what becomes of the Secret, the agent whether it could write it.
  (s) => s.secretTrouble && { reason: s.secretTrouble.reason, message: s.secretTrouble.message },
  (s) => s.unreported && { reason: 'Unreported', message: 'the last token was written and could not be reported' },
  (s) =>
    s.status!.tokenSecretRef!.accountUID !== s.accountUid && {
      reason: 'AccountRecreated',
      message: 'the service account was created anew: tokens of the one before are dead',
    },
  (s) =>
    s.keyIsGone && {
      reason: 'SigningKeyReplaced',
      message: 'the managed cluster has replaced the key that signed the token: it is refused there',
    },
  (s) =>
    s.status!.tokenSecretRef!.request !== s.request && {
      reason: 'RequestChanged',
      message: 'audiences, validity or the CA of the cluster are others now',
    },
  (s) =>
    s.rotates &&
    s.now >= endOf(s) && { reason: 'Expired', message: `the token ended at ${s.status!.expirationTimestamp}` },
  (s) =>
    s.rotates &&
    s.now >= refreshAt(s) && {
      reason: 'NearExpiry',
      message: `80 % of its lifetime are used; it ends at ${timestamp(Date.parse(s.status!.expirationTimestamp!))}`,
    },
]

/** The first reason, or none. */
export const mustRefresh = firstOf(refreshReasons)

/** When to look again, if nothing happens before: when a token is due, or when there is something new to say of it. */
export const lookAgainAt = (state: TokenState): number | undefined => {
  const times = state.rotates ? [refreshAt(state)] : [refreshAt(state), endOf(state)]
  const next = times.filter((at) => at > state.now)
  return next.length > 0 ? Math.min(...next) : undefined
}
