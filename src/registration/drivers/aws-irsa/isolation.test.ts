import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eksCluster, issuerOf, startLocalEks, type LocalEks } from '../../../../testkit/eks/index.ts'
import { eventually } from '../../../../testkit/index.ts'
import { createIrsaCluster, grantsOf, leftInAws, mapRolesOf, runIrsaHub } from '../../../../testkit/irsa-hub.ts'
import { asItself, granted, hasOnlyTheRulesOf, matrixOf, reachesOnlyItsOwn } from '../../../../testkit/isolation.ts'
import { clusterOf } from '../../../../testkit/registration-hub.ts'
import { ManagedCluster } from '../../../api/index.ts'
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
  resource,
  type Client,
  type KubeObject,
} from '../../../kube/index.ts'
import { inParallel, isTrue } from '../../../runtime/index.ts'
import { Accepted } from '../../contract.ts'

let eks: LocalEks
before(async () => {
  eks = await startLocalEks({ access: 'both', plane: { audit: false, controllerManager: false } })
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

const members: Member[] = []
const clients = new Map<string, Client>()
after(() => {
  for (const client of clients.values()) client.close()
})

test('R1.60 of ten clusters each assumes its own hub role, and all 90 other pairs are refused by AWS', async (t) => {
  const hub = await runIrsaHub(t, eks)
  members.push(...(await Promise.all(names.map((_, i) => enrolled(i)))))
  const admin = eks.hub.client()
  for (const { name, pair } of members) await createIrsaCluster(admin, name, eksClusterArn(pair.managed))
  await eventually(
    async () => {
      for (const { name } of members) assert.ok(isTrue((await clusterOf(admin, name))!, Accepted.type), name)
    },
    { timeoutMs: 180_000 },
  )
  await hub.stop()
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
  for (const member of members) clients.set(member.name, await asMember(member))
})

const isKnownAs = async (as: Client, group: string): Promise<void> => {
  const { status } = await as.of(SelfSubjectReview).create({ metadata: {} })
  const is = [status?.userInfo.username, status?.userInfo.groups.toSorted()]
  assert.deepEqual(is, [group, [group, 'system:authenticated'].toSorted()])
}

/** Each of them, with the token that it has from IAM. */
const areIsolated = async (prefix: string): Promise<void> => {
  const admin = eks.hub.client()
  await inParallel(
    2,
    [...clients].map(([name, as]) => async () => {
      await isKnownAs(as, `${prefix}:${name}`)
      await hasOnlyTheRulesOf('accepted', name, { as, admin })
    }),
  )
  // Two whose names begin alike.
  assert.deepEqual(await matrixOf(asItself(clients.get('m2')!), 'm2', ['m7']), granted.accepted)
  await reachesOnlyItsOwn(clients.get('m7')!, 'm7', 'm2')
  const records = clients.get('m3')!.of(ConfigMap, 'open-cluster-management-hub').list()
  await assert.rejects(records, isForbidden, 'records are the hub’s')
  await assert.rejects(clients.get('m3')!.of(ConfigMap, 'kube-system').get('aws-auth'), isForbidden)
}

test('R1.59 with tokens from IAM, mapped by aws-auth, each cluster reaches its own namespace and ManagedCluster and nothing else', () =>
  areIsolated('system:open-cluster-management'))

/** Waits until the hub maps all of them so, and nobody otherwise; those who keep asking meanwhile are never refused. */
const areMoved = async (to: 'aws-auth' | 'access-entry', { keepAccess }: { keepAccess: boolean }): Promise<void> => {
  const admin = eks.hub.client()
  const over = new AbortController()
  const asking = [...clients].map(async ([name, client]) => {
    let asked = 0
    for (; !over.signal.aborted; asked++) await client.of(ManagedCluster).get(name)
    return asked
  })
  const moved = eventually(
    async () => {
      const said = (await grantsOf(admin)).map(({ data }) => data?.['access'])
      assert.deepEqual(
        said,
        members.map(() => to),
      )
    },
    { timeoutMs: 180_000 },
  ).finally(() => over.abort())
  if (keepAccess) for (const asked of await Promise.all(asking)) assert.ok(asked > 0)
  else await Promise.allSettled(asking)
  await moved
  const expected = to === 'aws-auth' ? { mapped: members.length, inAws: members.length } : { mapped: 0, inAws: 20 }
  await eventually(async () => {
    const mapped = (await mapRolesOf(admin)).match(/ocm-hub-/g)?.length ?? 0
    assert.deepEqual({ mapped, inAws: (await leftInAws(eks)).length }, expected)
  })
  for (const { name } of members) assert.ok(isTrue((await clusterOf(admin, name))!, Accepted.type), name)
}

test('R1.33 R1.34 R1.62 a hub that moves from aws-auth to access entries, and back by a flag, takes its clusters along: none is refused, and no mapping is left behind', async (t) => {
  eks.setAuthenticationMode('API_AND_CONFIG_MAP')
  const bothMappingsMs = 8000
  const hub = await runIrsaHub(t, eks, { bothMappingsMs })
  await areMoved('access-entry', { keepAccess: true })
  await hub.stop()
  const forced = await runIrsaHub(t, eks, { awsAccess: 'aws-auth', bothMappingsMs })
  await areMoved('aws-auth', { keepAccess: true })
  await forced.stop()
})

test('R1.34 R1.59 a hub that reads aws-auth no more maps its clusters by access entries: they have their access again, and are as isolated as before', async (t) => {
  eks.setAuthenticationMode('API')
  const hub = await runIrsaHub(t, eks, { bothMappingsMs: 1000 })
  await areMoved('access-entry', { keepAccess: false })
  // The API server may remember for a moment who somebody was before.
  await eventually(
    () => Promise.all([...clients].map(([name, as]) => isKnownAs(as, `open-cluster-management:${name}`))),
    { timeoutMs: 180_000 },
  )
  await areIsolated('open-cluster-management')
  await hub.stop()
})

test('R1.56 R1.59 a denied cluster has no role and no access any more, and nobody else notices', async (t) => {
  await runIrsaHub(t, eks)
  await eks.hub
    .client()
    .of(ManagedCluster)
    .patch('m0', { merge: { spec: { hubAcceptsClient: false } } })
  await eventually(
    async () => {
      assert.equal((await leftInAws(eks)).length, 18)
      await assert.rejects(clients.get('m0')!.of(ManagedCluster).get('m0'), isUnauthorized)
    },
    { timeoutMs: 120_000 },
  )
  await assert.rejects(onHub(members[0]!, members[0]!.pair), (error) => failedFor(error, 'AccessDenied', 'NotFound'))
  assert.ok(await clients.get('m1')!.of(ManagedCluster).get('m1'))
})
