import type { AWSCluster } from '../api/index.ts'
import type { CredentialCache } from '../aws/index.ts'
import { findCondition, type Metrics } from '../runtime/index.ts'
import { credentialRetrieved, usageAllowed } from './contract.ts'
import type { Room } from './room.ts'

const states = ['ready', 'refused', 'failed', 'unknown'] as const

/** How a cluster stands with its identity, as one word. */
export const stateOf = (cluster: AWSCluster): (typeof states)[number] => {
  const usage = findCondition(cluster, usageAllowed)?.status
  const credential = findCondition(cluster, credentialRetrieved)?.status
  if (usage === 'False') return 'refused'
  if (credential === 'False') return 'failed'
  return usage === 'True' && credential === 'True' ? 'ready' : 'unknown'
}

/** Counted when somebody asks: a scrape costs one walk over the cache, and nothing in between. */
export const identityMetrics = ({ manager, records, credentials }: Room & { credentials: CredentialCache }): void => {
  const gauge = manager.metrics.gauge('lanyard_aws_clusters', 'AWSClusters by how they stand with their identity')
  for (const state of states)
    gauge.read(() => records.clusters.list().filter((cluster) => stateOf(cluster) === state).length, { state })
  manager.metrics
    .gauge('lanyard_aws_recipes', 'Credentials that are held, one for each recipe')
    .read(() => credentials.size)
}

/** Told of each lookup of credentials. */
export const countLookups = (metrics: Metrics): ((result: string) => void) => {
  const lookups = metrics.counter('lanyard_aws_credential_lookups_total', 'Lookups of credentials by result')
  return (result) => lookups.inc({ result })
}
