import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import {
  atOnce,
  chainTo,
  contentsOf,
  createCluster,
  ec2Of,
  isBuilt,
  isGone,
  keysOf,
  mayBuild,
  oneCluster,
  removeCluster,
  roleIn,
  says,
  tokensOf,
} from '../../../testkit/aws-network.ts'
import {
  controllerIdentity,
  isReady,
  managementAccount,
  roleReference,
  runIdentities,
  serveWebhooks,
  stands,
} from '../../../testkit/identity-hub.ts'
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
  Cluster,
  crds,
  installCrds,
} from '../../api/index.ts'
import { isInvalid } from '../../kube/index.ts'

let plane: ControlPlane
let local: LocalAws
before(async () => {
  ;[plane, local] = await Promise.all([startControlPlane({ controllerManager: false }), startLocalAws()])
  await installCrds(plane.client(), crds({ conversion: 'none', borrowed: true }))
})
after(() => Promise.all([plane.stop(), local.stop()]))

/** The calls of one pass over a cluster that is complete. */
const atRest = [
  'DescribeAddresses',
  'DescribeInternetGateways',
  'DescribeListeners',
  'DescribeLoadBalancers',
  'DescribeNatGateways',
  'DescribeRouteTables',
  'DescribeSecurityGroups',
  'DescribeSubnets',
  'DescribeTags',
  'DescribeTags',
  'DescribeTargetGroups',
  'DescribeVpcAttribute',
  'DescribeVpcs',
]

test('R3.1 R3.3 R3.40 R3.53 R3.66 R3.71 a cluster by each kind of identity, built in its account and in no other; ready, quiet, deleted, and the accounts are empty', async (t) => {
  const hub = await runIdentities(t, plane, local, { infrastructure: atOnce })
  const { client, account, aws, front } = hub
  await account(managementAccount).iam('PutUserPolicy', {
    UserName: 'capa',
    PolicyName: 'build',
    PolicyDocument: JSON.stringify(mayBuild),
  })
  await client
    .of(AWSClusterControllerIdentity)
    .create({ metadata: { name: 'default' }, spec: { allowedNamespaces: {} } })
  const tokens = await tokensOf(hub, '210000000004', 'token')
  const clusters = {
    [managementAccount]: 'own/a',
    '210000000001': 'keys/b',
    '210000000002': 'role/c',
    '210000000003': 'chain/d',
    '210000000004': 'token/e',
  }
  await createCluster(client, 'own/a', { spec: { identityRef: controllerIdentity as never } })
  await createCluster(client, 'keys/b', { spec: await keysOf(hub, '210000000001') })
  await createCluster(client, 'role/c', { spec: await roleIn(hub, '210000000002') })
  await createCluster(client, 'chain/d', { spec: await chainTo(hub, '210000000003') })
  await createCluster(client, 'token/e', { spec: { identityRef: tokens.identityRef } })
  await tokens.create()

  for (const [id, key] of Object.entries(clusters)) {
    const { spec, status } = await isBuilt(client, key)
    assert.equal(spec?.accountID, id)
    assert.deepEqual(await contentsOf(aws, account(id)), oneCluster, key)
    const [vpc] = await ec2Of(aws, account(id)).vpcs({ ids: [spec?.network?.vpc?.id ?? ''] })
    assert.equal(vpc?.tags['lanyard.io/aws-cluster'], key)
    assert.match(spec?.controlPlaneEndpoint?.host ?? '', /eu-west-1\.elb\.amazonaws\.com$/)
    assert.deepEqual(Object.keys(status?.failureDomains ?? {}), ['eu-west-1a', 'eu-west-1b', 'eu-west-1c'])
    assert.equal(status?.networkStatus?.natGatewaysIPs?.length, 3)
  }
  assert.deepEqual(await contentsOf(aws, account('210000000009')), {}) // only passed through

  // A look at a cluster that is as it should be: what `docs/spec/awscluster.md` says it costs, and nothing is written.
  const looked = front.calls.length
  const listened = front.count('DescribeListeners')
  await client.of(AWSCluster, 'role').patch('c', { merge: { spec: { imageLookupOrg: 'news' } } })
  await eventually(() => assert.equal(front.count('DescribeListeners'), listened + 1)) // the last of them
  const actions = front.calls.slice(looked).map(({ action }) => action)
  assert.deepEqual(actions.toSorted(), atRest)

  // Whatever else happens to the objects, AWS is not asked while nothing that matters has changed.
  const calls = front.calls.length
  for (const key of Object.values(clusters)) {
    const [space, name] = key.split('/') as [string, string]
    const clustersOf = client.of(AWSCluster, space)
    await clustersOf.patch(name, { merge: { metadata: { labels: { touched: 'yes' } } } })
  }
  await createCluster(client, 'role/later', { spec: { identityRef: roleReference('r210000000002') as never } })
  await isBuilt(client, 'role/later') // by now the others have been seen
  const later = front.calls.slice(calls).map(({ parameters }) => parameters.get('Filter.1.Value.1'))
  assert.deepEqual(new Set(later.filter((value) => value?.includes('/'))), new Set(['role/later']))

  await removeCluster(client, 'role/later')
  await Promise.all(Object.values(clusters).map((key) => removeCluster(client, key)))
  for (const id of Object.keys(clusters)) assert.deepEqual(await contentsOf(aws, account(id)), {}, id)
})

