import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allowing, awsAccount } from '../../testkit/aws-account.ts'
import { createCluster, isBuilt, mayBuild } from '../../testkit/aws-network.ts'
import {
  createAwsCluster,
  isReady,
  managementAccount,
  roleReference,
  stands,
  trusting,
} from '../../testkit/identity-hub.ts'
import { eventually, startControlPlane, startHub, startLocalAws } from '../../testkit/index.ts'
import { AWSCluster, AWSClusterControllerIdentity, AWSClusterRoleIdentity, Cluster, installCrds } from '../api/index.ts'
import { awsClient } from '../aws/index.ts'
import { isForbidden } from '../kube/index.ts'

test('R3.1 R3.2 R3.9 R3.51 the hub program with AWSIdentities: clusters of two accounts, admission, metrics; nothing of it without the gate', async (t) => {
  await using plane = await startControlPlane()
  const local = await startLocalAws()
  t.after(() => local.stop())
  const aws = awsClient({ endpoints: { all: local.endpoint } })
  t.after(() => aws.close())
  const keys = await awsAccount(aws, managementAccount).user(
    'capa',
    allowing({ Action: 'sts:AssumeRole', Resource: '*' }),
  )
  const roleARN = await awsAccount(aws, '222222222222').role(
    'capa',
    trusting(`arn:aws:iam::${managementAccount}:user/capa`),
    { may: mayBuild },
  )
  const env = {
    AWS_ENDPOINT_URL: local.endpoint,
    AWS_ACCESS_KEY_ID: keys.accessKeyId,
    AWS_SECRET_ACCESS_KEY: keys.secretAccessKey,
    AWS_REGION: 'eu-west-1',
  }
  const client = plane.client()
  t.after(() => client.close())
  const plain = await startHub(plane, { env })
  assert.doesNotMatch(await plain.metrics(), /lanyard_aws/)
  await plain.process.stop()

  const hub = await startHub(plane, { env, args: ['--feature-gates=AWSIdentities=true'] })
  const unnamed = { metadata: { namespace: 'default', name: 'probe' }, spec: {} }
  await eventually(async () => {
    const { spec } = await client.of(AWSCluster, 'default').create(unnamed, { dryRun: true })
    assert.deepEqual(spec?.identityRef, { kind: 'AWSClusterControllerIdentity', name: 'default' })
  })
  await createAwsCluster(client, 'one/dev')
  await stands(client, 'one/dev', isReady(managementAccount))
  await client
    .of(AWSClusterRoleIdentity)
    .create({ metadata: { name: 'workload' }, spec: { allowedNamespaces: { list: ['two'] }, roleARN } })
  await createAwsCluster(client, 'two/prod', { identity: roleReference('workload') })
  await stands(client, 'two/prod', isReady('222222222222'))
  await assert.rejects(client.of(AWSClusterControllerIdentity).delete('default'), isForbidden)
  const metrics = await hub.metrics()
  assert.match(metrics, /lanyard_aws_clusters\{state="ready"\} 2/)
  assert.match(metrics, /lanyard_aws_calls_total\{[^}]*operation="AssumeRole"[^}]*result="ok"[^}]*\} 1/)
  assert.doesNotMatch(metrics, new RegExp(keys.secretAccessKey))
  // What belongs to a Cluster of Cluster API is built.
  await installCrds(client, [Cluster.crd({ conversion: 'none' })])
  await createCluster(client, 'two/built', { spec: { identityRef: roleReference('workload') as never } })
  const { spec } = await isBuilt(client, 'two/built')
  assert.match(spec?.network?.vpc?.id ?? '', /^vpc-/)
})
