import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assumeRole, assumeRoleWithWebIdentity, hubRoleArn, hubTrustPolicy, mintEksToken } from '../../src/aws/index.ts'
import { readFileSync } from 'node:fs'
import { clientFor, ConfigMap, isUnauthorized, type Client } from '../../src/kube/index.ts'
import { resource, type KubeObject } from '../../src/kube/index.ts'
import { eventually } from '../index.ts'
import { eksCluster, startLocalEks, startManagedPlane, type LocalEks, type Partition } from './index.ts'

interface Review extends KubeObject {
  status?: { userInfo: { username: string; groups: string[] } }
}
const SelfSubjectReview = resource<Review>({
  group: 'authentication.k8s.io',
  version: 'v1',
  plural: 'selfsubjectreviews',
  kind: 'SelfSubjectReview',
  namespaced: false,
})

/** The hub, as the role of a managed cluster on it: from the token of a pod, over both roles, as an agent goes. */
const asManaged = async (eks: LocalEks, environment: Record<string, string>, roleArn: string): Promise<Client> => {
  const { AWS_WEB_IDENTITY_TOKEN_FILE: file, AWS_ROLE_ARN: arn, AWS_REGION: region } = environment
  const own = { arn: arn!, sessionName: 'test', region: region! }
  const source = await assumeRoleWithWebIdentity(eks.client, readFileSync(file!, 'utf8'), own)
  const credentials = await assumeRole(eks.client, source, { ...own, arn: roleArn })
  const { token } = await mintEksToken({ clusterName: 'hub', region: region!, source: async () => credentials })
  const { server, ca } = eks.hub
  return clientFor({ source: 'test', server, credentials: async () => ({ token, ca }) })
}

const cases: [access: 'aws-auth' | 'access-entries', partition: Partition][] = [
  ['aws-auth', 'aws'],
  ['aws-auth', 'aws-cn'],
  ['aws-auth', 'aws-us-gov'],
  // The local AWS keeps roles in the partition `aws` only, and looks entries up by that.
  ['access-entries', 'aws'],
]
for (const [access, partition] of cases)
  test(`R1.1 local EKS (${access}, ${partition}): a pod's token leads over two roles to a group on the hub, and to none without a mapping`, async () => {
    await using eks = await startLocalEks({ access, partition })
    await using plane = await startManagedPlane(eksCluster('m1', '222222222222', partition))
    const managed = await eks.managed('m1', { account: '222222222222', plane })
    const roleArn = hubRoleArn(managed.pair)
    await eks.hubAccount.role(roleArn.split('/')[1]!, hubTrustPolicy(managed.pair))
    const client = await asManaged(eks, await managed.environment(), roleArn)
    const whoami = () => client.of(SelfSubjectReview).create({ metadata: {} })
    await assert.rejects(whoami(), isUnauthorized)

    const [username, group] = ['someone', 'somewhere']
    if (access === 'aws-auth') {
      const mapRoles = `- rolearn: ${roleArn}\n  username: ${username}\n  groups: [${group}]\n`
      const metadata = { name: 'aws-auth', namespace: 'kube-system' }
      await eks.hub.client().of(ConfigMap, 'kube-system').create({ metadata, data: { mapRoles } })
    } else
      await eks.client.json({
        service: 'eks',
        operation: 'CreateAccessEntry',
        method: 'POST',
        path: '/clusters/hub/access-entries',
        region: eks.hubCluster.region,
        credentials: eks.hubAccount.root,
        body: { principalArn: roleArn, username, kubernetesGroups: [group] },
      })
    await eventually(async () => {
      const { status } = await whoami()
      assert.equal(status?.userInfo.username, username)
      assert.ok(status.userInfo.groups.includes(group))
    })
    client.close()
  })
