import type {
  Address,
  AwsTags,
  InternetGateway,
  NatGateway,
  RouteTable,
  SecurityGroup,
  Subnet,
  Vpc,
} from '../../aws/index.ts'
import type { Clients } from './clients.ts'
import type { Memory } from './memory.ts'
import { ownerTag, partTag } from './names.ts'

/** Everything in EC2 that carries the owner tag of one cluster. */
export interface Snapshot {
  vpcs: Vpc[]
  subnets: Subnet[]
  internetGateways: InternetGateway[]
  /** Those that are gone are not in it. */
  natGateways: NatGateway[]
  /** They are gone; AWS shows them for about an hour. */
  formerNatGateways: NatGateway[]
  addresses: Address[]
  routeTables: RouteTable[]
  securityGroups: SecurityGroup[]
}

/** Looks at all of it at once: seven calls, whatever there is. */
export const takeSnapshot = async (
  { ec2 }: Clients,
  memory: Memory,
  { key, owner }: { key: string; owner: string },
): Promise<Snapshot> => {
  const query = { filters: { [`tag:${ownerTag}`]: owner } }
  const ours = async <T extends { id: string; tags: AwsTags }>(kind: string, listed: Promise<T[]>): Promise<T[]> =>
    // Asked for by the tag, and looked at again: what follows deletes what is here.
    memory.with(key, kind, await listed).filter(({ tags }) => tags[ownerTag] === owner)
  const [vpcs, subnets, internetGateways, natGateways, addresses, routeTables, securityGroups] = await Promise.all([
    ours('vpcs', ec2.vpcs(query)),
    ours('subnets', ec2.subnets(query)),
    ours('internetGateways', ec2.internetGateways(query)),
    ours('natGateways', ec2.natGateways(query)),
    ours('addresses', ec2.addresses(query)),
    ours('routeTables', ec2.routeTables(query)),
    ours('securityGroups', ec2.securityGroups(query)),
  ])
  const { present = [], former: formerNatGateways = [] } = Object.groupBy(natGateways, ({ state }) =>
    state === 'deleted' ? 'former' : 'present',
  )
  return {
    vpcs,
    subnets,
    internetGateways,
    natGateways: present,
    formerNatGateways,
    addresses,
    routeTables,
    securityGroups,
  }
}

/** The part of that name. */
export const partOf = <T extends { tags: AwsTags }>(things: readonly T[], part: string): T | undefined =>
  things.find(({ tags }) => tags[partTag] === part)
