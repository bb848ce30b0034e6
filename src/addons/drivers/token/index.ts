/** Tokens of a service account on the hub, for `kubeClient` items: see docs/guides/add-on-credentials.md. */
import type { ManagedClusterAddOn } from '../../../api/index.ts'
import { findCondition, timestamp, type Reason } from '../../../runtime/index.ts'
import {
  accountNames,
  addOnSecretKey,
  credentialAnnotation,
  readTokenReady,
  TokenInfrastructureReady,
  TokenRefreshed,
} from '../../contract.ts'
import { hubDigest, tokenContent } from '../content.ts'
import { digestOf } from '../digest.ts'
import { patienceMs, type Keeper, type KeeperContext, type Look, type Standing } from '../driver.ts'
import { readToken, type TokenClaims } from './claims.ts'
import { impossibleLifetime } from './lifetime.ts'
import { endOf, isUsable, mustRefresh, refreshAt, type Account, type Received, type TokenState } from './refresh.ts'
import { requestToken, whyNoToken } from './request.ts'

export { doubtfulLifetime, lifetimeOf } from './lifetime.ts'

/** Keeps a token in a secret. It remembers when its tokens came, and one that could not be written yet. */
export const tokenKeeper = (context: KeeperContext): Keeper => {
  const { item, identity, address, hub, tokenSeconds, clock, counts, log } = context
  let received: Received | undefined
  let unsaved: string | undefined
  let waitingSince: number | undefined
  let life: TokenClaims | undefined

  const stateOf = ({ addOn, present }: Look): TokenState => {
    const token = present?.data[addOnSecretKey.token]
    return {
      secretName: `${item.namespace}/${item.secret}`,
      exists: present !== undefined,
      token,
      claims: readToken(token),
      tokenDigest: present?.annotations[credentialAnnotation.token],
      hubDigest: present?.annotations[credentialAnnotation.hub],
      hub: hubDigest(address),
      user: item.user,
      account: readyAccount(addOn, identity.cluster),
      received,
      now: clock.now(),
    }
  }

  /** Puts everything into its place around a good token: nothing is sent when it is there. */
  const keep = async (token: string, signal: AbortSignal): Promise<Standing> => {
    const claims = readToken(token)!
    const expiration = timestamp(claims.expiresAt)
    life = claims
    await context.write(
      await tokenContent({ item, cluster: identity.cluster, address }, { token, expiration, uid: claims.uid }),
      signal,
    )
    waitingSince = undefined
    return {
      condition: TokenRefreshed.refreshed(`Addon token refreshed, expires at ${expiration}`),
      lookAgainAt: refreshAt({ token, claims, received, now: clock.now() }),
    }
  }

  const waiting = (state: TokenState, addOn: ManagedClusterAddOn): Standing => {
    waitingSince ??= state.now
    const until = waitingSince + patienceMs
    if (state.now < until) return { condition: undefined, lookAgainAt: until }
    return { condition: TokenRefreshed.waiting(whatIsMissing(addOn)), lookAgainAt: Infinity }
  }

  const failed = (state: TokenState, { reason, message }: Reason, error: unknown): Standing => {
    counts.tokenFailed(item.addOn, reason)
    const stays = isUsable(state) ? `; the present token lasts until ${timestamp(state.claims!.expiresAt)}` : ''
    return {
      condition: TokenRefreshed.failed(`Failed to create token: ${message}${stays}`),
      lookAgainAt: Infinity,
      error,
    }
  }

  const request = async (state: TokenState & { account: Account }, because: Reason, signal: AbortSignal) => {
    const token = await requestToken(hub, state.account, tokenSeconds, signal)
    if (!readToken(token))
      throw new Error('the hub answered without a token that can be read; is it a Kubernetes API server?')
    received = { digest: digestOf(token), at: clock.now(), under: state.account.uid }
    unsaved = token
    counts.tokenIssued(item.addOn, because.reason)
    log.info('an add-on got a token', { addOn: item.addOn, because })
  }

  return {
    look: async (look) => {
      const state = stateOf(look)
      const { account, token } = state
      const because = mustRefresh(state)
      life = state.claims
      if (token && !because) return keep(token, look.signal)
      if (!account) {
        if (!token || !isUsable(state)) return waiting(state, look.addOn)
        // It is time for a new one, and there is nobody to ask for it yet.
        return { ...(await keep(token, look.signal)), lookAgainAt: endOf(state) }
      }
      const impossible = impossibleLifetime(tokenSeconds)
      if (impossible) return failed(state, impossible, undefined)
      // One that was received and could not be written is as good as new, unless the account is another by now.
      if (unsaved && received?.under !== account.uid) unsaved = undefined
      try {
        if (!unsaved) await request({ ...state, account }, because!, look.signal)
      } catch (error) {
        look.signal.throwIfAborted()
        return failed(state, whyNoToken(error, account), error)
      }
      const standing = await keep(unsaved!, look.signal)
      unsaved = undefined
      return standing
    },
    expiresAt: () => life?.expiresAt,
    issuedAt: () => life?.issuedAt,
    stop: async () => {},
  }
}

/** The account that the hub has made ready; undefined until it has, and for an account that is none of this add-on's. */
export const readyAccount = (addOn: ManagedClusterAddOn, cluster: string): Account | undefined => {
  const condition = findCondition(addOn, TokenInfrastructureReady.type)
  const ready = condition?.status === 'True' ? readTokenReady(condition.message) : undefined
  const isOurs = ready?.namespace === cluster && accountNames(cluster, addOn.metadata.name!).includes(ready.account)
  return isOurs ? ready : undefined
}

/** What keeps a token from being requested, for people. */
const whatIsMissing = (addOn: ManagedClusterAddOn): string => {
  const condition = findCondition(addOn, TokenInfrastructureReady.type)
  if (!condition)
    return "the hub's add-on manager has not said that tokens can be requested (TokenInfrastructureReady): it is not running, or too old to know tokens; start or upgrade it, or use --addon-kubeclient-registration-auth=csr"
  if (condition.status !== 'True') return `the hub cannot make the service account: ${condition.message}`
  return `the hub named a service account that is none of this add-on's: ${condition.message}`
}
