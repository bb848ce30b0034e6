import { label, type ManagedCluster, type ManagedClusterSet } from '../api/index.ts'
import { matchesSelector } from '../kube/index.ts'

/** Whether a set holds a cluster. */
export const holds = (set: ManagedClusterSet, { metadata }: Pick<ManagedCluster, 'metadata'>): boolean => {
  const selector = set.spec?.clusterSelector
  if (selector?.selectorType === 'LabelSelector') return matchesSelector(selector.labelSelector, metadata.labels)
  return metadata.labels?.[label.clusterSet] === set.metadata.name
}
