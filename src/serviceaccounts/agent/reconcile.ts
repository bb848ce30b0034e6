import type { ManagedServiceAccount } from '../../api/index.ts'
import { waiting, findCondition, timestamp, type ConditionState, type Reconcile } from '../../runtime/index.ts'
import { AllPresent, contentDigest, digestOf, SecretCreated, TokenReported } from '../contract.ts'
import { ensureAccount, removeAccount, whyNoAccount, type Standing } from './account.ts'
import type { AccountAgent } from './agent.ts'
import { endOf, lookAgainAt, mustRefresh, refreshAt, type TokenState } from './refresh.ts'
import { report } from './report.ts'
import { requestToken, whyNoToken, type Issued, type TokenAsk } from './request.ts'
import { SecretTaken, whyNoSecret, writeTokenSecret } from './secret.ts'
import { inWords, validitySeconds } from './validity.ts'

/** What somebody else has to end first is looked at again after this long. */
const againMs = 60_000

/** Keeps the account and the token of one ManagedServiceAccount. */
export const reconcileAccount =
  (agent: AccountAgent): Reconcile =>
  async (name, signal) => {
    const wanted = agent.wantedOf(name)
    if (!wanted || wanted.metadata.deletionTimestamp) {
      agent.forget(name)
      await removeAccount(agent, name, signal)
      return {}
    }
    const standing = await standingOf(agent, wanted, signal)
    if (!standing) {
      agent.log.info("the agent's own account is not there: nothing is made until it is", { account: name })
      return {} // it brings everything back here when it comes
    }
    if ('refused' in standing) return refuse(agent, wanted, standing.refused, signal)

    const { ask, ca, request } = await wishOf(agent, wanted)
    const state = stateOf(agent, wanted, standing.account.metadata.uid!, request)
    const because = mustRefresh(state)
    const present = AllPresent.present(`service account ${agent.namespace}/${name} is there`)
    if (!because) {
      const states = [present, SecretCreated.created(''), tokenState(state)]
      const now = await report(agent, wanted, states, {}, signal)
      return nextLook(agent, stateOf(agent, now, state.accountUid, request))
    }
    agent.log.debug('a token is needed', { account: name, because: because.reason })
    const issued = await issue(agent, wanted, present, ask, signal)
    agent.unreported.add(name)
    await deliver(agent, wanted, present, { ca, token: issued.token }, signal)
    const digest = contentDigest({ ca, token: issued.token })
    const at = agent.clock.now()
    agent.received.set(name, { digest, at, lifetimeMs: issued.lifetimeMs })
    agent.counts.issued(because.reason)
    const fields = {
      expirationTimestamp: timestamp(issued.expiresAt),
      tokenSecretRef: {
        name,
        lastRefreshTimestamp: timestamp(at),
        digest,
        accountUID: state.accountUid,
        request,
        signingKey: agent.keys.received(issued.token),
      },
    }
    const told = { ...wanted, status: { ...wanted.status, ...fields } }
    const after = stateOf(agent, told, state.accountUid, request)
    const states = [present, SecretCreated.created(''), granted(after, ask, issued)]
    const now = await report(agent, wanted, states, fields, signal)
    agent.unreported.delete(name)
    return nextLook(agent, stateOf(agent, now, state.accountUid, request))
  }

const standingOf = async (
  agent: AccountAgent,
  wanted: ManagedServiceAccount,
  signal: AbortSignal,
): Promise<Standing | undefined> => {
  try {
    return await ensureAccount(agent, wanted, signal)
  } catch (error) {
    signal.throwIfAborted()
    const message = whyNoAccount(agent.namespace, wanted.metadata.name!, error)
    await report(agent, wanted, [AllPresent.failed(message)], {}, signal)
    throw error
  }
}

/** There is no account to use: no token is taken, and one that was reported before is dead. */
const refuse = async (
  agent: AccountAgent,
  wanted: ManagedServiceAccount,
  { reason, message }: { reason: string; message: string },
  signal: AbortSignal,
): Promise<{ requeueAfterMs?: number }> => {
  const state = reason === 'NameTaken' ? AllPresent.taken(message) : AllPresent.failed(message)
  const none = 'there is no service account to take a token from: AllServiceAccountPresent says why'
  const states = [state, SecretCreated.failed(none), TokenReported.noAccount(none)]
  // What was reported before stays until the hub has removed the Secret: it knows it by that.
  await report(agent, wanted, states, {}, signal)
  return {} // the account's end is an event of its own
}

