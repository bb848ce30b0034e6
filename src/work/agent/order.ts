/**
 * The order in which kinds are applied: what others need comes first. It is the reverse when they are removed.
 * Kinds that nobody has heard of come last: what they need is among the others.
 */
const ranks: readonly (readonly string[])[] = [
  ['Namespace', 'CustomResourceDefinition', 'PriorityClass', 'StorageClass', 'IngressClass', 'RuntimeClass'],
  ['Role', 'ClusterRole'],
  // A binding that comes first would for a moment bind whatever the role was before.
  ['RoleBinding', 'ClusterRoleBinding'],
  ['ServiceAccount', 'NetworkPolicy', 'ResourceQuota', 'LimitRange', 'PodDisruptionBudget', 'PodSecurityPolicy'],
  ['Secret', 'ConfigMap', 'PersistentVolume', 'PersistentVolumeClaim'],
  ['Service'],
  [
    'Pod',
    'ReplicationController',
    'ReplicaSet',
    'Deployment',
    'StatefulSet',
    'DaemonSet',
    'Job',
    'CronJob',
    'HorizontalPodAutoscaler',
    'Ingress',
  ],
  ['ValidatingWebhookConfiguration', 'MutatingWebhookConfiguration', 'APIService'],
]
const last = 1000

const rankOfKind = new Map(ranks.flatMap((kinds, rank) => kinds.map((kind) => [kind, rank])))

/** Smaller comes first. */
export const rankOf = (kind: string): number => rankOfKind.get(kind) ?? last

/** Groups of equal rank, in order. Within one, the order of the work is kept. */
export const inRanks = <T extends { rank: number }>(things: readonly T[]): T[][] =>
  [...Map.groupBy(things, (thing) => thing.rank)].toSorted(([a], [b]) => a - b).map(([, group]) => group)
