import type { RouteTable, Subnet } from '../../aws/index.ts'
import { inParallel, stalled, waiting } from '../../runtime/index.ts'
import { cloudProviderTag, tagsFor } from './names.ts'
import { plannedSubnets, type SubnetSpec } from './plan.ts'
import type { Pending, Scope } from './scope.ts'

const defaultZones = 3
/** Subnets made at the same time. */
const width = 4

/** Those that the network names, or a public and a private one in each zone. */
export const ensureSubnets = (scope: Scope): Promise<Pending | undefined> =>
  scope.found.managed ? ownSubnets(scope) : existingSubnets(scope)

const ownSubnets = async (scope: Scope): Promise<Pending | undefined> => {
  const specs = scope.network.subnets?.length ? scope.network.subnets : await planned(scope)
  const made = new Map<string, Subnet>()
  await inParallel(
    width,
    specs.map((spec) => async () => {
      made.set(spec.id, await ownSubnet(scope, spec))
    }),
  )
  scope.found.subnets = specs.map((spec) => ({
    ...spec,
    resourceID: made.get(spec.id)!.id,
    isPublic: spec.isPublic ?? false,
  }))
  return notAvailable(scope, [...made.values()])
}

/** Besides pending, AWS knows `unavailable`, `failed` and `failed-insufficient-capacity`. */
const notAvailable = (scope: Scope, subnets: readonly Subnet[]): Pending | undefined => {
  const { pending = [], broken = [] } = Object.groupBy(
    subnets.filter(({ state }) => state !== 'available').toSorted((a, b) => (a.id < b.id ? -1 : 1)),
    ({ state }) => (state === 'pending' ? 'pending' : 'broken'),
  )
  if (broken.length > 0)
    return {
      reason: 'SubnetsReconciliationFailed',
      message: `subnets ${broken.map(({ id, state }) => `${id} (${state})`).join(', ')} cannot be used; one that is deleted in AWS is made anew`,
      isFailure: true,
      afterMs: scope.replaceMs,
    }
  if (pending.length === 0) return undefined
  const ids = pending.map(({ id }) => id).join(', ')
  return { reason: 'SubnetsCreationStarted', message: `subnets ${ids} are being made` }
}

/** Written down before the first is made: the zones of a region may be others tomorrow. */
const planned = async (scope: Scope): Promise<SubnetSpec[]> => {
  const { found, network, cluster } = scope
  const zones = (await scope.ec2.zones()).slice(0, network.vpc?.availabilityZoneUsageLimit ?? defaultZones)
  const vpc = { ...network.vpc, id: found.vpcId, cidrBlock: found.vpcCidr }
  const subnets = plannedSubnets(cluster.metadata.name!, zones, vpc)
  await scope.change({ network: { ...network, vpc, subnets } })
  return subnets
}

const ownSubnet = async (scope: Scope, spec: SubnetSpec): Promise<Subnet> => {
  const { found, seen, cluster } = scope
  const { cidrBlock, availabilityZone: zone } = spec
  if (!cidrBlock || !zone)
    throw stalled('SubnetsReconciliationFailed', {
      message: `subnet ${spec.id} is to be made and says no ${cidrBlock ? 'availabilityZone' : 'cidrBlock'}`,
      next: 'set both in spec.network.subnets',
    })
  const role = spec.isPublic ? 'public' : 'private'
  const tags = {
    ...spec.tags,
    ...tagsFor(cluster, `subnet-${spec.id}`, role, {
      [`kubernetes.io/role/${spec.isPublic ? 'elb' : 'internal-elb'}`]: '1',
      [cloudProviderTag(cluster.metadata.name!)]: 'owned',
    }),
  }
  // A block can be taken once in a VPC: there is no second one, however often this is done.
  const present = seen.subnets.find((one) => one.vpcId === found.vpcId && one.cidrBlock === cidrBlock)
  const subnet =
    present ??
    (await scope.make('subnets', () => scope.ec2.createSubnet({ vpcId: found.vpcId, cidrBlock, zone }, tags), {
      onlyOnce: true,
    }))
  if (present) await scope.keepTags(subnet, tags)
  if (spec.isPublic && !subnet.mapPublicIp) await scope.ec2.mapPublicIps(subnet.id)
  return subnet
}

/** Used as they are. All that they get is the tag by which the cluster's cloud provider knows that it may use them. */
const existingSubnets = async (scope: Scope): Promise<Pending | undefined> => {
  const { network, found, cluster } = scope
  const specs = network.subnets ?? []
  if (specs.length === 0)
    throw stalled('SubnetsReconciliationFailed', {
      message: `VPC ${found.vpcId} is not the cluster's own, and spec.network.subnets names none of its subnets`,
      next: 'list those that the cluster is to use, each by its id',
    })
  const [subnets, tables] = await Promise.all([
    scope.ec2.subnets({ ids: specs.map(({ id }) => id) }),
    scope.ec2.routeTables({ filters: { 'vpc-id': found.vpcId } }),
  ])
  const elsewhere = subnets.filter(({ vpcId }) => vpcId !== found.vpcId)
  if (elsewhere.length > 0)
    throw waiting('SubnetsReconciliationFailed', {
      afterMs: 60_000,
      message: `subnets ${elsewhere.map(({ id, vpcId }) => `${id} (of ${vpcId})`).join(', ')} are not in VPC ${found.vpcId}`,
      next: 'list subnets of that VPC only',
    })
  const shared = cloudProviderTag(cluster.metadata.name!)
  const tagsOf = new Map(specs.map(({ id, tags }) => [id, tags]))
  for (const subnet of subnets)
    // The owner of the network may have said more than that it is shared: that stays.
    await scope.tryTags(subnet, { ...tagsOf.get(subnet.id), [shared]: subnet.tags[shared] ?? 'shared' })
  const byId = new Map(subnets.map((subnet) => [subnet.id, subnet]))
  found.subnets = specs.map((spec) => {
    const subnet = byId.get(spec.id)!
    const isPublic = leadsOut(subnet.id, tables)
    if (spec.isPublic !== undefined && spec.isPublic !== isPublic)
      throw waiting('SubnetsReconciliationFailed', {
        afterMs: 60_000,
        message: `subnet ${spec.id} is to be ${spec.isPublic ? 'public' : 'private'}, and its routes lead ${isPublic ? '' : 'not '}to an internet gateway`,
        next: 'leave isPublic out, or change the routes of the network',
      })
    return {
      ...spec,
      resourceID: subnet.id,
      cidrBlock: subnet.cidrBlock,
      availabilityZone: subnet.zone,
      isPublic,
    }
  })
  return undefined
}

/** A subnet is public if its routes, or those of the VPC where it has none, lead to an internet gateway. */
const leadsOut = (subnetId: string, tables: readonly RouteTable[]): boolean => {
  const own = tables.find(({ associations }) => associations.some((one) => one.subnetId === subnetId))
  const table = own ?? tables.find(({ associations }) => associations.some(({ main }) => main))
  return (
    table?.routes.some((route) => route.destination === '0.0.0.0/0' && route.gatewayId?.startsWith('igw-')) ?? false
  )
}
