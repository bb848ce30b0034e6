import type { Permission } from '../../aws/index.ts'
import { canonicalIpv6 } from './cidr.ts'
import type { GroupRole } from './names.ts'
import { targetPort, type IngressRule, type Network, type Spec } from './plan.ts'

/** What rules refer to: the security groups by role, and the addresses that the cluster calls out from. */
export interface Surroundings {
  groups: Readonly<Record<GroupRole, string>>
  natAddresses: readonly string[]
  apiPort: number
}

const anywhere = { cidrBlocks: ['0.0.0.0/0'] }

/** What pods of the usual networks need between nodes, where nothing else is said. */
const defaultCni = [
  { description: 'bgp (calico)', protocol: 'tcp', fromPort: 179, toPort: 179 },
  { description: 'IP-in-IP (calico)', protocol: '4', fromPort: -1, toPort: 65_535 },
]

type Rule = Omit<IngressRule, 'protocol'> & { protocol: string }

const rule = (description: string, port: number | [number, number], from: Partial<IngressRule>): Rule => {
  const [fromPort, toPort] = typeof port === 'number' ? [port, port] : port
  return { description, protocol: 'tcp', fromPort, toPort, ...from }
}
const roles = (...sourceSecurityGroupRoles: GroupRole[]): Partial<IngressRule> => ({ sourceSecurityGroupRoles })

/** All traffic that is let in, by security group. None for `lb`: its rules are the cloud provider's. */
export const wantedRules = (
  spec: Spec,
  network: Network,
  { apiPort }: Pick<Surroundings, 'apiPort'>,
): Record<Exclude<GroupRole, 'lb'>, Rule[]> => {
  const cni = (network.cni?.cniIngressRules ?? defaultCni).map((one) => ({ ...one, ...roles('controlplane', 'node') }))
  const nodePorts = network.nodePortIngressRuleCidrBlocks
  return {
    'apiserver-lb': spec.controlPlaneLoadBalancer?.ingressRules?.length
      ? spec.controlPlaneLoadBalancer.ingressRules
      : [rule('Kubernetes API', apiPort, anywhere)],
    controlplane: [
      rule('Kubernetes API', targetPort, roles('apiserver-lb', 'controlplane', 'node')),
      rule('etcd', [2379, 2380], roles('controlplane')),
      ...cni,
      ...(network.additionalControlPlaneIngressRules ?? []),
    ],
    node: [
      rule('Node ports', [30_000, 32_767], nodePorts?.length ? { cidrBlocks: nodePorts } : anywhere),
      rule('Kubelet API', 10_250, roles('controlplane', 'node')),
      ...cni,
      ...(network.additionalNodeIngressRules ?? []),
    ],
  }
}

/** AWS tells some protocols by their names whichever way they are said, and ports only where there are any. */
const protocolNames: Record<string, string> = { '6': 'tcp', '17': 'udp', '1': 'icmp', '58': 'icmpv6' }
const withPorts = new Set(['tcp', 'udp', 'icmp', 'icmpv6'])

interface Atom {
  protocol: string
  fromPort: number | undefined
  toPort: number | undefined
  from: { cidr?: string; ipv6Cidr?: string; groupId?: string; prefixListId?: string }
}

const atom = (said: string, fromPort: number | undefined, toPort: number | undefined, from: Atom['from']): Atom => {
  const protocol = protocolNames[said] ?? said
  return withPorts.has(protocol)
    ? { protocol, fromPort, toPort, from }
    : { protocol, fromPort: undefined, toPort: undefined, from }
}
const keyOfAtom = ({ protocol, fromPort, toPort, from }: Atom): string =>
  JSON.stringify([protocol, fromPort ?? null, toPort ?? null, from])

const wantedAtoms = (rules: readonly Rule[], { groups, natAddresses }: Surroundings): Atom[] =>
  rules.flatMap((one) =>
    [
      ...(one.cidrBlocks ?? []).map((cidr) => ({ cidr })),
      ...(one.ipv6CidrBlocks ?? []).map((cidr) => ({ ipv6Cidr: canonicalIpv6(cidr) ?? cidr })),
      ...(one.sourceSecurityGroupIds ?? []).map((groupId) => ({ groupId })),
      ...(one.sourceSecurityGroupRoles ?? []).map((role) => ({ groupId: groups[role as GroupRole] })),
      ...(one.natGatewaysIPsSource ? natAddresses.map((ip) => ({ cidr: `${ip}/32` })) : []),
    ].map((from) => atom(one.protocol, one.fromPort, one.toPort, from)),
  )

const presentAtoms = (permissions: readonly Permission[]): Atom[] =>
  permissions.flatMap((one) =>
    [
      ...one.cidrs.map((cidr) => ({ cidr })),
      ...one.ipv6Cidrs.map((ipv6Cidr) => ({ ipv6Cidr: canonicalIpv6(ipv6Cidr) ?? ipv6Cidr })),
      ...one.groupIds.map((groupId) => ({ groupId })),
      ...one.prefixListIds.map((prefixListId) => ({ prefixListId })),
    ].map((from) => atom(one.protocol, one.fromPort, one.toPort, from)),
  )

const permissionOf = ({ protocol, fromPort, toPort, from }: Atom): Permission => ({
  protocol,
  fromPort,
  toPort,
  cidrs: from.cidr ? [from.cidr] : [],
  ipv6Cidrs: from.ipv6Cidr ? [from.ipv6Cidr] : [],
  groupIds: from.groupId ? [from.groupId] : [],
  prefixListIds: from.prefixListId ? [from.prefixListId] : [],
})

/** What must be let in besides, and what must not be any more. Descriptions are no difference. */
export const ruleDifference = (
  present: readonly Permission[],
  rules: readonly Rule[],
  surroundings: Surroundings,
): { missing: Permission[]; surplus: Permission[] } => {
  const wanted = new Map(wantedAtoms(rules, surroundings).map((one) => [keyOfAtom(one), one]))
  const there = new Map(presentAtoms(present).map((one) => [keyOfAtom(one), one]))
  return {
    missing: [...wanted].filter(([key]) => !there.has(key)).map(([, one]) => permissionOf(one)),
    surplus: [...there].filter(([key]) => !wanted.has(key)).map(([, one]) => permissionOf(one)),
  }
}
