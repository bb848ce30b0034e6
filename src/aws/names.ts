import { createHash } from 'node:crypto'
import { parseEksClusterArn, type EksCluster } from './arn.ts'
import { AwsInputError } from './errors.ts'

/** A hub and a cluster that it manages, both on EKS. What they are called in Kubernetes plays no part. */
export interface ClusterPair {
  hub: EksCluster
  managed: EksCluster
}

/** The pair that two ARNs name. */
export const clusterPair = (hubArn: string, managedArn: string): ClusterPair => ({
  hub: parseEksClusterArn(hubArn),
  managed: parseEksClusterArn(managedArn),
})

/** The tags of both roles, in the order of their keys: that is the order in which the suffix takes their values. */
export const pairTags = ({ hub, managed }: ClusterPair) => ({
  hub_cluster_account_id: hub.account,
  hub_cluster_name: hub.name,
  managed_cluster_account_id: managed.account,
  managed_cluster_name: managed.name,
})

/** What the names of both roles end with: the md5 of the values of their tags. It separates, and protects nothing. */
export const roleSuffix = (pair: ClusterPair): string => suffixOf(Object.values(pairTags(pair)))

/** The md5 of values joined with `#`. Neither accounts nor EKS names can hold a `#`. */
export const suffixOf = (values: readonly string[]): string => createHash('md5').update(values.join('#')).digest('hex')

/** IAM allows so many characters for the name of a role. */
const longestRoleName = 64

const roleArn = (cluster: EksCluster, name: string): string =>
  `arn:${cluster.partition}:iam::${cluster.account}:role/${name}`

/** The role on the hub that a managed cluster takes on: 40 characters. */
export const hubRoleName = (pair: ClusterPair): string => `ocm-hub-${roleSuffix(pair)}`
export const hubRoleArn = (pair: ClusterPair): string => roleArn(pair.hub, hubRoleName(pair))

/** The managed cluster's own role, from which it takes on the one on the hub: 52 characters. */
export const managedRoleName = (pair: ClusterPair): string => `ocm-managed-cluster-${roleSuffix(pair)}`
export const managedRoleArn = (pair: ClusterPair): string => roleArn(pair.managed, managedRoleName(pair))

const creatorSuffix = '_managed-cluster-identity-creator'

/** The role with which the hub's controller makes the roles of managed clusters. */
export const creatorRoleName = (hub: EksCluster): string => {
  const name = `${hub.name}${creatorSuffix}`
  if (name.length <= longestRoleName) return name
  const room = longestRoleName - creatorSuffix.length
  throw new AwsInputError(
    `the hub's name ${hub.name} has ${hub.name.length} characters, and its role ${name} would have ${name.length}: IAM allows ${longestRoleName}`,
    `automatic approval needs a hub with a name of at most ${room} characters; accept clusters with clusteradm instead`,
  )
}
export const creatorRoleArn = (hub: EksCluster): string => roleArn(hub, creatorRoleName(hub))
