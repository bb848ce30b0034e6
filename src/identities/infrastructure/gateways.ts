import { failedFor, type Address, type NatGateway } from '../../aws/index.ts'
import { inParallel, waiting } from '../../runtime/index.ts'
import { clientToken, partTag, tagsFor } from './names.ts'
import { natPlan } from './plan.ts'
import type { Pending, Scope } from './scope.ts'
import { partOf } from './snapshot.ts'

/** AWS shows a gateway that failed for about an hour. */
const longestReplaceMs = 1_800_000

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
  const busy = [...gateways].filter(([, { state }]) => state !== 'available')
  if (busy.length === 0) return undefined
  const said = busy.map(([zone, { id, state }]) => {
    const failed = failedIn(scope, zone).at(-1)
    return `${id} (${state}${failed ? `, in place of ${failed.id}, which failed: ${failed.failure}` : ''})`
  })
  return {
    reason: 'NatGatewaysCreationStarted',
    message: `NAT gateways ${said.join(', ')} are not there yet`,
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
  if (!alive) await mayReplace(scope, zone, address)
  const tags = tagsFor(cluster, part, 'common')
  // Those that failed or are gone are part of the token: the next one is another one.
  const others = [...all, ...seen.formerNatGateways].map(({ id }) => id).toSorted()
  const token = clientToken(scope.owner, part, subnetId, address.id, scope.lately, ...others)
  const gateway =
    alive ??
    (await scope.make('natGateways', () =>
      scope.ec2.createNatGateway({ subnetId, addressId: address.id, clientToken: token }, tags),
    ))
  if (alive) await Promise.all([scope.keepTags(gateway, tags), scope.keepTags(address, addressTags)])
  return { gateway, publicIp: address.publicIp }
}

/** Gateways of a zone that failed, the last one last. */
const failedIn = ({ seen }: Scope, zone: string): NatGateway[] =>
  [...seen.formerNatGateways, ...seen.natGateways]
    .filter(({ tags, state, failure }) => tags[partTag] === `nat-${zone}` && (state === 'failed' || failure))
    .toSorted((a, b) => a.createdMs - b.createdMs)

/**
 * A gateway that failed is replaced, more slowly each time. How often it failed is what AWS shows, so every process knows it. The
 * address is used again, and where the failed one still holds it, that one is deleted first.
 */
const mayReplace = async (scope: Scope, zone: string, address: Address): Promise<void> => {
  const failed = failedIn(scope, zone)
  const last = failed.at(-1)
  if (!last) return
  const { settings, room } = scope.infrastructure
  const pauseMs = Math.min(scope.replaceMs * 2 ** (failed.length - 1), longestReplaceMs)
  const at = last.createdMs + pauseMs
  const message = `NAT gateway ${last.id} in ${zone} failed: ${last.failure ?? 'AWS does not say why'}`
  if (at > room.clock.now())
    throw waiting('NatGatewaysReconciliationFailed', {
      afterMs: at - room.clock.now(),
      message,
      next: `another one is made at ${new Date(at).toISOString()}; mend the cause until then`,
    })
  if (!address.associated) return
  for (const { id, state } of failed) if (state === 'failed') await scope.ec2.deleteNatGateway(id)
  throw waiting('NatGatewaysReconciliationFailed', {
    afterMs: settings.pollMs,
    message,
    next: `it is removed, and another one is made as soon as address ${address.publicIp} is free`,
  })
}
