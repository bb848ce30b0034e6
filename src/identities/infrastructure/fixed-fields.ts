import { isDeepStrictEqual } from 'node:util'
import { finalizer, type AWSCluster } from '../../api/index.ts'
import { hasFinalizer } from '../../runtime/index.ts'
import type { Cause } from '../../runtime/webhook/index.ts'
import { networkOf, type SubnetSpec } from './plan.ts'

/** What cannot be changed once something was made of it. Filling in what was left open is no change: that is what the hub does. */
export const fixedFields = (cluster: AWSCluster, old: AWSCluster | undefined): Cause[] => {
  if (!old || !hasFinalizer(old, finalizer.awsCluster)) return []
  const [now, before] = [networkOf(cluster.spec), networkOf(old.spec)]
  const balancer = cluster.spec?.controlPlaneLoadBalancer
  const balancerBefore = old.spec?.controlPlaneLoadBalancer
  const fixed: [field: string, value: unknown, was: unknown][] = [
    ['spec.controlPlaneLoadBalancer.name', balancer?.name, balancerBefore?.name ?? ''],
    [
      'spec.controlPlaneLoadBalancer.scheme',
      balancer?.scheme ?? 'internet-facing',
      balancerBefore?.scheme ?? 'internet-facing',
    ],
    ['spec.controlPlaneLoadBalancer.loadBalancerType', typeOf(balancer), typeOf(balancerBefore)],
    ['spec.network.vpc.cidrBlock', now.vpc?.cidrBlock, before.vpc?.cidrBlock],
    ['spec.network.vpc.subnetSchema', now.vpc?.subnetSchema, before.vpc?.subnetSchema],
    [
      'spec.network.vpc.availabilityZoneUsageLimit',
      now.vpc?.availabilityZoneUsageLimit,
      before.vpc?.availabilityZoneUsageLimit,
    ],
  ]
  return [
    ...fixed
      .filter(([, value, was]) => was !== undefined && (value ?? '') !== was)
      .map(([field]) => ({ field, message: 'cannot be changed: AWS has it already; create the cluster anew' })),
    ...subnetChanges(now.subnets ?? [], before.subnets ?? []),
  ]
}

const typeOf = (balancer: { loadBalancerType?: string | undefined } | undefined): string =>
  balancer?.loadBalancerType || 'nlb'

const subnetChanges = (now: readonly SubnetSpec[], before: readonly SubnetSpec[]): Cause[] =>
  before.flatMap((old): Cause[] => {
    const subnet = now.find(({ id }) => id === old.id)
    const field = `spec.network.subnets[${old.id}]`
    if (!subnet) return [{ field, message: 'cannot be taken out: machines may be in it; create the cluster anew' }]
    const places = ['cidrBlock', 'availabilityZone', 'isPublic'] as const
    return places
      .filter((part) => old[part] !== undefined && !isDeepStrictEqual(subnet[part], old[part]))
      .map((part) => ({ field: `${field}.${part}`, message: 'cannot be changed: add another subnet in place of it' }))
  })
