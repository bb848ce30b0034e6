import type { AWSCluster } from '../../api/index.ts'
import type { Cause } from '../../runtime/webhook/index.ts'
import { tagText } from '../role-faults.ts'
import { canonicalIpv6, overlap, parseBlock, within } from './cidr.ts'
import { groupRoles, ownTagCount, reservedPrefix } from './names.ts'
import { defaultVpcCidr, healthTimes, networkOf, type IngressRule, type Network, type Spec } from './plan.ts'

/** Names are in tags and labels, which take no more. */
const longestName = 63
const awsTagLimit = 50

type Fault = Cause | false | undefined | null | '' | 0

const unsupported = (field: string, isSet: unknown, instead: string): Fault =>
  Boolean(isSet) && { field, message: `is not supported: ${instead}` }

/**
 * What a cluster asks for that is not built here. A field that is accepted does what it says; one that would do nothing is refused
 * when it is written, and found again by the controller in objects that were stored without our admission.
 */
export const unsupportedFields = (cluster: AWSCluster): Cause[] => {
  const spec: Spec = cluster.spec ?? {}
  const network = networkOf(spec)
  const faults: Fault[] = [
    (cluster.metadata.name ?? '').length > longestName && {
      field: 'metadata.name',
      message: `has more than ${longestName} characters, which AWS tags and labels with it do not take: choose a shorter one`,
    },
    unsupported('spec.bastion.enabled', spec.bastion?.enabled, 'there is no bastion; use AWS Session Manager'),
    unsupported('spec.s3Bucket', spec.s3Bucket, 'there are no machines whose user data would be kept there'),
    unsupported(
      'spec.secondaryControlPlaneLoadBalancer',
      spec.secondaryControlPlaneLoadBalancer,
      'there is one load balancer; set scheme: internal on it for clients inside',
    ),
    Object.keys(spec.additionalTags ?? {}).length > awsTagLimit - ownTagCount && {
      field: 'spec.additionalTags',
      message: `has more than ${awsTagLimit - ownTagCount} tags: AWS takes ${awsTagLimit} on each thing, and ${ownTagCount} say whose it is`,
    },
    ...tagFaults(spec),
    ...vpcFaults(network),
    ...subnetFaults(network),
    ...groupFaults(network),
    ...balancerFaults(spec),
  ]
  return faults.filter((fault): fault is Cause => Boolean(fault))
}

const tagFaults = ({ additionalTags = {}, controlPlaneLoadBalancer: balancer }: Spec): Fault[] =>
  balancer?.loadBalancerType === 'disabled'
    ? []
    : Object.entries(additionalTags).map(
        ([key, value]): Fault =>
          !tagText.test(`${key}${value}`) && {
            field: `spec.additionalTags[${key}]`,
            message:
              'load balancers take letters, digits, spaces and _ . : / = + - @ in tags: leave other characters out',
          },
      )

const vpcFaults = ({ vpc = {} }: Network): Fault[] => {
  const at = 'spec.network.vpc'
  const ipv4 = 'clusters are IPv4 here'
  const block = vpc.cidrBlock === undefined ? undefined : parseBlock(vpc.cidrBlock)
  return [
    unsupported(`${at}.secondaryCidrBlocks`, vpc.secondaryCidrBlocks?.length, 'use a larger cidrBlock'),
    unsupported(`${at}.ipamPool`, vpc.ipamPool, 'write the block into cidrBlock'),
    unsupported(`${at}.ipv6`, vpc.ipv6, ipv4),
    unsupported(`${at}.carrierGatewayId`, vpc.carrierGatewayId, 'wavelength zones are not used'),
    unsupported(`${at}.availabilityZoneSelection`, vpc.availabilityZoneSelection === 'Random', 'use Ordered'),
    unsupported(
      `${at}.emptyRoutesDefaultVPCSecurityGroup`,
      vpc.emptyRoutesDefaultVPCSecurityGroup,
      'empty the default security group yourself; nothing of the cluster is in it',
    ),
    unsupported(`${at}.privateDnsHostnameTypeOnLaunch`, vpc.privateDnsHostnameTypeOnLaunch, 'leave it out'),
    unsupported(`${at}.elasticIpPool`, vpc.elasticIpPool, "addresses come from Amazon's pool"),
    vpc.cidrBlock !== undefined &&
      !vpc.id &&
      (!block || block.bits < 16 || block.bits > 28) && {
        field: `${at}.cidrBlock`,
        message: `${JSON.stringify(vpc.cidrBlock)} is no block of a VPC: write the first address and 16 to 28 bits, such as ${defaultVpcCidr}`,
      },
    unsupported(
      `${at}.internetGatewayId`,
      vpc.internetGatewayId && !vpc.id,
      'a VPC that is to be made gets a gateway of its own',
    ),
  ]
}

