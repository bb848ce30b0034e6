import type { ManagedCluster } from '../../api/index.ts'
import type { Api } from '../../kube/index.ts'
import type { Informer } from '../../runtime/index.ts'
import type { AgentState } from './phases.ts'
import { heartbeat } from './heartbeat.ts'
import { isAccepted } from './leaving.ts'
import { patiently } from './patience.ts'
import { rotation } from './rotation.ts'
import { aborted } from './scope.ts'
import { statusController } from './status.ts'

/** What a hub hears from us once it has accepted us. */
export const report = async (
  agent: AgentState,
  hub: Api,
  clusters: Informer<ManagedCluster>,
  signal: AbortSignal,
): Promise<void> => {
  const { settings, identity, secret, facts, conditions } = agent
  const { driver, local, clock, random, log, metrics, claimRules, healthCheckPeriodMs } = settings
  const shared = { hub, clock, random, log, metrics }
  const cluster = identity.cluster
  let lastHeartbeat: number | undefined
  const status = statusController({
    ...shared,
    cluster,
    clusters,
    local,
    facts,
    claimRules,
    healthCheckPeriodMs,
    conditions: () => [...conditions.values()],
    lastHeartbeat: () => lastHeartbeat,
  })
  const beats = heartbeat(
    {
      ...shared,
      cluster,
      leaseDurationSeconds: () => clusters.get(cluster)?.spec.leaseDurationSeconds,
      onChange: (changed) => clusters.on({ updated: changed }),
      sent: (at) => {
        lastHeartbeat = at
        // The hub may have called us unknown: now we may contradict it.
        status.enqueue(cluster)
      },
    },
    signal,
  )
  const renewals = rotation(
    {
      ...shared,
      identity,
      driver,
      secret,
      report: (condition) => {
        conditions.set(condition.type, condition)
        status.enqueue(cluster)
      },
    },
    signal,
  )
  await Promise.all([beats, renewals, status.run(signal)])
}

/** Runs it each time that the hub accepts the cluster, until it no longer does. */
export const whileAccepted = async (
  { identity, settings }: AgentState,
  clusters: Informer<ManagedCluster>,
  signal: AbortSignal,
  run: (signal: AbortSignal) => Promise<void>,
): Promise<void> => {
  let scope: AbortController | undefined
  const runs = new Set<Promise<void>>()
  const look = (): void => {
    const accepted = !signal.aborted && isAccepted(clusters.get(identity.cluster))
    if (accepted === (scope !== undefined)) return
    scope?.abort()
    scope = accepted ? new AbortController() : undefined
    if (!scope) return
    const { clock, random, log } = settings
    const { signal: accepting } = scope
    const failed = (error: unknown): void => log.error('reporting to the hub failed; starting it again', { error })
    const running = patiently(() => run(accepting), { clock, random, signal: accepting, failed })
      .catch(() => {})
      .finally(() => runs.delete(running))
    runs.add(running)
  }
  const off = clusters.on({ added: look, updated: look, deleted: look })
  look()
  await aborted(signal)
  off()
  look()
  await Promise.all(runs)
}