/** What the object asks for, and the CA that clients need beside it. */
const wishOf = async (
  agent: AccountAgent,
  { metadata: { name = '' }, spec = {} }: ManagedServiceAccount,
): Promise<{ ask: TokenAsk; ca: string | undefined; request: string }> => {
  const { ca } = await agent.local.connection.credentials()
  const { audiences = [], rotation } = spec
  const validity = rotation?.validity ?? '8640h'
  const seconds = validitySeconds(validity) ?? 0
  const request = digestOf(JSON.stringify(audiences), String(seconds), ca)
  return { ask: { namespace: agent.namespace, name, audiences, seconds }, ca, request }
}

const stateOf = (
  agent: AccountAgent,
  wanted: ManagedServiceAccount,
  accountUid: string,
  request: string,
): TokenState => {
  const told = findCondition(wanted, SecretCreated.type)
  return {
    status: wanted.status,
    secretTrouble: told?.status === 'False' ? told : undefined,
    accountUid,
    keyIsGone: agent.keys.isGone(wanted.status?.tokenSecretRef?.signingKey),
    request,
    rotates: wanted.spec?.rotation?.enabled ?? true,
    unreported: agent.unreported.has(wanted.metadata.name!),
    received: agent.received.get(wanted.metadata.name!),
    now: agent.clock.now(),
  }
}

const issue = async (
  agent: AccountAgent,
  wanted: ManagedServiceAccount,
  present: ConditionState,
  ask: TokenAsk,
  signal: AbortSignal,
): Promise<Issued> => {
  try {
    return await requestToken(agent.local, ask, agent.clock.now(), signal)
  } catch (error) {
    signal.throwIfAborted()
    const { reason, message } = whyNoToken(error, ask)
    agent.counts.failed(reason)
    await report(agent, wanted, [present, TokenReported.failed(message)], {}, signal)
    // Only another spec can help, and that is an event.
    if (reason === 'RequestRefused') throw waiting(reason, { message, afterMs: againMs, cause: error })
    throw error
  }
}

const deliver = async (
  agent: AccountAgent,
  wanted: ManagedServiceAccount,
  present: ConditionState,
  content: { ca: string | undefined; token: string },
  signal: AbortSignal,
): Promise<void> => {
  const isThere = wanted.status?.tokenSecretRef !== undefined
  try {
    await writeTokenSecret(agent.hub, wanted, content, { isThere, signal })
  } catch (error) {
    signal.throwIfAborted()
    const message = whyNoSecret(wanted, error)
    const taken = error instanceof SecretTaken
    agent.counts.failed(taken ? 'SecretTaken' : 'SecretNotWritten')
    const state = taken ? SecretCreated.taken(message) : SecretCreated.failed(message)
    await report(agent, wanted, [present, state, TokenReported.failed(message)], {}, signal)
    if (taken) throw waiting('SecretTaken', { message, afterMs: againMs, cause: error })
    throw error
  }
}

/** What is to be said of a token that stays. */
const tokenState = (state: TokenState): ConditionState => {
  const end = state.status!.expirationTimestamp!
  const next = 'set spec.rotation.enabled to true for a new one'
  if (state.rotates) return TokenReported.reported('')
  if (state.now >= endOf(state))
    return TokenReported.expired(`the token ended at ${end} and spec.rotation.enabled is false; ${next}`)
  if (state.now >= refreshAt(state))
    return TokenReported.expiring(`the token ends at ${end} and spec.rotation.enabled is false; ${next}`)
  return TokenReported.reported('')
}

/** The same for a new one. A cluster may grant less than was asked for: that is said once, and counted with. */
const granted = (state: TokenState, ask: TokenAsk, { lifetimeMs }: Issued): ConditionState => {
  const seconds = Math.round(lifetimeMs / 1000)
  const said = tokenState(state)
  if (said.reason !== 'TokenReported' || seconds >= ask.seconds) return said
  return TokenReported.reported(
    `the managed cluster grants ${inWords(seconds)} of the ${inWords(ask.seconds)} that were asked for; the token is renewed by that`,
  )
}

const nextLook = (agent: AccountAgent, state: TokenState): { requeueAfterMs?: number } => {
  const at = lookAgainAt(state)
  return at === undefined ? {} : { requeueAfterMs: Math.max(at - agent.clock.now(), 1) }
}
