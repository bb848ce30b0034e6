import { annotation, Cluster, group, type AWSCluster } from '../api/index.ts'
import type { OwnerReference } from '../kube/index.ts'
import type { Room } from './room.ts'

/** A pause cannot be watched where Cluster API may not be installed. */
export const pausedMs = 30_000

/** The reference to the Cluster of Cluster API that an AWSCluster belongs to. */
export const clusterReference = (cluster: AWSCluster): OwnerReference | undefined =>
  cluster.metadata.ownerReferences?.find(
    ({ kind, apiVersion }) => kind === 'Cluster' && apiVersion.split('/')[0] === group.clusterApi,
  )

/** The Cluster itself, as it is now; undefined when there is none. */
export const clusterOf = async (
  room: Pick<Room, 'client'>,
  cluster: AWSCluster,
  signal: AbortSignal,
): Promise<Cluster | undefined> => {
  const owner = clusterReference(cluster)
  return owner && room.client.of(Cluster, cluster.metadata.namespace).find(owner.name, { signal })
}

/** By the annotation, or by the Cluster that it belongs to. */
export const isPaused = (cluster: AWSCluster, owner: Cluster | undefined): boolean =>
  Object.hasOwn(cluster.metadata.annotations ?? {}, annotation.paused) || owner?.spec?.paused === true
