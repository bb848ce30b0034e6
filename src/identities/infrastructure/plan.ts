import type { AWSCluster } from '../../api/index.ts'
import { stalled } from '../../runtime/index.ts'
import { formatBlock, parseBlock, split } from './cidr.ts'

export type Spec = NonNullable<AWSCluster['spec']>
export type Network = NonNullable<Spec['network']>
export type SubnetSpec = NonNullable<Network['subnets']>[number]
export type IngressRule = NonNullable<Network['additionalNodeIngressRules']>[number]

export const defaultVpcCidr = '10.0.0.0/16'
/** Where API servers listen on their machines; what clients use is the port of the load balancer. */
export const targetPort = 6443

/** How often targets are checked, and how long they may take: AWS takes no more than there is between two checks. */
export const healthTimes = ({
  intervalSeconds = 10,
  timeoutSeconds = 5,
}: NonNullable<NonNullable<Spec['controlPlaneLoadBalancer']>['healthCheck']>) => ({ intervalSeconds, timeoutSeconds })

/** `network` was called `networkSpec` in v1alpha3; objects that were stored without our webhook may still say so. */
export const networkOf = (spec: AWSCluster['spec']): Network => spec?.network ?? spec?.networkSpec ?? {}

/**
 * The subnets of a network that says none: in each zone a private and a public one. The VPC is cut into one part more than there are
 * zones, and the first part into small ones: those are for load balancers and gateways, which need few addresses.
 */
export const plannedSubnets = (
  name: string,
  zones: readonly string[],
  { cidrBlock = defaultVpcCidr, subnetSchema = 'PreferPrivate' }: NonNullable<Network['vpc']>,
): SubnetSpec[] => {
  if (zones.length === 0)
    throw stalled('NoZones', { message: 'the region has no zone that can be used', next: 'list spec.network.subnets' })
  const [small, ...large] = split(parseBlock(cidrBlock)!, zones.length + 1)
  const pieces = split(small!, zones.length)
  const smallest = pieces[0]!.bits
  if (smallest > 28)
    throw stalled('VpcTooSmall', {
      message: `VPC block ${cidrBlock} is too small for subnets in ${zones.length} zones: they would be /${smallest}, and AWS takes /28 at least`,
      next: 'use a larger spec.network.vpc.cidrBlock or a smaller availabilityZoneUsageLimit when the cluster is created anew',
    })
  const isPublic = (small: boolean): boolean => small === (subnetSchema === 'PreferPrivate')
  return zones.flatMap((zone, i) =>
    [
      { block: pieces[i]!, isPublic: isPublic(true) },
      { block: large[i]!, isPublic: isPublic(false) },
    ].map(({ block, isPublic }) => ({
      id: `${name}-subnet-${isPublic ? 'public' : 'private'}-${zone}`,
      cidrBlock: formatBlock(block),
      availabilityZone: zone,
      isPublic,
    })),
  )
}

/** Zones with private subnets, and the public subnet whose NAT gateway they use; that of another zone where they have none. */
export const natPlan = (subnets: readonly SubnetSpec[]): Map<string, SubnetSpec> => {
  const byZone = Map.groupBy(subnets, ({ availabilityZone = '' }) => availabilityZone)
  const firstPublic = (zone: string): SubnetSpec | undefined => byZone.get(zone)?.find(({ isPublic }) => isPublic)
  const elsewhere = [...byZone.keys()].toSorted().find(firstPublic) ?? ''
  const needing = [...byZone].filter(([, all]) => all.some(({ isPublic }) => !isPublic)).map(([zone]) => zone)
  const plan = new Map<string, SubnetSpec>()
  for (const zone of needing.toSorted()) {
    const gateway = firstPublic(zone) ?? firstPublic(elsewhere)
    if (!gateway)
      throw stalled('NoPublicSubnet', {
        message: `private subnets in ${zone} have no way out: there is no public subnet for a NAT gateway`,
        next: 'add a subnet with isPublic: true to spec.network.subnets',
      })
    plan.set(zone, gateway)
  }
  return plan
}

/** Where machines can be put, and which of these zones the load balancer reaches. */
export const failureDomainsOf = (
  subnets: readonly SubnetSpec[],
  reached: ReadonlySet<string> | undefined,
): Record<string, { controlPlane: boolean }> => {
  const isPrivate = subnets.filter(({ isPublic }) => !isPublic)
  const zones = (isPrivate.length > 0 ? isPrivate : subnets).map(({ availabilityZone = '' }) => availabilityZone)
  return Object.fromEntries(zones.toSorted().map((zone) => [zone, { controlPlane: reached?.has(zone) ?? true }]))
}
