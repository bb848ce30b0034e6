import assert from 'node:assert/strict'
import { after, before, test, type TestContext } from 'node:test'
import type { Fault } from '../../../testkit/aws-front.ts'
import {
  atOnce,
  contentsOf,
  createCluster,
  ec2Of,
  isBuilt,
  isGone,
  oneCluster,
  removeCluster,
  roleIn,
  says,
} from '../../../testkit/aws-network.ts'
import { runIdentities, type IdentityHub } from '../../../testkit/identity-hub.ts'
import {
  eventually,
  rounds,
  seededRandom,
  startControlPlane,
  startLocalAws,
  type ControlPlane,
  type LocalAws,
  type Random,
} from '../../../testkit/index.ts'
import { AWSCluster, crds, installCrds } from '../../api/index.ts'

let plane: ControlPlane
let local: LocalAws
before(async () => {
  ;[plane, local] = await Promise.all([startControlPlane({ controllerManager: false }), startLocalAws()])
  await installCrds(plane.client(), crds({ conversion: 'none', borrowed: true }))
})
after(() => Promise.all([plane.stop(), local.stop()]))

/** Long enough to go the way of a process that has just started, and short enough to wait for. */
const infrastructure = { ...atOnce, settleMs: 100 }

/** Kills the hub at its `n`th call from now, before AWS has it or before the answer is back, and starts another one. */
const killedAt = async (
  t: TestContext,
  hub: IdentityHub,
  n: number,
  random: Random,
  isOver: () => Promise<boolean>,
): Promise<IdentityHub> => {
  const { promise: killed, resolve } = Promise.withResolvers<void>()
  const how = random.pick(['cut', 'lost'] as const)
  let calls = 0
  let at = ''
  hub.front.fault = ({ action }) => {
    if (++calls < n) return undefined
    at = action
    resolve(hub.stop())
    return how // whatever it still sends is of a process that is gone
  }
  const over = eventually(isOver, { timeoutMs: 90_000 }).then(() => hub.stop())
  await Promise.race([killed, over])
  await hub.stop()
  hub.front.fault = () => undefined
  t.diagnostic(at ? `killed at call ${n}, ${at}, ${how}` : `over before call ${n}`)
  void over.catch(() => {})
  return runIdentities(t, plane, local, { infrastructure, before: hub })
}

test('R3.1 R3.67 a hub that is killed at any point of building or removing a cluster: everything once, and in the end nothing', async (t) => {
  const random = seededRandom(t)
  let hub = await runIdentities(t, plane, local, { infrastructure })
  for (let round = 1; round <= rounds(4); round++) {
    const id = String(310_000_000_000 + round)
    const spec = await roleIn(hub, id)
    const [space, name] = ['killed', `c${round}`]
    const { client, aws, account } = hub
    const isThere = async (): Promise<boolean> => (await client.of(AWSCluster, space).get(name)).status?.ready === true
    const isAbsent = async (): Promise<boolean> => !(await client.of(AWSCluster, space).find(name))
    await createCluster(client, `${space}/${name}`, { spec })
    hub = await killedAt(t, hub, 1 + random.below(40), random, isThere)
    await isBuilt(client, `${space}/${name}`)
    assert.deepEqual(await contentsOf(aws, account(id)), oneCluster)

    await client.of(AWSCluster, space).delete(name)
    hub = await killedAt(t, hub, 1 + random.below(30), random, isAbsent)
    await isGone(client, `${space}/${name}`)
    assert.deepEqual(await contentsOf(aws, account(id)), {})
  }
})

/** Answers like this to the first few calls of each of these actions. */
const first = (times: number, faults: Record<string, Exclude<ReturnType<Fault>, undefined>>): Fault => {
  const left = new Map(Object.keys(faults).map((action) => [action, times]))
  return ({ action }) => {
    const more = left.get(action) ?? 0
    left.set(action, more - 1)
    return more > 0 ? faults[action] : undefined
  }
}
const refusal = (code: string, status = 400) => ({ status, code })

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
