import { failedFor, type Address, type AwsTags } from '../../aws/index.ts'
import { inParallel } from '../../runtime/index.ts'
import { isDisabled, ownLoadBalancer, ownTargetGroup } from './load-balancer.ts'
import { cloudProviderTag } from './names.ts'
import type { Scope } from './scope.ts'
import type { Snapshot } from './snapshot.ts'

/** Things removed at the same time. */
const width = 4

/** What is still there, in words; empty when the stage is over. */
type Stage = (scope: Scope) => Promise<string[]>

/**
 * The reverse of how it was made. Only what carries the cluster's tag is removed, so it does not matter how far anybody got before.
 * A stage begins when nothing of those before it is left: AWS refuses to remove what is in use.
 */
const stages: Stage[] = [
  // Both take AWS minutes, and neither waits for the other.
  (scope) => together(scope, removeLoadBalancer, removeNatGateways),
  (scope) => together(scope, releaseAddresses, removeRouteTables),
  (scope) => together(scope, removeInternetGateways, removeSubnets, untagShared),
  (scope) => removeSecurityGroups(scope),
  (scope) =>
    removed(
      scope,
      scope.seen.vpcs,
      (vpc) => scope.ec2.deleteVpc(vpc.id),
      (vpc) => `VPC ${vpc.id}`,
    ),
]

/** Removes what can be removed now, and says what is left. */
export const removeInfrastructure = async (scope: Scope): Promise<string[]> => {
  for (const stage of stages) {
    const left = await stage(scope)
    if (left.length > 0) return left
  }
  // Lists may still show what is gone, and not yet show what an earlier process made: only a later look that finds nothing ends it.
  if (idsIn(scope.seen).length > 0) await scope.look()
  const left = idsIn(scope.seen)
  if (left.length > 0 || scope.isSettled) return left
  return ['whatever was made just before this process started, and cannot be seen yet']
}

/** Several stages at once. All end before one that failed is told: nobody is at work any more when the pass lets go of the cluster. */
const together = async (scope: Scope, ...stages: Stage[]): Promise<string[]> => {
  const left: string[][] = []
  await inParallel(
    stages.length,
    stages.map((stage, i) => async () => {
      left[i] = await stage(scope)
    }),
  )
  return left.flat()
}

const idsIn = ({ formerNatGateways: _gone, ...present }: Snapshot): string[] =>
  Object.values(present).flatMap((things: { id: string }[]) => things.map(({ id }) => id))

/** Removes each, several at once. What is gone already is gone; what is in use is left for the next time. */
const removed = async <T extends { id: string }>(
  scope: Scope,
  things: readonly T[],
  remove: (thing: T) => Promise<void>,
  say: (thing: T) => string,
): Promise<string[]> => {
  const { memory } = scope.infrastructure
  const left: string[] = []
  await inParallel(
    width,
    things.map((thing) => async () => {
      try {
        await remove(thing)
        memory.unmade(scope.key, thing.id)
      } catch (error) {
        if (failedFor(error, 'Conflict')) left.push(`${say(thing)}, which is still in use`)
        else if (!failedFor(error, 'NotFound')) throw error
        // Made a moment ago, and not known yet where it is to be removed.
        else if (memory.hasMade(scope.key, thing.id)) left.push(`${say(thing)}, which AWS does not show yet`)
      }
    }),
  )
  return left
}

const removeLoadBalancer: Stage = async (scope) => {
  if (isDisabled(scope.cluster)) return []
  const balancer = await ownLoadBalancer(scope)
  if (balancer) await scope.elb.deleteLoadBalancer(balancer.arn)
  const group = await ownTargetGroup(scope)
  if (!group) return balancer ? await stillThere(scope) : []
  const left = await removed(
    scope,
    [{ id: group.arn }],
    ({ id }) => scope.elb.deleteTargetGroup(id),
    () => `target group ${group.name}`,
  )
  return left.length > 0 || !balancer ? left : stillThere(scope)
}

