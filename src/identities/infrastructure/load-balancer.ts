import { isDeepStrictEqual } from 'node:util'
import type { AwsTags, HealthCheck, LoadBalancer, TargetGroup } from '../../aws/index.ts'
import { stalled, waiting } from '../../runtime/index.ts'
import { loadBalancerName, missingTags, ownerTag, tagsFor, targetGroupName } from './names.ts'
import { healthTimes, targetPort, type Spec, type SubnetSpec } from './plan.ts'
import type { Pending, Scope } from './scope.ts'

type BalancerSpec = NonNullable<Spec['controlPlaneLoadBalancer']>
const lookAgainMs = 60_000

export const isDisabled = ({ spec }: { spec?: Spec | undefined }): boolean =>
  spec?.controlPlaneLoadBalancer?.loadBalancerType === 'disabled'

/** The network load balancer in front of the API server, and the address that clients use. */
export const ensureLoadBalancer = async (scope: Scope): Promise<Pending | undefined> => {
  const { cluster } = scope
  if (isDisabled(cluster))
    return cluster.spec?.controlPlaneEndpoint?.host
      ? undefined
      : {
          reason: 'WaitForExternalControlPlaneEndpoint',
          message: 'the load balancer is disabled: set spec.controlPlaneEndpoint to where the API server is reached',
          afterMs: scope.infrastructure.settings.driftMs, // AWS has nothing to do with it, and whoever sets it is heard at once
        }
  const spec = cluster.spec?.controlPlaneLoadBalancer ?? {}
  const tags = tagsFor(cluster, 'nlb', 'apiserver')
  const balancer = (await ownLoadBalancer(scope)) ?? (await makeLoadBalancer(scope, spec, tags))
  if (balancer.state === 'failed') await discard(scope, balancer)
  await keepBalancer(scope, spec, balancer)
  const group = await ensureTargetGroup(scope, spec, tagsFor(cluster, 'tg', 'apiserver'))
  await ensureListener(scope, balancer.arn, group.arn, tags)
  scope.found.loadBalancer = balancer
  if (balancer.dnsName === '' || balancer.state === 'provisioning')
    return { reason: 'WaitForDNSName', message: `load balancer ${balancer.name} is being made` }
  await scope.change({
    controlPlaneEndpoint: cluster.spec?.controlPlaneEndpoint?.host
      ? cluster.spec.controlPlaneEndpoint
      : { host: balancer.dnsName, port: scope.apiPort },
  })
  return undefined
}

/** What failed before anybody knew its address is made anew. What clients know has no replacement. */
const discard = async (scope: Scope, { arn, name, failure }: LoadBalancer): Promise<never> => {
  const isKnown = Boolean(scope.cluster.spec?.controlPlaneEndpoint?.host)
  if (!isKnown) await scope.elb.deleteLoadBalancer(arn)
  throw waiting('LoadBalancerFailed', {
    afterMs: isKnown ? lookAgainMs : scope.replaceMs,
    message: `load balancer ${name} failed: ${failure ?? 'AWS does not say why'}`,
    next: isKnown
      ? 'clients know its address: see with aws elbv2 describe-load-balancers what can be done'
      : 'it was deleted, and another one is made; mend the cause until then',
  })
}

/** By its name, which is unique in account and region. One of that name which is not ours is not touched. */
export const ownLoadBalancer = async (scope: Scope): Promise<LoadBalancer | undefined> => {
  const balancer = await scope.elb.loadBalancer(loadBalancerName(scope.cluster))
  if (!balancer || !(await isOurs(scope, 'load balancer', balancer, 'nlb'))) return undefined
  return balancer
}

export const ownTargetGroup = async (scope: Scope): Promise<TargetGroup | undefined> => {
  const group = await scope.elb.targetGroup(targetGroupName(scope.cluster))
  if (!group || !(await isOurs(scope, 'target group', group, 'tg'))) return undefined
  return group
}

/** Ours, and tagged as it should be. What is not ours is in the way of a cluster that is made, and not of one that goes. */
const isOurs = async (
  scope: Scope,
  what: string,
  { arn, name }: { arn: string; name: string },
  part: string,
): Promise<boolean> => {
  const tags = await scope.elb.tags(arn)
  const isDeleting = scope.cluster.metadata.deletionTimestamp !== undefined
  if (tags[ownerTag] !== scope.owner) {
    if (isDeleting) return false
    throw notOurs(what, name, tags)
  }
  const missing = missingTags(tags, tagsFor(scope.cluster, part, 'apiserver'))
  if (!isDeleting && Object.keys(missing).length > 0) await scope.elb.addTags(arn, missing)
  return true
}

const notOurs = (what: string, name: string, tags: AwsTags) =>
  waiting('LoadBalancerFailed', {
    afterMs: lookAgainMs,
    message: `there is a ${what} ${name} that belongs to ${tags[ownerTag] ?? 'somebody else'} and is left alone`,
    next: 'choose another spec.controlPlaneLoadBalancer.name when the cluster is created anew, or remove it',
  })

