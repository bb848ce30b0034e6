import assert from 'node:assert/strict'
import {
  AWSCluster,
  AWSClusterRoleIdentity,
  AWSClusterStaticIdentity,
  AWSServiceAccountIdentity,
  Cluster,
} from '../src/api/index.ts'
import {
  ec2Reads,
  ec2Version,
  ec2Writes,
  elb,
  elbVersion,
  listAt,
  type AwsClient,
  type QuerySender,
} from '../src/aws/index.ts'
import { infrastructureActions } from '../src/identities/index.ts'
import type { Client } from '../src/kube/index.ts'
import { findCondition } from '../src/runtime/index.ts'
import { allowing, type AwsAccount } from './aws-account.ts'
import type { AwsFront } from './aws-front.ts'
import { eventually } from './eventually.ts'
import {
  createKeys,
  hubNamespace,
  namespace,
  region,
  roleReference,
  staticReference,
  trusting,
  type IdentityHub,
} from './identity-hub.ts'

/** What the role or user of a cluster may do: what the documentation says, and no more. */
export const mayBuild = allowing({ Action: infrastructureActions, Resource: '*' })

/** How tests run the infrastructure: the local AWS shows at once what was made, so nothing has to be waited for. */
export const atOnce = { pollMs: 50, settleMs: 0, retryMs: 20, pausedMs: 100 }

/** A role in an account that the hub may assume and that may build, and the identity for it: the account's number after an `r`. */
export const roleIn = async (
  { client, account, controllerArn }: Pick<IdentityHub, 'client' | 'account' | 'controllerArn'>,
  id: string,
): Promise<{ identityRef: never }> => {
  const roleARN = await account(id).role(`build-${id}`, trusting(controllerArn), { may: mayBuild })
  const spec = { allowedNamespaces: {}, roleARN }
  await client.of(AWSClusterRoleIdentity).create({ metadata: { name: `r${id}` }, spec })
  return { identityRef: roleReference(`r${id}`) as never }
}

const forAll = { allowedNamespaces: {} }

/** A role that another one assumes, which the hub may, and the identities for both. */
export const chainTo = async (hub: IdentityHub, id: string): Promise<{ identityRef: never }> => {
  const { client, account, controllerArn } = hub
  const jump = await account('210000000009').role('jump', trusting(controllerArn), {
    may: allowing({ Action: ['sts:AssumeRole', 'sts:TagSession'], Resource: '*' }),
  })
  const roleARN = await account(id).role('nested', trusting(jump), { may: mayBuild })
  const roles = client.of(AWSClusterRoleIdentity)
  await roles.create({ metadata: { name: 'jump' }, spec: { ...forAll, roleARN: jump } })
  const sourceIdentityRef = roleReference('jump') as never
  await roles.create({ metadata: { name: 'nested' }, spec: { ...forAll, roleARN, sourceIdentityRef } })
  return { identityRef: roleReference('nested') as never }
}

/** An access key of a user in an account, and the identity for it. */
export const keysOf = async ({ client, account }: IdentityHub, id: string): Promise<{ identityRef: never }> => {
  await createKeys(client, `${hubNamespace}/keys`, await account(id).user('builder', mayBuild))
  const secretRef = { namespace: hubNamespace, name: 'keys' }
  await client.of(AWSClusterStaticIdentity).create({ metadata: { name: 'keys' }, spec: { ...forAll, secretRef } })
  return { identityRef: staticReference('keys') as never }
}

/** A role that may build, for whoever has a token of one service account of an API server of the tests. */
export const roleByToken = async (
  account: ReturnType<IdentityHub['account']>,
  { id, role, space, name }: { id: string; role: string; space: string; name: string },
): Promise<string> => {
  const host = 'kubernetes.default.svc.cluster.local'
  await account.iam('CreateOpenIDConnectProvider', {
    Url: `https://${host}`,
    ClientIDList: ['sts.amazonaws.com'],
    ThumbprintList: ['a'.repeat(40)],
  })
  const trust = allowing({
    Principal: { Federated: `arn:aws:iam::${id}:oidc-provider/${host}` },
    Action: 'sts:AssumeRoleWithWebIdentity',
    Condition: { StringEquals: { [`${host}:sub`]: `system:serviceaccount:${space}:${name}` } },
  })
  return account.role(role, trust, { may: mayBuild })
}

/** A role that the service account `builder` of a namespace may assume; `create` makes the identity. */
export const tokensOf = async ({ client, account }: IdentityHub, id: string, space: string) => {
  const roleARN = await roleByToken(account(id), { id, role: 'tenant', space, name: 'builder' })
  return {
    identityRef: { kind: 'AWSServiceAccountIdentity', name: 'builder' } as never,
    create: () =>
      client
        .of(AWSServiceAccountIdentity, space)
        .create({ metadata: { namespace: space, name: 'builder' }, spec: { roleARN } }),
  }
}

