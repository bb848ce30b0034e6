import { clusterPair, creatorRoleArn, managedRoleArn, parseEksClusterArn } from '../aws/index.ts'

/** What lets EKS give a pod a role: an annotation on its service account. */
export const roleAnnotation = 'eks.amazonaws.com/role-arn'

/** The role that the hub's account assumes to make and remove the IAM objects of clusters. */
export const hubRole = (hubClusterArn: string): string => creatorRoleArn(parseEksClusterArn(hubClusterArn))

/** The role of an agent in its own account. */
export const agentRole = (hubClusterArn: string, managedClusterArn: string): string =>
  managedRoleArn(clusterPair(hubClusterArn, managedClusterArn))
