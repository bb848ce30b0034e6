import { failedFor, type RouteTable } from '../../aws/index.ts'
import { inParallel } from '../../runtime/index.ts'
import { clientToken, tagsFor } from './names.ts'
import type { SubnetSpec } from './plan.ts'
import type { Pending, Scope } from './scope.ts'
import { partOf } from './snapshot.ts'

const everywhere = '0.0.0.0/0'
const width = 4

/** One route table for each subnet, with one route out. Other routes in it are somebody else's. */
export const ensureRouteTables = async (scope: Scope): Promise<Pending | undefined> => {
  const { found } = scope
  const waiting: string[] = []
  await inParallel(
    width,
    found.subnets.map((subnet) => async () => {
      const target = subnet.isPublic
        ? { gatewayId: found.internetGatewayId! }
        : { natGatewayId: found.natGateways.get(subnet.availabilityZone ?? '') }
      const table = await routeTableOf(scope, subnet)
      subnet.routeTableId = table.id
      if (target.natGatewayId) subnet.natGatewayId = target.natGatewayId
      if (!target.gatewayId && !target.natGatewayId) waiting.push(subnet.id)
      else await keepRoute(scope, table, target as Target)
    }),
  )
  if (waiting.length === 0) return undefined
  return {
    reason: 'NatGatewaysCreationStarted',
    message: `subnets ${waiting.toSorted().join(', ')} have no route out until their NAT gateways are there`,
    afterMs: found.natAfterMs,
  }
}

type Target = { gatewayId?: string; natGatewayId?: string }

const routeTableOf = async (scope: Scope, subnet: SubnetSpec): Promise<RouteTable> => {
  const { seen, found, cluster } = scope
  const part = `rt-${subnet.id}`
  const role = subnet.isPublic ? 'public' : 'private'
  const tags = tagsFor(cluster, part, role)
  const isOf = ({ associations }: RouteTable): boolean =>
    associations.some(({ subnetId }) => subnetId === subnet.resourceID)
  const present = seen.routeTables.find(isOf) ?? partOf(seen.routeTables, part)
  const token = clientToken(scope.owner, part, found.vpcId, scope.lately)
  const table =
    present ??
    (await scope.make('routeTables', () =>
      scope.ec2.createRouteTable({ vpcId: found.vpcId, clientToken: token }, tags),
    ))
  if (present) await scope.keepTags(table, tags)
  if (!isOf(table)) await scope.ec2.associateRouteTable(table.id, subnet.resourceID!)
  return table
}

const keepRoute = async ({ ec2 }: Scope, { id, routes }: RouteTable, target: Target): Promise<void> => {
  const present = routes.find(({ destination }) => destination === everywhere)
  const leadsThere =
    present?.gatewayId === target.gatewayId && present?.natGatewayId === target.natGatewayId && present !== undefined
  if (leadsThere && present.state !== 'blackhole') return
  if (present) return ec2.replaceRoute(id, everywhere, target)
  try {
    await ec2.createRoute(id, everywhere, target)
  } catch (error) {
    if (!failedFor(error, 'AlreadyExists')) throw error
    await ec2.replaceRoute(id, everywhere, target)
  }
}
