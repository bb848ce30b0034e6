import type { QueryValue } from './client.ts'
import {
  createdIn,
  type Address,
  type AwsTags,
  type InternetGateway,
  type NatGateway,
  type Permission,
  type QuerySender,
  type RouteTable,
  type SecurityGroup,
  type Subnet,
  type Vpc,
} from './ec2.ts'
import { textAt } from './xml.ts'

const tagList = (tags: AwsTags): QueryValue[] => Object.entries(tags).map(([Key, Value]) => ({ Key, Value }))

/** Tags come with the thing itself, in one call: there is no moment at which it is nobody's. */
const tagged = (ResourceType: string, tags: AwsTags): Record<string, QueryValue> => ({
  TagSpecification: [{ ResourceType, Tag: tagList(tags) }],
})

const permissions = (wanted: readonly Permission[]): QueryValue[] =>
  wanted.map((one) => ({
    IpProtocol: one.protocol,
    FromPort: one.fromPort,
    ToPort: one.toPort,
    IpRanges: one.cidrs.map((CidrIp) => ({ CidrIp })),
    Ipv6Ranges: one.ipv6Cidrs.map((CidrIpv6) => ({ CidrIpv6 })),
    Groups: one.groupIds.map((GroupId) => ({ GroupId })),
    PrefixListIds: one.prefixListIds.map((PrefixListId) => ({ PrefixListId })),
  }))

/** What changes networks in EC2. Each answers what it made, as a description of it would. */
export const ec2Writes = (send: QuerySender) => {
  const only = async (action: string, parameters: Record<string, QueryValue>): Promise<void> => {
    await send(action, parameters)
  }
  return {
    createVpc: async (cidrBlock: string, tags: AwsTags): Promise<Vpc> =>
      createdIn.vpc(await send('CreateVpc', { CidrBlock: cidrBlock, ...tagged('vpc', tags) })),
    enableDnsHostnames: (vpcId: string) =>
      only('ModifyVpcAttribute', { VpcId: vpcId, EnableDnsHostnames: { Value: true } }),
    deleteVpc: (id: string) => only('DeleteVpc', { VpcId: id }),

    createSubnet: async (
      { vpcId, cidrBlock, zone }: Pick<Subnet, 'vpcId' | 'cidrBlock' | 'zone'>,
      tags: AwsTags,
    ): Promise<Subnet> =>
      createdIn.subnet(
        await send('CreateSubnet', {
          VpcId: vpcId,
          CidrBlock: cidrBlock,
          AvailabilityZone: zone,
          ...tagged('subnet', tags),
        }),
      ),
    mapPublicIps: (id: string) => only('ModifySubnetAttribute', { SubnetId: id, MapPublicIpOnLaunch: { Value: true } }),
    deleteSubnet: (id: string) => only('DeleteSubnet', { SubnetId: id }),

    createInternetGateway: async (tags: AwsTags): Promise<InternetGateway> =>
      createdIn.internetGateway(await send('CreateInternetGateway', tagged('internet-gateway', tags))),
    attachInternetGateway: (id: string, vpcId: string) =>
      only('AttachInternetGateway', { InternetGatewayId: id, VpcId: vpcId }),
    detachInternetGateway: (id: string, vpcId: string) =>
      only('DetachInternetGateway', { InternetGatewayId: id, VpcId: vpcId }),
    deleteInternetGateway: (id: string) => only('DeleteInternetGateway', { InternetGatewayId: id }),

    allocateAddress: async (tags: AwsTags): Promise<Address> =>
      createdIn.address(await send('AllocateAddress', { Domain: 'vpc', ...tagged('elastic-ip', tags) }), tags),
    releaseAddress: (id: string) => only('ReleaseAddress', { AllocationId: id }),

    /** The same token gives the same gateway, also to a process that was killed before it heard the answer. */
    createNatGateway: async (
      wanted: { subnetId: string; addressId: string; clientToken: string },
      tags: AwsTags,
    ): Promise<NatGateway> =>
      createdIn.natGateway(
        await send('CreateNatGateway', {
          SubnetId: wanted.subnetId,
          AllocationId: wanted.addressId,
          ClientToken: wanted.clientToken,
          ...tagged('natgateway', tags),
        }),
      ),
    deleteNatGateway: (id: string) => only('DeleteNatGateway', { NatGatewayId: id }),

    createRouteTable: async (wanted: { vpcId: string; clientToken: string }, tags: AwsTags): Promise<RouteTable> =>
      createdIn.routeTable(
        await send('CreateRouteTable', {
          VpcId: wanted.vpcId,
          ClientToken: wanted.clientToken,
          ...tagged('route-table', tags),
        }),
      ),
    createRoute: (id: string, destination: string, target: { gatewayId?: string; natGatewayId?: string }) =>
      only('CreateRoute', routeParameters(id, destination, target)),
    replaceRoute: (id: string, destination: string, target: { gatewayId?: string; natGatewayId?: string }) =>
      only('ReplaceRoute', routeParameters(id, destination, target)),
    associateRouteTable: (id: string, subnetId: string) =>
      only('AssociateRouteTable', { RouteTableId: id, SubnetId: subnetId }),
    disassociateRouteTable: (associationId: string) => only('DisassociateRouteTable', { AssociationId: associationId }),
    deleteRouteTable: (id: string) => only('DeleteRouteTable', { RouteTableId: id }),

    createSecurityGroup: async (
      { name, description, vpcId }: { name: string; description: string; vpcId: string },
      tags: AwsTags,
    ): Promise<SecurityGroup> => {
      const answer = await send('CreateSecurityGroup', {
        GroupName: name,
        GroupDescription: description,
        VpcId: vpcId,
        ...tagged('security-group', tags),
      })
      return { id: textAt(answer, 'groupId') ?? '', name, vpcId, ingress: [], tags }
    },
    authorizeIngress: (id: string, wanted: readonly Permission[]) =>
      only('AuthorizeSecurityGroupIngress', { GroupId: id, IpPermissions: permissions(wanted) }),
    revokeIngress: (id: string, surplus: readonly Permission[]) =>
      only('RevokeSecurityGroupIngress', { GroupId: id, IpPermissions: permissions(surplus) }),
    deleteSecurityGroup: (id: string) => only('DeleteSecurityGroup', { GroupId: id }),

    createTags: (ids: readonly string[], tags: AwsTags) => only('CreateTags', { ResourceId: ids, Tag: tagList(tags) }),
    /** Only where they have these values. */
    deleteTags: (ids: readonly string[], tags: AwsTags) => only('DeleteTags', { ResourceId: ids, Tag: tagList(tags) }),
  }
}

export type Ec2Writes = ReturnType<typeof ec2Writes>

const routeParameters = (
  id: string,
  destination: string,
  { gatewayId, natGatewayId }: { gatewayId?: string; natGatewayId?: string },
): Record<string, QueryValue> => ({
  RouteTableId: id,
  DestinationCidrBlock: destination,
  GatewayId: gatewayId,
  NatGatewayId: natGatewayId,
})