const subnetFaults = ({ vpc = {}, subnets = [] }: Network): Fault[] => {
  const outer = parseBlock(vpc.cidrBlock ?? defaultVpcCidr)
  const blocks = subnets.map(({ cidrBlock }) => (cidrBlock === undefined ? undefined : parseBlock(cidrBlock)))
  return subnets.flatMap((subnet, i): Fault[] => {
    const at = `spec.network.subnets[${i}]`
    const block = blocks[i]
    const common = [
      unsupported(`${at}.ipv6CidrBlock`, subnet.ipv6CidrBlock, 'clusters are IPv4 here'),
      unsupported(`${at}.isIpv6`, subnet.isIpv6, 'clusters are IPv4 here'),
      unsupported(
        `${at}.zoneType`,
        subnet.zoneType !== undefined && subnet.zoneType !== 'availability-zone',
        "use the region's own zones",
      ),
      unsupported(`${at}.parentZoneName`, subnet.parentZoneName, "use the region's own zones"),
    ]
    if (vpc.id) return common
    const exists = `${subnet.id} is an existing subnet, and the VPC is to be made: set spec.network.vpc.id to its VPC, or write another name`
    if (subnet.id.startsWith('subnet-')) return [...common, { field: `${at}.id`, message: exists }]
    return [
      ...common,
      !subnet.availabilityZone && { field: `${at}.availabilityZone`, message: 'a subnet that is made needs a zone' },
      !block && {
        field: `${at}.cidrBlock`,
        message: 'a subnet that is made needs a block: write the first address and 16 to 28 bits',
      },
      block &&
        outer &&
        !within(block, outer) && { field: `${at}.cidrBlock`, message: `is not inside the block of the VPC` },
      block &&
        blocks.slice(0, i).some((other) => other && overlap(other, block)) && {
          field: `${at}.cidrBlock`,
          message: 'overlaps with the block of another subnet',
        },
    ]
  })
}

const groupFaults = (network: Network): Fault[] => [
  ...Object.keys(network.securityGroupOverrides ?? {}).map((role) =>
    unsupported(
      `spec.network.securityGroupOverrides[${role}]`,
      !(groupRoles as readonly string[]).includes(role),
      `the roles are ${groupRoles.join(', ')}`,
    ),
  ),
  ...rulesFaults('spec.network.additionalControlPlaneIngressRules', network.additionalControlPlaneIngressRules),
  ...rulesFaults('spec.network.additionalNodeIngressRules', network.additionalNodeIngressRules),
  ...(network.nodePortIngressRuleCidrBlocks ?? []).map((cidr, i) =>
    cidrFault(`spec.network.nodePortIngressRuleCidrBlocks[${i}]`, cidr),
  ),
]

const cidrFault = (field: string, cidr: string): Fault =>
  !parseBlock(cidr) && {
    field,
    message: `${JSON.stringify(cidr)} is no IPv4 block: write its first address and the number of bits, such as 10.0.0.0/16`,
  }

