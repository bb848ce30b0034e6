import { ManagedCluster } from '../../api/index.ts'
import { isNotFound, type Condition } from '../../kube/index.ts'
import { setConditions, type ConditionState } from '../../runtime/index.ts'
import type { Hub } from './hub.ts'

/**
 * Writes to a ManagedCluster as JSON patches that test only what they rely on. The agent and other controllers write the same
 * object all the time; with a resourceVersion each of them would make the others start again.
 */
type Operation = { op: 'test' | 'add' | 'replace' | 'remove'; path: string; value?: unknown }

const sameObject = (cluster: ManagedCluster): Operation => ({
  op: 'test',
  path: '/metadata/uid',
  value: cluster.metadata.uid,
})

/** What may be changed outside of status. */
export interface ClusterChange {
  finalizers?: readonly string[] | undefined
  annotations?: Record<string, string> | undefined
  accepts?: boolean | undefined
  taints?: ManagedCluster['spec']['taints']
}

/** The cluster with the change; the same one, and no request, when there is none. */
export const writeCluster = async (
  hub: Hub,
  cluster: ManagedCluster,
  change: ClusterChange,
  signal?: AbortSignal,
): Promise<ManagedCluster> => {
  const json = [
    ...listChange('/metadata/finalizers', cluster.metadata.finalizers, change.finalizers),
    ...mapChange('/metadata/annotations', cluster.metadata.annotations, change.annotations ?? {}),
    ...(change.accepts !== undefined && change.accepts !== cluster.spec.hubAcceptsClient
      ? [{ op: 'add' as const, path: '/spec/hubAcceptsClient', value: change.accepts }]
      : []),
    ...listChange('/spec/taints', cluster.spec.taints, change.taints),
  ]
  if (json.length === 0) return cluster
  const patched = { json: [sameObject(cluster), ...json] }
  return hub.client.of(ManagedCluster).patch(cluster.metadata.name!, patched, { fieldManager: 'lanyard', signal })
}

const listChange = (
  path: string,
  present: readonly unknown[] | undefined,
  wanted: readonly unknown[] | undefined,
): Operation[] => {
  if (!wanted || JSON.stringify(wanted) === JSON.stringify(present ?? [])) return []
  // `test` with null holds where there is nothing.
  return [
    { op: 'test', path, value: present ?? null },
    { op: 'add', path, value: wanted },
  ]
}

const mapChange = (
  path: string,
  present: Record<string, string> | undefined,
  wanted: Record<string, string>,
): Operation[] => {
  const missing = Object.entries(wanted).filter(([key, value]) => present?.[key] !== value)
  if (missing.length === 0) return []
  if (!present)
    return [
      { op: 'test', path, value: null },
      { op: 'add', path, value: Object.fromEntries(missing) },
    ]
  return missing.map(([key, value]) => ({ op: 'add', path: `${path}/${escaped(key)}`, value }))
}

const escaped = (key: string): string => key.replaceAll('~', '~0').replaceAll('/', '~1')

/** The cluster with these conditions; the same one, and no request, when it has them. */
export const reportConditions = async (
  hub: Hub,
  cluster: ManagedCluster,
  states: readonly ConditionState[],
  signal?: AbortSignal,
): Promise<ManagedCluster> => {
  const present = cluster.status?.conditions
  const conditions = setConditions(present, states, {
    now: hub.clock.now(),
    generation: cluster.metadata.generation,
  })
  if (conditions === present) return cluster
  const patch = { json: [sameObject(cluster), ...conditionChange(cluster.status, present, conditions)] }
  return hub.client
    .of(ManagedCluster)
    .patch(cluster.metadata.name!, patch, { subresource: 'status', fieldManager: 'lanyard', signal })
}

const conditionChange = (
  status: ManagedCluster['status'],
  present: readonly Condition[] | undefined,
  conditions: readonly Condition[],
): Operation[] => {
  const path = '/status/conditions'
  if (!status)
    return [
      { op: 'test', path: '/status', value: null },
      { op: 'add', path: '/status', value: { conditions } },
    ]
  if (!present)
    return [
      { op: 'test', path, value: null },
      { op: 'add', path, value: conditions },
    ]
  return conditions.flatMap((condition, i): Operation[] => {
    if (condition === present[i]) return []
    if (i >= present.length) return [{ op: 'add', path: `${path}/-`, value: condition }]
    // Others own the other conditions: only this one's place has to be the same.
    return [
      { op: 'test', path: `${path}/${i}/type`, value: condition.type },
      { op: 'replace', path: `${path}/${i}`, value: condition },
    ]
  })
}

/** For writes that free something: when it is gone already, that is what was wanted. */
export const unlessGone = (error: unknown): undefined => {
  if (isNotFound(error)) return undefined
  throw error
}
