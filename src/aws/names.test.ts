import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EksCluster } from './arn.ts'
import { AwsInputError } from './errors.ts'
import {
  clusterPair,
  creatorRoleArn,
  creatorRoleName,
  hubRoleArn,
  hubRoleName,
  managedRoleArn,
  managedRoleName,
  pairTags,
  roleSuffix,
  suffixOf,
} from './names.ts'

const pair = clusterPair(
  'arn:aws:eks:us-west-2:123456789012:cluster/hub-cluster1',
  'arn:aws:eks:eu-west-1:123456789012:cluster/managed-cluster1',
)

test('R1.18 the identifier is the md5 of accounts and names, as in the specification', () => {
  assert.equal(
    suffixOf(['hubaccount1', 'hubcluster1', 'managedaccount1', 'managedcluster1']),
    '79e99112993014816615711cbd35a9bc',
  )
  assert.equal(roleSuffix(pair), '7f8141296c75f2871e3d030f85c35692')
})

test('R1.19 R1.23 accounts and names come from the ARNs, and are the tags of the roles', () => {
  const other = clusterPair(
    'arn:aws-us-gov:eks:us-gov-west-1:111111111111:cluster/h',
    'arn:aws-us-gov:eks:us-gov-east-1:222222222222:cluster/m',
  )
  assert.deepEqual(Object.entries(pairTags(other)), [
    ['hub_cluster_account_id', '111111111111'],
    ['hub_cluster_name', 'h'],
    ['managed_cluster_account_id', '222222222222'],
    ['managed_cluster_name', 'm'],
  ])
  assert.equal(hubRoleArn(other), `arn:aws-us-gov:iam::111111111111:role/ocm-hub-${roleSuffix(other)}`)
  assert.equal(managedRoleArn(other), `arn:aws-us-gov:iam::222222222222:role/ocm-managed-cluster-${roleSuffix(other)}`)
})

test('R1.20 role names fit into 64 characters, and a hub name that is too long is said to be', () => {
  assert.equal(hubRoleName(pair), 'ocm-hub-7f8141296c75f2871e3d030f85c35692')
  assert.equal(managedRoleName(pair), 'ocm-managed-cluster-7f8141296c75f2871e3d030f85c35692')
  assert.ok(managedRoleName(pair).length <= 64)
  const hub = (name: string): EksCluster => ({ ...pair.hub, name })
  assert.equal(creatorRoleArn(hub('hub')), 'arn:aws:iam::123456789012:role/hub_managed-cluster-identity-creator')
  assert.equal(creatorRoleName(hub('h'.repeat(31))).length, 64)
  assert.throws(
    () => creatorRoleName(hub('h'.repeat(32))),
    (error) => error instanceof AwsInputError && /has 32 characters.*at most 31/.test(error.message),
  )
})
