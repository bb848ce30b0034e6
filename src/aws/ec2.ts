import type { QueryValue } from './client.ts'
import { at, listAt, textAt, type XmlElement } from './xml.ts'

/** Sends one call for one caller in one region. Who pays for it, waits and signs is the sender's. */
export type QuerySender = (action: string, parameters?: Record<string, QueryValue>) => Promise<XmlElement>

export const ec2Version = '2016-11-15'

export type AwsTags = Readonly<Record<string, string>>

export interface Vpc {
  id: string
  cidrBlock: string
  state: string
  tags: AwsTags
}

export interface Subnet {
  id: string
  vpcId: string
  cidrBlock: string
  zone: string
  /** pending, available, unavailable, failed or failed-insufficient-capacity. */
  state: string
  mapPublicIp: boolean
  tags: AwsTags
}

export interface InternetGateway {
  id: string
  vpcIds: string[]
  tags: AwsTags
}

export interface NatGateway {
  id: string
  subnetId: string
  vpcId: string
  /** pending, available, failed, deleting or deleted; those that are gone are shown for an hour. */
  state: string
  failure: string | undefined
  createdMs: number
  tags: AwsTags
}

export interface Address {
  id: string
  publicIp: string
  associated: boolean
  tags: AwsTags
}

export interface RouteTable {
  id: string
  vpcId: string
  routes: { destination: string; gatewayId?: string | undefined; natGatewayId?: string | undefined; state: string }[]
  associations: { id: string; subnetId: string | undefined; main: boolean }[]
  tags: AwsTags
}

/** Traffic that a security group lets in: one protocol and range of ports, from several places. */
export interface Permission {
  protocol: string
  fromPort: number | undefined
  toPort: number | undefined
  cidrs: string[]
  ipv6Cidrs: string[]
  groupIds: string[]
  prefixListIds: string[]
}

export interface SecurityGroup {
  id: string
  name: string
  vpcId: string
  ingress: Permission[]
  tags: AwsTags
}

/** What is looked for. Ids that do not exist are an error of AWS, filters that match nothing are not. */
export interface Ec2Query {
  ids?: readonly string[] | undefined
  /** Tags with these values, and other filters by EC2's names. */
  filters?: Readonly<Record<string, string>> | undefined
}

const filtersOf = (filters: Ec2Query['filters']): QueryValue =>
  Object.entries(filters ?? {}).map(([Name, value]) => ({ Name, Value: [value] }))

const text = (element: XmlElement, ...path: string[]): string => textAt(element, ...path) ?? ''
const number = (element: XmlElement, name: string): number | undefined => {
  const said = textAt(element, name)
  return said === undefined || said === '' ? undefined : Number(said)
}
const tagsOf = (element: XmlElement): AwsTags =>
  Object.fromEntries(listAt(element, 'tagSet').map((tag) => [text(tag, 'key'), text(tag, 'value')]))

const vpc = (one: XmlElement): Vpc => ({
  id: text(one, 'vpcId'),
  cidrBlock: text(one, 'cidrBlock'),
  state: text(one, 'state'),
  tags: tagsOf(one),
})

const subnet = (one: XmlElement): Subnet => ({
  id: text(one, 'subnetId'),
  vpcId: text(one, 'vpcId'),
  cidrBlock: text(one, 'cidrBlock'),
  zone: text(one, 'availabilityZone'),
  state: text(one, 'state'),
  mapPublicIp: text(one, 'mapPublicIpOnLaunch') === 'true',
  tags: tagsOf(one),
})

const internetGateway = (one: XmlElement): InternetGateway => ({
  id: text(one, 'internetGatewayId'),
  vpcIds: listAt(one, 'attachmentSet').map((attachment) => text(attachment, 'vpcId')),
  tags: tagsOf(one),
})

const natGateway = (one: XmlElement): NatGateway => ({
  id: text(one, 'natGatewayId'),
  subnetId: text(one, 'subnetId'),
  vpcId: text(one, 'vpcId'),
  state: text(one, 'state'),
  failure: [textAt(one, 'failureCode'), textAt(one, 'failureMessage')].filter(Boolean).join(': ') || undefined,
  createdMs: Date.parse(text(one, 'createTime')) || 0,
  tags: tagsOf(one),
})

const address = (one: XmlElement): Address => ({
  id: text(one, 'allocationId'),
  publicIp: text(one, 'publicIp'),
  associated: Boolean(textAt(one, 'associationId')),
  tags: tagsOf(one),
})

