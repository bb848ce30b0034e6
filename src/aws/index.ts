/**
 * AWS, without Kubernetes. Usable by itself as `lanyard/aws` (docs/guides/aws-credentials.md). A tour:
 *
 * A `Recipe` says how credentials come to be: from the process's own, from keys in a store, by a role assumed from another recipe,
 * or by a role assumed with a token. It is data without secrets. A `CredentialCache` follows recipes: it shares what they
 * share, renews ahead of time, makes one call at a time, and backs off. `fromX` are the same steps one by one.
 *
 * An `awsClient` sends calls to any service, account and region; STS is in ./sts.ts. Failures are `AwsError`s, which say which
 * link of the chain failed, why, and what to change. `eksTokens` mints tokens for EKS clusters.
 *
 * ARNs, and the names, tags and policies of the roles with which clusters on EKS join a hub, are in ./arn.ts, ./names.ts,
 * ./policies.ts and ./prerequisites.ts.
 */
export {
  checkedRegion,
  dnsSuffixOf,
  eksClusterArn,
  formatArn,
  parseArn,
  parseEksClusterArn,
  parseRoleArn,
  partitionOf,
  type Arn,
  type EksCluster,
  type IamRole,
} from './arn.ts'
export {
  CredentialCache,
  type CacheLimits,
  type CacheOptions,
  type Changed,
  type Inspection,
  type Lookup,
} from './cache.ts'
export {
  awsClient,
  pathOf,
  type AwsCall,
  type AwsClient,
  type AwsOptions,
  type JsonCall,
  type QueryCall,
  type QueryValue,
} from './client.ts'
export { realClock, type Clock } from './clock.ts'
export type { Credentials, CredentialSource } from './credentials.ts'
export { fromDefaultChain, type DefaultChainOptions } from './default-chain.ts'
export {
  ec2Reads,
  ec2Version,
  type Address,
  type AwsTags,
  type Ec2Reads,
  type InternetGateway,
  type NatGateway,
  type Permission,
  type QuerySender,
  type RouteTable,
  type SecurityGroup,
  type Subnet,
  type Vpc,
} from './ec2.ts'
export { ec2Writes, type Ec2Writes } from './ec2-writes.ts'
export { eksTokens, mintEksToken, type EksToken, type EksTokenOptions } from './eks-token.ts'
export {
  elb,
  elbVersion,
  type Elb,
  type HealthCheck,
  type Listener,
  type LoadBalancer,
  type TargetGroup,
} from './elb.ts'
export { endpointOf, endpointsFrom, type Endpoint, type EndpointOverrides, type Service } from './endpoints.ts'
export {
  AwsError,
  AwsInputError,
  failedFor,
  type AwsErrorDetails,
  type FailurePolicy,
  type FailureReason,
} from './errors.ts'
export { eksExecPlugin, execCredential, type ExecPluginOptions } from './exec-plugin.ts'
export { Gate, type GateOptions } from './gate.ts'
export {
  clusterPair,
  creatorRoleArn,
  creatorRoleName,
  hubRoleArn,
  hubRoleName,
  managedRoleArn,
  managedRoleName,
  pairTags,
  roleSuffix,
  type ClusterPair,
} from './names.ts'
export {
  creatorAccessPolicy,
  creatorTrustPolicy,
  hubAccessPolicy,
  hubTrustPolicy,
  managedAccessPolicy,
  managedTrustPolicy,
  roleTrustPolicy,
  serviceAccountTrustPolicy,
  type PolicyDocument,
  type Statement,
} from './policies.ts'
export {
  asCloudFormation,
  asCommands,
  asJson,
  asTerraform,
  hubPrerequisite,
  managedPrerequisite,
  missingFrom,
  type RequiredRole,
} from './prerequisites.ts'
export {
  describeChain,
  describeLink,
  linksOf,
  recipeKey,
  type AssumeRole,
  type ObjectReference,
  type Recipe,
  type TokenWanted,
  type WebIdentityRole,
} from './recipe.ts'
export { durationLimit, fromKeys, fromRole, fromStore, fromWebIdentity, longestChainedSeconds } from './sources.ts'
export { assumeRole, assumeRoleWithWebIdentity, getCallerIdentity, type Caller } from './sts.ts'
export { at, listAt, textAt, type XmlElement } from './xml.ts'