const rulesFaults = (at: string, rules: readonly IngressRule[] = []): Fault[] =>
  rules.flatMap((rule, i): Fault[] => [
    ...(rule.cidrBlocks ?? []).map((cidr, n) => cidrFault(`${at}[${i}].cidrBlocks[${n}]`, cidr)),
    ...(rule.ipv6CidrBlocks ?? []).map(
      (cidr, n): Fault =>
        !canonicalIpv6(cidr) && { field: `${at}[${i}].ipv6CidrBlocks[${n}]`, message: 'is no IPv6 block' },
    ),
    ...(rule.sourceSecurityGroupRoles ?? []).map((role, n) =>
      unsupported(
        `${at}[${i}].sourceSecurityGroupRoles[${n}]`,
        !(groupRoles as readonly string[]).includes(role),
        `the roles are ${groupRoles.join(', ')}`,
      ),
    ),
    !rule.cidrBlocks?.length &&
      !rule.ipv6CidrBlocks?.length &&
      !rule.sourceSecurityGroupIds?.length &&
      !rule.sourceSecurityGroupRoles?.length &&
      !rule.natGatewaysIPsSource && { field: `${at}[${i}]`, message: 'lets nobody in: say from where' },
  ])

const healthProtocols = ['TCP', 'HTTP', 'HTTPS']
/** The limits of target groups of network load balancers. */
const healthLimits = {
  intervalSeconds: [5, 300],
  timeoutSeconds: [2, 120],
  thresholdCount: [2, 10],
  unhealthyThresholdCount: [2, 10],
} as const

const balancerFaults = ({ controlPlaneLoadBalancer: spec }: Spec): Fault[] => {
  if (!spec) return []
  const at = 'spec.controlPlaneLoadBalancer'
  const health = spec.healthCheck ?? {}
  const { intervalSeconds, timeoutSeconds } = healthTimes(health)
  const isKnown = (protocol: string | undefined): boolean => !protocol || healthProtocols.includes(protocol)
  const { loadBalancerType: type, scheme: _defaulted, ...rest } = spec
  return [
    unsupported(
      `${at}.loadBalancerType`,
      type && type !== 'nlb' && type !== 'disabled',
      'write nlb, a network load balancer, which is also what is made where nothing is said; or disabled',
    ),
    ...Object.keys(rest).map((field) =>
      unsupported(`${at}.${field}`, type === 'disabled', 'with loadBalancerType: disabled there is none; leave it out'),
    ),
    spec.name?.startsWith(reservedPrefix) && {
      field: `${at}.name`,
      message: `begins with ${reservedPrefix}, which AWS keeps to itself: choose another one`,
    },
    unsupported(`${at}.healthCheckProtocol`, !isKnown(spec.healthCheckProtocol), `use ${healthProtocols.join(', ')}`),
    unsupported(`${at}.healthCheck.protocol`, !isKnown(health.protocol), `use ${healthProtocols.join(', ')}`),
    ...Object.entries(healthLimits).map(([field, [least, most]]): Fault => {
      const value = health[field as keyof typeof healthLimits]
      if (value === undefined || (value >= least && value <= most)) return undefined
      return { field: `${at}.healthCheck.${field}`, message: `is between ${least} and ${most} for AWS` }
    }),
    intervalSeconds >= healthLimits.intervalSeconds[0] &&
      timeoutSeconds > intervalSeconds && {
        field: `${at}.healthCheck.timeoutSeconds`,
        message: `is ${timeoutSeconds}, and AWS takes no more than there is between two checks, which is ${intervalSeconds}: raise intervalSeconds`,
      },
    unsupported(`${at}.additionalListeners`, spec.additionalListeners?.length, 'there is one listener, for the API'),
    unsupported(`${at}.targetGroupIPType`, spec.targetGroupIPType === 'ipv6', 'targets have IPv4 addresses'),
    unsupported(`${at}.dnsResolutionCheck`, spec.dnsResolutionCheck === 'Enabled', 'names are not looked up; use None'),
    ...rulesFaults(`${at}.ingressRules`, spec.ingressRules),
  ]
}

/** Fields that whoever makes machines reads. Nothing here does, and whoever writes them should know. */
export const idleFields = ({ spec }: AWSCluster): string[] => {
  const idle = ['sshKeyName', 'imageLookupFormat', 'imageLookupOrg', 'imageLookupBaseOS'] as const
  return [
    ...idle.filter((field) => spec?.[field]).map((field) => `spec.${field}`),
    ...(spec?.controlPlaneLoadBalancer?.disableHostsRewrite
      ? ['spec.controlPlaneLoadBalancer.disableHostsRewrite']
      : []),
  ].map((field) => `${field}: is for whoever makes machines; the hub makes none and does not read it`)
}
