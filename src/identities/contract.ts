/** Names that the controllers, the webhooks and the commands of this room must spell alike. */
import {
  AWSClusterControllerIdentity,
  AWSClusterRoleIdentity,
  AWSClusterStaticIdentity,
  AWSServiceAccountIdentity,
  conditionType,
  group,
  type AWSCluster,
} from '../api/index.ts'

/** The identity kinds, in the order of the specification. */
export const identityResources = {
  AWSClusterControllerIdentity,
  AWSClusterStaticIdentity,
  AWSClusterRoleIdentity,
  AWSServiceAccountIdentity,
} as const
export type IdentityKind = keyof typeof identityResources

/** An identity as it is on the management cluster. */
export type Identity =
  | AWSClusterControllerIdentity
  | AWSClusterStaticIdentity
  | AWSClusterRoleIdentity
  | AWSServiceAccountIdentity

/** How a cluster, or a role, names an identity. */
export interface IdentityReference {
  kind: string
  name: string
}

/** The only name that an AWSClusterControllerIdentity may have. */
export const singleton = 'default'

/** Who acts for a cluster, or assumes a role, that names nobody. */
export const controllerReference = { kind: 'AWSClusterControllerIdentity', name: singleton } as const

/** Links of a chain, its beginning included. AWS has no limit; nobody who reads a trust policy follows further. */
export const longestChain = 8

/** One spelling for one identity: `Kind/name`, and `Kind/namespace/name` for those in the cluster's namespace. */
export const identityKey = ({ kind, name }: IdentityReference, namespace: string): string =>
  kind === 'AWSServiceAccountIdentity' ? `${kind}/${namespace}/${name}` : `${kind}/${name}`

/** An identity in words. */
export const describeReference = ({ kind, name }: IdentityReference): string => `${kind} ${name}`

/** The identity of a cluster; objects that were stored before there was a webhook may name none. */
export const referenceOf = (cluster: AWSCluster): IdentityReference => cluster.spec?.identityRef ?? controllerReference

export const annotation = {
  /** `true` on an identity: it may be deleted although clusters use it. */
  deleteInUse: 'identities.lanyard.io/delete-in-use',
  /** `true` on an AWSCluster that is being deleted: let it go, although nobody can remove what it has in AWS. */
  abandon: 'identities.lanyard.io/abandon-aws-resources',
} as const

/** Held on an identity while clusters use it: the garbage collector would delete the clusters that it owns along with it. */
export const inUseFinalizer = `in-use.${group.infrastructure}`

/** Types of Secrets with an access key. The version is that of their keys; it may change without the kind. */
export const secretTypePrefix = `aws-credentials.${group.infrastructure}/`
export const secretVersions = ['v1alpha3'] as const

/** The ClusterRoles of the specification's security model. */
export const clusterRole = {
  infrastructureProvider: 'lanyard:aws-infrastructure-provider',
  managementOperator: 'lanyard:aws-management-cluster-operator',
  workloadOperator: 'lanyard:aws-workload-cluster-operator',
  viewer: 'lanyard:aws-identity-viewer',
} as const

/** The conditions of an AWSCluster that this room writes, all of them, each time. */
export const { principalUsageAllowed: usageAllowed, principalCredentialRetrieved: credentialRetrieved } =
  conditionType.awsCluster

/** Stays True from the first time that a cluster was let into an account on: it has the place of its name there, whatever comes. */
export const accountRecorded = 'AccountRecorded'
