/**
 * EKS on this machine: a local AWS with as many accounts as are named, and a hub whose API server takes AWS's tokens. Either the
 * real aws-iam-authenticator checks them by `aws-auth`, or the local AWS itself by access entries, or one after the other.
 *
 *     const eks = await startLocalEks({ access: 'aws-auth' })
 *     await startHub(eks.hub, { args: eks.hubArgs, env: await eks.hubEnvironment() })
 *     const managed = await eks.managed('m1', { account: '222222222222', plane })
 *     await startAgent(plane, 'c1', { args: managed.args, env: await managed.environment() })
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  awsClient,
  eksClusterArn,
  hubPrerequisite,
  managedPrerequisite,
  type AwsClient,
  type ClusterPair,
  type EksCluster,
  type RequiredRole,
} from '../../src/aws/index.ts'
import { Namespace, ServiceAccount } from '../../src/kube/index.ts'
import { awsAccount, type AwsAccount } from '../aws-account.ts'
import type { Component } from '../component.ts'
import { startControlPlane, type ControlPlane, type ControlPlaneOptions } from '../control-plane.ts'
import { keptFolder, removeKeptFolder } from '../keeper.ts'
import { startLocalAws } from '../local-aws.ts'
import { prepareAuthenticator } from './authenticator.ts'
import { startConnectProxy, type ConnectProxy } from './connect-proxy.ts'
import { described, type Facts } from './described.ts'
import { issuerOf, knownClusters, writeReviewConfig } from './hub-cluster.ts'
import { startTokenReview, type AuthenticationMode } from './token-review.ts'
import { startWebIdentityFront } from './web-identity.ts'

export { issuerOf } from './hub-cluster.ts'
export { administratorOf } from './administrator.ts'
export { startConnectProxy, type ConnectProxy } from './connect-proxy.ts'

export type Partition = 'aws' | 'aws-cn' | 'aws-us-gov'

export interface LocalEksOptions {
  /** How the hub maps IAM roles to groups; `both` begins with `aws-auth`, and `setAuthenticationMode` moves it on. */
  access: 'aws-auth' | 'access-entries' | 'both'
  partition?: Partition | undefined
  plane?: ControlPlaneOptions | undefined
  /** What the creator role is given beside the specification's rights; what `access` needs unless said. */
  creator?: { accessEntries?: boolean; tags?: boolean } | 'none' | undefined
  /** Managed clusters that EKS can be asked about. */
  clusters?: readonly EksCluster[] | undefined
  /** The hub is not on EKS, which then knows no such cluster: it runs the authenticator itself. */
  offEks?: boolean | undefined
}

/** A managed cluster in an account of its own or of others. */
export interface ManagedEks {
  arn: string
  pair: ClusterPair
  /** Flags of its agent. */
  args: string[]
  /** What EKS gives its agent: the role of its service account, and a token that proves it. */
  environment: (endpoint?: string) => Promise<Record<string, string>>
}

export interface LocalEks {
  /** Where AWS is. */
  endpoint: string
  client: AwsClient
  /** For programs that know AWS's own names only. */
  proxy: ConnectProxy
  hub: ControlPlane
  hubCluster: EksCluster
  hubArn: string
  hubArgs: string[]
  hubAccount: AwsAccount
  authenticator: Component | undefined
  /** As `aws eks update-cluster-config --access-config` does, which the local AWS lacks. Only for `both`. */
  setAuthenticationMode: (mode: AuthenticationMode) => void
  account: (id: string) => AwsAccount
  /** Starts the control plane of a managed cluster that EKS can be asked about: access entries let people in, and EKS says where it is. */
  plane: (cluster: EksCluster) => Promise<ControlPlane>
  hubEnvironment: (endpoint?: string) => Promise<Record<string, string>>
  /** Makes the role that has to be there before a cluster joins. `issuer` names the cluster whose tokens the plane issues, if it is another. */
  managed: (name: string, options: { account: string; plane: ControlPlane; issuer?: string }) => Promise<ManagedEks>
  stop: () => Promise<void>
  [Symbol.asyncDispose]: () => Promise<void>
}

