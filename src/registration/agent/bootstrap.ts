import { ManagedCluster } from '../../api/index.ts'
import type { Api } from '../../kube/index.ts'
import { equal, firstOf, Informer, type Reason } from '../../runtime/index.ts'
import { idClaim, secretKey } from '../contract.ts'
import type { SecretChange } from '../drivers/driver.ts'
import { namesOf } from './identity.ts'
import type { AgentState, Phase } from './phases.ts'
import { observed, type Contact } from './contact.ts'
import { ensureManagedCluster } from './creation.ts'
import { hubKubeconfig } from './kubeconfig.ts'
import { isAccepted, isDenied, nextLook, untilReason, whyLeave, type Standing } from './leaving.ts'
import { patiently } from './patience.ts'
import { inWords } from './readiness.ts'
import { obtainContext } from './rotation.ts'
import { ended, inScope } from './scope.ts'

type BootstrapPhase = Extract<Phase, { name: 'bootstrap' }>

/** What the phase knows of its hub, besides what the secrets say. */
interface Attempt {
  readonly hub: Api
  readonly contact: () => Contact
  readonly clusters: Informer<ManagedCluster>
  /** The hub does not let us ask, and since when. */
  problem?: { since: number; why: string } | undefined
  readonly listeners: Set<() => void>
}

/** Asks a hub to let us in, as the bootstrap user, and gets a credential of our own. Ends when we have it, or should go elsewhere. */
export const bootstrap = async (agent: AgentState, phase: BootstrapPhase, signal: AbortSignal): Promise<Phase> => {
  const { settings, readiness, identity, secret, failures, bootstraps } = agent
  const { driver, userAgent, clock, log } = settings
  const { address } = phase.hub
  readiness.waitFor(`hub ${address.server} to answer`)
  await secret.write(namesOf(identity), signal)
  let raw: Api
  try {
    raw = await driver.asBootstrap(phase.hub.bootstrap, address.source, { userAgent }, identity)
  } catch (error) {
    // The address is good and the credential beside it is not: as with a secret that is all wrong, it has to change.
    bootstraps.reject(address.source, phase.hub.bootstrap, inWords(error))
    return { name: 'choose' }
  }
  const listeners = new Set<() => void>()
  const { hub, contact } = observed(raw, clock, () => {
    for (const listener of listeners) listener()
  })
  const fieldSelector = `metadata.name=${identity.cluster}`
  const clusters = new Informer<ManagedCluster>({ client: hub, resource: ManagedCluster, fieldSelector, clock, log })
  const attempt: Attempt = { hub, contact, clusters, listeners }
  let trying: Promise<undefined> | undefined
  try {
    return await inScope(signal, async (scope): Promise<Phase> => {
      const lookout = {
        look: () => look(agent, phase, attempt),
        subscribe: (changed: () => void) => subscribe(agent, attempt, changed),
        clock,
      }
      const left = untilReason(lookout, scope)
      const gone = await Promise.race([left, (trying = obtained(agent, phase, attempt, scope))])
      if (!gone) return { name: 'joined', hub: phase.hub }
      log.warn('leaving this hub', { hub: address.server, because: gone })
      if (gone.reason === 'TryCredential') {
        agent.refused = undefined
        return { name: 'joined', hub: phase.hub }
      }
      if (gone.reason !== 'BootstrapChanged') failures.set(address.source, { ...gone, at: clock.now() })
      return { name: 'choose' }
    })
  } finally {
    await ended(trying, clock)
    raw.close()
  }
}

/** Undefined when the credential is in the secret and the hub has let us in. */
const obtained = async (
  agent: AgentState,
  phase: BootstrapPhase,
  attempt: Attempt,
  signal: AbortSignal,
): Promise<undefined> => {
  await ensured(agent, attempt, signal)
  void attempt.clusters.run(signal)
  // Somebody may delete it while we wait: then we ask again.
  attempt.clusters.on({ deleted: () => void ensured(agent, attempt, signal).catch(() => {}) })
  let has = false
  const credential = credentialed(agent, phase, attempt, signal).then(() => {
    has = true
    for (const listener of attempt.listeners) listener()
  })
  await Promise.all([credential, accepted(attempt, () => has, signal)])
  return undefined
}

const ensured = async (agent: AgentState, attempt: Attempt, signal: AbortSignal): Promise<void> => {
  const { settings, identity, facts, readiness } = agent
  const { clock, random, driver, clusterAnnotations, clientConfigs, log } = settings
  const claimed = facts.claims.get(idClaim)?.spec?.value
  const options = {
    name: identity.cluster,
    clusterId: facts.clusterId,
    otherIds: claimed ? [claimed] : [],
    annotations: clusterAnnotations,
    clientConfigs,
    driver,
    signal,
  }
  await patiently(() => ensureManagedCluster(attempt.hub, options), {
    clock,
    random,
    signal,
    firstMs: 1000,
    failed: (error, times) => {
      const why = inWords(error)
      attempt.problem = { since: attempt.problem?.since ?? clock.now(), why }
      readiness.waitFor(why)
      log.warn('the hub could not be asked to let this cluster in; trying again', { error, times })
      for (const listener of attempt.listeners) listener()
    },
  })
  attempt.problem = undefined
}

