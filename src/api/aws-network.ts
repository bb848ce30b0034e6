import { awsTags } from './aws-tags.ts'
import { array, boolean, integer, map, object, string } from './schema.ts'

const cidr = (description?: string) => string(description, { maxLength: 64 })
const id = (description?: string) => string(description, { maxLength: 128 })

/** Security groups by what they are for. */
const securityGroupRole = ['bastion', 'node', 'controlplane', 'apiserver-lb', 'lb', 'node-eks-additional'] as const

/** A rule that lets traffic in. */
export const ingressRule = object('Traffic that is let in.', {
  description: string('What it is for.', { maxLength: 255 }),
  protocol: string('Name or number of the protocol; -1 is all.', {
    enum: ['-1', '4', 'tcp', 'udp', 'icmp', '58', '50'],
  }),
  fromPort: integer('First port.', { format: 'int64' }),
  toPort: integer('Last port.', { format: 'int64' }),
  'cidrBlocks?': array('From these IPv4 addresses.', cidr()),
  'ipv6CidrBlocks?': array('From these IPv6 addresses.', cidr()),
  'sourceSecurityGroupIds?': array('From these security groups.', id()),
  'sourceSecurityGroupRoles?': array(
    'From the security groups of the cluster with these roles.',
    string(undefined, { enum: securityGroupRole }),
  ),
  'natGatewaysIPsSource?': boolean('From the NAT gateways of the cluster.'),
})

const ipamPool = object('A pool that addresses are taken from; by id or by name.', {
  'id?': id('Its id.'),
  'name?': string('Its name.', { maxLength: 255 }),
  'netmaskLength?': integer('How large a block is taken.', { format: 'int64', minimum: 0, maximum: 128 }),
})

const vpc = object(
  'The VPC: an existing one by id, or one to be made.',
  {
    'id?': id('An existing VPC, or the one that was made.'),
    'cidrBlock?': cidr('Addresses of a VPC to be made.'),
    'secondaryCidrBlocks?': array('More addresses.', object('One block.', { ipv4CidrBlock: cidr('The block.') })),
    'ipamPool?': ipamPool,
    'ipv6?': object('IPv6 of the VPC.', {
      'cidrBlock?': cidr('Its addresses.'),
      'poolId?': id('Pool that they come from.'),
      'egressOnlyInternetGatewayId?': id('Its gateway.'),
      'ipamPool?': ipamPool,
    }),
    'internetGatewayId?': id('Its internet gateway.'),
    'carrierGatewayId?': string('Its carrier gateway.', { maxLength: 128, pattern: '^cagw-' }),
    'tags?': awsTags('Tags of the VPC.'),
    'availabilityZoneUsageLimit?': integer('How many zones get subnets.', { default: 3, minimum: 1 }),
    'availabilityZoneSelection?': string('Which zones those are.', { enum: ['Ordered', 'Random'], default: 'Ordered' }),
    'emptyRoutesDefaultVPCSecurityGroup?': boolean('Remove all rules of the default security group.'),
    'privateDnsHostnameTypeOnLaunch?': string('How hosts are named.', { enum: ['ip-name', 'resource-name'] }),
    'elasticIpPool?': object('Where public addresses come from.', {
      'publicIpv4Pool?': string('A pool of your own.', { maxLength: 30 }),
      'publicIpv4PoolFallbackOrder?': string('What happens when it is empty.', { enum: ['amazon-pool', 'none'] }),
    }),
    'subnetSchema?': string('Which subnets get the larger blocks.', {
      enum: ['PreferPrivate', 'PreferPublic'],
      default: 'PreferPrivate',
    }),
  },
  {
    rules: [
      {
        rule: '!has(oldSelf.id) || oldSelf.id == "" || (has(self.id) && self.id == oldSelf.id)',
        message: 'a cluster stays in its VPC: id cannot be changed once set',
        fieldPath: '.id',
      },
      {
        rule: '!has(self.cidrBlock) || !has(self.ipamPool)',
        message: 'set cidrBlock or ipamPool, not both',
      },
    ],
  },
)

const subnet = object('One subnet.', {
  id: id('Id of an existing subnet, or any name for one to be made.'),
  'resourceID?': id('Id of the subnet that was made.'),
  'cidrBlock?': cidr('Its addresses.'),
  'ipv6CidrBlock?': cidr('Its IPv6 addresses.'),
  'availabilityZone?': string('Its zone.', { maxLength: 63 }),
  'isPublic?': boolean('Whether it is reached from the internet.'),
  'isIpv6?': boolean('Whether it has IPv6.'),
  'routeTableId?': id('Its route table.'),
  'natGatewayId?': id('Its NAT gateway.'),
  'tags?': awsTags('Tags of the subnet.'),
  'zoneType?': string('What kind of zone it is in.', { enum: ['availability-zone', 'local-zone', 'wavelength-zone'] }),
  'parentZoneName?': string('The zone that a local zone belongs to.', { maxLength: 63 }),
})

/** The network of a cluster. */
export const network = object('The network.', {
  'vpc?': vpc,
  'subnets?': array('Its subnets.', subnet, { keys: ['id'], maxItems: 128 }),
  'cni?': object('What the pod network needs.', {
    'cniIngressRules?': array(
      'Traffic between nodes.',
      object('One rule.', {
        description: string('What it is for.', { maxLength: 255 }),
        protocol: string('Name or number of the protocol.', { maxLength: 16 }),
        fromPort: integer('First port.', { format: 'int64' }),
        toPort: integer('Last port.', { format: 'int64' }),
      }),
    ),
  }),
  'securityGroupOverrides?': map('Security groups of yours, by role.', id()),
  'additionalControlPlaneIngressRules?': array('More traffic to the control plane.', ingressRule),
  'additionalNodeIngressRules?': array('More traffic to the nodes.', ingressRule),
  'nodePortIngressRuleCidrBlocks?': array('Who reaches node ports.', cidr()),
})
