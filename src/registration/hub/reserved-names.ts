import { subject } from '../../api/index.ts'
import { firstOf, type Check } from '../../runtime/index.ts'
import { rbac } from '../contract.ts'
import { leavingRole } from './permissions.ts'

const sharedRoleNames = new Set<string>([rbac.registrationRole, rbac.workRole, leavingRole])

const checks: readonly Check<string>[] = [
  (name) =>
    (name === 'default' || name.startsWith('kube-')) && {
      reason: 'SystemNamespace',
      message: `namespace ${name} belongs to Kubernetes itself`,
    },
  (name) =>
    (name === 'open-cluster-management' || name.startsWith('open-cluster-management-')) && {
      reason: 'HubNamespace',
      message: `namespaces that begin with open-cluster-management belong to the hub and its agents`,
    },
  // Every agent's certificate carries this group: a cluster of that name would share its namespace with all others.
  (name) =>
    subject.clusterGroup(name) === subject.managedClusters && {
      reason: 'SharedGroup',
      message: `group ${subject.managedClusters} is that of all managed clusters together`,
    },
  (name) =>
    sharedRoleNames.has(rbac.cluster(name)) && {
      reason: 'SharedRole',
      message: `ClusterRole ${rbac.cluster(name)} is one that all managed clusters share`,
    },
]

/** Why no managed cluster may have this name; undefined when it may. */
export const nameRefusal = firstOf(checks)
