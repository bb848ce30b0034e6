import { failedFor, type Address, type NatGateway } from '../../aws/index.ts'
import { inParallel } from '../../runtime/index.ts'
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

/** What a zone has: its address, and a gateway, or why there is none and when to look again. */
interface ZoneNat {
  publicIp: string
  gateway?: NatGateway
  setback?: Setback | undefined
}
type Setback = { message: string; afterMs: number }

/** The way out of the private subnets: one NAT gateway with one address in each zone. A zone that AWS fails keeps no other one waiting. */
export const ensureNatGateways = async (scope: Scope): Promise<Pending | undefined> => {
  const plan = natPlan(scope.found.subnets)
  const zones = [...new Set([...plan.values()].map(({ availabilityZone = '' }) => availabilityZone))].toSorted()
  const nats = new Map<string, ZoneNat>()
  await inParallel(
    zones.length || 1,
    zones.map((zone) => async () => {
      nats.set(zone, await natIn(scope, zone))
    }),
  )
  for (const [zone, { availabilityZone = '' }] of plan) {
    const { gateway } = nats.get(availabilityZone)!
    if (gateway?.state === 'available') scope.found.natGateways.set(zone, gateway.id)
  }
  scope.found.natAddresses = zones.map((zone) => nats.get(zone)!.publicIp)
  const busy = zones.flatMap((zone) => busyIn(scope, zone, nats.get(zone)!))
  const setbacks = zones.flatMap((zone) => nats.get(zone)!.setback ?? [])
  const pending = notThere(busy, setbacks)
  scope.found.natAfterMs = pending?.afterMs
  return pending
}

const notThere = (busy: readonly string[], setbacks: readonly Setback[]): Pending | undefined => {
  const waitsFor = busy.length > 0 ? [`NAT gateways ${busy.join(', ')} are not there yet`] : []
  if (setbacks.length > 0)
    return {
      reason: 'NatGatewaysReconciliationFailed',
      message: [...setbacks.map(({ message }) => message), ...waitsFor].join('; '),
      isFailure: true,
      afterMs: busy.length > 0 ? undefined : Math.min(...setbacks.map(({ afterMs }) => afterMs)),
    }
  return waitsFor[0] ? { reason: 'NatGatewaysCreationStarted', message: waitsFor[0] } : undefined
}

const busyIn = (scope: Scope, zone: string, { gateway }: ZoneNat): string[] => {
  if (!gateway || gateway.state === 'available') return []
  const failed = failedIn(scope, zone).at(-1)
  return [
    `${gateway.id} (${gateway.state}${failed ? `, in place of ${failed.id}, which failed: ${failed.failure}` : ''})`,
  ]
}

const natIn = async (scope: Scope, zone: string): Promise<ZoneNat> => {
  const { seen, found, cluster } = scope
  const part = `nat-${zone}`
  const subnetId = found.subnets.find((one) => one.isPublic && one.availabilityZone === zone)!.resourceID!
  const addressTags = tagsFor(cluster, `eip-${zone}`, 'common')
  const address =
    partOf(seen.addresses, `eip-${zone}`) ??
    (await scope.make('addresses', () => scope.ec2.allocateAddress(addressTags)))
  const { publicIp } = address
  const all = seen.natGateways.filter((one) => one.tags[partTag] === part)
  const alive = all.find(({ state }) => state === 'pending' || state === 'available')
  const tags = tagsFor(cluster, part, 'common')
  if (alive) {
    await scope.keepTags(alive, tags)
    await scope.keepTags(address, addressTags)
    return { publicIp, gateway: alive }
  }
  const setback = await setbackIn(scope, zone, address)
  if (setback) return { publicIp, setback }
  // Those that failed or are gone are part of the token: the next one is another one.
  const others = [...all, ...seen.formerNatGateways].map(({ id }) => id).toSorted()
  const token = clientToken(scope.owner, part, subnetId, address.id, scope.lately, ...others)
  const wanted = { subnetId, addressId: address.id, clientToken: token }
  return { publicIp, gateway: await scope.make('natGateways', () => scope.ec2.createNatGateway(wanted, tags)) }
}

/** Gateways of a zone that failed, the last one last. */
const failedIn = ({ seen }: Scope, zone: string): NatGateway[] =>
  [...seen.formerNatGateways, ...seen.natGateways]
    .filter(({ tags, state, failure }) => tags[partTag] === `nat-${zone}` && (state === 'failed' || failure))
    .toSorted((a, b) => a.createdMs - b.createdMs)

/**
 * Why no gateway is made yet. One that failed is replaced, more slowly each time; how often it failed is what AWS shows, so every process
 * knows it. The address is used again. AWS makes no gateway of one that is in use: a failed gateway that still holds it is deleted, and
 * whatever else does is waited for.
 */
const setbackIn = async (
  scope: Scope,
  zone: string,
  { associated, publicIp }: Address,
): Promise<Setback | undefined> => {
  const failed = failedIn(scope, zone)
  const last = failed.at(-1)
  const { settings, room } = scope.infrastructure
  const free = `as soon as address ${publicIp} is free`
  if (!last)
    return associated
      ? {
          message: `there is no NAT gateway in ${zone}; one is made ${free}, which something else uses`,
          afterMs: scope.replaceMs,
        }
      : undefined
  const what = `NAT gateway ${last.id} in ${zone} failed: ${last.failure ?? 'AWS does not say why'}`
  const at = last.createdMs + Math.min(scope.replaceMs * 2 ** (failed.length - 1), longestReplaceMs)
  const pauseMs = at - room.clock.now()
  if (pauseMs > 0) {
    const when = new Date(at).toISOString()
    return { message: `${what}; another one is made at ${when}; mend the cause until then`, afterMs: pauseMs }
  }
  if (!associated) return undefined
  for (const { id, state } of failed) if (state === 'failed') await scope.ec2.deleteNatGateway(id)
  return { message: `${what}; it is removed, and another one is made ${free}`, afterMs: settings.pollMs }
}
