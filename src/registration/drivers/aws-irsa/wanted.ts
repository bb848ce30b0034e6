import { createHash } from 'node:crypto'
import { subject } from '../../../api/index.ts'
import {
  hubAccessPolicy,
  hubRoleArn,
  hubRoleName,
  hubTrustPolicy,
  type ClusterPair,
  type PolicyDocument,
} from '../../../aws/index.ts'
import type { Claim } from './claim.ts'

/** How a hub maps a role to a group: in the ConfigMap `aws-auth`, or by an access entry of EKS. */
export type Access = 'aws-auth' | 'access-entry'

/** How long a cluster that is moved has both mappings: neither EKS nor the authenticator knows a new one at once. */
export const bothMappingsMs = 60_000

/** Whom Kubernetes takes a role for. */
export interface Mapping {
  readonly roleArn: string
  readonly username: string
  readonly groups: readonly string[]
}

/** Everything outside of RBAC that gives one cluster access to the hub. */
export interface Wanted {
  readonly cluster: string
  readonly pair: ClusterPair
  readonly arn: string
  readonly roleName: string
  readonly roleArn: string
  readonly trust: PolicyDocument
  readonly policy: PolicyDocument
  readonly tags: Readonly<Record<string, string>>
}

/** The name of the inline policy of a hub role. It goes away with the role. */
export const policyName = 'ocm-hub-access'

export const wantedFor = (cluster: string, { pair, arn }: Claim, tags: Readonly<Record<string, string>>): Wanted => ({
  cluster,
  pair,
  arn,
  roleName: hubRoleName(pair),
  roleArn: hubRoleArn(pair),
  trust: hubTrustPolicy(pair),
  policy: hubAccessPolicy(pair),
  tags,
})

/**
 * The user is named as the group is, never by the bare name of the cluster, which somebody may have given rights as a user.
 * EKS refuses names in access entries that begin with "system:".
 */
export const mappingOf = ({ cluster, roleArn }: Pick<Wanted, 'cluster' | 'roleArn'>, access: Access): Mapping => {
  const name = access === 'aws-auth' ? subject.clusterGroup(cluster) : subject.accessEntryGroup(cluster)
  return { roleArn, username: name, groups: [name] }
}

/** Names a state: while it is the same as when everything was made, nothing has to be made. */
export const digestOf = (wanted: Wanted, access: Access): string => {
  const { arn, trust, policy, tags } = wanted
  const parts = [
    arn,
    trust,
    policy,
    Object.entries(tags).toSorted(([a], [b]) => (a < b ? -1 : 1)),
    mappingOf(wanted, access),
    access,
  ]
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 32)
}
