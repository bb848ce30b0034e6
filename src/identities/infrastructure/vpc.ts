import type { Vpc } from '../../aws/index.ts'
import { waiting } from '../../runtime/index.ts'
import { ownerTag, tagsFor } from './names.ts'
import { defaultVpcCidr } from './plan.ts'
import type { Pending, Scope } from './scope.ts'
import { refuseToBuild, vpcOf } from './strangers.ts'

/** What only somebody in AWS can mend is looked at again after this time. */
const lookAgainMs = 60_000

/** The VPC that the cluster names, or one of its own. */
export const ensureVpc = async (scope: Scope): Promise<Pending | undefined> => {
  const { id } = scope.network.vpc ?? {}
  const vpc = id ? await existing(scope, id) : await own(scope)
  const managed = vpc.tags[ownerTag] === scope.owner
  Object.assign(scope.found, { vpcId: vpc.id, vpcCidr: vpc.cidrBlock, managed })
  if (!managed) {
    await scope.tryTags(vpc, scope.network.vpc?.tags ?? {})
    return undefined
  }
  await scope.keepTags(vpc, { ...scope.network.vpc?.tags, ...tagsFor(scope.cluster, 'vpc', 'common') })
  // Machines find each other, and AWS's own endpoints, by name.
  if (!(await scope.ec2.hasDnsHostnames(vpc.id))) await scope.ec2.enableDnsHostnames(vpc.id)
  return vpc.state === 'pending' ? { reason: 'VpcCreationStarted', message: `VPC ${vpc.id} is being made` } : undefined
}

const own = async (scope: Scope): Promise<Vpc> => {
  const [vpc, ...more] = scope.seen.vpcs
  if (more.length > 0)
    throw waiting('VpcReconciliationFailed', {
      afterMs: lookAgainMs,
      message: `VPCs ${scope.seen.vpcs.map((one) => one.id).join(' and ')} both have the tag ${ownerTag}: ${scope.owner}`,
      next: 'take it off the one that is not used, or delete that one',
    })
  if (vpc) return vpc
  await refuseToBuild(scope)
  const { cidrBlock = defaultVpcCidr, tags } = scope.network.vpc ?? {}
  return scope.make('vpcs', () =>
    scope.ec2.createVpc(cidrBlock, { ...tags, ...tagsFor(scope.cluster, 'vpc', 'common') }),
  )
}

const existing = async (scope: Scope, id: string): Promise<Vpc> => {
  const found = scope.seen.vpcs.find((vpc) => vpc.id === id) ?? (await vpcOf(scope, id))
  if (!found)
    throw waiting('VpcReconciliationFailed', {
      afterMs: lookAgainMs,
      message: `spec.network.vpc.id is ${id}, and account ${scope.cluster.spec?.accountID} has no such VPC in the region`,
      next: 'create the cluster anew with a VPC that exists; one that is gone cannot be put in place of it',
    })
  await refuseToBuild(scope, found)
  return found
}
