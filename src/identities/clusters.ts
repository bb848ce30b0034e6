import { isDeepStrictEqual } from 'node:util'
import { keyOf, type KubeObject } from '../kube/index.ts'
import { watching, type Watch } from '../runtime/index.ts'
import { reconcileCluster } from './cluster.ts'
import type { IdentityKind } from './contract.ts'
import { keyOfIdentity } from './identity.ts'
import { clustersNamed, namesOf, type Records } from './records.ts'
import type { Room } from './room.ts'
import { clustersUsing } from './users.ts'

/** Many wait for AWS at the same time, and each does little else. */
const workers = 64

/** Checks the identities of all clusters, each time that anything changes on which they depend. The answer asks for one by hand. */
export const checkClusters = (room: Room): ((key: string) => void) => {
  const enqueue = (key: string): void => controller.enqueue(key)
  const controller = room.manager.controller({
    name: 'aws-clusters',
    workers,
    reconcile: reconcileCluster(room, enqueue),
    watches: clusterWatches(room.records),
  })
  return enqueue
}

const clusterWatches = (records: Records): Watch[] => {
  const usersOf =
    (kind: IdentityKind) =>
    (identity: KubeObject): string[] =>
      namesOf(clustersUsing(records, keyOfIdentity(kind, identity)))
  return [
    // Another one of the same name may have the place that this one waits for.
    watching(records.clusters, (cluster) => [
      keyOf(cluster),
      ...clustersNamed(records, cluster.metadata.name!).map(keyOf),
    ]),
    watching(records.controllers, usersOf('AWSClusterControllerIdentity')),
    watching(records.statics, usersOf('AWSClusterStaticIdentity')),
    watching(records.roles, usersOf('AWSClusterRoleIdentity')),
    watching(records.accounts, usersOf('AWSServiceAccountIdentity')),
    watching(
      records.namespaces,
      ({ metadata }) => records.clusters.list(metadata.name).map(keyOf),
      (now, old) => !old || !isDeepStrictEqual(now.metadata.labels, old.metadata.labels),
    ),
  ]
}
