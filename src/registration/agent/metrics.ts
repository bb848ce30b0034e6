import type { AgentState, Phase } from './phases.ts'

const phases: readonly Phase['name'][] = ['choose', 'bootstrap', 'joined']

/** What can be seen of an agent from outside, beside what its parts count: all of it is read when somebody asks. */
export const agentMetrics = (
  { settings, secret, identity, readiness }: AgentState,
  phase: () => Phase['name'],
): void => {
  const { metrics, driver, clock } = settings
  const { cluster } = identity
  const left = (): number => ((driver.expiresAt(secret.data) ?? Infinity) - clock.now()) / 1000
  const waited = (): number => {
    const waiting = readiness.waitingFor()
    return waiting ? (clock.now() - waiting.since) / 1000 : 0
  }
  const inPhase = metrics.gauge('lanyard_agent_phase', 'Which phase the agent is in: 1 for that one, 0 for the others')
  for (const one of phases) inPhase.read(() => (phase() === one ? 1 : 0), { cluster, phase: one })
  metrics
    .gauge(
      'lanyard_agent_credential_expiry_seconds',
      'How long the credential for the hub lasts; +Inf if it has no end',
    )
    .read(() => infinite(left()), { cluster })
  metrics
    .gauge('lanyard_agent_waiting_seconds', 'How long the agent has waited for what /readyz names; 0 when it is ready')
    .read(waited, { cluster })
}

// Prometheus has another spelling for it than JavaScript, and 0 is a credential that has ended.
const infinite = (seconds: number): number => (seconds === Infinity ? Number.MAX_SAFE_INTEGER : seconds)
