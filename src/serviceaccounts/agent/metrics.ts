import type { Metrics } from '../../runtime/index.ts'

/** What the agent counts. */
export interface TokenCounts {
  issued(because: string): void
  failed(reason: string): void
}

/** Registers the metrics of the agent; `count` says how many accounts it keeps. */
export const serviceAccountMetrics = (metrics: Metrics, count: () => number): TokenCounts => {
  const issued = metrics.counter(
    'lanyard_serviceaccount_tokens_total',
    'Tokens that were reported to the hub, by reason',
  )
  const failed = metrics.counter('lanyard_serviceaccount_token_failures_total', 'Tokens that were not, by reason')
  metrics.gauge('lanyard_serviceaccounts', 'ManagedServiceAccounts of this cluster').read(count, {})
  return { issued: (because) => issued.inc({ because }), failed: (reason) => failed.inc({ reason }) }
}
