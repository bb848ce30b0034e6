import { firstOf, timestamp, type Check } from '../../../runtime/index.ts'
import { serviceAccountUser } from '../../contract.ts'
import { digestOf } from '../digest.ts'
import type { TokenClaims } from './claims.ts'

/** The account that the hub says tokens are to be requested for. */
export interface Account {
  readonly namespace: string
  readonly account: string
  readonly uid: string
}

/** What is known of a token that this process received itself. */
export interface Received {
  readonly digest: string
  /** By the clock of this cluster, which may differ from that of the hub. */
  readonly at: number
  /** The UID that the hub's condition named then. */
  readonly under: string
}

/** Everything that decides whether a token is good. */
export interface TokenState {
  /** Namespace and name, for messages. */
  readonly secretName: string
  readonly exists: boolean
  readonly token: string | undefined
  readonly claims: TokenClaims | undefined
  /** The digests that were written beside the token; undefined if somebody else wrote it. */
  readonly tokenDigest: string | undefined
  readonly hubDigest: string | undefined
  /** Of the hub that we are with. */
  readonly hub: string
  /** Who the add-on is on the hub. */
  readonly user: string
  /** Undefined while the hub has not said it. */
  readonly account: Account | undefined
  readonly received: Received | undefined
  readonly now: number
}

/** The specification's share of the lifetime, and how much later a token may be refreshed so that a fleet does not come at once. */
const share = 0.8
const spread = 0.04

/** From when on the token should be refreshed. It follows from the token alone, so that nobody draws twice. */
export const refreshAt = (state: Pick<TokenState, 'token' | 'claims' | 'received' | 'now'>): number => {
  const { issuedAt, expiresAt } = state.claims!
  const jitter = Number.parseInt(digestOf(state.token).slice(0, 8), 16) / 2 ** 32
  return beginOf(state) + (expiresAt - issuedAt) * (share + spread * jitter)
}

/** When it ends, by the clock of this cluster. */
export const endOf = (state: Pick<TokenState, 'token' | 'claims' | 'received' | 'now'>): number =>
  beginOf(state) + state.claims!.expiresAt - state.claims!.issuedAt

// Clocks differ: a token that we received ourselves began when it came. After a clock was set back only its own words count.
const beginOf = ({ token, claims, received, now }: Pick<TokenState, 'token' | 'claims' | 'received' | 'now'>): number =>
  received && received.digest === digestOf(token) && received.at <= now ? received.at : claims!.issuedAt

const userOf = ({ namespace, account }: TokenClaims): string => serviceAccountUser(namespace, account)

/** Why a token must be refreshed now; the order is the policy. */
export const refreshReasons: readonly Check<TokenState>[] = [
  (s) => !s.exists && { reason: 'SecretMissing', message: `secret ${s.secretName} does not exist` },
  (s) => !s.token && { reason: 'TokenMissing', message: `secret ${s.secretName} has no token` },
  (s) => !s.claims && { reason: 'TokenUnreadable', message: `the token in secret ${s.secretName} is none` },
  (s) =>
    userOf(s.claims!) !== s.user && {
      reason: 'OtherAccount',
      message: `the token in secret ${s.secretName} is for ${userOf(s.claims!)}, not for ${s.user}`,
    },
  // A token that was issued while the condition said this UID is as new as it can be: the condition is behind.
  (s) =>
    s.account !== undefined &&
    s.claims!.uid !== s.account.uid &&
    !(s.received?.digest === digestOf(s.token) && s.received.under === s.account.uid) && {
      reason: 'AccountRecreated',
      message: `service account ${s.account.namespace}/${s.account.account} was created anew on the hub`,
    },
  (s) =>
    s.tokenDigest !== undefined &&
    s.tokenDigest !== digestOf(s.token) && {
      reason: 'TokenReplaced',
      message: `somebody changed the token in secret ${s.secretName}`,
    },
  (s) =>
    s.hubDigest !== undefined &&
    s.hubDigest !== s.hub && { reason: 'HubChanged', message: 'the hub has another address or CA' },
  (s) => s.now >= endOf(s) && { reason: 'Expired', message: `the token ended at ${timestamp(s.claims!.expiresAt)}` },
  (s) =>
    s.now >= refreshAt(s) && {
      reason: 'NearExpiry',
      message: `80 % of its lifetime are used; it ends at ${timestamp(s.claims!.expiresAt)}`,
    },
]

/** The first reason, or none. */
export const mustRefresh = firstOf(refreshReasons)

/** Whether the add-on can use what it has, though it may be time for a new one. */
export const isUsable = (state: TokenState): boolean => {
  const why = mustRefresh(state)
  return why === undefined || why.reason === 'NearExpiry'
}
