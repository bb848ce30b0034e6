import { failedFor, type SecurityGroup } from '../../aws/index.ts'
import { inParallel, stalled, waiting } from '../../runtime/index.ts'
import { cloudProviderTag, groupName, groupRoles, tagsFor, type GroupRole } from './names.ts'
import { ruleDifference, wantedRules } from './rules.ts'
import type { Pending, Scope } from './scope.ts'
import { partOf } from './snapshot.ts'

const lookAgainMs = 60_000

/** First all groups, because their rules name each other; then exactly the rules that are wanted. */
export const ensureSecurityGroups = async (scope: Scope): Promise<Pending | undefined> => {
  const overrides = scope.network.securityGroupOverrides ?? {}
  await checkOverrides(scope, Object.values(overrides))
  const own = new Map<GroupRole, SecurityGroup>()
  await inParallel(
    groupRoles.length,
    groupRoles.map((role) => async () => {
      const group = overrides[role] ? undefined : await ownGroup(scope, role)
      if (group) own.set(role, group)
      scope.found.groups[role] = overrides[role] ?? group!.id
    }),
  )
  const { groups, natAddresses, managed } = scope.found
  const surroundings = { groups, natAddresses, apiPort: scope.apiPort }
  const rules = wantedRules(scope.cluster.spec ?? {}, scope.network, surroundings)
  if (!managed && Object.values(rules).some((all) => all.some((one) => one.natGatewaysIPsSource)))
    throw stalled('SecurityGroupReconciliationFailed', {
      message: `a rule lets in the NAT gateways of the cluster, and VPC ${scope.found.vpcId} is not its own: it has none`,
      next: 'write their addresses into cidrBlocks, in place of natGatewaysIPsSource',
    })
  await inParallel(
    groupRoles.length,
    Object.entries(rules).map(([role, wanted]) => async () => {
      const group = own.get(role as GroupRole)
      if (!group) return // somebody else's group, and so somebody else's rules
      const { missing, surplus } = ruleDifference(group.ingress, wanted, surroundings)
      // First let in, then shut out: what is wanted and was said in another way is never interrupted.
      if (missing.length > 0) await authorize(scope, group.id, missing)
      if (surplus.length > 0) await scope.ec2.revokeIngress(group.id, surplus)
    }),
  )
  return undefined
}

const authorize = async (
  { ec2 }: Scope,
  id: string,
  missing: Parameters<Scope['ec2']['authorizeIngress']>[1],
): Promise<void> => {
  try {
    await ec2.authorizeIngress(id, missing)
  } catch (error) {
    if (!failedFor(error, 'AlreadyExists')) throw error
    // One that is there already makes AWS refuse all of them.
    for (const one of missing)
      await ec2.authorizeIngress(id, [one]).catch((failure: unknown) => {
        if (!failedFor(failure, 'AlreadyExists')) throw failure
      })
  }
}

const ownGroup = async (scope: Scope, role: GroupRole): Promise<SecurityGroup> => {
  const { cluster, found } = scope
  const name = cluster.metadata.name!
  const tags = tagsFor(cluster, `sg-${role}`, role, role === 'lb' ? { [cloudProviderTag(name)]: 'owned' } : {})
  const inVpc = scope.seen.securityGroups.filter(({ vpcId }) => vpcId === found.vpcId)
  const present = partOf(inVpc, `sg-${role}`)
  if (present) {
    await scope.keepTags(present, tags)
    return present
  }
  const wanted = {
    name: groupName(cluster, role),
    description: `Kubernetes cluster ${scope.owner}: ${role}`,
    vpcId: found.vpcId,
  }
  return scope.make('securityGroups', () => scope.ec2.createSecurityGroup(wanted, tags), { onlyOnce: true })
}

const checkOverrides = async (scope: Scope, ids: readonly string[]): Promise<void> => {
  if (ids.length === 0) return
  const groups = await scope.ec2.securityGroups({ ids: [...new Set(ids)] })
  const elsewhere = groups.filter(({ vpcId }) => vpcId !== scope.found.vpcId)
  if (elsewhere.length > 0)
    throw waiting('SecurityGroupReconciliationFailed', {
      afterMs: lookAgainMs,
      message: `security groups ${elsewhere.map(({ id }) => id).join(', ')} are not in VPC ${scope.found.vpcId}`,
      next: 'name groups of that VPC in spec.network.securityGroupOverrides',
    })
}
