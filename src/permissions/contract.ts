/** What the hub's controller, the commands that show access, and whoever approves must agree on. */
import { createHash } from 'node:crypto'
import { conditionType, group } from '../api/index.ts'
import type { PolicyRule } from '../kube/index.ts'
import { condition } from '../runtime/index.ts'
import { executorUser, workAgentExecutor } from '../work/contract.ts'

export type { Place, RoleSource } from './bindings.ts'
export {
  grantsOf,
  grantsState,
  specOf,
  type Grant,
  type GrantState,
  type GrantSubject,
  type RulesOf,
} from './grants.ts'
export { copiesOf, type HubRoles } from './hub/hub-roles.ts'
export { covers, deedsOf, describeDeed, ruleAllows, rulesAllow, uncovered, type Deed } from './rules.ts'

/** Annotations of a ClusterPermission or ClusterSetPermission. */
export const annotation = {
  /** `requested`: it may wait for somebody who approves it, where the author lacks the right. */
  approval: 'rbac.open-cluster-management.io/approval',
  /** Set by whoever approves, to `status.authorization.wanted`: exactly what they have seen. */
  approve: 'rbac.open-cluster-management.io/approve',
  /** Who wrote the spec, and who approved: written by the hub at admission, whatever the request says. */
  author: 'rbac.open-cluster-management.io/author',
  approver: 'rbac.open-cluster-management.io/approver',
} as const

/** The value that asks for approval. */
export const approvalRequested = 'requested'

/** Verbs on clusterpermissions and clustersetpermissions that RBAC on the hub can give. */
export const verb = {
  /** Write rules that one does not hold. */
  escalate: 'escalate',
  /** Bind roles that somebody else wrote: copies from the hub, and those that the managed cluster has. */
  bind: 'bind',
  /** Approve what others wrote. */
  approve: 'approve',
} as const

/** On the ManifestWorks of permissions: whose it is. */
export const permissionLabel = 'rbac.open-cluster-management.io/permission-uid'

/** Names of works must leave room for the hash before them in AppliedManifestWorks. */
const longestWorkName = 180

/** The ManifestWork of a permission, as the field names it. */
export const workNameOf = (name: string, uid: string): string => {
  const suffix = uid.slice(0, 5)
  if (name.length + 1 + suffix.length <= longestWorkName) return `${name}-${suffix}`
  const hash = createHash('sha256').update(name).digest('hex').slice(0, 10)
  return `${name.slice(0, longestWorkName - hash.length - suffix.length - 2).replace(/[.-]+$/, '')}-${hash}-${suffix}`
}

const { clusterPermission: type } = conditionType

/** Conditions of both kinds, with the words that other tools look for. */
export const Valid = condition(type.validation, {
  yes: { status: 'True', reason: 'Valid', message: 'The permission is valid' },
  noBindings: { status: 'False', reason: 'FailedValidationNoBindingsDefined' },
  notACluster: { status: 'False', reason: 'FailedValidationNotInManagedClusterNamespace' },
  noSet: { status: 'False', reason: 'ClusterSetNotFound' },
  fault: { status: 'False', reason: 'InvalidSpec' },
  noRole: { status: 'False', reason: 'RoleNotFound' },
})
export const Authorized = condition(type.authorized, {
  author: { status: 'True', reason: 'AuthorMayGrant' },
  approved: { status: 'True', reason: 'Approved' },
  unchecked: { status: 'True', reason: 'NotChecked', message: 'This hub runs without admission: nobody is asked' },
  waits: { status: 'False', reason: 'WaitsForApproval' },
})
export const WorkCreated = condition(type.workCreated, {
  created: { status: 'True', reason: 'ManifestWorkCreated' },
  withheld: { status: 'False', reason: 'Withheld' },
  empty: { status: 'False', reason: 'NothingToDeliver' },
  clusterAway: { status: 'False', reason: 'ClusterNotAccepted' },
  tooLarge: { status: 'False', reason: 'TooLarge' },
  failed: { status: 'False', reason: 'FailedBuildManifestWork' },
})
export const SubjectPresent = condition(type.subjectPresent, {
  present: { status: 'True', reason: 'AllSubjectsPresent', message: 'All ManagedServiceAccounts exist' },
  missing: { status: 'False', reason: 'ManagedServiceAccountMissing' },
})
export const WorkApplied = condition(type.workApplied, {
  applied: { status: 'True', reason: 'AppliedManifestWorkComplete' },
  failed: { status: 'False', reason: 'AppliedManifestWorkFailed' },
  pending: { status: 'False', reason: 'ApplyRBACManifestWorkNotComplete' },
  none: { status: 'False', reason: 'NoManifestWork' },
})
export const RolesExist = condition(type.rolesExist, {
  yes: { status: 'True', reason: 'AllRolesFound', message: 'All referenced roles were found' },
  no: { status: 'False', reason: 'RolesNotFound' },
})
export const ClusterRolesExist = condition(type.clusterRolesExist, {
  yes: { status: 'True', reason: 'AllClusterRolesFound', message: 'All referenced clusterroles were found' },
  no: { status: 'False', reason: 'ClusterRolesNotFound' },
})

/** What the controller needs on the hub: for the role of whoever runs it. */
export const controllerRules: readonly PolicyRule[] = [
  {
    apiGroups: [group.rbac],
    resources: ['clusterpermissions', 'clustersetpermissions'],
    // It writes into the status what is granted, which only who may approve can.
    verbs: ['get', 'list', 'watch', verb.approve],
  },
  {
    apiGroups: [group.rbac],
    resources: ['clusterpermissions/status', 'clustersetpermissions/status'],
    verbs: ['get', 'patch', 'update'],
  },
  // For the owner references of works, where the API server asks for it.
  {
    apiGroups: [group.rbac],
    resources: ['clusterpermissions/finalizers', 'clustersetpermissions/finalizers'],
    verbs: ['update'],
  },
  {
    apiGroups: [group.work],
    resources: ['manifestworks'],
    verbs: ['get', 'list', 'watch', 'create', 'update', 'delete'],
  },
  {
    apiGroups: [group.work],
    resources: ['manifestworks'],
    verbs: ['execute-as'],
    resourceNames: [executorUser(workAgentExecutor.subject.serviceAccount!)],
  },
  {
    apiGroups: [group.cluster],
    resources: ['managedclusters', 'managedclustersets'],
    verbs: ['get', 'list', 'watch'],
  },
  { apiGroups: [group.addon], resources: ['managedclusteraddons'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: [group.authentication], resources: ['managedserviceaccounts'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: ['rbac.authorization.k8s.io'], resources: ['roles', 'clusterroles'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: ['authorization.k8s.io'], resources: ['subjectaccessreviews'], verbs: ['create'] },
]
