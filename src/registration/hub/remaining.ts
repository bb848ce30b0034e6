import { finalizer, ManagedCluster, ManagedClusterAddOn, ManifestWork } from '../../api/index.ts'
import { apiVersionOf, type KubeObject, type Resource } from '../../kube/index.ts'
import { hasFinalizer, inParallel } from '../../runtime/index.ts'
import { unlessGone } from './cluster-writes.ts'
import { summary } from './left-behind.ts'
import { cleanupPriority, type Records } from './records.ts'

/** What a cluster that is deleted still has in its namespace and that goes with it. */
export interface Remaining {
  addOns: KubeObject[]
  works: KubeObject[]
}

export const remainingOf = (records: Records, cluster: string): Remaining => ({
  addOns: records.addOns.list(cluster),
  works: records.works.list(cluster),
})

/** Whether the agent has taken a work on and not let it go: without its finalizer there is nothing that it still has to remove. */
export const isHeld = (work: KubeObject): boolean => hasFinalizer(work, finalizer.manifestWork)

/** Asks the server itself whether the agent holds none of the cluster's works. */
export const noneHeld = async (records: Records, cluster: string, signal: AbortSignal): Promise<boolean> => {
  for await (const { items } of records.client.of(ManifestWork, cluster).pages({ metadataOnly: true, signal }))
    if (items.some(isHeld)) return false
  return true
}

/** Asks the server itself whether the cluster has none of these kinds. */
export const noneLeft = async (
  records: Records,
  cluster: string,
  kinds: readonly Resource<KubeObject>[],
  signal: AbortSignal,
): Promise<boolean> => {
  const counts = await Promise.all(
    kinds.map(async (kind) => {
      const pages = records.client.of(kind, cluster).pages({ limit: 1, metadataOnly: true, signal })
      return (await pages.next()).value?.items.length ?? 0
    }),
  )
  return counts.every((count) => count === 0)
}

/** Smaller goes first; what is no number from 0 to 100 counts as 0. */
export const priorityOf = (object: KubeObject): number => {
  const text = object.metadata.annotations?.[cleanupPriority] ?? ''
  const priority = /^[0-9]{1,3}$/.test(text) ? Number(text) : 0
  return priority <= 100 ? priority : 0
}

/** Those whose turn it is: add-ons before works, and of each the lowest priority. */
export const nextToGo = ({ addOns, works }: Remaining): KubeObject[] => {
  const kind = addOns.length > 0 ? addOns : works
  const lowest = Math.min(...kind.map(priorityOf))
  return kind.filter((object) => priorityOf(object) === lowest)
}

/** What only the agent takes off, or work that it has to do first: nobody will, once its time is up. */
const agentsFinalizers = new Set<string>([finalizer.manifestWork, finalizer.addOnPreDelete])

/** Deletes those whose turn it is; once the agent's time is over, also what it would have had to finish. */
export const removeRemaining = async (
  records: Records,
  cluster: ManagedCluster,
  remaining: Remaining,
  { isOver, signal }: { isOver: boolean; signal: AbortSignal },
): Promise<void> => {
  const turn = nextToGo(remaining)
  const kind: Resource<KubeObject> = remaining.addOns.length > 0 ? ManagedClusterAddOn : ManifestWork
  const untouched = turn.filter(({ metadata }) => !metadata.deletionTimestamp)
  await inParallel(
    16,
    untouched.map(({ metadata: { name, namespace, uid } }) => async () => {
      await records.client.of(kind, namespace).delete(name!, { preconditions: { uid }, signal })
    }),
  )
  if (!isOver) return
  const held = turn.filter(
    ({ metadata }) => metadata.deletionTimestamp && metadata.finalizers?.some((f) => agentsFinalizers.has(f)),
  )
  if (held.length === 0) return
  records.events.record(
    { ...cluster, apiVersion: apiVersionOf(ManagedCluster), kind: ManagedCluster.kind },
    {
      type: 'Warning',
      reason: 'AgentTimeIsUp',
      action: 'Delete',
      note:
        `the agent of cluster ${cluster.metadata.name} did not finish in time; given up, ` +
        `and what they put on the managed cluster may still be there: ${summary(held.map(({ metadata }) => `${kind.kind} ${metadata.name}`))}`,
    },
  )
  await inParallel(
    16,
    held.map((object) => async () => giveUp(records, kind, object, signal)),
  )
}

const giveUp = async (
  records: Records,
  kind: Resource<KubeObject>,
  { metadata }: KubeObject,
  signal: AbortSignal,
): Promise<void> => {
  const json = [
    { op: 'test', path: '/metadata/uid', value: metadata.uid },
    { op: 'test', path: '/metadata/finalizers', value: metadata.finalizers },
    {
      op: 'replace',
      path: '/metadata/finalizers',
      value: metadata.finalizers!.filter((f) => !agentsFinalizers.has(f)),
    },
  ]
  await records.client.of(kind, metadata.namespace).patch(metadata.name!, { json }, { signal }).catch(unlessGone)
}
