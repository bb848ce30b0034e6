import { ManagedCluster } from '../../api/index.ts'
import { isForbidden, isNotFound, type Api } from '../../kube/index.ts'
import { describeError, Informer, type Reason } from '../../runtime/index.ts'
import { secretKey } from '../contract.ts'
import { namesOf } from './identity.ts'
import type { AgentState, Phase } from './phases.ts'
import { observed, type Contact } from './contact.ts'
import { unusable } from './credential.ts'
import { sameHub } from './hubs.ts'
import { hubKubeconfig } from './kubeconfig.ts'
import { nextLook, untilReason, whatToWaitFor, whyLeave, type Standing } from './leaving.ts'
import { patiently } from './patience.ts'
import { kept, type Joined } from './parts.ts'
import { report, whileAccepted } from './reports.ts'
import { aborted, ended, inScope } from './scope.ts'

type JoinedPhase = Extract<Phase, { name: 'joined' }>

/** The connection of one joined phase, and what is known of the cluster there. */
interface Membership {
  readonly hub: Api
  readonly contact: () => Contact
  readonly clusters: Informer<ManagedCluster>
  readonly listeners: Set<() => void>
  seen: boolean
}

const askAgainMs = 5000

/** Uses the credential: heartbeat, status, renewal and the parts. Ends when the hub or the credential has to change. */
export const joined = async (agent: AgentState, phase: JoinedPhase, signal: AbortSignal): Promise<Phase> => {
  const { settings, identity, secret, failures, conditions } = agent
  const { driver, userAgent, clock, log } = settings
  const { address } = phase.hub
  const listeners = new Set<() => void>()
  const raw = driver.asCluster(() => secret.data, { ...address, source: secret.source }, { userAgent })
  const { hub, contact } = observed(raw, clock, () => {
    for (const listener of listeners) listener()
  })
  const fieldSelector = `metadata.name=${identity.cluster}`
  const clusters = new Informer<ManagedCluster>({ client: hub, resource: ManagedCluster, fieldSelector, clock, log })
  const membership: Membership = { hub, contact, clusters, listeners, seen: false }
  clusters.on({ added: () => (membership.seen = true) })
  let living: Promise<never> | undefined
  try {
    return await inScope(signal, async (scope): Promise<Phase> => {
      const left = untilReason(
        {
          look: () => look(agent, phase, membership, scope),
          subscribe: (changed) => subscribe(agent, membership, changed),
          clock,
        },
        scope,
      )
      const reason = await Promise.race([left, (living = member(agent, phase, membership, scope))])
      log.warn('leaving this hub, or this credential', { hub: address.server, because: reason })
      if (reason.reason === 'CredentialRefused') agent.refused = secret.data
      if (isFailure(reason)) failures.set(address.source, { ...reason, at: clock.now() })
      if (reason.reason !== 'HubSettingsChanged') conditions.clear()
      return { name: 'choose' }
    })
  } finally {
    // Nothing of the old hub is still at work when the next one is asked.
    await ended(living, clock)
    raw.close()
  }
}

const isFailure = ({ reason }: Reason): boolean => ['Denied', 'Deleted', 'HubUnreachable'].includes(reason)

/** Never settles by itself: it rejects when the phase is over. */
const member = async (agent: AgentState, phase: JoinedPhase, of: Membership, signal: AbortSignal): Promise<never> => {
  await known(agent, of, signal)
  void of.clusters.run(signal)
  const { settings, identity } = agent
  const { local, clock, random, log, metrics, parts } = settings
  const { hub, clusters } = of
  const { address } = phase.hub
  const joined: Joined = {
    hub,
    hubServer: address.server,
    address,
    local,
    identity,
    clusters,
    clock,
    random,
    log,
    metrics,
    signal,
  }
  await of.clusters.synced
  for (const listener of of.listeners) listener() // the first list came before it counted as complete
  await Promise.all([
    repairing(agent, phase, signal),
    whileAccepted(agent, clusters, signal, (scope) => report(agent, hub, clusters, scope)),
    ...parts.map((part) => kept(part, joined)),
  ])
  throw signal.reason
}