const routeTable = (one: XmlElement): RouteTable => ({
  id: text(one, 'routeTableId'),
  vpcId: text(one, 'vpcId'),
  routes: listAt(one, 'routeSet').map((route) => ({
    destination: text(route, 'destinationCidrBlock'),
    gatewayId: textAt(route, 'gatewayId'),
    natGatewayId: textAt(route, 'natGatewayId'),
    state: text(route, 'state'),
  })),
  associations: listAt(one, 'associationSet').map((association) => ({
    id: text(association, 'routeTableAssociationId'),
    subnetId: textAt(association, 'subnetId'),
    main: text(association, 'main') === 'true',
  })),
  tags: tagsOf(one),
})

const permission = (one: XmlElement): Permission => ({
  protocol: text(one, 'ipProtocol'),
  fromPort: number(one, 'fromPort'),
  toPort: number(one, 'toPort'),
  cidrs: listAt(one, 'ipRanges').map((range) => text(range, 'cidrIp')),
  ipv6Cidrs: listAt(one, 'ipv6Ranges').map((range) => text(range, 'cidrIpv6')),
  groupIds: listAt(one, 'groups').map((group) => text(group, 'groupId')),
  prefixListIds: listAt(one, 'prefixListIds').map((list) => text(list, 'prefixListId')),
})

const securityGroup = (one: XmlElement): SecurityGroup => ({
  id: text(one, 'groupId'),
  name: text(one, 'groupName'),
  vpcId: text(one, 'vpcId'),
  ingress: listAt(one, 'ipPermissions').map(permission),
  tags: tagsOf(one),
})

/** What EC2 knows of networks. All pages are fetched. */
export const ec2Reads = (send: QuerySender) => {
  const all = async <T>(
    action: string,
    set: string,
    parameters: Record<string, QueryValue>,
    read: (one: XmlElement) => T,
  ): Promise<T[]> => {
    const found: T[] = []
    for (let token: string | undefined; ;) {
      const answer = await send(action, { ...parameters, ...(token ? { NextToken: token } : {}) })
      found.push(...listAt(answer, set).map(read))
      token = textAt(answer, 'nextToken')
      if (!token) return found
    }
  }
  const describe =
    <T>(action: string, set: string, idName: string, read: (one: XmlElement) => T) =>
    ({ ids, filters }: Ec2Query): Promise<T[]> =>
      all(action, set, { ...(ids ? { [idName]: ids } : {}), Filter: filtersOf(filters) }, read)
  return {
    vpcs: describe('DescribeVpcs', 'vpcSet', 'VpcId', vpc),
    subnets: describe('DescribeSubnets', 'subnetSet', 'SubnetId', subnet),
    internetGateways: describe('DescribeInternetGateways', 'internetGatewaySet', 'InternetGatewayId', internetGateway),
    natGateways: describe('DescribeNatGateways', 'natGatewaySet', 'NatGatewayId', natGateway),
    addresses: describe('DescribeAddresses', 'addressesSet', 'AllocationId', address),
    routeTables: describe('DescribeRouteTables', 'routeTableSet', 'RouteTableId', routeTable),
    securityGroups: describe('DescribeSecurityGroups', 'securityGroupInfo', 'GroupId', securityGroup),
    /** The names of the region's own zones that can be used: neither local nor wavelength zones, nor those that are down. */
    zones: async (): Promise<string[]> => {
      const filters = { state: 'available', 'zone-type': 'availability-zone' }
      const zones = await all(
        'DescribeAvailabilityZones',
        'availabilityZoneInfo',
        { Filter: filtersOf(filters) },
        (one) => text(one, 'zoneName'),
      )
      return zones.toSorted()
    },
    hasDnsHostnames: async (vpcId: string): Promise<boolean> => {
      const answer = await send('DescribeVpcAttribute', { VpcId: vpcId, Attribute: 'enableDnsHostnames' })
      return textAt(answer, 'enableDnsHostnames', 'value') === 'true'
    },
  }
}

export type Ec2Reads = ReturnType<typeof ec2Reads>

/** The one element that an answer to a Create has. */
export const createdIn = {
  vpc: (answer: XmlElement): Vpc => vpc(at(answer, 'vpc')!),
  subnet: (answer: XmlElement): Subnet => subnet(at(answer, 'subnet')!),
  internetGateway: (answer: XmlElement): InternetGateway => internetGateway(at(answer, 'internetGateway')!),
  natGateway: (answer: XmlElement): NatGateway => natGateway(at(answer, 'natGateway')!),
  routeTable: (answer: XmlElement): RouteTable => routeTable(at(answer, 'routeTable')!),
  address: (answer: XmlElement, tags: AwsTags): Address => ({ ...address(answer), tags }),
}
