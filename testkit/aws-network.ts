import assert from 'node:assert/strict'
import { AWSCluster, AWSClusterRoleIdentity, Cluster } from '../src/api/index.ts'
import {
  ec2Reads,
  ec2Version,
  ec2Writes,
  elbVersion,
  listAt,
  type AwsClient,
  type QuerySender,
} from '../src/aws/index.ts'
import { infrastructureActions } from '../src/identities/index.ts'
import type { Client } from '../src/kube/index.ts'
import { findCondition } from '../src/runtime/index.ts'
import { allowing, type AwsAccount } from './aws-account.ts'
import { eventually } from './eventually.ts'
import { namespace, region, roleReference, trusting, type IdentityHub } from './identity-hub.ts'

/** What the role or user of a cluster may do: what the documentation says, and no more. */
export const mayBuild = allowing({ Action: infrastructureActions, Resource: '*' })

/** How tests run the infrastructure: the local AWS shows at once what was made, so nothing has to be waited for. */
export const atOnce = { pollMs: 50, settleMs: 0, retryMs: 20, pausedMs: 100 }

/** A role in an account that the hub may assume and that may build, and the identity for it: the account's number after an `r`. */
export const roleIn = async (
  { client, account, controllerArn }: IdentityHub,
  id: string,
): Promise<{ identityRef: never }> => {
  const roleARN = await account(id).role(`build-${id}`, trusting(controllerArn), { may: mayBuild })
  const spec = { allowedNamespaces: {}, roleARN }
  await client.of(AWSClusterRoleIdentity).create({ metadata: { name: `r${id}` }, spec })
  return { identityRef: roleReference(`r${id}`) as never }
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
  const elb = async (action: string, list: string): Promise<number> => {
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
    loadBalancers: await elb('DescribeLoadBalancers', 'LoadBalancers'),
    targetGroups: await elb('DescribeTargetGroups', 'TargetGroups'),
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