/** EC2 of an account, as its root user. */
export const ec2Of = (aws: AwsClient, account: AwsAccount, where = region) => {
  const send: QuerySender = (action, parameters = {}) =>
    aws.query({ service: 'ec2', region: where, credentials: account.root, version: ec2Version, action, parameters })
  return { ...ec2Reads(send), ...ec2Writes(send) }
}

/** Everything in an account that a cluster could have left: kinds and how many; what every account has from the start is not in it. */
export const contentsOf = async (
  aws: AwsClient,
  account: AwsAccount,
  where = region,
): Promise<Record<string, number>> => {
  const ec2 = ec2Of(aws, account, where)
  const counted = async (action: string, list: string): Promise<number> => {
    const { root: credentials } = account
    const call = { service: 'elasticloadbalancing' as const, region: where, credentials, version: elbVersion, action }
    return listAt(await aws.query(call), `${action}Result`, list).length
  }
  const isDefault = new Set((await ec2.vpcs({ filters: { 'is-default': 'true' } })).map(({ id }) => id))
  const [vpcs, subnets, gateways, nats, addresses, tables, groups] = await Promise.all([
    ec2.vpcs({}),
    ec2.subnets({}),
    ec2.internetGateways({}),
    ec2.natGateways({}),
    ec2.addresses({}),
    ec2.routeTables({}),
    ec2.securityGroups({}),
  ])
  const counts = {
    vpcs: vpcs.filter(({ id }) => !isDefault.has(id)).length,
    subnets: subnets.filter(({ vpcId }) => !isDefault.has(vpcId)).length,
    internetGateways: gateways.filter(({ vpcIds }) => !vpcIds.some((id) => isDefault.has(id))).length,
    natGateways: nats.filter(({ state }) => state !== 'deleted').length,
    addresses: addresses.length,
    routeTables: tables.filter(({ associations }) => !associations.some(({ main }) => main)).length,
    securityGroups: groups.filter(({ name }) => name !== 'default').length,
    loadBalancers: await counted('DescribeLoadBalancers', 'LoadBalancers'),
    targetGroups: await counted('DescribeTargetGroups', 'TargetGroups'),
  }
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0))
}

/** A whole cluster over three zones, and nothing twice. */
export const oneCluster = {
  vpcs: 1,
  subnets: 6,
  internetGateways: 1,
  natGateways: 3,
  addresses: 3,
  routeTables: 6,
  securityGroups: 4,
  loadBalancers: 1,
  targetGroups: 1,
}

/** The network of a cluster in all that matters, with parts in place of ids: equal for two clusters that were built alike. */
export const shapeOf = async (
  aws: AwsClient,
  account: AwsAccount,
  { metadata, status }: AWSCluster,
): Promise<unknown> => {
  const ec2 = ec2Of(aws, account)
  const query = { filters: { 'tag:lanyard.io/aws-cluster': `${metadata.namespace}/${metadata.name}` } }
  const [[vpc], nats, ...others] = await Promise.all([
    ec2.vpcs(query),
    ec2.natGateways(query),
    ec2.subnets(query),
    ec2.internetGateways(query),
    ec2.addresses(query),
    ec2.routeTables(query),
    ec2.securityGroups(query),
  ])
  const balancer = status!.networkStatus!.apiServerElb!
  const elbCalls = elb((action, parameters = {}) => {
    const call = { service: 'elasticloadbalancing' as const, region, version: elbVersion, action, parameters }
    return aws.query({ ...call, credentials: account.root })
  })
  const listeners = (await elbCalls.listeners(balancer.arn!)).map(({ port, protocol }) => ({ port, protocol }))
  const { subnetIds, securityGroupIds, scheme } = balancer
  const alive = nats.filter(({ state }) => state !== 'deleted').map(({ createdMs: _when, ...nat }) => nat)
  const things = [{ ...vpc!, hasNames: await ec2.hasDnsHostnames(vpc!.id) }, ...alive, ...others.flat()]
  let text = JSON.stringify([things, { subnetIds, securityGroupIds, scheme, listeners }])
  for (const thing of things) {
    text = text.replaceAll(thing.id, thing.tags['lanyard.io/part']!)
    if ('publicIp' in thing) text = text.replaceAll(thing.publicIp, 'address')
  }
  text = text
    .replaceAll(/rtbassoc-\w+/g, 'association')
    .replaceAll(new RegExp(`\\b${metadata.name}\\b`, 'g'), 'cluster')
  return sortedDeeply(JSON.parse(text))
}

