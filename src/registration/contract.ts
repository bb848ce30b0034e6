/** What hub and agent must agree on when a cluster joins. */
import { conditionType, subject, type ManagedCluster } from '../api/index.ts'
import { condition, setConditions } from '../runtime/index.ts'

/** What other capabilities see of a driver: how an add-on's certificate is obtained, and where the hub is. */
export type { AddOnSubject, AgentIdentity, CredentialDriver, HubAddress, ObtainContext } from './drivers/driver.ts'
/** What those who install a hub or an agent have to know of its gRPC endpoint. */
export { configKey, grpcCaConfigMap, grpcSecret, grpcService } from './drivers/grpc/contract.ts'

/** Conditions of a ManagedCluster, with the words that other tools look for. */
export const Accepted = condition(conditionType.managedCluster.accepted, {
  accepted: { status: 'True', reason: 'HubClusterAdminAccepted', message: 'Accepted by hub cluster admin' },
  denied: { status: 'False', reason: 'HubClusterAdminDenied', message: 'Denied by hub cluster admin' },
  failed: { status: 'False', reason: 'Error' },
})
export const Joined = condition(conditionType.managedCluster.joined, {
  joined: { status: 'True', reason: 'ManagedClusterJoined', message: 'Managed cluster joined' },
  /** Its agent's last word. */
  left: { status: 'False', reason: 'ManagedClusterLeft', message: 'The agent was removed from the managed cluster' },
})
/** The status patch by which a cluster says goodbye, so that the hub can tell it from one that was denied for a while. */
export const goodbye = ({ metadata, status }: ManagedCluster, now: number): object => {
  const { uid, resourceVersion, generation } = metadata
  const conditions = setConditions(status?.conditions, [Joined.left()], { now, generation })
  return { metadata: { uid, resourceVersion }, status: { conditions } }
}
export const Available = condition(conditionType.managedCluster.available, {
  available: { status: 'True', reason: 'ManagedClusterAvailable', message: 'Managed cluster is available' },
  apiServerDown: { status: 'False', reason: 'ManagedClusterKubeAPIServerUnavailable' },
  leaseStopped: {
    status: 'Unknown',
    reason: 'ManagedClusterLeaseUpdateStopped',
    message: 'Registration agent stopped updating its lease.',
  },
})
export const ClockSynced = condition(conditionType.managedCluster.clockSynced, {
  synced: {
    status: 'True',
    reason: 'ManagedClusterClockSynced',
    message: 'The clock of the managed cluster is synced with the hub.',
  },
  outOfSync: { status: 'False', reason: 'ManagedClusterClockOutOfSync' },
})
export const CertificateRotated = condition(conditionType.managedCluster.certificateRotated, {
  rotated: { status: 'True', reason: 'ClientCertificateUpdated' },
  failed: { status: 'False', reason: 'ClientCertificateUpdateFailed' },
})
export const Deleting = condition(conditionType.managedCluster.deleting, {
  remaining: { status: 'False', reason: 'ResourceRemaining' },
  failed: { status: 'False', reason: 'DeletingError' },
  empty: { status: 'True', reason: 'NoResource', message: 'No cleaned resource in cluster ns.' },
})

/** Of a CSR that the hub has approved by itself: other tools look for it. */
export const approvedReason = 'AutoApprovedByHubCSRApprovingController'

/** RBAC on the hub that belongs to one cluster, and the two roles that all share. */
export const rbac = {
  /** ClusterRole and ClusterRoleBinding of one cluster. */
  cluster: (cluster: string): string => `open-cluster-management:managedcluster:${cluster}`,
  registrationBinding: (cluster: string): string => `open-cluster-management:managedcluster:${cluster}:registration`,
  workBinding: (cluster: string): string => `open-cluster-management:managedcluster:${cluster}:work`,
  registrationRole: 'open-cluster-management:managedcluster:registration',
  workRole: 'open-cluster-management:managedcluster:work',
} as const

/** On the ClusterRole of a cluster that was denied or deleted: when everything that it was given had been taken away. */
export const revokedOnAnnotation = 'open-cluster-management.io/revoked-on'

/** The groups that a cluster's credentials may carry: by certificate or aws-auth, and by EKS access entry. */
export const groupsOf = (cluster: string): string[] => [
  subject.clusterGroup(cluster),
  subject.accessEntryGroup(cluster),
]

/** Virtual resources that RBAC on the hub grants: to accept a cluster, and to renew one's own certificate. */
export const registerGroup = 'register.open-cluster-management.io'

/** In the cluster's namespace on the hub; the hub creates it, the agent renews it. */
export const leaseName = 'managed-cluster-lease'

/** How long a cluster may be silent: five times its lease duration, of which 0 means 60 s. */
export const silenceMs = (leaseDurationSeconds: number | undefined): number => 5 * (leaseDurationSeconds || 60) * 1000

/** Secrets on the managed cluster, in the agent's namespace. */
export const secretName = { hub: 'hub-kubeconfig-secret', bootstrap: 'bootstrap-hub-kubeconfig' } as const

/** Keys of the hub secret. Other agents and operators read them too. */
export const secretKey = {
  kubeconfig: 'kubeconfig',
  clusterName: 'cluster-name',
  agentName: 'agent-name',
  certificate: 'tls.crt',
  key: 'tls.key',
} as const

/** Keys under which a certificate request that is not answered yet outlives the process that made it. */
export const pendingKey = { key: 'pending.key', csr: 'pending.csr' } as const

/** The claim that says which cluster this is, on every hub: the UID of its kube-system namespace. */
export const idClaim = 'id.k8s.io'

/** `true` on a ManagedCluster whose clock is not to be compared with the hub's. */
export const skipClockCheck = 'registration.open-cluster-management.io/skip-clock-sync-check'

/** Taints that the hub puts on a ManagedCluster and takes off again. Their effect is NoSelect. */
export const taintKey = {
  /** Nothing is heard of it, or nothing was heard yet. */
  unreachable: 'cluster.open-cluster-management.io/unreachable',
  /** It says itself that it is not well. */
  unavailable: 'cluster.open-cluster-management.io/unavailable',
} as const

/** Sets that every hub has. */
export const clusterSet = {
  /** Where clusters are that nobody put elsewhere. */
  default: 'default',
  /** All clusters. */
  global: 'global',
} as const

/** Conditions of a ManagedClusterSet and of a binding to one. */
export const Empty = condition(conditionType.managedClusterSet.empty, {
  yes: { status: 'True', reason: 'NoClusterMatched', message: 'No ManagedCluster selected' },
  no: { status: 'False', reason: 'ClustersSelected' },
})
export const Bound = condition(conditionType.managedClusterSetBinding.bound, {
  yes: { status: 'True', reason: 'ClusterSetBound', message: 'The ManagedClusterSet exists and is bound' },
  no: { status: 'False', reason: 'ClusterSetNotFound' },
})
