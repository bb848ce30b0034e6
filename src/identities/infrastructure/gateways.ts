import { failedFor, type NatGateway } from '../../aws/index.ts'
import { inParallel, waiting } from '../../runtime/index.ts'
import { clientToken, partTag, tagsFor } from './names.ts'
import { natPlan } from './plan.ts'
import type { Pending, Scope } from './scope.ts'
import { partOf } from './snapshot.ts'

/** A gateway that failed is shown by AWS for about an hour; until somebody has looked, another one would fail too. */
const failedMs = 300_000

/** The way out of the public subnets. */
export const ensureInternetGateway = async (scope: Scope): Promise<Pending | undefined> => {
  const { seen, found, cluster } = scope
  const tags = tagsFor(cluster, 'igw', 'common')
  const present =
    seen.internetGateways.find(({ vpcIds }) => vpcIds.includes(found.vpcId)) ??
    seen.internetGateways.find(({ vpcIds }) => vpcIds.length === 0)
  const gateway = present ?? (await scope.make('internetGateways', () => scope.ec2.createInternetGateway(tags)))
  if (present) await scope.keepTags(gateway, tags)
  if (!gateway.vpcIds.includes(found.vpcId)) await attach(scope, gateway.id)
  found.internetGatewayId = gateway.id
  return undefined
}

const attach = async (scope: Scope, id: string): Promise<void> => {
  try {
    await scope.ec2.attachInternetGateway(id, scope.found.vpcId)
  } catch (error) {
    if (!failedFor(error, 'AlreadyExists')) throw error // it was, and the list did not show it yet
  }
}

/** The way out of the private subnets: one NAT gateway with one address in each zone. */
export const ensureNatGateways = async (scope: Scope): Promise<Pending | undefined> => {
  const plan = natPlan(scope.found.subnets)
  const zones = new Set([...plan.values()].map(({ availabilityZone = '' }) => availabilityZone))
  const gateways = new Map<string, NatGateway>()
  const addresses = new Map<string, string>()
  await inParallel(
    zones.size || 1,
    [...zones].map((zone) => async () => {
      const { gateway, publicIp } = await natGatewayIn(scope, zone)
      gateways.set(zone, gateway)
      addresses.set(zone, publicIp)
    }),
  )
  for (const [zone, { availabilityZone = '' }] of plan) {
    const gateway = gateways.get(availabilityZone)!
    if (gateway.state === 'available') scope.found.natGateways.set(zone, gateway.id)
  }
  scope.found.natAddresses = [...zones].toSorted().map((zone) => addresses.get(zone)!)
  const busy = [...gateways.values()].filter(({ state }) => state !== 'available')
  if (busy.length === 0) return undefined
  return {
    reason: 'NatGatewaysCreationStarted',
    message: `NAT gateways ${busy.map(({ id, state }) => `${id} (${state})`).join(', ')} are not there yet`,
  }
}

const natGatewayIn = async (scope: Scope, zone: string): Promise<{ gateway: NatGateway; publicIp: string }> => {
  const { seen, found, cluster } = scope
  const part = `nat-${zone}`
  const subnetId = found.subnets.find((one) => one.isPublic && one.availabilityZone === zone)!.resourceID!
  const addressTags = tagsFor(cluster, `eip-${zone}`, 'common')
  const address =
    partOf(seen.addresses, `eip-${zone}`) ??
    (await scope.make('addresses', () => scope.ec2.allocateAddress(addressTags)))
  const all = seen.natGateways.filter((one) => one.tags[partTag] === part)
  const alive = all.find(({ state }) => state === 'pending' || state === 'available')
  const failed = all.find(({ state }) => state === 'failed')
  if (!alive && failed)
    throw waiting('NatGatewaysReconciliationFailed', {
      afterMs: failedMs,
      message: `NAT gateway ${failed.id} in ${zone} failed: ${failed.failure ?? 'AWS does not say why'}`,
      next: 'mend the cause and delete the gateway: another one is made',
    })
  const tags = tagsFor(cluster, part, 'common')
  // Those that are on their way out are part of the token: the next one is another one.
  const token = clientToken(scope.owner, part, subnetId, address.id, ...all.map(({ id }) => id))
  const gateway =
    alive ??
    (await scope.make(
      'natGateways',
      () => scope.ec2.createNatGateway({ subnetId, addressId: address.id, clientToken: token }, tags),
      { onlyOnce: true },
    ))
  if (alive) await Promise.all([scope.keepTags(gateway, tags), scope.keepTags(address, addressTags)])
  return { gateway, publicIp: address.publicIp }
}
