import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eksCluster, issuerOf, startLocalEks, type LocalEks } from '../../../../testkit/eks/index.ts'
import { eventually } from '../../../../testkit/index.ts'
import { createIrsaCluster, leftInAws, runIrsaHub } from '../../../../testkit/irsa-hub.ts'
import { clusterOf } from '../../../../testkit/registration-hub.ts'
import { ManagedCluster, ManagedClusterAddOn, ManifestWork } from '../../../api/index.ts'
import {
  assumeRole,
  assumeRoleWithWebIdentity,
  eksClusterArn,
  failedFor,
  hubRoleArn,
  managedPrerequisite,
  managedRoleArn,
  mintEksToken,
  type ClusterPair,
  type Credentials,
} from '../../../aws/index.ts'
import {
  clientFor,
  ConfigMap,
  isForbidden,
  isUnauthorized,
  Lease,
  resource,
  Secret,
  type Client,
  type KubeObject,
} from '../../../kube/index.ts'
import { inParallel, isTrue } from '../../../runtime/index.ts'
import { Accepted } from '../../contract.ts'

let eks: LocalEks
before(async () => {
  eks = await startLocalEks({ access: 'aws-auth', plane: { audit: false, controllerManager: false } })
})
after(() => eks.stop())

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

interface Member {
  name: string
  pair: ClusterPair
  own: Credentials
}

/** Ten clusters in four accounts; some have the same name in different accounts, and names that begin alike. */
const names = ['a', 'b', 'a1', 'a', 'b', 'c', 'a', 'a10', 'c', 'd']
const accountOf = (i: number): string =>
  ['222222222222', '333333333333', '444444444444', '555555555555'][Math.floor(i / 3)]!

/** As the agent's pod gets it from EKS. The local AWS does not check who signed it. */
const podToken = ({ managed }: ClusterPair): string => {
  const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const sub = 'system:serviceaccount:open-cluster-management-agent:klusterlet-work-sa'
  return `${part({})}.${part({ iss: issuerOf(managed), sub, aud: 'sts.amazonaws.com' })}.c2ln`
}

const enrolled = async (i: number): Promise<Member> => {
  const pair = { hub: eks.hubCluster, managed: eksCluster(names[i]!, accountOf(i)) }
  const role = managedPrerequisite(pair, { oidcProvider: issuerOf(pair.managed) })
  await eks.account(role.account).role(role.name, role.trust, { may: role.access, tags: role.tags })
  const session = { arn: managedRoleArn(pair), sessionName: 'test', region: 'us-west-2' }
  return { name: `m${i}`, pair, own: await assumeRoleWithWebIdentity(eks.client, podToken(pair), session) }
}

const onHub = ({ own }: Member, pair: ClusterPair): Promise<Credentials> =>
  assumeRole(eks.client, own, { arn: hubRoleArn(pair), sessionName: 'test', region: 'us-west-2' })

const asMember = async (member: Member): Promise<Client> => {
  const credentials = await onHub(member, member.pair)
  const { token } = await mintEksToken({ clusterName: 'hub', region: 'us-west-2', source: async () => credentials })
  const { server, ca } = eks.hub
  return clientFor({ source: member.name, server, credentials: async () => ({ token, ca }) })
}

const allowed = async (request: Promise<unknown>): Promise<boolean> =>
  request.then(
    () => true,
    (error: unknown) => {
      if (isForbidden(error)) return false
      throw error
    },
  )

test('R1.59 R1.60 of ten clusters each assumes its own hub role, all 90 other pairs are refused by AWS, and with their tokens each reaches its own namespace and ManagedCluster and nothing else', async (t) => {
  await runIrsaHub(t, eks)
  const admin = eks.hub.client()
  const members = await Promise.all(names.map((_, i) => enrolled(i)))
  for (const { name, pair } of members) await createIrsaCluster(admin, name, eksClusterArn(pair.managed))
  await eventually(
    async () => {
      for (const { name } of members) assert.ok(isTrue((await clusterOf(admin, name))!, Accepted.type), name)
    },
    { timeoutMs: 180_000 },
  )
  assert.equal((await leftInAws(eks)).length, members.length)

  const refused: string[] = []
  await inParallel(
    8,
    members.flatMap((member) =>
      members.map((other) => async () => {
        const session = await onHub(member, other.pair).catch((error: unknown) => {
          assert.ok(failedFor(error, 'AccessDenied'), String(error))
          refused.push(`${member.name} as ${other.name}`)
        })
        assert.equal(session !== undefined, member === other, `${member.name} as ${other.name}`)
      }),
    ),
  )
  assert.equal(refused.length, 90)

  const clients = new Map<string, Client>()
  for (const member of members) clients.set(member.name, await asMember(member))
  await inParallel(
    4,
    [...clients].map(([name, client]) => async () => {
      const { status } = await client.of(SelfSubjectReview).create({ metadata: {} })
      const group = `system:open-cluster-management:${name}`
      assert.deepEqual(
        [status?.userInfo.username, status?.userInfo.groups.toSorted()],
        [group, ['system:authenticated', group]],
      )
      for (const { name: other } of members) {
        const mine = other === name
        const reaches = {
          cluster: await allowed(client.of(ManagedCluster).get(other)),
          works: await allowed(client.of(ManifestWork, other).list()),
          addOns: await allowed(client.of(ManagedClusterAddOn, other).list()),
          leases: await allowed(client.of(Lease, other).list()),
          secrets: await allowed(client.of(Secret, other).list()),
          configMaps: await allowed(client.of(ConfigMap, other).list()),
        }
        const expected = { cluster: mine, works: mine, addOns: mine, leases: mine, secrets: false, configMaps: false }
        assert.deepEqual(reaches, expected, `${name} at ${other}`)
      }
      assert.equal(await allowed(client.of(ManagedCluster).list()), false)
      assert.equal(
        await allowed(client.of(ConfigMap, 'open-cluster-management-hub').list()),
        false,
        'records are the hub’s',
      )
      assert.equal(await allowed(client.of(ConfigMap, 'kube-system').get('aws-auth')), false)
    }),
  )

  // Denied: its role is gone from AWS and its token from the hub, and nobody else notices.
  await admin.of(ManagedCluster).patch('m0', { merge: { spec: { hubAcceptsClient: false } } })
  await eventually(
    async () => {
      assert.equal((await leftInAws(eks)).length, members.length - 1)
      await assert.rejects(clients.get('m0')!.of(ManagedCluster).get('m0'), isUnauthorized)
    },
    { timeoutMs: 120_000 },
  )
  await assert.rejects(onHub(members[0]!, members[0]!.pair), (error) => failedFor(error, 'AccessDenied', 'NotFound'))
  assert.ok(await clients.get('m1')!.of(ManagedCluster).get('m1'))
  for (const client of clients.values()) client.close()
})
