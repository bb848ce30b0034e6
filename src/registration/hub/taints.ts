import { finalizer, ManagedCluster } from '../../api/index.ts'
import { equal, findCondition, hasFinalizer, timestamp, watching, type Reconcile } from '../../runtime/index.ts'
import { Available, taintKey } from '../contract.ts'
import type { Hub } from './hub.ts'

type Taint = NonNullable<ManagedCluster['spec']['taints']>[number]

/** Keeps placements away from clusters that cannot be reached or are not well, with the two taints that are ours. */
export const taints = (hub: Hub): void => {
  const reconcile: Reconcile = async (name, signal) => {
    const cluster = hub.clusters.get(name)
    if (!cluster || cluster.metadata.deletionTimestamp || isBeingLetIn(cluster)) return {}
    const present = cluster.spec.taints ?? []
    const wanted = wantedTaints(cluster, hub.clock.now())
    if (equal(present, wanted)) return {}
    // Tests what it relies on, and not the resourceVersion: the agent's status changes all the time.
    const json = [
      { op: 'test', path: '/metadata/uid', value: cluster.metadata.uid },
      { op: 'test', path: '/spec/taints', value: cluster.spec.taints ?? null },
      wanted.length ? { op: 'add', path: '/spec/taints', value: wanted } : { op: 'remove', path: '/spec/taints' },
    ]
    await hub.client.of(ManagedCluster).patch(name, { json }, { fieldManager: 'lanyard', signal })
    return {}
  }
  const matters = (cluster: ManagedCluster, old?: ManagedCluster): boolean =>
    !old ||
    findCondition(cluster, Available.type)?.status !== findCondition(old, Available.type)?.status ||
    !equal(cluster.spec.taints, old.spec.taints) ||
    isBeingLetIn(cluster) !== isBeingLetIn(old)
  hub.manager.controller({ name: 'taints', reconcile, watches: [watching(hub.clusters, undefined, matters)] })
}

/** Acceptance writes the first taint itself, together with its finalizer. */
const isBeingLetIn = (cluster: ManagedCluster): boolean =>
  cluster.spec.hubAcceptsClient === true && !hasFinalizer(cluster, finalizer.managedCluster)

/** The taints as they should be: those of others as they are, and at most one of ours. */
export const wantedTaints = (cluster: ManagedCluster, now: number): Taint[] => {
  const present = cluster.spec.taints ?? []
  const key = keyFor(findCondition(cluster, Available.type)?.status)
  const isOurs = (taint: Taint): boolean => taint.key === taintKey.unreachable || taint.key === taintKey.unavailable
  const isRight = (taint: Taint): boolean => taint.key === key && taint.effect === 'NoSelect' && !taint.value
  const right = present.find(isRight)
  const kept = present.filter((taint) => !isOurs(taint) || taint === right)
  if (!key || right) return kept
  return [...kept, { key, effect: 'NoSelect', timeAdded: timestamp(now) }]
}

const keyFor = (available: string | undefined): string | undefined => {
  if (available === 'True') return undefined
  return available === 'False' ? taintKey.unavailable : taintKey.unreachable
}
