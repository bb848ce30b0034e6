import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { blind, first, refusal, restated } from '../../../testkit/aws-front.ts'
import {
  atOnce,
  contentsOf,
  createCluster,
  ec2Of,
  isBuilt,
  isGone,
  madeThrough,
  oneCluster,
  removeCluster,
  roleIn,
  says,
  shapeOf,
} from '../../../testkit/aws-network.ts'
import { runIdentities } from '../../../testkit/identity-hub.ts'
import { startIdentityProcess, type IdentityProcess } from '../../../testkit/identity-process.ts'
import {
  eventually,
  rounds,
  seededRandom,
  startControlPlane,
  startLocalAws,
  type ControlPlane,
  type LocalAws,
} from '../../../testkit/index.ts'
import { AWSCluster, crds, installCrds } from '../../api/index.ts'
import { findCondition } from '../../runtime/index.ts'

let plane: ControlPlane
let local: LocalAws
before(async () => {
  ;[plane, local] = await Promise.all([startControlPlane({ controllerManager: false }), startLocalAws()])
  await installCrds(plane.client(), crds({ conversion: 'none', borrowed: true }))
})
after(() => Promise.all([plane.stop(), local.stop()]))

/** SIGKILL at the hub's `n`th call from now, before AWS has it or before the answer is back, and another one is started. */
const killedAt = async (
  { front, process: hub }: IdentityProcess,
  n: number,
  how: 'cut' | 'lost',
  isOver: () => Promise<boolean>,
): Promise<string | undefined> => {
  const { promise: killed, resolve } = Promise.withResolvers<void>()
  let calls = 0
  let at: string | undefined
  front.fault = (call) => {
    if (++calls < n) return undefined
    at ??= call.action
    resolve(hub.kill())
    return how // what was on its way when it died
  }
  const over = eventually(async () => at !== undefined || (await isOver()), { timeoutMs: 90_000 })
  await Promise.race([killed, over])
  await hub.kill()
  front.fault = blind(() => undefined) // what was made last may not be shown yet
  hub.spawn()
  return at
}

/** About as many calls as it takes to build a cluster, and to remove it. */
const [callsToBuild, callsToRemove] = [60, 55]

test('R3.1 R3.67 a hub that is killed at any point of building or removing a cluster: everything once, and in the end nothing', async (t) => {
  const random = seededRandom(t)
  const hub = await startIdentityProcess(t, plane, local, { ...atOnce, settleMs: 500 })
  const { client, aws, account, front } = hub
  const points: string[] = []
  const undisturbed = await roleIn(hub, '310000000000')
  await createCluster(client, 'killed/c0', { spec: undisturbed })
  const wanted = await shapeOf(aws, account('310000000000'), await isBuilt(client, 'killed/c0'))
  await removeCluster(client, 'killed/c0')
  for (let round = 1; round <= rounds(2, 25); round++) {
    const id = String(310_000_000_000 + round)
    const spec = await roleIn(hub, id)
    const [space, name] = ['killed', `c${round}`]
    const made = madeThrough(front)
    const isThere = async (): Promise<boolean> => (await client.of(AWSCluster, space).get(name)).status?.ready === true
    const isAbsent = async (): Promise<boolean> => !(await client.of(AWSCluster, space).find(name))
    const kill = async (most: number, isOver: () => Promise<boolean>): Promise<void> => {
      const [n, how] = [1 + random.below(most), random.pick(['cut', 'lost'] as const)]
      const at = await killedAt(hub, n, how, isOver)
      points.push(at ? `${n} ${at} ${how}` : `${n} at rest`)
    }
    const calls = front.calls.length
    await createCluster(client, `${space}/${name}`, { spec })
    await kill(callsToBuild, isThere)
    const cluster = await isBuilt(client, `${space}/${name}`)
    assert.deepEqual(await contentsOf(aws, account(id)), oneCluster, points.at(-1)!)
    assert.deepEqual(await shapeOf(aws, account(id), cluster), wanted)
    const built = front.calls.length

    await client.of(AWSCluster, space).delete(name)
    await kill(callsToRemove, isAbsent)
    await isGone(client, `${space}/${name}`)
    assert.deepEqual(await contentsOf(aws, account(id)), {}, points.at(-1)!)
    assert.deepEqual(made(), oneCluster, points.slice(-2).join())
    t.diagnostic(
      `round ${round}: killed at ${points.slice(-2).join(' and ')}; ${built - calls} and ${front.calls.length - built} calls`,
    )
  }
  t.diagnostic(`${points.length} kills, ${points.filter((one) => one.endsWith('at rest')).length} of them at rest`)
})

