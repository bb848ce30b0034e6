import { ClusterClaim } from '../../api/index.ts'
import { Namespace, Node } from '../../kube/index.ts'
import { describeError, Informer, sleep } from '../../runtime/index.ts'
import { idClaim } from '../contract.ts'
import { bootstrap } from './bootstrap.ts'
import { Bootstraps } from './bootstraps.ts'
import { choose } from './choice.ts'
import { HubSecret } from './hub-secret.ts'
import { identityOf, namesOf } from './identity.ts'
import { joined } from './joined.ts'
import { agentMetrics } from './metrics.ts'
import { backoffMs, patiently } from './patience.ts'
import type { AgentState, Phase } from './phases.ts'
import { inWords, newReadiness, type Readiness } from './readiness.ts'
import { unlessAborted } from './scope.ts'
import { settingsOf, type AgentOptions, type Settings } from './settings.ts'
import { slimNode } from './status.ts'

/** An agent and what can be asked of it while it runs. */
export interface Agent {
  /** Runs until the signal. Rejects only for settings that can never work. */
  run(signal: AbortSignal): Promise<void>
  readonly phase: Phase['name']
  waitingFor(): { what: string; since: number } | undefined
  /** For /readyz. */
  unready(): string[]
}

/** The agent of one managed cluster for one hub at a time. Several hubs at the same time are several agents. */
export const newAgent = (options: AgentOptions): Agent => {
  const settings = settingsOf(options)
  const { clock, random, log } = settings
  const readiness = newReadiness(clock, log)
  let phase: Phase = { name: 'choose' }
  return {
    run: async (signal) => {
      const ending = new AbortController()
      const stop = (): void => ending.abort(signal.reason)
      signal.addEventListener('abort', stop, { once: true })
      if (signal.aborted) stop()
      try {
        const agent = await started(settings, readiness, ending.signal)
        agentMetrics(agent, () => phase.name)
        for (let failures = 0; ;) {
          log.info('phase', { phase: phase.name, ...('because' in phase ? { because: phase.because } : {}) })
          try {
            phase = await next(agent, phase, ending.signal)
            failures = 0
          } catch (error) {
            ending.signal.throwIfAborted()
            log.error('a phase failed; choosing anew', { phase: phase.name, error })
            readiness.waitFor(`another try, after this: ${inWords(error)}`)
            phase = { name: 'choose' }
            await sleep(clock, backoffMs(++failures, random, 1000, 300_000), ending.signal)
          }
        }
      } catch (error) {
        if (!signal.aborted) throw error
      } finally {
        signal.removeEventListener('abort', stop)
        ending.abort()
      }
    },
    get phase() {
      return phase.name
    },
    waitingFor: readiness.waitingFor,
    unready: readiness.unready,
  }
}

/** Runs an agent until the signal. */
export const runAgent = (options: AgentOptions, signal: AbortSignal): Promise<void> => newAgent(options).run(signal)

const next = (agent: AgentState, phase: Phase, signal: AbortSignal): Promise<Phase> => {
  if (phase.name === 'bootstrap') return bootstrap(agent, phase, signal)
  return phase.name === 'joined' ? joined(agent, phase, signal) : choose(agent, signal)
}

/** Follows the managed cluster, learns who we are, and makes sure that this is remembered before any hub hears of it. */
const started = async (settings: Settings, readiness: Readiness, signal: AbortSignal): Promise<AgentState> => {
  const { local, home, namespace, driver, bootstrapSecrets, hubSecret, clock, random, log } = settings
  const shared = { client: local, clock, log }
  const secret = new HubSecret({ local: home, namespace, name: hubSecret, clock, random, log })
  const bootstraps = new Bootstraps({ local: home, namespace, names: bootstrapSecrets, driver, clock, log })
  const nodes = new Informer({ ...shared, resource: Node, transform: slimNode })
  const claims = new Informer<ClusterClaim>({ ...shared, resource: ClusterClaim })
  for (const part of [secret, bootstraps, nodes, claims]) void part.run(signal)

  readiness.waitFor(`the API server of this cluster (${local.connection.server})`)
  const clusterId = await patiently(() => uidOfKubeSystem(settings, signal), {
    clock,
    random,
    signal,
    failed: (error) => readiness.waitFor(`this cluster: ${describeError(error)}`),
  })
  await unlessAborted(Promise.all([secret.synced, bootstraps.synced()]), signal)
  const { clusterName, agentName } = settings
  const identity = identityOf({ clusterName, agentName, secret: secret.data, clusterId, random })
  readiness.waitFor(`${secret.source} to be written`)
  await secret.write(namesOf(identity), signal)
  log.info('this is', { cluster: identity.cluster, agent: identity.agent, [idClaim]: clusterId })
  const facts = { clusterId, nodes, claims }
  const memory = { failures: new Map(), conditions: new Map(), refused: undefined }
  return { settings, identity, facts, secret, bootstraps, readiness, ...memory }
}

const uidOfKubeSystem = async ({ local }: Settings, signal: AbortSignal): Promise<string> => {
  const { metadata } = await local.of(Namespace).get('kube-system', { signal })
  return metadata.uid!
}
