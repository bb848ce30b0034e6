/** Names that more than one room must spell alike. What only hub and agent of one capability share is in its `contract.ts`. */

/** API groups. */
export const group = {
  cluster: 'cluster.open-cluster-management.io',
  work: 'work.open-cluster-management.io',
  addon: 'addon.open-cluster-management.io',
  operator: 'operator.open-cluster-management.io',
  rbac: 'rbac.open-cluster-management.io',
  authentication: 'authentication.open-cluster-management.io',
  /** Where the first ManagedServiceAccounts lived; mirrored into `authentication`. */
  proxy: 'proxy.open-cluster-management.io',
  infrastructure: 'infrastructure.cluster.x-k8s.io',
  clusterApi: 'cluster.x-k8s.io',
  /** The cluster inventory API. */
  inventory: 'multicluster.x-k8s.io',
} as const

/** Labels. */
export const label = {
  /** On everything that belongs to one managed cluster: namespace, RBAC, lease, CSR. */
  clusterName: 'open-cluster-management.io/cluster-name',
  /** On what belongs to one add-on: CSR, ManifestWork, RoleBinding. */
  addOnName: 'open-cluster-management.io/addon-name',
  clusterSet: 'cluster.open-cluster-management.io/clusterset',
  /** On a ManagedCluster, followed by an add-on's name: `available`, `unhealthy` or `unreachable`. */
  addOnFeaturePrefix: 'feature.open-cluster-management.io/addon-',
  /** `true` on the hub's service accounts, roles and bindings for token add-ons. */
  tokenInfrastructure: 'addon.open-cluster-management.io/token-infrastructure',
  /** The add-on that token infrastructure is for. */
  tokenAddOnName: 'addon.open-cluster-management.io/name',
  /** `true` on the Secrets that hold a ManagedServiceAccount's token. */
  isManagedServiceAccount: 'authentication.open-cluster-management.io/is-managed-serviceaccount',
  /** On objects and CRDs that `clusterctl move` takes along with everything they own. */
  moveHierarchy: 'clusterctl.cluster.x-k8s.io/move-hierarchy',
  /** The Cluster that an infrastructure object belongs to. */
  clusterApiClusterName: 'cluster.x-k8s.io/cluster-name',
} as const

/** Annotations. */
export const annotation = {
  /** The specification's name for the ARN of a managed EKS cluster. */
  eksManagedClusterArn: 'eks-managed-cluster-arn',
  /** Only annotations with this prefix pass from a Klusterlet to its ManagedCluster. */
  agentPrefix: 'agent.open-cluster-management.io',
  managedClusterArn: 'agent.open-cluster-management.io/managed-cluster-arn',
  managedClusterIamRoleSuffix: 'agent.open-cluster-management.io/managed-cluster-iam-role-suffix',
  /** When a cluster was accepted by a rule instead of a person; RFC 3339. */
  automaticallyAcceptedOn: 'open-cluster-management.io/automatically-accepted-on',
  /** Who really asked, on a CSR that the hub creates for a gRPC client. */
  csrUser: 'open-cluster-management.io/csr-user',
  hostingClusterName: 'addon.open-cluster-management.io/hosting-cluster-name',
  /** `spec.installNamespace` of a v1alpha1 add-on, on its v1beta1 form. */
  installNamespace: 'addon.open-cluster-management.io/v1alpha1-install-namespace',
  /** What v1alpha1 says and v1beta1 cannot, kept so that a round trip loses nothing; and the reverse. */
  v1alpha1Fields: 'addon.open-cluster-management.io/v1alpha1-fields',
  v1beta1Fields: 'addon.open-cluster-management.io/v1beta1-fields',
  paused: 'cluster.x-k8s.io/paused',
  managedBy: 'cluster.x-k8s.io/managed-by',
  blockMove: 'clusterctl.cluster.x-k8s.io/block-move',
  deleteForMove: 'clusterctl.cluster.x-k8s.io/delete-for-move',
} as const

/** Finalizers. */
export const finalizer = {
  /** Held until the hub has removed what it made for a cluster. */
  managedCluster: 'cluster.open-cluster-management.io/api-resource-cleanup',
  /** Held while the cluster's namespace still has works and add-ons. */
  managedClusterResources: 'cluster.open-cluster-management.io/resource-cleanup',
  manifestWork: 'cluster.open-cluster-management.io/manifest-work-cleanup',
  appliedManifestWork: 'cluster.open-cluster-management.io/applied-manifest-work-cleanup',
  addOnPreDelete: 'addon.open-cluster-management.io/addon-pre-delete',
  klusterlet: 'operator.open-cluster-management.io/klusterlet-cleanup',
  klusterletHosted: 'operator.open-cluster-management.io/klusterlet-hosted-cleanup',
  clusterManager: 'operator.open-cluster-management.io/cluster-manager-cleanup',
  awsCluster: 'awscluster.infrastructure.cluster.x-k8s.io',
} as const

