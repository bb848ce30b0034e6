import { conditionType, label, ManagedCluster, ManagedClusterSet } from '../../src/api/index.ts'
import type { Client } from '../../src/kube/index.ts'
import { condition, setConditions, watching, type Manager } from '../../src/runtime/index.ts'

const Empty = condition(conditionType.managedClusterSet.empty, {
  yes: { status: 'True', reason: 'NoClusterMatched', message: 'No ManagedCluster selected' },
  no: { status: 'False', reason: 'ClustersSelected' },
})

/** A controller at work: each ManagedClusterSet says how many clusters carry its label. */
export const countClusterSets = (manager: Manager, client: Client): void => {
  const sets = manager.informer(ManagedClusterSet)
  const clusters = manager.informer(ManagedCluster, {
    indexes: { set: (cluster) => [cluster.metadata.labels?.[label.clusterSet] ?? ''] },
  })
  manager.controller({
    name: 'cluster-sets',
    watches: [watching(sets), watching(clusters, (cluster) => [cluster.metadata.labels?.[label.clusterSet] ?? ''])],
    reconcile: async (name) => {
      const set = sets.get(name)
      if (!set) return {}
      const selected = clusters.by('set', name).length
      const state = selected ? Empty.no(`${selected} ManagedClusters selected`) : Empty.yes()
      const present = set.status?.conditions
      const conditions = setConditions(present, [state], { now: Date.now(), generation: set.metadata.generation })
      if (conditions !== present) await client.of(ManagedClusterSet).updateStatus({ ...set, status: { conditions } })
      return {}
    },
  })
}
