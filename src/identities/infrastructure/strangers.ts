import { failedFor, type Vpc } from '../../aws/index.ts'
import { waiting, type ReconcileError } from '../../runtime/index.ts'
import { isOfTheField, ofTheField } from './names.ts'
import type { Scope } from './scope.ts'

/**
 * What another provider has made for a cluster of this name, in words. An object that it has built for may come to us by an upgrade.
 * Its gateways, groups and load balancer have other names and tags than ours: to take the network over would mean to build a second one
 * into it, and to cut clients off from the API server. So it is neither built upon nor removed.
 */
const strangerOf = async (scope: Scope, named?: Vpc): Promise<string | undefined> => {
  const { cluster, seen, network } = scope
  const { id } = network.vpc ?? {}
  if (seen.vpcs.length > 0) return undefined
  const filters = ofTheField(cluster)
  const vpcs = named ? [named] : id ? [await vpcOf(scope, id)] : await scope.ec2.vpcs({ filters })
  const vpc = vpcs.find((one) => one && isOfTheField(cluster, one.tags))
  if (vpc) return `VPC ${vpc.id} was`
  // In a network that it only used, its groups tell.
  if (!id || seen.securityGroups.length > 0) return undefined
  const groups = await scope.ec2.securityGroups({ filters: { ...filters, 'vpc-id': id } })
  const theirs = groups.filter(({ tags }) => isOfTheField(cluster, tags)).map((one) => one.id)
  return theirs.length > 0 ? `security groups ${theirs.toSorted().join(', ')} in VPC ${id} were` : undefined
}

/** Nothing is built beside it. */
export const refuseToBuild = async (scope: Scope, named?: Vpc): Promise<void> => {
  const stranger = await strangerOf(scope, named)
  if (stranger) throw notOurs(scope, stranger, 'VpcReconciliationFailed', 'nothing is built beside it')
}

/** An object that another provider has built for keeps its finalizer: nobody else would know of what is still there. */
export const refuseToForget = async (scope: Scope): Promise<void> => {
  const stranger = await strangerOf(scope)
  if (stranger) throw notOurs(scope, stranger, 'DeletingFailed', 'it is not removed here')
}

const notOurs = (scope: Scope, what: string, reason: string, so: string): ReconcileError =>
  waiting(reason, {
    afterMs: scope.replaceMs,
    message: `${what} made by another provider for a cluster named ${scope.cluster.metadata.name}: ${so}`,
    next: 'leave the cluster to that provider, with the annotation cluster.x-k8s.io/managed-by on this object, or remove what it has made',
  })

export const vpcOf = async (scope: Scope, id: string): Promise<Vpc | undefined> => {
  try {
    return (await scope.ec2.vpcs({ ids: [id] }))[0]
  } catch (error) {
    if (failedFor(error, 'NotFound')) return undefined
    throw error
  }
}
