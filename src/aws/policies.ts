import { eksClusterArn, type EksCluster } from './arn.ts'
import { hubRoleArn, managedRoleArn, pairTags, type ClusterPair } from './names.ts'

/** A policy of IAM, as data: `JSON.stringify` writes it. */
export interface PolicyDocument {
  Version: '2012-10-17'
  Statement: Statement[]
}

export interface Statement {
  Effect: 'Allow' | 'Deny'
  Action: string | string[]
  Resource?: string | string[]
  Principal?: { AWS: string } | { Federated: string }
  Condition?: Record<string, Record<string, string | string[]>>
}

const policy = (...Statement: Statement[]): PolicyDocument => ({ Version: '2012-10-17', Statement })

/** The service accounts that the agent runs under. */
const agentNamespace = 'open-cluster-management-agent'
const agentAccounts = (klusterlet: string): string[] => [`${klusterlet}-registration-sa`, `${klusterlet}-work-sa`]

/** What EKS's tokens for AWS are for. */
const audience = 'sts.amazonaws.com'

/** What a managed cluster's role may do: take on its role on the hub, and nothing else. */
export const managedAccessPolicy = (pair: ClusterPair): PolicyDocument =>
  policy({ Effect: 'Allow', Action: 'sts:AssumeRole', Resource: hubRoleArn(pair) })

/** Who may take on a managed cluster's role: the two service accounts of its agent. */
export const managedTrustPolicy = (
  pair: ClusterPair,
  { oidcProvider, klusterlet = 'klusterlet' }: { oidcProvider: string; klusterlet?: string },
): PolicyDocument =>
  policy(
    ...agentAccounts(klusterlet).map((name) =>
      trustOfAccount(pair.managed, oidcProvider, `system:serviceaccount:${agentNamespace}:${name}`),
    ),
  )

/** What a managed cluster may do in the hub's account: find the hub. What it may do in the hub is a matter of RBAC. */
export const hubAccessPolicy = ({ hub }: ClusterPair): PolicyDocument =>
  policy({ Effect: 'Allow', Action: ['eks:DescribeCluster', 'eks:ListClusters'], Resource: eksClusterArn(hub) })

/** Who may take on a managed cluster's role on the hub: that cluster's role, while its tags say so. */
export const hubTrustPolicy = (pair: ClusterPair): PolicyDocument =>
  policy({
    Effect: 'Allow',
    Principal: { AWS: managedRoleArn(pair) },
    Action: 'sts:AssumeRole',
    Condition: {
      StringEquals: Object.fromEntries(
        Object.entries(pairTags(pair)).map(([key, value]) => [`aws:PrincipalTag/${key}`, value]),
      ),
    },
  })

const creatorActions = [
  'iam:CreateRole',
  'iam:DeleteRole',
  'iam:UpdateAssumeRolePolicy',
  'iam:PutRolePolicy',
  'iam:DeleteRolePolicy',
  'iam:AttachRolePolicy',
  'iam:DetachRolePolicy',
  'iam:CreatePolicy',
  'iam:DeletePolicy',
  'iam:CreatePolicyVersion',
  'iam:DeletePolicyVersion',
  'iam:ListAttachedRolePolicies',
  'iam:ListRolePolicies',
  'iam:ListPolicyVersions',
  'iam:GetRole',
  'iam:GetRolePolicy',
  'iam:GetPolicy',
  'iam:GetPolicyVersion',
  'iam:PassRole',
]

const accessEntryActions = [
  'eks:DescribeCluster',
  'eks:CreateAccessEntry',
  'eks:DescribeAccessEntry',
  'eks:UpdateAccessEntry',
  'eks:DeleteAccessEntry',
  'eks:ListAccessEntries',
  'eks:TagResource',
]

/** What the hub's controller, or the person who accepts clusters, may do: make roles and policies with our names. */
export const creatorAccessPolicy = (
  hub: EksCluster,
  { accessEntries = false, tags = false }: { accessEntries?: boolean; tags?: boolean } = {},
): PolicyDocument => {
  const iam = `arn:${hub.partition}:iam::${hub.account}`
  const eks = `arn:${hub.partition}:eks:${hub.region}:${hub.account}`
  return policy(
    {
      Effect: 'Allow',
      // IAM asks for iam:TagRole where a role is created with tags, beside iam:CreateRole.
      Action: tags ? [...creatorActions, 'iam:TagRole', 'iam:UntagRole', 'iam:ListRoleTags'] : creatorActions,
      Resource: [`${iam}:role/ocm-hub-*`, `${iam}:policy/ocm-hub-*`],
    },
    ...(accessEntries
      ? [
          {
            Effect: 'Allow' as const,
            Action: accessEntryActions,
            Resource: [eksClusterArn(hub), `${eks}:access-entry/${hub.name}/*`],
          },
        ]
      : []),
  )
}

/** Who may take on the creator role: the service account of the hub's registration controller. */
export const creatorTrustPolicy = (hub: EksCluster, { oidcProvider }: { oidcProvider: string }): PolicyDocument =>
  policy(
    trustOfAccount(hub, oidcProvider, 'system:serviceaccount:open-cluster-management-hub:registration-controller-sa'),
  )

/** The trust policy for any role that one service account takes on: for AWSServiceAccountIdentity. */
export const serviceAccountTrustPolicy = (of: {
  partition: string
  account: string
  oidcProvider: string
  subject: { namespace: string; name: string }
  audiences?: string[]
}): PolicyDocument =>
  policy(
    trustOfAccount(
      of,
      of.oidcProvider,
      `system:serviceaccount:${of.subject.namespace}:${of.subject.name}`,
      of.audiences,
    ),
  )

/** The trust policy for any role that one other principal takes on: for AWSClusterRoleIdentity. */
export const roleTrustPolicy = (of: { principal: string; externalId?: string; isTagged: boolean }): PolicyDocument =>
  policy({
    Effect: 'Allow',
    Principal: { AWS: of.principal },
    // A session with tags is refused as a whole where the second is missing.
    Action: of.isTagged ? ['sts:AssumeRole', 'sts:TagSession'] : 'sts:AssumeRole',
    ...(of.externalId ? { Condition: { StringEquals: { 'sts:ExternalId': of.externalId } } } : {}),
  })

const trustOfAccount = (
  { partition, account }: { partition: string; account: string },
  oidcProvider: string,
  subject: string,
  audiences = [audience],
): Statement => {
  const provider = oidcProvider.replace(/^https:\/\//, '').replace(/\/$/, '') // IAM names it without its scheme
  return {
    Effect: 'Allow',
    Principal: { Federated: `arn:${partition}:iam::${account}:oidc-provider/${provider}` },
    Action: 'sts:AssumeRoleWithWebIdentity',
    Condition: {
      StringEquals: {
        [`${provider}:sub`]: subject,
        [`${provider}:aud`]: audiences.length === 1 ? audiences[0]! : audiences,
      },
    },
  }
}
