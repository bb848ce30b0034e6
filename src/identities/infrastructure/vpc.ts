import { failedFor, type Vpc } from '../../aws/index.ts'
import { waiting } from '../../runtime/index.ts'
import { isOfTheField, ownerTag, tagsFor } from './names.ts'
import { defaultVpcCidr } from './plan.ts'
import type { Pending, Scope } from './scope.ts'

/** What only somebody in AWS can mend is looked at again after this time. */
const lookAgainMs = 60_000

/** The VPC that the cluster names, or one of its own. */
export const ensureVpc = async (scope: Scope): Promise<Pending | undefined> => {
  const { id } = scope.network.vpc ?? {}
  const vpc = id ? await existing(scope, id) : await own(scope)
  const managed = vpc.tags[ownerTag] === scope.owner
  Object.assign(scope.found, { vpcId: vpc.id, vpcCidr: vpc.cidrBlock, managed })
  if (!managed) {
    await scope.keepTags(vpc, scope.network.vpc?.tags ?? {})
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
  const { cidrBlock = defaultVpcCidr, tags } = scope.network.vpc ?? {}
  return (
    vpc ??
    scope.make('vpcs', () => scope.ec2.createVpc(cidrBlock, { ...tags, ...tagsFor(scope.cluster, 'vpc', 'common') }))
  )
}

const existing = async (scope: Scope, id: string): Promise<Vpc> => {
  const found = scope.seen.vpcs.find((vpc) => vpc.id === id) ?? (await described(scope, id))
  if (!found)
    throw waiting('VpcReconciliationFailed', {
      afterMs: lookAgainMs,
      message: `spec.network.vpc.id is ${id}, and account ${scope.cluster.spec?.accountID} has no such VPC in the region`,
      next: 'create the cluster anew with a VPC that exists; one that is gone cannot be put in place of it',
    })
  if (isOfTheField(scope.cluster, found.tags))
    throw waiting('VpcReconciliationFailed', {
      afterMs: lookAgainMs,
      message: `VPC ${id} was made by another provider for a cluster named ${scope.cluster.metadata.name}, and is not taken over`,
      next: `to hand it over, tag it and all that belongs to it with ${ownerTag}: ${scope.owner}; otherwise name another VPC`,
    })
  return found
}

const described = async (scope: Scope, id: string): Promise<Vpc | undefined> => {
  try {
    return (await scope.ec2.vpcs({ ids: [id] }))[0]
  } catch (error) {
    if (failedFor(error, 'NotFound')) return undefined
    throw error
  }
}
