import { isDeepStrictEqual } from 'node:util'
import { label, subject, type ManagedCluster } from '../../api/index.ts'
import type { UserInfo } from '../../runtime/webhook/index.ts'
import { clusterSet, groupsOf } from '../contract.ts'

/** Whether somebody is the agent of this cluster, or of any. */
export const isAgent = ({ groups = [] }: UserInfo, cluster: string): boolean =>
  !groups.includes('system:masters') &&
  [...groupsOf(cluster), subject.managedClusters].some((group) => groups.includes(group))

/**
 * What an agent changed of its ManagedCluster that is not its to change. RBAC lets it update the whole object, for older agents
 * do that; but it has only two things to say there: how its API server is reached, and that it leaves. Labels decide which sets
 * it is in and so who sends it what; annotations name cloud identities; finalizers keep the hub's cleanup; taints and the lease
 * duration are how the hub deals with it.
 */
export const forbiddenChanges = (cluster: ManagedCluster, old: ManagedCluster): string[] => {
  const compared: [field: string, now: unknown, before: unknown][] = [
    ['metadata.labels', labelsOf(cluster), labelsOf(old)],
    ['metadata.annotations', cluster.metadata.annotations ?? {}, old.metadata.annotations ?? {}],
    ['metadata.finalizers', cluster.metadata.finalizers ?? [], old.metadata.finalizers ?? []],
    ['metadata.ownerReferences', cluster.metadata.ownerReferences ?? [], old.metadata.ownerReferences ?? []],
    ['spec.taints', taintsOf(cluster), taintsOf(old)],
    // An agent that leaves out a 0 gets the default, which means the same.
    ['spec.leaseDurationSeconds', cluster.spec.leaseDurationSeconds || 60, old.spec.leaseDurationSeconds || 60],
    ...fieldsLeft(cluster, old),
  ]
  const accepts = cluster.spec.hubAcceptsClient === true && old.spec.hubAcceptsClient !== true
  const changed = compared.filter(([, now, before]) => !isDeepStrictEqual(now, before)).map(([field]) => field)
  return accepts ? ['spec.hubAcceptsClient', ...changed] : changed
}

// The hub itself puts a cluster without a set into `default`, in whichever update comes next.
const labelsOf = ({ metadata }: ManagedCluster): Record<string, string> => ({
  [label.clusterSet]: clusterSet.default,
  ...metadata.labels,
})

// Go writes times anew, without a fraction of a second, and leaves out what is empty.
const taintsOf = ({ spec }: ManagedCluster): unknown =>
  (spec.taints ?? []).map(({ key, value, effect, timeAdded }) => [
    key,
    value ?? '',
    effect,
    timeAdded ? Math.floor(Date.parse(timeAdded) / 1000) : 0,
  ])

/** Fields of a later version of the API are not an agent's either. */
const fieldsLeft = (cluster: ManagedCluster, old: ManagedCluster): [string, unknown, unknown][] => {
  const known = new Set(['hubAcceptsClient', 'managedClusterClientConfigs', 'leaseDurationSeconds', 'taints'])
  const now: Record<string, unknown> = cluster.spec
  const before: Record<string, unknown> = old.spec
  return [...new Set([...Object.keys(now), ...Object.keys(before)])]
    .filter((field) => !known.has(field))
    .map((field) => [`spec.${field}`, now[field], before[field]])
}