test('R3.71 many clusters at once: AWS is looked at once for each, also where the cache has not seen yet that it is ready', async (t) => {
  const hub = await runIdentities(t, plane, local, { infrastructure: atOnce })
  const { client, account, aws, front } = hub
  const spec = await roleIn(hub, '210000000020')
  const keys = Array.from({ length: 20 }, (_, i) => `many/m${i}`)
  await Promise.all(keys.map((key) => createCluster(client, key, { spec })))
  for (const key of keys) await isBuilt(client, key)
  // When another one is built, whatever the others had led to has been seen.
  await createCluster(client, 'many/last', { spec })
  await isBuilt(client, 'many/last')
  assert.equal(front.count('DescribeSubnets'), keys.length + 1)
  await Promise.all([...keys, 'many/last'].map((key) => removeCluster(client, key)))
  assert.deepEqual(await contentsOf(aws, account('210000000020')), {})
})

test('R3.54 two clusters of one name: each has its own network in its own account or region, and the second in one place is not built', async (t) => {
  const hub = await runIdentities(t, plane, local, { infrastructure: atOnce })
  const { client, account, aws } = hub
  const one = await roleIn(hub, '220000000001')
  const two = await roleIn(hub, '220000000002')
  await createCluster(client, 'blue/same', { spec: one })
  await createCluster(client, 'green/same', { spec: two })
  await createCluster(client, 'far/same', { spec: { ...one, region: 'us-west-2' } })
  for (const key of ['blue/same', 'green/same', 'far/same']) await isBuilt(client, key)
  await createCluster(client, 'late/same', { spec: one })
  await stands(client, 'late/same', /^False\/ClusterNameTaken/)
  await says(client, 'late/same', 'Ready', 'WaitingForIdentity')
  assert.deepEqual(await contentsOf(aws, account('220000000001')), oneCluster)

  await removeCluster(client, 'late/same') // has nothing, and takes nothing along
  await removeCluster(client, 'blue/same')
  assert.deepEqual(await contentsOf(aws, account('220000000001')), {})
  assert.deepEqual(await contentsOf(aws, account('220000000001'), 'us-west-2'), oneCluster)
  assert.deepEqual(await contentsOf(aws, account('220000000002')), oneCluster)
})