const regions: Record<Partition, string> = { aws: 'us-west-2', 'aws-cn': 'cn-north-1', 'aws-us-gov': 'us-gov-west-1' }
const hubAccountId = '111111111111'

/** The EKS cluster of this name in an account. */
export const eksCluster = (name: string, account: string, partition: Partition = 'aws'): EksCluster => ({
  partition,
  region: regions[partition],
  account,
  name,
})

/** A control plane whose service-account tokens are those of an EKS cluster. */
export const startManagedPlane = (cluster: EksCluster): Promise<ControlPlane> =>
  startControlPlane({ serviceAccountIssuer: issuerOf(cluster) })

/** One that also takes AWS's tokens. */
const startPlane = (
  cluster: EksCluster,
  webhook: string,
  { apiServerFlags, ...options }: ControlPlaneOptions = {},
): Promise<ControlPlane> =>
  startControlPlane({
    ...options,
    serviceAccountIssuer: issuerOf(cluster),
    apiServerFlags: {
      'authentication-token-webhook-config-file': webhook,
      // What is taken away has to be gone when a test looks.
      'authentication-token-webhook-cache-ttl': '1s',
      ...apiServerFlags,
    },
  })

/** Starts a hub on EKS, with the roles that the specification wants to be there before. */
export const startLocalEks = async (options: LocalEksOptions): Promise<LocalEks> => {
  const { access, partition = 'aws' } = options
  const hubCluster = eksCluster('hub', hubAccountId, partition)
  const isConfigMap = access !== 'access-entries'
  let mode: AuthenticationMode = isConfigMap ? 'CONFIG_MAP' : 'API'
  const known = knownClusters([hubCluster, ...(options.clusters ?? [])], mode)
  const facts = new Map<string, Facts>()
  const tell = (cluster: EksCluster, more: Facts): void => {
    facts.set(eksClusterArn(cluster), { ...facts.get(eksClusterArn(cluster)), ...more })
  }
  const folder = keptFolder('eks')
  const aws = await startLocalAws(options.offEks ? {} : known.state)
  const front = await startWebIdentityFront(aws.endpoint, (request, answer) => described(request, answer, facts))
  const { endpoint: here } = front
  const proxy = await startConnectProxy(here)
  const parts: { hub?: ControlPlane; authenticator?: Component; review?: { stop: () => Promise<void> } } = {}
  const client = awsClient({ endpoints: { all: here } })
  const stop = async (): Promise<void> => {
    client.close()
    await Promise.all([
      parts.authenticator?.kill(),
      parts.hub?.stop(),
      parts.review?.stop(),
      proxy.stop(),
      front.stop(),
      aws.stop(),
    ])
    removeKeptFolder(folder)
  }
  try {
    const { region } = hubCluster
    const authenticator = isConfigMap
      ? await prepareAuthenticator({ folder, cluster: hubCluster.name, partition, region, proxy })
      : undefined
    const reviewed = (cluster: EksCluster): string => `${aws.endpoint}${known.reviewPath(cluster)}`
    const entries = reviewed(hubCluster)
    const review =
      access === 'both'
        ? await startTokenReview({ entries, authenticator: authenticator!.webhookConfig, mode: () => mode })
        : undefined
    if (review) parts.review = review
    const webhook = review
      ? writeReviewConfig(folder, 'hub', review.server)
      : (authenticator?.webhookConfig ?? writeReviewConfig(folder, 'hub', entries))
    const hub = await startPlane(hubCluster, webhook, options.plane)
    parts.hub = hub
    tell(hubCluster, { plane: hub })
    if (authenticator) parts.authenticator = await authenticator.start(hub.kubeconfig)
    const account = (id: string): AwsAccount => awsAccount(client, id)
    const asked = options.creator === 'none' ? {} : options.creator
    const creator = { accessEntries: access !== 'aws-auth', ...asked }
    const role = hubPrerequisite(hubCluster, { oidcProvider: issuerOf(hubCluster), ...creator })
    if (options.creator !== 'none') await createRole(account, role)
    const variables = (roleOf: RequiredRole, token: string, endpoint: string): Record<string, string> => ({
      AWS_ROLE_ARN: `arn:${partition}:iam::${roleOf.account}:role/${roleOf.name}`,
      AWS_WEB_IDENTITY_TOKEN_FILE: token,
      AWS_REGION: region,
      AWS_ENDPOINT_URL: endpoint,
      AWS_EC2_METADATA_DISABLED: 'true',
    })
    return {
      endpoint: here,
      client,
      proxy,
      hub,
      hubCluster,
      hubArn: eksClusterArn(hubCluster),
      hubArgs: ['--registration-drivers=awsirsa', `--hub-cluster-arn=${eksClusterArn(hubCluster)}`],
      hubAccount: account(hubAccountId),
      authenticator: parts.authenticator,
      setAuthenticationMode: (to) => {
        if (access !== 'both') throw new Error(`this hub was started for ${access} alone`)
        mode = to
        tell(hubCluster, { mode })
      },
      plane: async (cluster) => {
        const plane = await startPlane(cluster, writeReviewConfig(folder, cluster.name, reviewed(cluster)))
        tell(cluster, { plane })
        return plane
      },
      account,
      hubEnvironment: async (endpoint = here) =>
        variables(role, await webIdentity(hub, 'open-cluster-management-hub', 'registration-controller-sa'), endpoint),
      managed: async (name, { account: id, plane, issuer = name }) => {
        const pair = { hub: hubCluster, managed: eksCluster(name, id, partition) }
        const oidcProvider = issuerOf(eksCluster(issuer, id, partition))
        const required = managedPrerequisite(pair, { oidcProvider })
        await createRole(account, required)
        const arn = eksClusterArn(pair.managed)
        return {
          arn,
          pair,
          args: [
            '--registration-auth=awsirsa',
            `--hub-cluster-arn=${eksClusterArn(hubCluster)}`,
            `--managed-cluster-arn=${arn}`,
          ],
          environment: async (endpoint = here) =>
            variables(
              required,
              await webIdentity(plane, 'open-cluster-management-agent', 'klusterlet-work-sa'),
              endpoint,
            ),
        }
      },
      stop,
      [Symbol.asyncDispose]: stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

/**
 * The local AWS keeps everything in the partition `aws`, so that is where rights on it are looked for; and it looks for the right to
 * tag an access entry on everything there is, not on the entry.
 */
const createRole = async (account: (id: string) => AwsAccount, role: RequiredRole): Promise<void> => {
  const kept = JSON.parse(
    JSON.stringify(role.access).replaceAll(/arn:aws-[a-z-]+:iam/g, 'arn:aws:iam'),
  ) as typeof role.access
  const tags = JSON.stringify(role.access).includes('eks:TagResource')
    ? [{ Effect: 'Allow' as const, Action: 'eks:TagResource', Resource: '*' }]
    : []
  const may = { ...role.access, Statement: [...role.access.Statement, ...kept.Statement, ...tags] }
  await account(role.account).role(role.name, role.trust, { may, tags: role.tags })
}

/** A token of a service account for AWS, in a file as EKS mounts it; answers its path. */
const webIdentity = async (plane: ControlPlane, namespace: string, name: string): Promise<string> => {
  const client = plane.client()
  // Applied, not created: agents that start at the same time share namespace and account.
  const by = { fieldManager: 'testkit' }
  await client.of(Namespace).apply({ metadata: { name: namespace } }, by)
  const accounts = client.of(ServiceAccount, namespace)
  await accounts.apply({ metadata: { name, namespace } }, by)
  const spec = { audiences: ['sts.amazonaws.com'], expirationSeconds: 86_400 }
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec }
  const { status } = await accounts.subresource<{ status: { token: string } }>(name, 'token', { method: 'POST', body })
  const folder = join(plane.folder, 'web-identity')
  mkdirSync(folder, { recursive: true })
  const path = join(folder, `${namespace}-${name}`)
  writeFileSync(path, status.token, { mode: 0o600 })
  return path
}
