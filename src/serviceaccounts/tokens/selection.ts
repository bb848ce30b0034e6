import { isMember, type ManagedCluster, type ManagedClusterSet } from '../../api/index.ts'
import { matchesSelector, type KubeObject, type LabelSelector } from '../../kube/index.ts'

/** Which tokens are meant. What is left out does not narrow; without anything all tokens of the hub are meant. */
export interface TokenSelection {
  /** Those of ManagedServiceAccounts of this name, which is the same on every cluster. */
  name?: string | undefined
  /** Those of these clusters. With one, rights in its namespace are enough. */
  clusters?: readonly string[] | undefined
  /** Those of the clusters in this ManagedClusterSet. */
  clusterSet?: string | undefined
  /** Those of clusters with these labels. */
  clusterSelector?: LabelSelector | undefined
  /** Those of ManagedServiceAccounts with these labels. */
  selector?: LabelSelector | undefined
}

/** What is known about one token. */
export interface Candidate {
  name: string
  cluster: ManagedCluster
  account: KubeObject
  /** Of `clusterSet`, where it exists. */
  set: ManagedClusterSet | undefined
}

/** Whether a token is among those that are meant. */
export const isSelected = (
  { name, clusters, clusterSet, clusterSelector, selector }: TokenSelection,
  about: Candidate,
): boolean => {
  const { labels, name: cluster = '' } = about.cluster.metadata
  if (name !== undefined && name !== about.name) return false
  if (clusters && !clusters.includes(cluster)) return false
  if (clusterSet !== undefined && !(about.set && isMember(about.set, about.cluster))) return false
  if (clusterSelector && !matchesSelector(clusterSelector, labels)) return false
  return !selector || matchesSelector(selector, about.account.metadata.labels)
}