const sortedDeeply = (value: unknown): unknown => {
  if (Array.isArray(value))
    return value.map(sortedDeeply).toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).map(([key, inner]): [string, unknown] => [key, sortedDeeply(inner)])
  return Object.fromEntries(entries.toSorted(([a], [b]) => (a < b ? -1 : 1)))
}

/** What was made in AWS, whether or not anybody heard of it: distinct ids by kind, as `contentsOf` names them. */
export const madeThrough = (front: AwsFront): (() => Record<string, number>) => {
  const ids: Record<string, [kind: keyof typeof oneCluster, element: string]> = {
    CreateVpc: ['vpcs', 'vpcId'],
    CreateSubnet: ['subnets', 'subnetId'],
    CreateInternetGateway: ['internetGateways', 'internetGatewayId'],
    CreateNatGateway: ['natGateways', 'natGatewayId'],
    AllocateAddress: ['addresses', 'allocationId'],
    CreateRouteTable: ['routeTables', 'routeTableId'],
    CreateSecurityGroup: ['securityGroups', 'groupId'],
    CreateLoadBalancer: ['loadBalancers', 'LoadBalancerArn'],
    CreateTargetGroup: ['targetGroups', 'TargetGroupArn'],
  }
  const made = new Map(Object.values(ids).map(([kind]) => [kind, new Set<string>()]))
  const { rewrite } = front
  front.rewrite = (call, answer) => {
    const [kind, element] = ids[call.action] ?? []
    const id = new RegExp(`<${element}>([^<]+)<`).exec(answer.text)?.[1]
    if (kind && id && answer.status < 300) made.get(kind)!.add(id)
    return rewrite(call, answer)
  }
  return () => Object.fromEntries([...made].map(([kind, all]) => [kind, all.size]))
}

export interface OwnedOptions {
  spec?: AWSCluster['spec']
  /** Of the Cluster. */
  paused?: boolean
  annotations?: Record<string, string>
}

/** A Cluster and its AWSCluster, as Cluster API leaves them: the one owns the other. */
export const createCluster = async (client: Client, key: string, options: OwnedOptions = {}): Promise<AWSCluster> => {
  const [space, name] = key.split('/') as [string, string]
  await namespace(client, space)
  const metadata = { namespace: space, name }
  const infrastructureRef = { apiVersion: 'infrastructure.cluster.x-k8s.io/v1beta2', kind: 'AWSCluster', name }
  const cluster = await client
    .of(Cluster, space)
    .create({ metadata, spec: { infrastructureRef, ...(options.paused ? { paused: true } : {}) } })
  const { annotations, spec } = options
  const { uid } = cluster.metadata
  const owner = { apiVersion: 'cluster.x-k8s.io/v1beta1', kind: 'Cluster', name, uid: uid!, controller: true }
  return client.of(AWSCluster, space).create({
    metadata: { ...metadata, ownerReferences: [owner], ...(annotations ? { annotations } : {}) },
    spec: { region, ...spec },
  })
}

/** The AWSCluster when its condition says this: `True`, or a reason. */
export const says = (client: Client, key: string, type: string, wanted: string | RegExp): Promise<AWSCluster> => {
  const [space, name] = key.split('/') as [string, string]
  return eventually(
    async () => {
      const cluster = await client.of(AWSCluster, space).get(name)
      const { status, reason, message } = findCondition(cluster, type) ?? {}
      const fits = typeof wanted === 'string' ? [status, reason].includes(wanted) : wanted.test(`${reason}: ${message}`)
      const all = cluster.status?.conditions?.map((one) => `${one.type} ${one.status} ${one.reason}: ${one.message}`)
      if (!fits) throw new Error(`${key}: ${status} ${reason} ${message}\n${all?.join('\n')}`)
      return cluster
    },
    { timeoutMs: 90_000, message: `${type} of ${key} does not say ${String(wanted)}` },
  )
}

export const isBuilt = async (client: Client, key: string): Promise<AWSCluster> => {
  const cluster = await says(client, key, 'Ready', 'True')
  assert.equal(cluster.status?.ready, true)
  return cluster
}

/** Deletes and waits until it is gone. */
export const removeCluster = async (client: Client, key: string): Promise<void> => {
  const [space, name] = key.split('/') as [string, string]
  await client.of(AWSCluster, space).delete(name)
  await isGone(client, key)
  await client.of(Cluster, space).delete(name)
}

export const isGone = (client: Client, key: string): Promise<unknown> => {
  const [space, name] = key.split('/') as [string, string]
  return eventually(
    async () => {
      const cluster = await client.of(AWSCluster, space).find(name)
      const said = cluster?.status?.conditions?.map(({ type, reason, message }) => `${type} ${reason}: ${message}`)
      if (cluster) throw new Error(`${cluster.metadata.finalizers?.join()}\n${said?.join('\n')}`)
    },
    { timeoutMs: 90_000, message: `${key} is not gone` },
  )
}
