import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hubRoleArn, hubTrustPolicy } from '../../src/aws/index.ts'
import { ConfigMap, isUnauthorized, resource, type KubeObject } from '../../src/kube/index.ts'
import { eventually } from '../index.ts'
import { asManaged } from './as-managed.ts'
import { eksCluster, startLocalEks, startManagedPlane, type Partition } from './index.ts'

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
    const client = await asManaged(eks, managed)
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
