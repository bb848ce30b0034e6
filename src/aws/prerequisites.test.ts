import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { awsAccount } from '../../testkit/aws-account.ts'
import { performCommands } from '../../testkit/aws-commands.ts'
import { startLocalAws, type LocalAws } from '../../testkit/index.ts'
import { awsClient, clusterPair, type AwsClient } from './index.ts'
import {
  asCloudFormation,
  asCommands,
  asJson,
  asTerraform,
  hubPrerequisite,
  managedPrerequisite,
  missingFrom,
} from './prerequisites.ts'

const oidcProvider = 'oidc.eks.eu-west-1.amazonaws.com/id/ABC'
const pair = clusterPair(
  'arn:aws:eks:us-west-2:111111111111:cluster/hub',
  'arn:aws:eks:eu-west-1:222222222222:cluster/managed',
)
const managed = managedPrerequisite(pair, { oidcProvider })
const hub = hubPrerequisite(pair.hub, { oidcProvider, accessEntries: true })

let local: LocalAws
let aws: AwsClient
before(async () => {
  local = await startLocalAws()
  aws = awsClient({ endpoints: { all: local.endpoint } })
})
after(async () => {
  aws.close()
  await local.stop()
})

test('R1.29 the commands make what is asked for, and what is missing before and differs after is named', async () => {
  for (const role of [managed, hub]) {
    const account = awsAccount(aws, role.account)
    const missing = () => missingFrom(aws, account.root, role, 'us-west-2')
    assert.deepEqual(await missing(), [`account ${role.account} has no role ${role.name}`])
    await performCommands(account, asCommands(role))
    assert.deepEqual(await missing(), [])
  }

  const account = awsAccount(aws, managed.account)
  const RoleName = managed.name
  await account.iam('TagRole', { RoleName, Tags: [{ Key: 'hub_cluster_name', Value: 'other' }] })
  await account.iam('UpdateAssumeRolePolicy', {
    RoleName,
    PolicyDocument: JSON.stringify({ ...managed.trust, Statement: managed.trust.Statement.slice(1) }),
  })
  await account.iam('DeleteRolePolicy', { RoleName, PolicyName: managed.policyName })
  const named = await missingFrom(aws, account.root, managed, 'us-west-2')
  assert.equal(named.length, 3)
  assert.match(named[0]!, /the trust policy of .* has no statement .*klusterlet-registration-sa/)
  assert.match(named[1]!, /no policy of .* has a statement .*sts:AssumeRole/)
  assert.match(named[2]!, /has the tag hub_cluster_name=other and not hub_cluster_name=hub/)
})

test('R1.29 an attached policy, written in another order and with names for its statements, is as good', async () => {
  const account = awsAccount(aws, '333333333333')
  const role = { ...hub, account: account.id }
  const [statement, ...rest] = role.access.Statement
  const other = {
    Resource: [statement!.Resource!].flat().toReversed(),
    Sid: 'Iam',
    Action: [statement!.Action].flat().toReversed(),
    Effect: 'Allow' as const,
  }
  const policyArn = await account.policy('creator', { ...role.access, Statement: [other, ...rest] })
  await account.role(role.name, role.trust)
  await account.iam('AttachRolePolicy', { RoleName: role.name, PolicyArn: policyArn })
  assert.deepEqual(await missingFrom(aws, account.root, role, 'us-west-2'), [])
})

test('R1.29 JSON, Terraform and CloudFormation hold the same role', () => {
  const json = JSON.parse(asJson(managed)) as Record<string, unknown>
  assert.equal(json['role'], `arn:aws:iam::222222222222:role/${managed.name}`)
  assert.deepEqual([json['trust'], json['access'], json['tags']], [managed.trust, managed.access, managed.tags])

  const { Resources } = JSON.parse(asCloudFormation(managed)) as { Resources: { Role: { Properties: unknown } } }
  assert.deepEqual(Resources.Role.Properties, {
    RoleName: managed.name,
    AssumeRolePolicyDocument: managed.trust,
    Policies: [{ PolicyName: managed.policyName, PolicyDocument: managed.access }],
    Tags: Object.entries(managed.tags).map(([Key, Value]) => ({ Key, Value })),
  })

  const encoded = [...asTerraform(managed).matchAll(/jsonencode\(([^]*?\n {2}\})\)/g)].map(
    ([, text]) => JSON.parse(text!) as unknown,
  )
  assert.deepEqual(encoded, [managed.trust, managed.access])
  const odd = {
    ...managed,
    access: { ...managed.access, Statement: [{ Effect: 'Allow' as const, Action: 'a', Resource: '${aws:x}%{y}' }] },
  }
  assert.match(asTerraform(odd), /\$\$\{aws:x\}%%\{y\}/)
})