/** Condition types, by the kind that carries them. */
export const conditionType = {
  managedCluster: {
    accepted: 'HubAcceptedManagedCluster',
    joined: 'ManagedClusterJoined',
    available: 'ManagedClusterConditionAvailable',
    clockSynced: 'ManagedClusterConditionClockSynced',
    certificateRotated: 'ClusterCertificateRotated',
    deleting: 'Deleting',
  },
  managedClusterSet: { empty: 'ClusterSetEmpty' },
  managedClusterSetBinding: { bound: 'Bound' },
  manifestWork: { applied: 'Applied', available: 'Available', deleting: 'Deleting' },
  manifest: { applied: 'Applied', available: 'Available', feedbackSynced: 'StatusFeedbackSynced' },
  addOn: {
    available: 'Available',
    degraded: 'Degraded',
    progressing: 'Progressing',
    configured: 'Configured',
    manifestApplied: 'ManifestApplied',
    registrationApplied: 'RegistrationApplied',
    certificateRotated: 'ClusterCertificateRotated',
    registrationServed: 'RegistrationServed',
    tokenInfrastructureReady: 'TokenInfrastructureReady',
    tokenRefreshed: 'AddonTokenRefreshed',
    /** What other agents write in place of `AddonTokenRefreshed`. */
    tokenRefreshedElsewhere: 'TokenRefreshed',
  },
  clusterPermission: {
    validation: 'Validation',
    authorized: 'Authorized',
    workCreated: 'RBACManifestWorkCreated',
    workApplied: 'AppliedRBACManifestWork',
    subjectPresent: 'SubjectPresent',
    rolesExist: 'ValidateRolesExist',
    clusterRolesExist: 'ValidateClusterRolesExist',
  },
  managedServiceAccount: {
    allPresent: 'AllServiceAccountPresent',
    secretCreated: 'SecretCreated',
    tokenReported: 'TokenReported',
  },
  clusterProfile: { controlPlaneHealthy: 'ControlPlaneHealthy', joined: 'Joined' },
  klusterlet: {
    applied: 'Applied',
    available: 'Available',
    readyToApply: 'ReadyToApply',
    registrationDegraded: 'RegistrationDesiredDegraded',
    workDegraded: 'WorkDesiredDegraded',
    hubConnectionDegraded: 'HubConnectionDegraded',
    validFeatureGates: 'ValidFeatureGates',
  },
  clusterManager: {
    applied: 'Applied',
    progressing: 'Progressing',
    registrationDegraded: 'HubRegistrationDegraded',
    validFeatureGates: 'ValidFeatureGates',
  },
  awsCluster: {
    ready: 'Ready',
    principalUsageAllowed: 'PrincipalUsageAllowed',
    principalCredentialRetrieved: 'PrincipalCredentialRetrieved',
    vpcReady: 'VpcReady',
    subnetsReady: 'SubnetsReady',
    internetGatewayReady: 'InternetGatewayReady',
    natGatewaysReady: 'NatGatewaysReady',
    routeTablesReady: 'RouteTablesReady',
    securityGroupsReady: 'ClusterSecurityGroupsReady',
    loadBalancerReady: 'LoadBalancerReady',
  },
} as const

/** Groups and users that RBAC on the hub is bound to. */
export const subject = {
  /** Every agent with a client certificate. */
  managedClusters: 'system:open-cluster-management:managed-clusters',
  /** One cluster's agents, by certificate or aws-auth. */
  clusterGroup: (cluster: string) => `system:open-cluster-management:${cluster}`,
  /** One cluster's agents by EKS access entry: EKS refuses groups that begin with `system:`. */
  accessEntryGroup: (cluster: string) => `open-cluster-management:${cluster}`,
  /** The common name in an agent's certificate. */
  agentUser: (cluster: string, agent: string) => `system:open-cluster-management:${cluster}:${agent}`,
} as const

/** Signers of certificate requests. */
export const signer = {
  kubeApiServerClient: 'kubernetes.io/kube-apiserver-client',
  grpc: 'open-cluster-management.io/grpc',
} as const