const stillThere = async (scope: Scope): Promise<string[]> => {
  const balancer = await ownLoadBalancer(scope)
  return balancer ? [`load balancer ${balancer.name}`] : []
}

const removeNatGateways: Stage = async (scope) => {
  const { natGateways } = scope.seen
  await removed(
    scope,
    natGateways.filter(({ state }) => state !== 'deleting'),
    ({ id }) => scope.ec2.deleteNatGateway(id),
    ({ id }) => id,
  )
  if (natGateways.length === 0) return []
  await scope.look()
  return scope.seen.natGateways.map(({ id }) => `NAT gateway ${id}`)
}

/** An address stays with its gateway for a moment after that is gone. AWS refuses it then in the words of a missing right. */
const releaseAddresses: Stage = async (scope) => {
  const { held = [], free = [] } = Object.groupBy(scope.seen.addresses, ({ associated }) =>
    associated ? 'held' : 'free',
  )
  const say = ({ publicIp }: Address): string => `address ${publicIp}`
  const left = await removed(scope, free, ({ id }) => scope.ec2.releaseAddress(id), say)
  return [...held.map((one) => `${say(one)}, which is still in use`), ...left]
}

const removeRouteTables: Stage = (scope) =>
  removed(
    scope,
    scope.seen.routeTables,
    async ({ id, associations }) => {
      for (const association of associations)
        if (!association.main) await scope.ec2.disassociateRouteTable(association.id).catch(ignoreNotFound)
      await scope.ec2.deleteRouteTable(id)
    },
    ({ id }) => `route table ${id}`,
  )

const removeInternetGateways: Stage = (scope) =>
  removed(
    scope,
    scope.seen.internetGateways,
    async ({ id, vpcIds }) => {
      for (const vpcId of vpcIds) await scope.ec2.detachInternetGateway(id, vpcId).catch(ignoreDetached)
      await scope.ec2.deleteInternetGateway(id)
    },
    ({ id }) => `internet gateway ${id}`,
  )

const removeSubnets: Stage = (scope) =>
  removed(
    scope,
    scope.seen.subnets,
    ({ id }) => scope.ec2.deleteSubnet(id),
    ({ id, cidrBlock }) =>
      `subnet ${id} (${cidrBlock}; aws ec2 describe-network-interfaces --filters Name=subnet-id,Values=${id} shows by what)`,
  )

/** Rules first: groups that name each other keep each other. */
const removeSecurityGroups: Stage = async (scope) => {
  const groups = scope.seen.securityGroups
  await inParallel(
    width,
    groups
      .filter(({ ingress }) => ingress.length > 0)
      .map(
        ({ id, ingress }) =>
          () =>
            scope.ec2.revokeIngress(id, ingress).catch(ignoreNotFound),
      ),
  )
  return removed(
    scope,
    groups,
    ({ id }) => scope.ec2.deleteSecurityGroup(id),
    ({ id, name }) => `security group ${id} (${name})`,
  )
}

/** A network that was only used gets back the one thing that was put on it. */
const untagShared: Stage = async (scope) => {
  const subnets = scope.network.subnets ?? []
  if (scope.seen.vpcs.length > 0 || !scope.network.vpc?.id || subnets.length === 0) return []
  const tag: AwsTags = { [cloudProviderTag(scope.cluster.metadata.name!)]: 'shared' }
  const ids = new Set(subnets.map(({ id, resourceID }) => resourceID ?? id))
  const tagged = await scope.ec2
    .subnets({ filters: { 'vpc-id': scope.network.vpc.id } })
    .then((all) => all.filter(({ id, tags }) => ids.has(id) && Object.entries(tag).every(([k, v]) => tags[k] === v)))
  if (tagged.length > 0)
    await scope.ec2.deleteTags(
      tagged.map(({ id }) => id),
      tag,
    )
  return []
}

const ignoreNotFound = (error: unknown): void => {
  if (!failedFor(error, 'NotFound')) throw error
}

const ignoreDetached = (error: unknown): void => {
  if (failedFor(error, 'NotFound') || (error as { code?: string }).code === 'Gateway.NotAttached') return
  throw error
}
