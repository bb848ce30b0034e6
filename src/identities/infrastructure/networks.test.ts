import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { refusal } from '../../../testkit/aws-front.ts'
import {
  atOnce,
  contentsOf,
  createCluster,
  ec2Of,
  isBuilt,
  isGone,
  mayBuild,
  removeCluster,
  roleIn,
  says,
} from '../../../testkit/aws-network.ts'
import { isReady, managementAccount, runIdentities, stands } from '../../../testkit/identity-hub.ts'
import {
  eventually,
  startControlPlane,
  startLocalAws,
  type ControlPlane,
  type LocalAws,
} from '../../../testkit/index.ts'
import {
  AWSCluster,
  AWSClusterControllerIdentity,
  AWSClusterRoleIdentity,
  AWSClusterStaticIdentity,
  AWSServiceAccountIdentity,
  crds,
  finalizer,
  installCrds,
} from '../../api/index.ts'
import type { KubeObject, Resource } from '../../kube/index.ts'
import { findCondition } from '../../runtime/index.ts'

let plane: ControlPlane
let local: LocalAws
before(async () => {
  ;[plane, local] = await Promise.all([startControlPlane({ controllerManager: false }), startLocalAws()])
  await installCrds(plane.client(), crds({ conversion: 'none', borrowed: true }))
})
after(() => Promise.all([plane.stop(), local.stop()]))

