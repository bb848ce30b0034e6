import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clusterPair } from './names.ts'
import {
  creatorAccessPolicy,
  creatorTrustPolicy,
  hubAccessPolicy,
  hubTrustPolicy,
  managedAccessPolicy,
  managedTrustPolicy,
} from './policies.ts'

const suffix = '7f8141296c75f2871e3d030f85c35692'
const oidcProvider = 'oidc.eks.eu-west-1.amazonaws.com/id/ABC'
const pair = clusterPair(
  'arn:aws:eks:us-west-2:123456789012:cluster/hub-cluster1',
  'arn:aws:eks:eu-west-1:123456789012:cluster/managed-cluster1',
)

/** As the specification writes them, filled in. Compared as text: IAM compares what is stored. */
const written = (policy: unknown, template: string): void =>
  assert.equal(JSON.stringify(policy), JSON.stringify(JSON.parse(template)))

test('R1.21 a managed cluster may take on its role on the hub, and nothing else', () => {
  written(
    managedAccessPolicy(pair),
    `{ "Version": "2012-10-17", "Statement": [ {
         "Effect": "Allow",
         "Action": "sts:AssumeRole",
         "Resource": "arn:aws:iam::123456789012:role/ocm-hub-${suffix}" } ] }`,
  )
})

test('R1.22 the two service accounts of the agent may take on the role of a managed cluster', () => {
  const statement = (account: string) => `{
    "Effect": "Allow",
    "Principal": { "Federated": "arn:aws:iam::123456789012:oidc-provider/${oidcProvider}" },
    "Action": "sts:AssumeRoleWithWebIdentity",
    "Condition": { "StringEquals": {
      "${oidcProvider}:sub": "system:serviceaccount:open-cluster-management-agent:${account}",
      "${oidcProvider}:aud": "sts.amazonaws.com" } } }`
  const expected = `{ "Version": "2012-10-17", "Statement": [ ${statement('k1-registration-sa')}, ${statement('k1-work-sa')} ] }`
  written(managedTrustPolicy(pair, { oidcProvider, klusterlet: 'k1' }), expected)
  written(managedTrustPolicy(pair, { oidcProvider: `https://${oidcProvider}/`, klusterlet: 'k1' }), expected)
})

test('R1.24 the role on the hub may find the hub, and nothing else', () => {
  written(
    hubAccessPolicy(pair),
    `{ "Version": "2012-10-17", "Statement": [ {
         "Effect": "Allow",
         "Action": [ "eks:DescribeCluster", "eks:ListClusters" ],
         "Resource": "arn:aws:eks:us-west-2:123456789012:cluster/hub-cluster1" } ] }`,
  )
})

test('R1.25 only the role of the managed cluster may take it on, while its four tags are right', () => {
  written(
    hubTrustPolicy(pair),
    `{ "Version": "2012-10-17", "Statement": [ {
         "Effect": "Allow",
         "Principal": { "AWS": "arn:aws:iam::123456789012:role/ocm-managed-cluster-${suffix}" },
         "Action": "sts:AssumeRole",
         "Condition": { "StringEquals": {
           "aws:PrincipalTag/hub_cluster_account_id": "123456789012",
           "aws:PrincipalTag/hub_cluster_name": "hub-cluster1",
           "aws:PrincipalTag/managed_cluster_account_id": "123456789012",
           "aws:PrincipalTag/managed_cluster_name": "managed-cluster1" } } } ] }`,
  )
})

test('R1.26 the creator may make roles and policies with our names, and access entries only where they are used', () => {
  const plain = creatorAccessPolicy(pair.hub)
  written(
    plain,
    `{ "Version": "2012-10-17", "Statement": [ {
      "Effect": "Allow",
      "Action": [
        "iam:CreateRole", "iam:DeleteRole", "iam:UpdateAssumeRolePolicy", "iam:PutRolePolicy", "iam:DeleteRolePolicy",
        "iam:AttachRolePolicy", "iam:DetachRolePolicy", "iam:CreatePolicy", "iam:DeletePolicy", "iam:CreatePolicyVersion",
        "iam:DeletePolicyVersion", "iam:ListAttachedRolePolicies", "iam:ListRolePolicies", "iam:ListPolicyVersions",
        "iam:GetRole", "iam:GetRolePolicy", "iam:GetPolicy", "iam:GetPolicyVersion", "iam:PassRole" ],
      "Resource": [ "arn:aws:iam::123456789012:role/ocm-hub-*", "arn:aws:iam::123456789012:policy/ocm-hub-*" ] } ] }`,
  )
  const [, entries, ...more] = creatorAccessPolicy(pair.hub, { accessEntries: true }).Statement
  assert.deepEqual(more, [])
  assert.ok([entries!.Action].flat().every((action) => action.startsWith('eks:')))
  assert.deepEqual(entries!.Resource, [
    'arn:aws:eks:us-west-2:123456789012:cluster/hub-cluster1',
    'arn:aws:eks:us-west-2:123456789012:access-entry/hub-cluster1/*',
  ])
})

test('R1.27 the service account of the registration controller may take on the creator role', () => {
  written(
    creatorTrustPolicy(pair.hub, { oidcProvider }),
    `{ "Version": "2012-10-17", "Statement": [ {
      "Effect": "Allow",
      "Principal": { "Federated": "arn:aws:iam::123456789012:oidc-provider/${oidcProvider}" },
      "Action": "sts:AssumeRoleWithWebIdentity",
      "Condition": { "StringEquals": {
        "${oidcProvider}:sub": "system:serviceaccount:open-cluster-management-hub:registration-controller-sa",
        "${oidcProvider}:aud": "sts.amazonaws.com" } } } ] }`,
  )
})

test('policies of China and GovCloud name their own partitions', () => {
  const china = clusterPair(
    'arn:aws-cn:eks:cn-north-1:123456789012:cluster/h',
    'arn:aws-cn:eks:cn-north-1:123456789012:cluster/m',
  )
  const all = JSON.stringify([
    managedAccessPolicy(china),
    managedTrustPolicy(china, { oidcProvider }),
    hubAccessPolicy(china),
    hubTrustPolicy(china),
    creatorAccessPolicy(china.hub, { accessEntries: true }),
    creatorTrustPolicy(china.hub, { oidcProvider }),
  ])
  assert.equal(all.match(/arn:aws-cn:/g)?.length, all.match(/arn:/g)?.length)
})