const makeLoadBalancer = (scope: Scope, spec: BalancerSpec, tags: AwsTags): Promise<LoadBalancer> => {
  const { host } = scope.cluster.spec?.controlPlaneEndpoint ?? {}
  if (host)
    throw waiting('LoadBalancerFailed', {
      afterMs: lookAgainMs,
      message: `the load balancer behind ${host} is gone, and another one would have another address than clients know`,
      next: 'create the cluster anew, or let a balancer of your own answer to that name and set loadBalancerType: disabled on a new AWSCluster',
    })
  return scope.elb.createLoadBalancer(
    {
      name: loadBalancerName(scope.cluster),
      scheme: spec.scheme ?? 'internet-facing',
      subnetIds: balancerSubnets(scope.found.subnets, spec),
      securityGroupIds: balancerGroups(scope, spec),
    },
    tags,
  )
}

const balancerGroups = ({ found }: Scope, { additionalSecurityGroups = [] }: BalancerSpec): string[] => [
  found.groups['apiserver-lb'],
  ...additionalSecurityGroups,
]

/** One in each zone, which is all that a load balancer takes. */
const balancerSubnets = (subnets: readonly SubnetSpec[], spec: BalancerSpec): string[] => {
  const isInternal = spec.scheme === 'internal'
  const named = spec.subnets?.length
    ? subnets.filter(({ id, resourceID = '' }) => spec.subnets!.includes(id) || spec.subnets!.includes(resourceID))
    : subnets.filter(({ isPublic }) => isPublic === !isInternal)
  const unknown = (spec.subnets ?? []).filter((one) => !named.some((s) => s.id === one || s.resourceID === one))
  if (unknown.length > 0)
    throw stalled('LoadBalancerFailed', {
      message: `spec.controlPlaneLoadBalancer.subnets names ${unknown.join(', ')}, which is not among the subnets of the cluster`,
      next: 'name subnets of spec.network.subnets by their id',
    })
  const byZone = new Map(named.toReversed().map(({ availabilityZone, resourceID }) => [availabilityZone, resourceID!]))
  if (byZone.size === 0)
    throw stalled('LoadBalancerFailed', {
      message: `the load balancer is ${isInternal ? 'internal' : 'internet-facing'} and there is no ${isInternal ? 'private' : 'public'} subnet for it`,
      next: 'add one to spec.network.subnets, or name the subnets in spec.controlPlaneLoadBalancer.subnets',
    })
  return [...byZone.values()].toSorted()
}

/** What may differ later from how it was made. */
const keepBalancer = async (scope: Scope, spec: BalancerSpec, balancer: LoadBalancer): Promise<void> => {
  const subnets = balancerSubnets(scope.found.subnets, spec)
  if (subnets.some((id) => !balancer.subnetIds.includes(id))) await scope.elb.setSubnets(balancer.arn, subnets)
  const groups = balancerGroups(scope, spec)
  if (!isDeepStrictEqual(new Set(groups), new Set(balancer.securityGroupIds)))
    await scope.elb.setSecurityGroups(balancer.arn, groups)
  if (spec.crossZoneLoadBalancing === undefined) return
  const wanted = { 'load_balancing.cross_zone.enabled': String(spec.crossZoneLoadBalancing) }
  const missing = missingTags(await scope.elb.loadBalancerAttributes(balancer.arn), wanted)
  if (Object.keys(missing).length > 0) await scope.elb.setLoadBalancerAttributes(balancer.arn, missing)
}

const healthCheckOf = ({ healthCheckProtocol, healthCheck = {} }: BalancerSpec): HealthCheck => {
  const protocol = healthCheck.protocol ?? healthCheckProtocol ?? 'TCP'
  return {
    protocol,
    port: healthCheck.port ?? String(targetPort),
    path: protocol === 'TCP' ? undefined : (healthCheck.path ?? '/readyz'),
    ...healthTimes(healthCheck),
    healthyCount: healthCheck.thresholdCount ?? 5,
    unhealthyCount: healthCheck.unhealthyThresholdCount ?? 3,
  }
}

const ensureTargetGroup = async (scope: Scope, spec: BalancerSpec, tags: AwsTags): Promise<TargetGroup> => {
  const health = healthCheckOf(spec)
  const wanted = { name: targetGroupName(scope.cluster), vpcId: scope.found.vpcId, port: targetPort, health }
  const group = (await ownTargetGroup(scope)) ?? (await scope.elb.createTargetGroup(wanted, tags))
  if (!isDeepStrictEqual(group.health, health)) await scope.elb.setHealthCheck(group.arn, health)
  if (spec.preserveClientIP !== undefined) {
    const attributes = { 'preserve_client_ip.enabled': String(spec.preserveClientIP) }
    const missing = missingTags(await scope.elb.targetGroupAttributes(group.arn), attributes)
    if (Object.keys(missing).length > 0) await scope.elb.setTargetGroupAttributes(group.arn, missing)
  }
  return group
}

const ensureListener = async (scope: Scope, balancer: string, group: string, tags: AwsTags): Promise<void> => {
  const listeners = await scope.elb.listeners(balancer)
  if (listeners.some(({ port, targetGroupArn }) => port === scope.apiPort && targetGroupArn === group)) return
  // One that leads elsewhere takes the port.
  for (const { arn, port } of listeners) if (port === scope.apiPort) await scope.elb.deleteListener(arn)
  await scope.elb.createListener({ loadBalancerArn: balancer, port: scope.apiPort, targetGroupArn: group }, tags)
}
