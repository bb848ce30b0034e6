/** Names that the operators, the command line and the people who read a cluster agree on. */
export { roleAnnotation } from './aws-roles.ts'

/** Where things run. */
export const namespace = {
  /** The operators, and the account that new clusters register with. */
  operator: 'open-cluster-management',
  /** The hub. */
  hub: 'open-cluster-management-hub',
  /** The agent, unless its Klusterlet says otherwise. */
  agent: 'open-cluster-management-agent',
  /** Add-ons, unless they say otherwise. */
  addOns: 'open-cluster-management-agent-addon',
} as const

/** The operators: Deployment and service account carry the same name. */
export const operatorName = { hub: 'cluster-manager', managed: 'klusterlet' } as const

/** The usual names of the two objects that people write. */
export const defaultName = { clusterManager: 'cluster-manager', klusterlet: 'klusterlet' } as const

/** The account whose tokens let new clusters ask to join. */
export const bootstrapAccount = 'agent-registration-bootstrap'
/** The user that this account is to the API server. */
export const bootstrapUser = `system:serviceaccount:${namespace.operator}:${bootstrapAccount}`
export const bootstrapRole = 'open-cluster-management:bootstrap'

/** What the hub runs as. The first name is the one that trust policies on AWS name. */
export const hubAccount = { hub: 'registration-controller-sa', cleanup: 'cleanup-unjoined-sa' } as const
/** The Service by which the API server reaches the hub's webhooks. */
export const webhookService = 'lanyard-webhook'

/** What an agent runs as, by its Klusterlet's name. Trust policies on AWS name both; the one process uses the second. */
export const agentAccount = {
  registration: (klusterlet: string): string => `${klusterlet}-registration-sa`,
  work: (klusterlet: string): string => `${klusterlet}-work-sa`,
} as const

export const deploymentName = {
  hub: (clusterManager: string): string => `${clusterManager}-hub`,
  agent: (klusterlet: string): string => `${klusterlet}-agent`,
} as const

/** Removes the ManagedClusters of clusters that have left. */
export const cleanupJob = (clusterManager: string): string => `${clusterManager}-cleanup-unjoined`

/** Registry credentials: written by whoever installs, copied by the operators to where their pods run. */
export const pullSecret = 'open-cluster-management-image-pull-credentials'
/** On the hosting cluster, in the namespace that carries the Klusterlet's name: the way to the managed cluster. */
export const externalKubeconfigSecret = 'external-managed-kubeconfig'

/** On everything that an operator keeps: the name of the object that it is kept for. */
export const createdBy = {
  clusterManager: 'open-cluster-management.io/created-by-clustermanager',
  klusterlet: 'open-cluster-management.io/created-by-klusterlet',
} as const
/** On the agent's hub secret, by `lanyard leave`: what could not be done. */
export const remainsAnnotation = 'agent.open-cluster-management.io/remains'
/** On the same secret, by `clusteradm unjoin`: the hub knows already, and may have taken the credential away. */
export const toldAnnotation = 'agent.open-cluster-management.io/told-hub'
/** On pods, and what their Deployments select. */
export const appLabel = 'app'

/** ClusterRoles and Roles that the installation brings. The operators may bind these, and no others. */
export const role = {
  hubOperator: 'open-cluster-management:cluster-manager:operator',
  hub: 'open-cluster-management:cluster-manager:hub',
  cleanup: 'open-cluster-management:cluster-manager:cleanup-unjoined',
  /** For a hub with the driver `awsirsa`: the ConfigMap in which EKS maps roles to users. */
  awsAuth: 'open-cluster-management:cluster-manager:aws-auth',
  /** For a hub with the gate `AWSIdentities`. */
  awsIdentities: 'open-cluster-management:cluster-manager:aws-identities',
  /** For a hub with the gate `ClusterProfile`. */
  clusterProfiles: 'open-cluster-management:cluster-manager:cluster-profiles',
  grpc: 'open-cluster-management:cluster-manager:grpc',
  managedOperator: 'open-cluster-management:klusterlet:operator',
  /** What the agent needs on its own cluster, beside what works ask for. */
  agent: 'open-cluster-management:klusterlet:agent',
  /** The same within its own namespace: its secrets, leases and events. */
  agentNamespace: 'open-cluster-management:klusterlet:agent-namespace',
  /** What works may do, unless the installation says otherwise. */
  work: 'cluster-admin',
} as const

/** The port of /healthz, /readyz and /metrics in every pod. */
export const healthPort = 8000
/** The port of the webhooks in the hub's pods. */
export const webhookPort = 9443
/** Where the hub's gRPC endpoint listens, and its Service too: as in the field. */
export const grpcPort = 8090
