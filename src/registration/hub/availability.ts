import { label, ManagedCluster } from '../../api/index.ts'
import { isAlreadyExists, isForbidden, isNotFound, Lease, type KubeObject } from '../../kube/index.ts'
import {
  findCondition,
  isTrue,
  microTimestamp,
  setConditions,
  waiting,
  watching,
  type Reconcile,
} from '../../runtime/index.ts'
import { Accepted, Available, leaseName, silenceMs } from '../contract.ts'
import type { Hub } from './hub.ts'
import { clusterLeases, clusterOf } from './leases.ts'
import { signsOfLife } from './signs-of-life.ts'

/**
 * Gives every accepted cluster a lease, and says that a cluster is `Unknown` when it has been silent for five times its lease
 * duration. That it is well again is the agent's to say. A renewal costs nothing here: each cluster has one timer, and the
 * time of its last sign is looked up only when that fires.
 */
export const availability = (hub: Hub): void => {
  const leases = clusterLeases(hub)
  const life = signsOfLife({ clusters: hub.clusters, leases, clock: hub.clock })

  const reconcile: Reconcile = async (name, signal) => {
    const cluster = hub.clusters.get(name)
    if (!cluster) return {}
    const lease = leases.get(`${name}/${leaseName}`)
    const leaving = cluster.metadata.deletionTimestamp !== undefined
    if (!lease && !leaving && isTrue(cluster, Accepted.type)) {
      await createLease(hub, cluster, signal)
      return {} // its arrival brings us back
    }
    const status = findCondition(cluster, Available.type)?.status
    if (status === 'Unknown' || (!lease && status === undefined)) return {}

    const left = leaving && !lease ? 0 : silenceMs(cluster.spec.leaseDurationSeconds) - life.silentMs(name)
    // While our own watch is cut no time passes for the cluster: not below a quarter of a second, so that we do not spin.
    if (left > 0) return { requeueAfterMs: Math.max(left, 250) }
    await declareUnknown(hub, cluster, signal)
    tell(hub, cluster)
    return {}
  }

  hub.manager.controller({
    name: 'availability',
    reconcile,
    watches: [
      watching(hub.clusters, undefined, (cluster, old) => !old || mayMatter(cluster, old)),
      watching(
        leases,
        (lease) => [clusterOf(lease)],
        (_, old) => !old,
      ),
    ],
  })
}

const mayMatter = (cluster: ManagedCluster, old: ManagedCluster): boolean =>
  cluster.spec.leaseDurationSeconds !== old.spec.leaseDurationSeconds ||
  cluster.metadata.deletionTimestamp !== old.metadata.deletionTimestamp ||
  [Accepted.type, Available.type].some(
    (type) => findCondition(cluster, type)?.status !== findCondition(old, type)?.status,
  )

const createLease = async (hub: Hub, cluster: ManagedCluster, signal: AbortSignal): Promise<void> => {
  const namespace = cluster.metadata.name!
  const labels = { ...hub.settings.labels, [label.clusterName]: namespace }
  const lease: Lease = {
    metadata: { namespace, name: leaseName, labels },
    spec: { holderIdentity: leaseName, renewTime: microTimestamp(hub.clock.now()) },
  }
  try {
    await hub.client.of(Lease).create(lease, { signal })
  } catch (error) {
    if (isAlreadyExists(error)) return // the cache is behind
    if (!isNotFound(error) && !isForbidden(error)) throw error
    throw waiting('NoNamespace', {
      message: `cluster ${namespace}: its namespace takes no lease; it is on its way in or out`,
      afterMs: 2000,
      cause: error,
    })
  }
}

const declareUnknown = async (hub: Hub, cluster: ManagedCluster, signal: AbortSignal): Promise<void> => {
  const { name, uid, resourceVersion, generation } = cluster.metadata
  const at = { now: hub.clock.now(), generation }
  const conditions = setConditions(cluster.status?.conditions, [Available.leaseStopped()], at)
  // With the version that was read: if the agent says something at this very moment, it is alive, and its word stands.
  const change = { metadata: { uid, resourceVersion }, status: { conditions } }
  await hub.client
    .of(ManagedCluster)
    .patch(name!, { merge: change }, { subresource: 'status', fieldManager: 'lanyard', signal })
}

const tell = (hub: Hub, cluster: ManagedCluster): void =>
  hub.events.record(inItsNamespace(cluster), {
    type: 'Warning',
    reason: 'AvailableUnknown',
    action: 'CheckLease',
    note: `cluster ${cluster.metadata.name} has not renewed its lease for ${silenceMs(cluster.spec.leaseDurationSeconds) / 1000} s: look at its agent and at the network between it and this hub`,
  })

/** So that whoever may read the cluster's namespace sees the event there; those of cluster-scoped objects are in `default`. */
const inItsNamespace = (cluster: ManagedCluster): KubeObject => ({
  ...cluster,
  metadata: { ...cluster.metadata, namespace: cluster.metadata.name },
})
