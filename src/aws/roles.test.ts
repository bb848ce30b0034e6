import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { awsAccount } from '../../testkit/aws-account.ts'
import { startLocalAws, type LocalAws } from '../../testkit/index.ts'
import {
  assumeRole,
  assumeRoleWithWebIdentity,
  awsClient,
  clusterPair,
  failedFor,
  hubAccessPolicy,
  hubRoleArn,
  hubRoleName,
  hubTrustPolicy,
  managedAccessPolicy,
  managedRoleArn,
  managedRoleName,
  managedTrustPolicy,
  pairTags,
  type AwsClient,
  type ClusterPair,
  type Credentials,
} from './index.ts'

const region = 'us-west-2'
const hubArn = 'arn:aws:eks:us-west-2:111111111111:cluster/hub'
/** Three clusters in two accounts: two of them in the same one. */
const pairs = ['222222222222:cluster/a', '222222222222:cluster/b', '333333333333:cluster/a'].map((rest) =>
  clusterPair(hubArn, `arn:aws:eks:eu-west-1:${rest}`),
)
const providerOf = ({ managed }: ClusterPair): string => `oidc.example.com/id/${managed.account}-${managed.name}`

let local: LocalAws
let aws: AwsClient
before(async () => {
  local = await startLocalAws()
  aws = awsClient({ endpoints: { all: local.endpoint } })
  await Promise.all(
    pairs.flatMap((pair) => [
      awsAccount(aws, pair.managed.account).role(
        managedRoleName(pair),
        managedTrustPolicy(pair, { oidcProvider: providerOf(pair) }),
        { may: managedAccessPolicy(pair), tags: pairTags(pair) },
      ),
      awsAccount(aws, pair.hub.account).role(hubRoleName(pair), hubTrustPolicy(pair), { may: hubAccessPolicy(pair) }),
    ]),
  )
})
after(async () => {
  aws.close()
  await local.stop()
})

const token = (pair: ClusterPair, account: string, namespace = 'open-cluster-management-agent'): string => {
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const sub = `system:serviceaccount:${namespace}:${account}`
  return `${part({})}.${part({ iss: `https://${providerOf(pair)}`, sub, aud: 'sts.amazonaws.com' })}.c2ln`
}

const asAgent = (pair: ClusterPair, proof = token(pair, 'klusterlet-registration-sa')): Promise<Credentials> =>
  assumeRoleWithWebIdentity(aws, proof, { arn: managedRoleArn(pair), sessionName: 'agent', region })

const outcome = (attempt: Promise<Credentials>): Promise<string> =>
  attempt.then(
    ({ accountId }) => `became ${accountId}`,
    (error: unknown) => (failedFor(error, 'AccessDenied') ? 'denied' : String(error)),
  )

test('R1.21 R1.25 on an AWS that enforces policies, each cluster becomes its own role on the hub and no other', async () => {
  for (const own of pairs)
    for (const other of pairs) {
      const role = { arn: hubRoleArn(other), sessionName: 'agent', region }
      const expected = own === other ? 'became 111111111111' : 'denied'
      assert.equal(await outcome(assumeRole(aws, await asAgent(own), role)), expected)
    }
})

test('R1.22 the two service accounts of the agent become the role of their cluster, and nobody else does', async () => {
  const [pair, other] = pairs as [ClusterPair, ClusterPair]
  assert.equal(await outcome(asAgent(pair, token(pair, 'klusterlet-work-sa'))), 'became 222222222222')
  for (const stranger of [
    token(pair, 'default'),
    token(pair, 'klusterlet-work-sa', 'default'),
    token(other, 'klusterlet-work-sa'),
  ])
    assert.equal(await outcome(asAgent(pair, stranger)), 'denied')
})

test('R1.25 a role whose tags were changed does not become its role on the hub any more', async () => {
  const [pair] = pairs as [ClusterPair]
  const session = await asAgent(pair)
  const account = awsAccount(aws, pair.managed.account)
  const tag = (Value: string) =>
    account.iam('TagRole', { RoleName: managedRoleName(pair), Tags: [{ Key: 'managed_cluster_name', Value }] })
  await tag('b')
  assert.equal(
    await outcome(assumeRole(aws, session, { arn: hubRoleArn(pair), sessionName: 'agent', region })),
    'denied',
  )
  await tag('a')
})
