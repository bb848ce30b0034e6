import { finalizer, group, label } from '../../api/index.ts'
import {
  apiVersionOf,
  ClusterRole,
  ClusterRoleBinding,
  RoleBinding,
  type KubeObject,
  type PolicyRule,
  type Resource,
  type Subject,
} from '../../kube/index.ts'
import { groupsOf, rbac, registerGroup, revokedOnAnnotation } from '../contract.ts'

/**
 * How a cluster stands with the hub. A `leaving` one was denied or deleted and may still remove its works; a `denied` one may
 * only see that it was denied.
 */
export type Standing = 'accepted' | 'leaving' | 'denied'

/** What the hub remembers of a farewell, on the cluster's own ClusterRole: the agent can write its ManagedCluster, but no RBAC. */
export interface FarewellMemory {
  /** When the agent loses, or lost, the access to its works. */
  leavesBy: string | undefined
  /** When the drivers had taken everything away. */
  revokedOn?: string | undefined
}

export const leavesByAnnotation = 'open-cluster-management.io/leaves-by'

/** The role that leaving clusters share, and the binding of one cluster to it. Only the hub knows them. */
export const leavingRole = 'open-cluster-management:managedcluster:leaving'
export const leavingBinding = (cluster: string): string => `open-cluster-management:managedcluster:${cluster}:leaving`

/** The label value of what all clusters share. No cluster can have it for a name: names are in lower case. */
export const sharedLabel = 'AllClusters'

const seesItself = (cluster: string): PolicyRule[] => [
  {
    apiGroups: [group.cluster],
    resources: ['managedclusters'],
    resourceNames: [cluster],
    verbs: ['get', 'list', 'watch'],
  },
]

const reportsItself = (cluster: string): PolicyRule[] => [
  {
    apiGroups: ['certificates.k8s.io'],
    resources: ['certificatesigningrequests'],
    verbs: ['create', 'get', 'list', 'watch'],
  },
  { apiGroups: [registerGroup], resources: ['managedclusters/clientcertificates'], verbs: ['renew'] },
  {
    apiGroups: [group.cluster],
    resources: ['managedclusters'],
    resourceNames: [cluster],
    verbs: ['get', 'list', 'update', 'watch'],
  },
  {
    apiGroups: [group.cluster],
    resources: ['managedclusters/status'],
    resourceNames: [cluster],
    verbs: ['patch', 'update'],
  },
]

const worksRules: PolicyRule[] = [
  { apiGroups: [group.work], resources: ['manifestworks'], verbs: ['get', 'list', 'watch', 'update', 'patch'] },
  { apiGroups: [group.work], resources: ['manifestworks/status'], verbs: ['patch', 'update'] },
]

const made = <T extends KubeObject>(resource: Resource<T>, metadata: KubeObject['metadata'], fields: object): T =>
  ({ apiVersion: apiVersionOf(resource), kind: resource.kind, metadata, ...fields }) as T

const sharedRole = (name: string, rules: PolicyRule[]): ClusterRole =>
  made(ClusterRole, { name, labels: { [label.clusterName]: sharedLabel } }, { rules })

/** The roles that RoleBindings in the clusters' namespaces refer to. */
export const sharedRoles: readonly ClusterRole[] = [
  sharedRole(rbac.registrationRole, [
    { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['get', 'list', 'watch', 'update'] },
    { apiGroups: [group.addon], resources: ['managedclusteraddons'], verbs: ['get', 'list', 'watch'] },
    { apiGroups: [group.addon], resources: ['managedclusteraddons/status'], verbs: ['patch', 'update'] },
    { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create'] },
  ]),
  sharedRole(rbac.workRole, [
    { apiGroups: ['', 'events.k8s.io'], resources: ['events'], verbs: ['create', 'patch', 'update'] },
    ...worksRules,
  ]),
  sharedRole(leavingRole, worksRules),
]

const subjectsOf = (cluster: string): Subject[] =>
  groupsOf(cluster).map((name) => ({ kind: 'Group', apiGroup: 'rbac.authorization.k8s.io', name }))

const roleRef = (name: string) => ({ apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name })

/** Whether a cluster's role lets it do no more than see itself. */
export const isReduced = (cluster: string, role: ClusterRole): boolean =>
  JSON.stringify(normal(role.rules ?? [])) === JSON.stringify(normal(seesItself(cluster)))

const normal = (rules: PolicyRule[]) =>
  rules.map((r) => [r.apiGroups, r.resources, r.resourceNames, r.verbs, r.nonResourceURLs].map((list) => list ?? []))

/** No farewell any more: what is undefined is taken off the object. */
export const forgotten: FarewellMemory = { leavesBy: undefined, revokedOn: undefined }

const annotationsOf = ({ leavesBy, revokedOn }: FarewellMemory): Record<string, string> =>
  ({ [leavesByAnnotation]: leavesBy, [revokedOnAnnotation]: revokedOn }) as Record<string, string>

/** All RBAC objects that a cluster has at a standing. What is not among them is taken away. */
export const permissionsOf = (
  cluster: string,
  standing: Standing,
  more: { labels: Record<string, string>; memory?: FarewellMemory | undefined },
): KubeObject[] => {
  const labels = { ...more.labels, [label.clusterName]: cluster }
  const binding = (name: string, role: string, finalizers: string[] = []): KubeObject =>
    made(
      RoleBinding,
      { name, namespace: cluster, labels, ...(finalizers.length ? { finalizers } : {}) },
      { roleRef: roleRef(role), subjects: subjectsOf(cluster) },
    )
  const ofItself = [
    made(
      ClusterRole,
      { name: rbac.cluster(cluster), labels, ...(more.memory ? { annotations: annotationsOf(more.memory) } : {}) },
      { rules: standing === 'accepted' ? reportsItself(cluster) : seesItself(cluster) },
    ),
    made(
      ClusterRoleBinding,
      { name: rbac.cluster(cluster), labels },
      { roleRef: roleRef(rbac.cluster(cluster)), subjects: subjectsOf(cluster) },
    ),
  ]
  if (standing === 'denied') return ofItself
  if (standing === 'leaving') return [...ofItself, binding(leavingBinding(cluster), leavingRole)]
  return [
    ...ofItself,
    binding(rbac.registrationBinding(cluster), rbac.registrationRole),
    // When somebody deletes the namespace, the agent still needs this to let go of its works: it stays until they are gone.
    binding(rbac.workBinding(cluster), rbac.workRole, [finalizer.manifestWork]),
  ]
}

/** Every RBAC object that a cluster may ever have, by name: what is looked for when it is taken away. */
export const everyPermissionOf = (cluster: string): KubeObject[] => {
  const all = [
    ...permissionsOf(cluster, 'accepted', { labels: {} }),
    ...permissionsOf(cluster, 'leaving', { labels: {} }),
  ]
  return [...new Map(all.map((object) => [`${object.kind} ${object.metadata.name}`, object])).values()]
}
