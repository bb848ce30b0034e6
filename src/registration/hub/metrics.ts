import type { ManagedCluster } from '../../api/index.ts'
import { findCondition } from '../../runtime/index.ts'
import { Accepted, Available } from '../contract.ts'
import type { Hub } from './hub.ts'

/** Where a cluster is on its way, as one word. */
const stateOf = (cluster: ManagedCluster): string => {
  if (cluster.metadata.deletionTimestamp) return 'deleting'
  if (findCondition(cluster, Accepted.type)?.reason === 'HubClusterAdminDenied') return 'denied'
  if (!cluster.spec.hubAcceptsClient) return 'pending'
  const available = findCondition(cluster, Available.type)?.status
  if (!available) return 'accepted'
  return { True: 'available', False: 'unavailable', Unknown: 'unknown' }[available]
}

const states = ['pending', 'accepted', 'available', 'unavailable', 'unknown', 'denied', 'deleting']

/** Counts clusters when somebody asks: a scrape costs one walk over the cache, and nothing in between. */
export const clusterMetrics = (hub: Hub): void => {
  const gauge = hub.manager.metrics.gauge('lanyard_hub_clusters', 'Managed clusters by state')
  for (const state of states)
    gauge.read(() => hub.clusters.list().filter((cluster) => stateOf(cluster) === state).length, { state })
}