test('R3.70 R3.71 a network that is not the cluster’s own is used, tagged as shared, and left as it was', async (t) => {
  const hub = await runIdentities(t, plane, local, { infrastructure: atOnce })
  const { client, account, aws } = hub
  const identity = await roleIn(hub, '230000000001')
  const ec2 = ec2Of(aws, account('230000000001'))
  const vpc = await ec2.createVpc('10.9.0.0/16', { Name: 'of the network team' })
  const inside = await ec2.createSubnet({ vpcId: vpc.id, cidrBlock: '10.9.0.0/20', zone: 'eu-west-1a' }, {})
  const outside = await ec2.createSubnet({ vpcId: vpc.id, cidrBlock: '10.9.16.0/20', zone: 'eu-west-1a' }, {})
  const gateway = await ec2.createInternetGateway({})
  await ec2.attachInternetGateway(gateway.id, vpc.id)
  const table = await ec2.createRouteTable({ vpcId: vpc.id, clientToken: 'test' }, {})
  await ec2.createRoute(table.id, '0.0.0.0/0', { gatewayId: gateway.id })
  await ec2.associateRouteTable(table.id, outside.id)
  const network = async () => ({
    vpcs: await ec2.vpcs({}),
    subnets: await ec2.subnets({}),
    gateways: await ec2.internetGateways({}),
    tables: await ec2.routeTables({}),
  })
  const before = await network()

  const subnets = [{ id: inside.id }, { id: outside.id }]
  await createCluster(client, 'guest/one', { spec: { ...identity, network: { vpc: { id: vpc.id }, subnets } } })
  const built = await isBuilt(client, 'guest/one')
  assert.deepEqual(
    built.spec?.network?.subnets?.map(({ id, isPublic, availabilityZone }) => [id, isPublic, availabilityZone]),
    [
      [inside.id, false, 'eu-west-1a'],
      [outside.id, true, 'eu-west-1a'],
    ],
  )
  assert.deepEqual(built.status?.networkStatus?.apiServerElb?.subnetIds, [outside.id])
  assert.match(findCondition(built, 'NatGatewaysReady')!.message, /not the cluster's own/)
  const [looked, listened] = [hub.front.calls.length, hub.front.count('DescribeListeners')]
  await client.of(AWSCluster, 'guest').patch('one', { merge: { spec: { imageLookupOrg: 'news' } } })
  await eventually(() => assert.equal(hub.front.count('DescribeListeners'), listened + 1)) // the last of a look
  const looks = hub.front.calls.slice(looked)
  assert.equal(looks.length, 15, 'as docs/spec/awscluster.md says')
  assert.ok(looks.every(({ action }) => action.startsWith('Describe')))
  const during = await network()
  const shared = { 'kubernetes.io/cluster/one': 'shared' }
  const isListed = (id: string): boolean => subnets.some((one) => one.id === id)
  assert.deepEqual(during, {
    ...before,
    subnets: before.subnets.map((one) => (isListed(one.id) ? { ...one, tags: shared } : one)),
  })
  await removeCluster(client, 'guest/one')
  assert.deepEqual(await network(), before)
  const { securityGroups, loadBalancers, targetGroups } = await contentsOf(aws, account('230000000001'))
  assert.deepEqual([securityGroups, loadBalancers, targetGroups], [undefined, undefined, undefined])

  // A network whose owner lets nobody tag it is used all the same. Without a load balancer, people say where the API server is.
  hub.front.fault = ({ action }) => (action === 'CreateTags' ? refusal('UnauthorizedOperation', 403) : undefined)
  await createCluster(client, 'guest/bare', {
    spec: {
      ...identity,
      network: { vpc: { id: vpc.id, tags: { a: 'b' } }, subnets },
      controlPlaneLoadBalancer: { loadBalancerType: 'disabled' },
    },
  })
  await says(client, 'guest/bare', 'LoadBalancerReady', 'WaitForExternalControlPlaneEndpoint')
  const asked = hub.front.count('DescribeNatGateways')
  for (let n = 0; n < 200; n++) await ec2.vpcs({})
  assert.ok(hub.front.count('DescribeNatGateways') - asked <= 3, 'AWS is asked for what people have to say')
  await client
    .of(AWSCluster, 'guest')
    .patch('bare', { merge: { spec: { controlPlaneEndpoint: { host: 'api.example.com', port: 6443 } } } })
  const bare = await isBuilt(client, 'guest/bare')
  assert.equal((await contentsOf(aws, account('230000000001')))['loadBalancers'], undefined)
  const tolerated =
    /without the tags of the cluster, which is tolerated, on (vpc|subnet)-.*CreateTags.*UnauthorizedOperation/
  assert.match(findCondition(bare, 'SubnetsReady')!.message, tolerated)
  assert.match(findCondition(bare, 'VpcReady')!.message, tolerated)
  assert.deepEqual(await network(), before)
  hub.front.fault = () => undefined
  await removeCluster(client, 'guest/bare')
  assert.deepEqual(await network(), before)

  // What cannot be used says so, and nothing is made beside it.
  await createCluster(client, 'guest/two', { spec: { ...identity, network: { vpc: { id: 'vpc-0123456789abcdef0' } } } })
  await says(client, 'guest/two', 'VpcReady', /no such VPC/)
  await createCluster(client, 'guest/three', { spec: { ...identity, network: { vpc: { id: vpc.id } } } })
  await says(client, 'guest/three', 'SubnetsReady', /names none of its subnets; list those/)
  await ec2.createTags([vpc.id], { 'sigs.k8s.io/cluster-api-provider-aws/cluster/four': 'owned' })
  await createCluster(client, 'guest/four', { spec: { ...identity, network: { vpc: { id: vpc.id }, subnets } } })
  await says(client, 'guest/four', 'VpcReady', /made by another provider for a cluster named four/)
  assert.deepEqual(await network(), {
    ...before,
    vpcs: before.vpcs.map((one) =>
      one.id === vpc.id
        ? { ...one, tags: { ...one.tags, 'sigs.k8s.io/cluster-api-provider-aws/cluster/four': 'owned' } }
        : one,
    ),
  })
})

/** As the Go provider tags what it makes for a cluster. */
const ofTheField = (name: string, role: string) => ({
  Name: `${name}-${role}`,
  [`sigs.k8s.io/cluster-api-provider-aws/cluster/${name}`]: 'owned',
  'sigs.k8s.io/cluster-api-provider-aws/role': role,
})

test('R3.64 R3.76 an AWSCluster that another provider has built for, without identityRef: its identity is found as before, and nothing is built beside its network, nor removed, nor forgotten', async (t) => {
  const hub = await runIdentities(t, plane, local, { infrastructure: atOnce })
  const { client, account, aws, front } = hub
  const own = account(managementAccount)
  const document = { UserName: 'capa', PolicyName: 'build', PolicyDocument: JSON.stringify(mayBuild) }
  await own.iam('PutUserPolicy', document)
  const ec2 = ec2Of(aws, own)
  const vpcOf = async (name: string) => ec2.createVpc('10.0.0.0/16', ofTheField(name, 'vpc'))
  const old = await vpcOf('old')
  const inOld = await ec2.createSubnet(
    { vpcId: old.id, cidrBlock: '10.0.0.0/20', zone: 'eu-west-1a' },
    ofTheField('old', 'private'),
  )
  const unwritten = await vpcOf('unwritten')
  const guest = await ec2.createVpc('10.8.0.0/16', { Name: 'of the network team' })
  const inGuest = await ec2.createSubnet({ vpcId: guest.id, cidrBlock: '10.8.0.0/20', zone: 'eu-west-1a' }, {})
  const group = await ec2.createSecurityGroup(
    { name: 'guest-node', description: 'x', vpcId: guest.id },
    ofTheField('guest', 'node'),
  )
  const before = await contentsOf(aws, own)
  const clusters = client.of(AWSCluster, 'legacy')
  /** Stored by the other provider: the finalizer has the same name, and nobody had asked for an identity. */
  const stored = async (name: string, spec: AWSCluster['spec']): Promise<void> => {
    const paused = 'cluster.x-k8s.io/paused'
    const controlPlaneEndpoint = { host: `${name}.elb.example`, port: 6443 }
    await createCluster(client, `legacy/${name}`, {
      spec: { ...spec, controlPlaneEndpoint },
      annotations: { [paused]: '' },
    })
    await clusters.patch(name, {
      merge: { metadata: { finalizers: [finalizer.awsCluster], annotations: { [paused]: null } } },
    })
  }
  const nlb = { loadBalancerType: 'nlb' } as const
  const [known, unknown] = [{ vpc: { id: old.id, cidrBlock: old.cidrBlock } }, { vpc: { id: guest.id } }]
  await stored('old', {
    network: { ...known, subnets: [{ id: inOld.id, isPublic: false }] },
    controlPlaneLoadBalancer: nlb,
  })
  await stored('unwritten', { controlPlaneLoadBalancer: nlb })
  await stored('guest', { network: { ...unknown, subnets: [{ id: inGuest.id }] }, controlPlaneLoadBalancer: nlb })
  await stored('classic', { controlPlaneLoadBalancer: { loadBalancerType: 'classic' } })

  const refused = (what: string): RegExp =>
    new RegExp(`${what} made by another provider for a cluster named .*: nothing is built beside it; leave`)
  await says(client, 'legacy/old', 'VpcReady', refused(`VPC ${old.id} was`))
  await says(client, 'legacy/unwritten', 'VpcReady', refused(`VPC ${unwritten.id} was`))
  await says(client, 'legacy/guest', 'VpcReady', refused(`security groups ${group.id} in VPC ${guest.id} were`))
  await says(client, 'legacy/classic', 'Ready', /UnsupportedField: .*loadBalancerType: is not supported: write nlb/)
  await stands(client, 'legacy/old', isReady(managementAccount))

  for (const name of ['old', 'unwritten', 'guest']) {
    await clusters.delete(name)
    await says(
      client,
      `legacy/${name}`,
      'Ready',
      /DeletingFailed: .* made by another provider .*: it is not removed here; leave/,
    )
  }
  const writes = front.calls.filter(({ action }) => !/^(Describe|Get|Assume)/.test(action))
  assert.deepEqual(writes, [])
  assert.deepEqual(await contentsOf(aws, own), before)

  // That provider has removed it, or somebody did: then it goes.
  await ec2.deleteSubnet(inOld.id)
  await ec2.deleteVpc(old.id)
  await ec2.deleteVpc(unwritten.id)
  await ec2.deleteSecurityGroup(group.id)
  for (const name of ['old', 'unwritten', 'guest']) await isGone(client, `legacy/${name}`)
})

/** Who wrote what is kept by version, and no part of what was written. */
const withoutManagers = ({ metadata: { managedFields: _who, ...metadata }, ...object }: KubeObject) => ({
  ...object,
  metadata,
})

test('R3.4 AWSCluster and identities are the same object in each version that was ever served', async () => {
  const client = plane.client()
  const secretRef = { namespace: 'a', name: 'b' }
  const subnets = [{ id: 'subnet-1', cidrBlock: '10.0.0.0/20', isPublic: true, tags: { a: 'b' } }]
  const network = { vpc: { id: 'vpc-1', cidrBlock: '10.0.0.0/16', tags: { a: 'b' } }, subnets }
  const kinds: [{ versions: Record<string, Resource<KubeObject>>; kind: string }, unknown][] = [
    [AWSCluster, { region: 'eu-west-1', sshKeyName: null, networkSpec: network, additionalTags: { a: 'b' } }],
    [AWSCluster, { region: 'eu-west-1', network, controlPlaneEndpoint: { host: 'h', port: 6443 } }],
    [
      AWSClusterRoleIdentity,
      { allowedNamespaces: { list: null, selector: {} }, roleARN: 'arn:aws:iam::123456789012:role/r' },
    ],
    [AWSClusterStaticIdentity, { allowedNamespaces: { list: ['a'] }, secretRef }],
    [AWSClusterStaticIdentity, { allowedNamespaces: {}, secretRef: 'a-name' }],
    [AWSServiceAccountIdentity, { roleARN: 'arn:aws:iam::123456789012:role/r' }],
    [AWSClusterControllerIdentity, { allowedNamespaces: {} }],
  ] as never
  const versions = ['v1alpha3', 'v1alpha4', 'v1beta1', 'v1beta2']
  for (const [n, [kind, spec]] of kinds.entries()) {
    assert.deepEqual(Object.keys(kind.versions), versions)
    for (const written of versions) {
      const name = kind.kind === 'AWSClusterControllerIdentity' ? 'default' : `v${n}-${written}`
      const at = (version: string) => client.of(kind.versions[version]!, 'default')
      const stored = await at(written).create({ metadata: { name }, spec } as never)
      const { apiVersion: _written, ...object } = withoutManagers(stored)
      assert.partialDeepStrictEqual(stored, { spec })
      for (const read of versions) {
        const { apiVersion, ...seen } = withoutManagers(await at(read).get(name))
        assert.equal(apiVersion, `infrastructure.cluster.x-k8s.io/${read}`)
        assert.deepEqual(seen, object)
      }
      await at(written).delete(name)
    }
  }
})
