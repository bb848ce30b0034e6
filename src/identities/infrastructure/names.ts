import { createHash } from 'node:crypto'
import type { AWSCluster } from '../../api/index.ts'
import type { AwsTags } from '../../aws/index.ts'

/** Security groups that every cluster has. `lb` is for the cluster's own cloud provider, which writes its rules. */
export const groupRoles = ['apiserver-lb', 'lb', 'controlplane', 'node'] as const
export type GroupRole = (typeof groupRoles)[number]

/** Whose something is, and what it is there. Both are looked up by: what has no such tag is nobody's business here. */
export const ownerTag = 'lanyard.io/aws-cluster'
export const partTag = 'lanyard.io/part'

/** The tags of the field. They know the name alone, so they are written and never trusted. */
const fieldClusterTag = (name: string): string => `sigs.k8s.io/cluster-api-provider-aws/cluster/${name}`
const fieldRoleTag = 'sigs.k8s.io/cluster-api-provider-aws/role'
export const cloudProviderTag = (name: string): string => `kubernetes.io/cluster/${name}`

/** Tags of ours on one thing, the largest number: AWS takes 50 on each. */
export const ownTagCount = 7

/** `namespace/name`, the value of the owner tag. */
export const ownerOf = ({ metadata }: Pick<AWSCluster, 'metadata'>): string => `${metadata.namespace}/${metadata.name}`

/** Finds what another provider may have made for a cluster of this name, and what we did. */
export const ofTheField = ({ metadata }: AWSCluster): Record<string, string> => ({
  [`tag:${fieldClusterTag(metadata.name!)}`]: 'owned',
})

/** Whether another provider, which cannot tell namespaces apart, has made it for a cluster of this name. */
export const isOfTheField = (cluster: AWSCluster, tags: AwsTags): boolean =>
  tags[fieldClusterTag(cluster.metadata.name!)] === 'owned' && tags[ownerTag] === undefined

/** What a part of a cluster is tagged with. People's tags give way to those that it is found by. */
export const tagsFor = (cluster: AWSCluster, part: string, role: string, more: AwsTags = {}): AwsTags => {
  const name = cluster.metadata.name!
  return {
    Name: `${ownerOf(cluster)}-${part}`,
    ...cluster.spec?.additionalTags,
    ...more,
    [ownerTag]: ownerOf(cluster),
    [partTag]: part,
    [fieldClusterTag(name)]: 'owned',
    [fieldRoleTag]: role,
  }
}

/** Tags that are missing or differ. Nobody's tags are taken away. */
export const missingTags = (present: AwsTags, wanted: AwsTags): AwsTags =>
  Object.fromEntries(Object.entries(wanted).filter(([key, value]) => present[key] !== value))

/** A security group's name is unique in its VPC, and must not look like an id. */
export const groupName = (cluster: AWSCluster, role: GroupRole): string => {
  const name = `${ownerOf(cluster)}-${role}`
  return name.startsWith('sg-') ? `@${name}` : name
}

/** 10 characters that differ for each namespace and name: `a-b/c` and `a/b-c` must not meet. */
const digest = (...parts: string[]): string =>
  BigInt(`0x${createHash('sha256').update(JSON.stringify(parts)).digest('hex')}`)
    .toString(36)
    .slice(-10)

/** What the name of a load balancer must not begin with: AWS begins the addresses of internal ones so. */
export const reservedPrefix = 'internal-'

/** At most 32 letters, digits and hyphens, of which the first tell a person which cluster it is. */
const shortName = ({ metadata: { namespace, name } }: AWSCluster, prefix = ''): string => {
  const readable = `${prefix}${name!.replaceAll(/[^A-Za-z0-9]+/g, '-')}`.slice(0, 21)
  return `${readable.replaceAll(/^-+|-+$/g, '') || 'k8s'}-${digest(namespace!, name!)}`
}

export const loadBalancerName = (cluster: AWSCluster): string => {
  const own = shortName(cluster)
  const made = own.startsWith(reservedPrefix) ? shortName(cluster, 'k8s-') : own
  return cluster.spec?.controlPlaneLoadBalancer?.name || made
}

export const targetGroupName = (cluster: AWSCluster): string => shortName(cluster)

/** At most 64 characters, the same for the same input: AWS makes one thing for one token. */
export const clientToken = (...parts: string[]): string =>
  createHash('sha256').update(JSON.stringify(parts)).digest('hex')