test('R3.68 a paused cluster is not touched, neither when it is made nor when it goes; who is at work holds a move back', async (t) => {
  const hub = await runIdentities(t, plane, local, { infrastructure: atOnce })
  const { client, account, aws, front } = hub
  const identity = await roleIn(hub, '240000000001')
  const other = await roleIn(hub, '240000000002')
  const blockMove = 'clusterctl.cluster.x-k8s.io/block-move'
  const cluster = (name: string) => client.of(AWSCluster, 'moved').get(name)
  const pause = (name: string, paused: boolean) =>
    client.of(Cluster, 'moved').patch(name, { merge: { spec: { paused: paused || null } } })
  /** When another cluster is complete, whatever was on its way has happened. */
  const meanwhile = async (name: string): Promise<void> => {
    await createCluster(client, `other/${name}`, { spec: other })
    await isBuilt(client, `other/${name}`)
  }

  // Killed while it worked, and then paused: nobody would take this away but whoever comes next.
  const annotations = { [blockMove]: 'lanyard' }
  await createCluster(client, 'moved/one', {
    spec: { ...identity, accountID: '240000000001' },
    paused: true,
    annotations,
  })
  await eventually(async () => assert.equal((await cluster('one')).metadata.annotations?.[blockMove], undefined))
  await meanwhile('first')
  assert.deepEqual(await contentsOf(aws, account('240000000001')), {})
  assert.deepEqual((await cluster('one')).status?.conditions, undefined)

  // Paused in the middle: the move waits until who works has finished, and then nothing happens any more.
  const { promise: begun, resolve: begins } = Promise.withResolvers<void>()
  front.fault = ({ action, parameters }) => {
    if (action === 'CreateVpc' && parameters.toString().includes('moved%2Fone')) begins()
    return undefined
  }
  await pause('one', false)
  await begun
  assert.equal((await cluster('one')).metadata.annotations?.[blockMove], 'lanyard')
  await pause('one', true)
  await eventually(async () => assert.equal((await cluster('one')).metadata.annotations?.[blockMove], undefined))
  const calls = (await contentsOf(aws, account('240000000001')), front.calls.length)
  const resourceVersion = (await cluster('one')).metadata.resourceVersion
  await client.of(AWSCluster, 'moved').delete('one')
  await meanwhile('second')
  const since = front.calls.slice(calls).map(({ parameters }) => parameters.toString())
  assert.deepEqual(
    since.filter((text) => text.includes('moved%2Fone')),
    [],
  )
  assert.notEqual((await cluster('one')).metadata.resourceVersion, resourceVersion) // it is being deleted
  assert.ok((await cluster('one')).metadata.finalizers?.length)

  await pause('one', false)
  await isGone(client, 'moved/one')
  assert.deepEqual(await contentsOf(aws, account('240000000001')), {})

  // The annotation on the object itself pauses as well, and one for somebody else's cluster is as good.
  await createCluster(client, 'moved/two', { spec: identity, annotations: { 'cluster.x-k8s.io/paused': '' } })
  await createCluster(client, 'moved/three', { spec: identity, annotations: { 'cluster.x-k8s.io/managed-by': 'x' } })
  await stands(client, 'moved/three', isReady('240000000001'))
  await meanwhile('third')
  assert.deepEqual(await contentsOf(aws, account('240000000001')), {})
})

test('R3.17 R3.53 nothing is done without a Cluster, nor while the identity may not be used; drift is repaired when it may again', async (t) => {
  const hub = await runIdentities(t, plane, local, { infrastructure: { ...atOnce, driftMs: 200 } })
  const { client, account, aws, front } = hub
  const identity = await roleIn(hub, '250000000001')
  const ec2 = ec2Of(aws, account('250000000001'))
  await client.of(AWSCluster, 'default').create({
    metadata: { namespace: 'default', name: 'alone' },
    spec: { region: 'eu-west-1', ...identity },
  })
  await says(client, 'default/alone', 'Ready', 'WaitingForCluster')
  await createCluster(client, 'drift/one', { spec: identity })
  const built = await isBuilt(client, 'drift/one')
  const groups = built.status!.networkStatus!.securityGroups!
  const nodeRules = async () => (await ec2.securityGroups({ ids: [groups['node']!.id] }))[0]!.ingress
  const wanted = await nodeRules()

  // Somebody opens what was closed, closes what was open, and takes a way out.
  const ssh = {
    protocol: 'tcp',
    fromPort: 22,
    toPort: 22,
    cidrs: ['0.0.0.0/0'],
    ipv6Cidrs: [],
    groupIds: [],
    prefixListIds: [],
  }
  await ec2.authorizeIngress(groups['node']!.id, [ssh])
  await ec2.revokeIngress(groups['node']!.id, [wanted[0]!])
  const table = built.spec!.network!.subnets!.find(({ isPublic }) => isPublic)!.routeTableId!
  await ec2.replaceRoute(table, '0.0.0.0/0', { natGatewayId: 'nat-of-somebody' })
  const sorted = (rules: typeof wanted) => rules.map((rule) => JSON.stringify(rule)).toSorted()
  await eventually(async () => assert.deepEqual(sorted(await nodeRules()), sorted(wanted)))
  await eventually(async () => {
    const [{ routes } = { routes: [] }] = await ec2.routeTables({ ids: [table] })
    assert.match(routes.find(({ destination }) => destination === '0.0.0.0/0')?.gatewayId ?? '', /^igw-/)
  })

  const nobody = { allowedNamespaces: { list: ['nobody'] } }
  await client.of(AWSClusterRoleIdentity).patch('r250000000001', { merge: { spec: nobody } })
  const stopped = await says(client, 'drift/one', 'Ready', 'WaitingForIdentity')
  assert.equal(stopped.status?.ready, true) // machines were made on it: it does not become unmade
  const calls = front.calls.length
  await client.of(AWSCluster, 'drift').delete('one')
  await client.of(AWSCluster, 'drift').patch('one', { merge: { metadata: { labels: { touched: 'yes' } } } })
  await stands(client, 'drift/one', /^False\/PrincipalUsageUnauthorized/)
  assert.equal(front.calls.length, calls)
  assert.deepEqual(await contentsOf(aws, account('250000000001')), oneCluster)
  await client
    .of(AWSClusterRoleIdentity)
    .patch('r250000000001', { merge: { spec: { allowedNamespaces: { list: ['drift'] } } } })
  await isGone(client, 'drift/one')
  assert.deepEqual(await contentsOf(aws, account('250000000001')), {})
})

