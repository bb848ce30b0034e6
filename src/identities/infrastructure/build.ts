import type { AWSCluster } from '../../api/index.ts'
import { AwsError } from '../../aws/index.ts'
import { ensureInternetGateway, ensureNatGateways } from './gateways.ts'
import { ensureLoadBalancer, isDisabled } from './load-balancer.ts'
import { groupName, groupRoles, loadBalancerName } from './names.ts'
import { failureDomainsOf } from './plan.ts'
import { stepTypes, type Report, type Severity, type State } from './report.ts'
import { ensureRouteTables } from './routes.ts'
import { PausedMeanwhile, type Pending, type Scope } from './scope.ts'
import { ensureSecurityGroups } from './security-groups.ts'
import { ensureSubnets } from './subnets.ts'
import { ensureVpc } from './vpc.ts'

/** One thing that must be there. What is not there yet is no reason to stop; a call that fails is. */
interface Step {
  type: string
  /** The reason when it fails, as the field says it. */
  failed: string
  /** Part of a network that we make, and none of our business in one that we only use. */
  ownNetworkOnly?: boolean
  run: (scope: Scope) => Promise<Pending | undefined>
}

export const steps: Step[] = [
  { type: stepTypes.vpc, failed: 'VpcReconciliationFailed', run: ensureVpc },
  { type: stepTypes.subnets, failed: 'SubnetsReconciliationFailed', run: ensureSubnets },
  {
    type: stepTypes.internetGateway,
    failed: 'InternetGatewayFailed',
    ownNetworkOnly: true,
    run: ensureInternetGateway,
  },
  {
    type: stepTypes.natGateways,
    failed: 'NatGatewaysReconciliationFailed',
    ownNetworkOnly: true,
    run: ensureNatGateways,
  },
  {
    type: stepTypes.routeTables,
    failed: 'RouteTableReconciliationFailed',
    ownNetworkOnly: true,
    run: ensureRouteTables,
  },
  { type: stepTypes.securityGroups, failed: 'SecurityGroupReconciliationFailed', run: ensureSecurityGroups },
  { type: stepTypes.loadBalancer, failed: 'LoadBalancerFailed', run: ensureLoadBalancer },
]

/** What came of the steps: a condition for each that was reached, and the failure that ended them. */
export interface Built {
  states: State[]
  /** When to look again at what is not there yet; absent when all of it is. */
  afterMs?: number | undefined
  failure?: { error: unknown; step: Step } | undefined
}

/** Looks at what there is, and makes what is missing, in the order in which things stand on each other. `alarm` is how bad a failure is. */
export const build = async (scope: Scope, alarm: Severity): Promise<Built> => {
  const states: State[] = []
  const looks: number[] = []
  let step = steps[0]!
  try {
    await scope.look()
    for (step of steps) {
      const { type } = step
      const isSkipped = step.ownNetworkOnly === true && !scope.found.managed
      const pending = isSkipped ? undefined : await step.run(scope)
      if (!pending) {
        states.push({ type, status: 'True', reason: type, message: said(step, scope) })
        continue
      }
      const { reason, message, isFailure, afterMs = scope.infrastructure.settings.pollMs } = pending
      states.push({ type, status: 'False', reason, message, ...(isFailure ? { severity: alarm } : {}) })
      looks.push(afterMs)
    }
    await writeNetwork(scope)
    return { states, ...(looks.length > 0 ? { afterMs: Math.min(...looks) } : {}) }
  } catch (failure) {
    const error = chiefOf(failure)
    // What was made so far is written down all the same, if nobody has forbidden it: people look there.
    if (!(error instanceof PausedMeanwhile) && !scope.signal.aborted) await writeNetwork(scope)
    return { states, failure: { error, step } }
  }
}

/** Of several things that failed at once the one to tell: that nothing may be done, or what time does not mend. */
export const chiefOf = (error: unknown): unknown => {
  if (!(error instanceof AggregateError)) return error
  const errors = error.errors as unknown[]
  return (
    errors.find((one) => one instanceof PausedMeanwhile) ??
    errors.find((one) => one instanceof AwsError && one.policy.kind !== 'wait') ??
    errors[0]
  )
}

const said = (step: Step, scope: Scope): string => {
  const untagged = scope.found.untagged.filter(
    ({ id }) => step.type === (id.startsWith('vpc-') ? stepTypes.vpc : stepTypes.subnets),
  )
  if (untagged.length === 0) return saidOf(step, scope)
  return `${saidOf(step, scope)}; without the tags of the cluster, which is tolerated, on ${untagged
    .map(({ id }) => id)
    .toSorted()
    .join(', ')}: ${untagged[0]!.why}; allow ec2:CreateTags, or tag them yourself`
}

const saidOf = ({ ownNetworkOnly, type }: Step, { found, cluster }: Scope): string => {
  if (ownNetworkOnly && !found.managed) return `VPC ${found.vpcId} is not the cluster's own: its owner sees to this`
  if (type === stepTypes.vpc) return `VPC ${found.vpcId} (${found.managed ? 'made for the cluster' : 'used as it is'})`
  if (type === stepTypes.natGateways) return `calls out from ${found.natAddresses.join(', ') || 'nowhere'}`
  if (type === stepTypes.loadBalancer)
    return `the API server is reached at ${cluster.spec?.controlPlaneEndpoint?.host ?? found.loadBalancer?.dnsName}`
  return 'there as it should be'
}

/** Where `kubectl get` shows it, and where it survives a move. */
const writeNetwork = async (scope: Scope): Promise<void> => {
  const { found, network } = scope
  if (!found.vpcId) return
  const subnets = found.subnets.length > 0 ? found.subnets : network.subnets
  await scope.change({
    network: {
      ...network,
      vpc: {
        ...network.vpc,
        id: found.vpcId,
        cidrBlock: found.vpcCidr,
        ...(found.internetGatewayId ? { internetGatewayId: found.internetGatewayId } : {}),
      },
      ...(subnets ? { subnets } : {}),
    },
  })
}

/** The status of a pass in which every step was reached. */
export const statusOf = (scope: Scope): Pick<Report, 'networkStatus' | 'failureDomains'> => {
  const { found, cluster, network } = scope
  const balancer = found.loadBalancer
  const reached =
    balancer && new Set(found.subnets.filter((one) => balancer.subnetIds.includes(one.resourceID!)).map(zoneOf))
  return {
    networkStatus: {
      securityGroups: Object.fromEntries(
        groupRoles.map((role) => [role, { id: found.groups[role], ...nameOf(cluster, network, role) }]),
      ),
      ...(balancer && !isDisabled(cluster)
        ? {
            apiServerElb: {
              name: loadBalancerName(cluster),
              arn: balancer.arn,
              dnsName: balancer.dnsName,
              scheme: balancer.scheme,
              loadBalancerType: 'nlb',
              subnetIds: balancer.subnetIds.toSorted(),
              securityGroupIds: balancer.securityGroupIds.toSorted(),
            },
          }
        : {}),
      ...(found.natAddresses.length > 0 ? { natGatewaysIPs: found.natAddresses } : {}),
    },
    failureDomains: failureDomainsOf(found.subnets, reached),
  }
}

const zoneOf = ({ availabilityZone = '' }: { availabilityZone?: string | undefined }): string => availabilityZone

const nameOf = (
  cluster: AWSCluster,
  { securityGroupOverrides }: Scope['network'],
  role: (typeof groupRoles)[number],
): { name?: string } => (securityGroupOverrides?.[role] ? {} : { name: groupName(cluster, role) })