/** Settles when the hub lets us read our own ManagedCluster: from its acceptance on. */
const known = async (agent: AgentState, { hub }: Membership, signal: AbortSignal): Promise<void> => {
  const { settings, identity, readiness } = agent
  const { clock, random } = settings
  const name = identity.cluster
  const { server } = hub.connection
  await patiently(() => hub.of(ManagedCluster).get(name, { signal }), {
    clock,
    random,
    signal,
    firstMs: 250,
    failed: (error) =>
      readiness.waitFor(
        isForbidden(error) || isNotFound(error)
          ? `hub ${server} to accept cluster ${name}: clusteradm accept --clusters ${name}; if it was deleted there and shall join again, delete ${agent.secret.source}`
          : `hub ${server} to answer: ${describeError(error)}`,
      ),
  })
}

/** Puts back what others took out of the secret, as long as the credential itself is good. */
const repairing = async (agent: AgentState, phase: JoinedPhase, signal: AbortSignal): Promise<void> => {
  const { settings, secret, identity } = agent
  const kubeconfig = await hubKubeconfig(phase.hub.address, settings.driver, identity)
  const wanted = {
    ...(await settings.driver.beside?.(phase.hub.address)),
    [secretKey.kubeconfig]: kubeconfig,
    ...namesOf(identity),
  }
  const repair = (): void => {
    if (!unusable(agent)) void secret.write(wanted, signal).catch(() => {})
  }
  const off = secret.on(repair)
  repair()
  await aborted(signal).finally(off)
}

const look = (
  agent: AgentState,
  phase: JoinedPhase,
  of: Membership,
  signal: AbortSignal,
): { reason: Reason | undefined; nextAt: number } => {
  const { settings, identity, secret, bootstraps, readiness } = agent
  const { address } = phase.hub
  const cluster = of.clusters.get(identity.cluster)
  const standing: Standing = {
    server: address.server,
    name: identity.cluster,
    now: settings.clock.now(),
    moved: movedFrom(agent, phase),
    unusable: unusable(agent),
    contact: of.contact(),
    cluster,
    deleted: of.seen && !cluster,
    otherHubs: bootstraps.candidates.some((c) => c.address && c.source !== address.source),
    refusalMs: settings.refusalMs,
    timeoutMs: settings.hubConnectionTimeoutMs,
  }
  const reason = whyLeave(standing)
  // Until the cluster is known, `known` says what is waited for.
  if (of.clusters.hasSynced) say(readiness, whatToWaitFor(standing))
  const nextAt = nextLook(standing, settings.driver.expiresAt(secret.data))
  if (!standing.contact.refused || reason) return { reason, nextAt }
  // Whether it is a mistake shows only when we ask again.
  void of.hub
    .of(ManagedCluster)
    .get(identity.cluster, { signal })
    .catch(() => {})
  return { reason, nextAt: Math.min(nextAt, standing.now + askAgainMs) }
}

const say = (readiness: AgentState['readiness'], waiting: Reason | undefined): void => {
  if (waiting) readiness.waitFor(waiting.message)
  else readiness.ready()
}

/** Why the hub that we are with is no longer the one that its secret names. A secret that is gone or broken moves nobody. */
const movedFrom = ({ bootstraps }: AgentState, { hub: { address } }: JoinedPhase): Reason | undefined => {
  const named = bootstraps.candidates.find(({ source }) => source === address.source)
  // Without a bootstrap secret we came by the credential alone: the first hub that is named now has to be looked at.
  const now = named ?? bootstraps.candidates.find((c) => c.address)
  if (!now?.address) return undefined
  const message = `${now.source} says ${now.address.server}`
  if (!sameHub(address, now.address)) return { reason: 'HubChanged', message: `${message}: another address or CA` }
  const same =
    address.proxyUrl === now.address.proxyUrl &&
    address.tlsServerName === now.address.tlsServerName &&
    address.clusterEntry === now.address.clusterEntry
  return same ? undefined : { reason: 'HubSettingsChanged', message: `${message}: another proxy or name` }
}

const subscribe = ({ secret, bootstraps }: AgentState, of: Membership, changed: () => void): (() => void)[] => {
  of.listeners.add(changed)
  return [
    () => of.listeners.delete(changed),
    secret.on(changed),
    bootstraps.on(changed),
    of.clusters.on({ added: changed, updated: changed, deleted: changed }),
  ]
}