test('R3.67 AWS that does not know yet what it has just made: nothing is made twice', async (t) => {
  const hub = await runIdentities(t, plane, local, { infrastructure: atOnce })
  const { client, account, aws, front } = hub
  const spec = await roleIn(hub, '320000000001')
  const unknown = first(1, {
    AttachInternetGateway: refusal('InvalidInternetGatewayID.NotFound'),
    CreateNatGateway: refusal('InvalidSubnetID.NotFound'),
    CreateRoute: refusal('InvalidRouteTableID.NotFound'),
    AuthorizeSecurityGroupIngress: refusal('InvalidGroup.NotFound'),
    CreateListener: refusal('TargetGroupNotFound'),
  })
  const invisible = ['Vpcs', 'Addresses', 'InternetGateways', 'RouteTables', 'SecurityGroups', 'Subnets']
  front.fault = (call) => {
    const list = invisible.find((one) => call.action === `Describe${one}`)
    // None of the lists shows anything until all of it is there.
    if (list && front.count('CreateListener') < 2) return { body: `<${call.action}Response/>` }
    return unknown(call)
  }
  await createCluster(client, 'late/one', { spec })
  await isBuilt(client, 'late/one')
  assert.deepEqual(await contentsOf(aws, account('320000000001')), oneCluster)
  assert.ok(front.count('AttachInternetGateway') > 1)
  front.fault = () => undefined
  await removeCluster(client, 'late/one')
  assert.deepEqual(await contentsOf(aws, account('320000000001')), {})
})

test('R3.71 limits, throttling and things in use: said in the conditions, waited for, others untouched', async (t) => {
  const hub = await runIdentities(t, plane, local, { infrastructure: atOnce })
  const { client, account, aws, front } = hub
  const spec = await roleIn(hub, '330000000001')
  const others = await roleIn(hub, '330000000002')

  // The account is throttled: its budget is its own.
  let ofBad: string | undefined
  front.fault = ({ action, parameters, accessKeyId }) => {
    if (parameters.toString().includes('bad%2Fone')) ofBad = accessKeyId
    if (action === 'AssumeRole' || accessKeyId !== ofBad) return undefined
    return refusal('RequestLimitExceeded', 503)
  }
  await createCluster(client, 'bad/one', { spec })
  await says(client, 'bad/one', 'VpcReady', /RequestLimitExceeded/)
  await createCluster(client, 'good/one', { spec: others })
  await isBuilt(client, 'good/one')
  const asked = front.calls.filter(({ accessKeyId }) => accessKeyId === ofBad).length
  assert.ok(asked <= 7 * 4, `${asked} calls to an account that says no`)

  // A limit of the account needs a person, and goes on when it is lifted.
  front.fault = ({ action }) => (action === 'AllocateAddress' ? refusal('AddressLimitExceeded') : undefined)
  await says(client, 'bad/one', 'NatGatewaysReady', /AddressLimitExceeded/)
  const waits = await says(client, 'bad/one', 'Ready', /3 of 7 completed; NatGatewaysReady/)
  assert.notEqual(waits.status?.ready, true)
  assert.match(waits.spec?.network?.vpc?.id ?? '', /^vpc-/) // what is there is written down
  front.fault = () => undefined
  await isBuilt(client, 'bad/one')
  assert.deepEqual(await contentsOf(aws, account('330000000001')), oneCluster)

  // What is in use is not forced, and keeps what it stands on.
  front.fault = ({ action }) => (action === 'DeleteSubnet' ? refusal('DependencyViolation') : undefined)
  await client.of(AWSCluster, 'bad').delete('one')
  await says(client, 'bad/one', 'SubnetsReady', /Deleting: left in AWS: subnet subnet-.* still in use/)
  const { vpcs, subnets, natGateways, addresses } = await contentsOf(aws, account('330000000001'))
  assert.deepEqual([vpcs, subnets, natGateways, addresses], [1, 6, undefined, undefined])
  front.fault = ({ action }) => (action === 'DeleteVpc' ? refusal('UnauthorizedOperation', 403) : undefined)
  await says(client, 'bad/one', 'VpcReady', /DeletingFailed: .*UnauthorizedOperation/)
  front.fault = () => undefined
  await isGone(client, 'bad/one')
  assert.deepEqual(await contentsOf(aws, account('330000000001')), {})
  assert.deepEqual(await contentsOf(aws, account('330000000002')), oneCluster)
  assert.equal(
    (await ec2Of(aws, account('330000000002')).vpcs({ filters: { 'tag:lanyard.io/aws-cluster': 'good/one' } })).length,
    1,
  )
})