const credentialed = async (
  agent: AgentState,
  phase: BootstrapPhase,
  attempt: Attempt,
  signal: AbortSignal,
): Promise<void> => {
  const { settings, identity, secret, conditions, readiness } = agent
  const { driver, clock, random, log } = settings
  const { hub } = attempt
  const obtain = (): Promise<SecretChange> =>
    driver.obtain(
      obtainContext({ hub, identity, secret, clock, random, log }, secret.data, signal, (state) => {
        if ('waitingFor' in state) readiness.waitFor(state.waitingFor)
        else conditions.set(state.condition.type, state.condition)
      }),
    )
  const change = await patiently(obtain, {
    clock,
    random,
    signal,
    firstMs: 2000,
    mostMs: 300_000,
    failed: (error, times) => {
      readiness.waitFor(`a credential from hub ${hub.connection.server}: ${inWords(error)}`)
      log.warn('no credential yet; trying again', { error, times })
    },
  })
  const kubeconfig = await hubKubeconfig(phase.hub.address, driver, identity)
  // All at once: whoever reads the secret finds a credential and the hub that it is for.
  await secret.write(
    {
      ...change,
      ...(await driver.beside?.(phase.hub.address)),
      [secretKey.kubeconfig]: kubeconfig,
      ...namesOf(identity),
    },
    signal,
  )
  agent.refused = undefined
  log.info('there is a credential for the hub', { hub: hub.connection.server, secret: secret.source })
  const name = identity.cluster
  if (!isAccepted(attempt.clusters.get(name)))
    readiness.waitFor(`hub ${hub.connection.server} to accept cluster ${name}: clusteradm accept --clusters ${name}`)
}

/** Settles when the hub has accepted the cluster, or we can no longer look as the bootstrap user but have a credential to go on with. */
const accepted = async (
  { clusters, contact, listeners }: Attempt,
  hasCredential: () => boolean,
  signal: AbortSignal,
): Promise<void> => {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const look = (): void => {
    if (clusters.list().some(isAccepted) || (contact().refused && hasCredential())) resolve()
  }
  const abort = (): void => reject(signal.reason as Error)
  const off = clusters.on({ added: look, updated: look })
  listeners.add(look)
  signal.addEventListener('abort', abort, { once: true })
  look()
  await promise.finally(() => {
    off()
    listeners.delete(look)
    signal.removeEventListener('abort', abort)
  })
}

interface BootstrapStanding extends Standing {
  readonly problem?: { since: number; why: string } | undefined
  /** There is a credential that the hub has refused and that is good otherwise. */
  readonly hasCredential: boolean
}

const whyGiveUp = firstOf<BootstrapStanding>([
  whyLeave,
  (s) =>
    s.otherHubs &&
    s.problem !== undefined &&
    !s.contact.unreachable &&
    s.now - s.problem.since >= s.refusalMs && { reason: 'BootstrapFailed', message: s.problem.why },
  // A hub that refuses both credentials may take ours again: a role that was mapped anew, an authenticator that is back.
  (s) =>
    s.hasCredential &&
    s.problem !== undefined &&
    s.now - s.problem.since >= s.refusalMs && { reason: 'TryCredential', message: s.problem.why },
])

const look = (
  agent: AgentState,
  phase: BootstrapPhase,
  { contact, clusters, problem }: Attempt,
): { reason: Reason | undefined; nextAt: number } => {
  const { settings, identity, bootstraps } = agent
  const { address, bootstrap: used } = phase.hub
  const candidate = bootstraps.candidates.find(({ source }) => source === address.source)
  const moved = !equal(candidate?.bootstrap, used) && {
    reason: 'BootstrapChanged',
    message: `${address.source} has changed`,
  }
  const cluster = clusters.get(identity.cluster)
  const standing: BootstrapStanding = {
    server: address.server,
    name: identity.cluster,
    now: settings.clock.now(),
    moved: moved || undefined,
    // A 401 is a problem of the bootstrap credential here, which `problem` tells of.
    contact: { unreachable: contact().unreachable },
    cluster: isDenied(cluster) ? cluster : undefined,
    otherHubs: bootstraps.candidates.some((c) => c.address && c.source !== address.source),
    refusalMs: settings.refusalMs,
    timeoutMs: settings.hubConnectionTimeoutMs,
    problem,
    hasCredential:
      agent.refused !== undefined &&
      settings.driver.unusable(agent.secret.data, { identity, now: settings.clock.now() }) === undefined,
  }
  const nextAt = Math.min(nextLook(standing), problem ? problem.since + standing.refusalMs : Infinity)
  return { reason: whyGiveUp(standing), nextAt: nextAt > standing.now ? nextAt : Infinity }
}

const subscribe = (
  { bootstraps }: AgentState,
  { clusters, listeners }: Attempt,
  changed: () => void,
): (() => void)[] => {
  listeners.add(changed)
  return [
    () => listeners.delete(changed),
    bootstraps.on(changed),
    clusters.on({ added: changed, updated: changed, deleted: changed }),
  ]
}