test('R3.4 R3.69 what is not built here is refused with its field; v1alpha3 is understood; what was made cannot be changed', async (t) => {
  const hub = await runIdentities(t, plane, local, { infrastructure: atOnce })
  const { client, account, aws, front } = hub
  await serveWebhooks(plane, hub)
  const identity = await roleIn(hub, '260000000001')
  await createCluster(client, 'forms/one', {
    spec: {
      ...identity,
      networkSpec: { vpc: { cidrBlock: '10.20.0.0/16', availabilityZoneUsageLimit: 1 } },
      controlPlaneLoadBalancer: { name: 'chosen', scheme: 'Internet-facing' as never, crossZoneLoadBalancing: true },
      additionalTags: { team: 'blue' },
    },
  })
  const built = await isBuilt(client, 'forms/one')
  assert.equal(built.spec?.networkSpec, undefined)
  assert.deepEqual(
    built.spec?.network?.subnets?.map(({ cidrBlock }) => cidrBlock),
    ['10.20.0.0/17', '10.20.128.0/17'],
  )
  assert.equal(built.status?.networkStatus?.apiServerElb?.name, 'chosen')
  const [vpc] = await ec2Of(aws, account('260000000001')).vpcs({ ids: [built.spec?.network?.vpc?.id ?? ''] })
  assert.equal(vpc?.tags['team'], 'blue')

  const clusters = client.of(AWSCluster, 'forms')
  const refuses = (change: Promise<unknown>, message: RegExp) =>
    assert.rejects(change, (error: Error) => isInvalid(error) && message.test(error.message))
  const patched = (spec: unknown) => clusters.patch('one', { merge: { spec } })
  await refuses(
    patched({ controlPlaneLoadBalancer: { name: 'other' } }),
    /controlPlaneLoadBalancer\.name: cannot be changed/,
  )
  await refuses(patched({ network: { vpc: { cidrBlock: '10.30.0.0/16' } } }), /vpc\.cidrBlock: cannot be changed/)
  await refuses(patched({ network: { subnets: [] } }), /subnets\[one-subnet-public-eu-west-1a\]: cannot be taken out/)
  await refuses(patched({ bastion: { enabled: true } }), /spec\.bastion\.enabled: is not supported/)
  await refuses(
    createCluster(client, 'forms/two', {
      spec: { ...identity, controlPlaneLoadBalancer: { loadBalancerType: 'classic' } },
    }),
    /loadBalancerType: is not supported: write nlb/,
  )
  await patched({ additionalTags: { team: 'green' } })
  await eventually(async () => {
    const [now] = await ec2Of(aws, account('260000000001')).vpcs({ ids: [vpc?.id ?? ''] })
    assert.equal(now?.tags['team'], 'green')
  })
  await client.of(Cluster, 'forms').delete('two')
  await removeCluster(client, 'forms/one')

  // Deleted in the middle of being built, wherever that is.
  const { promise: deleted, resolve } = Promise.withResolvers<unknown>()
  front.fault = ({ action }) => {
    if (action === 'CreateSubnet') resolve(clusters.delete('three'))
    return undefined
  }
  await createCluster(client, 'forms/three', { spec: identity })
  await deleted
  await isGone(client, 'forms/three')
  assert.deepEqual(await contentsOf(aws, account('260000000001')), {})
})