test('R3.66 R3.67 R3.78 things that take AWS minutes: looked at and not made again, ready when they are there, replaced if they fail while the rest goes on; and as slow to go', async (t) => {
  const hub = await runIdentities(t, plane, local, { infrastructure: atOnce })
  const { client, account, aws, front } = hub
  const id = '340000000001'
  const spec = await roleIn(hub, id)
  const available = '<state>available</state>'
  const failure = '<failureCode>InsufficientFreeAddressesInSubnet</failureCode><failureMessage>full</failureMessage>'
  /** How AWS says it; the local one has everything at once. */
  const told = { network: 'pending', nat: 'pending', balancer: 'provisioning', gone: 'deleted', associated: true }
  const later = (ms: number): string => new Date(Date.now() + ms).toISOString()
  /** When gateways say that they were made. */
  let born: string | undefined = later(3_600_000)
  const [failed, ready] = [new Set<string>(), new Set<string>()]
  front.rewrite = ({ action }, { text }) => {
    const kind = action.replace(/^(Create|Describe)/, '').replace(/s$/, '')
    const state = (value: string) => `<state>${value}</state>`
    if (kind === 'Vpc') return restated(text, 'vpcId', available, () => state(told.network))
    if (kind === 'Subnet') return restated(text, 'subnetId', available, () => state(told.network))
    if (kind === 'Addresse' && told.associated)
      return restated(text, 'allocationId', '<domain>', () => '<associationId>eipassoc-1</associationId><domain>')
    if (kind === 'LoadBalancer')
      return restated(text, 'LoadBalancerArn', '<Code>active</Code>', (arn) =>
        failed.has(arn) ? '<Code>failed</Code><Reason>no capacity</Reason>' : `<Code>${told.balancer}</Code>`,
      )
    if (kind !== 'NatGateway') return text
    const living = restated(text, 'natGatewayId', available, (nat) =>
      failed.has(nat) ? state('failed') + failure : state(ready.has(nat) ? 'available' : told.nat),
    )
    const all = restated(living, 'natGatewayId', state('deleted'), (nat) =>
      failed.has(nat) ? state('deleted') + failure : state(told.gone),
    )
    return born ? all.replaceAll(/<createTime>[^<]+/g, `<createTime>${born}`) : all
  }
  /** When AWS was looked at a few times more. */
  const someLooks = async (): Promise<void> => {
    const looks = front.count('DescribeNatGateways') + 3
    await eventually(() => assert.ok(front.count('DescribeNatGateways') >= looks), { timeoutMs: 60_000 })
  }

  await createCluster(client, 'slow/one', { spec })
  const waits = await says(client, 'slow/one', 'LoadBalancerReady', 'WaitForDNSName')
  await says(client, 'slow/one', 'VpcReady', 'VpcCreationStarted')
  await says(client, 'slow/one', 'SubnetsReady', 'SubnetsCreationStarted')
  await says(client, 'slow/one', 'NatGatewaysReady', 'NatGatewaysCreationStarted')
  await says(client, 'slow/one', 'RouteTablesReady', 'NatGatewaysCreationStarted')
  assert.equal(waits.spec?.controlPlaneEndpoint?.host, undefined)
  const calls = front.calls.length
  await someLooks()
  const written = front.calls.slice(calls).filter(({ action }) => !action.startsWith('Describe'))
  assert.deepEqual(written, [])

  told.network = 'failed-insufficient-capacity'
  await says(client, 'slow/one', 'SubnetsReady', /SubnetsReconciliationFailed: subnets subnet-\w+ \(failed-insuf/)
  told.network = 'available'
  await says(client, 'slow/one', 'SubnetsReady', 'True')

  // The load balancer fails.
  const { status } = await says(client, 'slow/one', 'LoadBalancerReady', 'WaitForDNSName')
  assert.notEqual(status?.ready, true)
  failed.add(status!.networkStatus!.apiServerElb!.arn!)
  await says(
    client,
    'slow/one',
    'LoadBalancerReady',
    /LoadBalancerFailed: load balancer .* failed: no capacity; it was del/,
  )
  await eventually(() => assert.equal(front.count('CreateLoadBalancer'), 2), { timeoutMs: 60_000 })
  told.balancer = 'active'
  await says(client, 'slow/one', 'LoadBalancerReady', 'True')

  // One of three gateways fails. The two others are used, and everything else is seen to.
  const ec2 = ec2Of(aws, account(id))
  const [bad, ...good] = await ec2.natGateways({})
  failed.add(bad!.id)
  for (const one of good) ready.add(one.id)
  const why = `NatGatewaysReconciliationFailed: NAT gateway ${bad!.id} .* failed: Insufficient.*: full; `
  const inItsZone = new RegExp(
    `CreationStarted: subnets one-subnet-private-${bad!.tags['lanyard.io/part']!.slice(4)} have no route out`,
  )
  await says(client, 'slow/one', 'NatGatewaysReady', new RegExp(`${why}another one is made at`))
  await says(client, 'slow/one', 'RouteTablesReady', inItsZone)
  const alarmed = await says(
    client,
    'slow/one',
    'Ready',
    /^NatGatewaysReconciliationFailed: 5 of 7 completed; NatGatewaysReady: NAT gateway/,
  )
  const severityOf = (type: string) => (findCondition(alarmed, type) as { severity?: string } | undefined)?.severity
  assert.deepEqual(['NatGatewaysReady', 'Ready', 'RouteTablesReady'].map(severityOf), ['Warning', 'Warning', 'Info'])
  const tables = await ec2.routeTables({})
  const routed = tables.flatMap(({ routes }) => routes.flatMap(({ natGatewayId }) => natGatewayId ?? []))
  assert.deepEqual(routed.toSorted(), good.map((one) => one.id).toSorted())
  // Nothing happens in AWS for an hour now, so it is not looked at, for as long as it takes to ask for something else 200 times.
  const looks = front.count('DescribeNatGateways')
  for (let n = 0; n < 200; n++) await ec2.vpcs({})
  assert.ok(front.count('DescribeNatGateways') - looks <= 3, `${front.count('DescribeNatGateways') - looks} looks`)
  const news = (imageLookupOrg: string) =>
    client.of(AWSCluster, 'slow').patch('one', { merge: { spec: { imageLookupOrg } } })
  const node = async () => (await ec2.securityGroups({})).find(({ name }) => name === 'slow/one-node')!
  const { id: nodeId, ingress } = await node()
  await ec2.revokeIngress(nodeId, ingress)
  await news('drift')
  await eventually(async () => assert.equal((await node()).ingress.length, ingress.length), { timeoutMs: 60_000 })
  assert.equal(front.count('DeleteNatGateway'), 0)
  born = undefined
  await news('now')
  await says(client, 'slow/one', 'NatGatewaysReady', new RegExp(`${why}.*as soon as address .* is free`))
  assert.equal(front.count('DeleteNatGateway'), 1)
  await someLooks()
  assert.equal(front.count('CreateNatGateway'), 3)
  told.associated = false
  await says(
    client,
    'slow/one',
    'NatGatewaysReady',
    new RegExp(`CreationStarted: .*in place of ${bad!.id}, which failed`),
  )
  assert.deepEqual([front.count('CreateNatGateway'), front.count('AllocateAddress')], [4, 3])

  // The second one fails too. The third is made when it is due, and nobody has to ask for it.
  const second = (await ec2.natGateways({})).find((one) => one.state !== 'deleted' && !ready.has(one.id))!
  born = later(0)
  failed.add(second.id)
  await eventually(() => assert.equal(front.count('CreateNatGateway'), 5), { timeoutMs: 60_000 })
  await ec2.deleteNatGateway(second.id) // AWS does so itself, after about an hour
  told.nat = 'available'
  const built = await isBuilt(client, 'slow/one')
  assert.match(built.spec?.controlPlaneEndpoint?.host ?? '', /elb\.amazonaws\.com$/)
  assert.deepEqual(await contentsOf(aws, account(id)), oneCluster)

  // Somebody deletes a gateway, and AWS has not let go of its address.
  told.associated = true
  await ec2.deleteNatGateway(good[0]!.id)
  await news('deleted')
  await says(
    client,
    'slow/one',
    'NatGatewaysReady',
    /Failed: there is no NAT gateway in .* as soon as address .* is free/,
  )
  assert.equal(front.count('CreateNatGateway'), 5)
  told.associated = false
  await isBuilt(client, 'slow/one')
  assert.deepEqual(await contentsOf(aws, account(id)), oneCluster)

  // The same on the way back: gateways, their addresses, and whatever interfaces of the load balancer still stand on.
  Object.assign(told, { gone: 'deleting', associated: true })
  await client.of(AWSCluster, 'slow').delete('one')
  await says(client, 'slow/one', 'Ready', new RegExp(`Deleting: left in AWS: .*NAT gateway ${good[1]!.id}`))
  told.gone = 'deleted'
  await says(client, 'slow/one', 'Ready', /Deleting: left in AWS: address .*, which is still in use/)
  await someLooks()
  assert.equal(front.count('ReleaseAddress'), 0)
  told.associated = false
  const inUse = ['DetachInternetGateway', 'DeleteSubnet', 'DeleteSecurityGroup', 'DeleteVpc']
  front.fault = ({ action }) =>
    inUse.includes(action) ? refusal(action === 'DeleteVpc' ? 'IncorrectState' : 'DependencyViolation') : undefined
  const stands = ['internet gateway igw-', 'subnet subnet-', 'security group sg-', 'VPC vpc-']
  for (const what of stands) {
    await says(client, 'slow/one', 'Ready', new RegExp(`Deleting: left in AWS: ${what}.* still in use`))
    inUse.shift()
  }
  await isGone(client, 'slow/one')
  assert.deepEqual(await contentsOf(aws, account(id)), {})
})

test('R3.71 quotas: each is told where it is met, with what to do; what is there stays, and it goes on when they are raised', async (t) => {
  const hub = await runIdentities(t, plane, local, { infrastructure: atOnce })
  const { client, account, aws, front } = hub
  const spec = await roleIn(hub, '350000000001')
  const quotas = [
    ['CreateVpc', 'VpcLimitExceeded', 'VpcReady'],
    ['CreateNatGateway', 'NatGatewayLimitExceeded', 'NatGatewaysReady'],
    ['CreateLoadBalancer', 'TooManyLoadBalancers', 'LoadBalancerReady'],
  ] as const
  const met = new Set<string>(quotas.map(([action]) => action))
  const made = madeThrough(front)
  const early = first(1, {
    CreateRoute: refusal('IncorrectState'),
    CreateSubnet: refusal('RequestLimitExceeded', 503),
    CreateTargetGroup: refusal('Throttling'),
  })
  front.fault = (call) => {
    const quota = quotas.find(([action]) => action === call.action && met.has(action))
    return quota ? refusal(quota[1]) : early(call)
  }
  await createCluster(client, 'full/one', { spec })
  for (const [action, code, type] of quotas) {
    const cluster = await says(
      client,
      'full/one',
      type,
      new RegExp(`${code}.*; ask for a higher limit in Service Quotas`),
    )
    assert.notEqual(cluster.status?.ready, true)
    met.delete(action)
  }
  await isBuilt(client, 'full/one')
  assert.deepEqual(await contentsOf(aws, account('350000000001')), oneCluster)
  assert.deepEqual(made(), oneCluster)
  assert.ok(front.count('CreateRoute') > 6)
  await removeCluster(client, 'full/one')
})
