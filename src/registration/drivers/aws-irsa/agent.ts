import type { ManagedCluster } from '../../../api/index.ts'
import {
  awsClient,
  clusterPair,
  CredentialCache,
  eksTokens,
  endpointsFrom,
  fromDefaultChain,
  fromWebIdentity,
  hubRoleArn,
  managedRoleArn,
  realClock,
  type Clock,
  type ClusterPair,
  type Recipe,
} from '../../../aws/index.ts'
import { clientFor, type Api, type ClientOptions, type Credential, type Environment } from '../../../kube/index.ts'
import { firstOf } from '../../../runtime/index.ts'
import { secretKey } from '../../contract.ts'
import { csrAgentDriver } from '../csr/index.ts'
import type { AgentDriver, HubAddress, SecretData } from '../driver.ts'
import { asBootstrapUser, hubFromKubeconfig } from '../kubeconfig-hub.ts'
import { accepted } from './acceptance.ts'
import { claimAnnotations } from './claim.ts'

export interface AwsIrsaAgentOptions {
  hubClusterArn?: string | undefined
  managedClusterArn?: string | undefined
  /** For add-ons that use certificates. */
  expirationSeconds?: number | undefined
  /** Where the role of the pod is found, and proxies. */
  env?: Environment | undefined
  /** A token of the agent's service account, for whoever acts in its place without being its pod. */
  webIdentity?: ((signal?: AbortSignal) => Promise<string>) | undefined
  clock?: Clock | undefined
  random?: (() => number) | undefined
}

/** The role of this cluster on the hub, in place of a certificate. Nothing in the secret is secret: what proves who we are is the pod's own role. */
export const awsIrsaAgentDriver = (options: AwsIrsaAgentOptions): AgentDriver => {
  const { env = {}, clock = realClock, random } = options
  const pair = pairOf(options)
  const roleArn = hubRoleArn(pair)
  const { region, name: hubName } = pair.hub
  const args = [
    '--region',
    region,
    'eks',
    'get-token',
    '--cluster-name',
    hubName,
    '--output',
    'json',
    '--role-arn',
    roleArn,
  ]
  const unusable = firstOf<SecretData>([
    (secret) =>
      !secret[secretKey.kubeconfig] && {
        reason: 'KubeconfigMissing',
        message: `the secret has no ${secretKey.kubeconfig}`,
      },
    (secret) =>
      [roleArn, hubName, region].some((part) => !secret[secretKey.kubeconfig]!.includes(part)) && {
        reason: 'OtherRole',
        message: `the kubeconfig in the secret is not for role ${roleArn} of hub ${hubName}`,
      },
  ])
  const certificates = csrAgentDriver({ expirationSeconds: options.expirationSeconds, env })
  const tokens = tokensOf(pair, { env, clock, random, webIdentity: options.webIdentity })
  return {
    name: 'awsirsa',
    unusable,
    renewAt: () => Number.POSITIVE_INFINITY, // tokens are minted as they are needed
    expiresAt: () => undefined,
    obtain: async (context) => {
      await accepted(context)
      return {}
    },
    describe: (cluster: ManagedCluster) => ({
      ...cluster,
      metadata: {
        ...cluster.metadata,
        annotations: { ...cluster.metadata.annotations, ...claimAnnotations(pair) },
      },
    }),
    hubOf: (bootstrap, source) => hubFromKubeconfig(bootstrap, source, env),
    asBootstrap: (bootstrap, source, client) => asBootstrapUser(bootstrap, source, client, env),
    asCluster: (_, hub, client) => asRole(tokens, hub, client),
    // As `aws eks update-kubeconfig --role-arn` writes it. We need no AWS CLI; whoever uses this file does.
    kubeconfigUser: () => ({
      exec: { apiVersion: 'client.authentication.k8s.io/v1beta1', command: 'aws', args, provideClusterInfo: false },
    }),
    // Certificates for add-ons are asked for over the same connection, where the hub signs any.
    forAddOn: (subject) => certificates.forAddOn(subject),
  }
}

const pairOf = ({ hubClusterArn, managedClusterArn }: AwsIrsaAgentOptions): ClusterPair => {
  if (!hubClusterArn) throw new RangeError('--hub-cluster-arn is missing: aws-irsa needs the ARN of the hub')
  if (!managedClusterArn)
    throw new RangeError('--managed-cluster-arn is missing: aws-irsa needs the ARN of the EKS cluster that this is')
  return clusterPair(hubClusterArn, managedClusterArn)
}

interface Tokens {
  get(signal?: AbortSignal): Promise<string>
  /** Everything that was held is dropped: role, session and token. */
  forget(): void
}

const tokensOf = (
  pair: ClusterPair,
  options: Pick<AwsIrsaAgentOptions, 'random' | 'webIdentity'> & { env: Environment; clock: Clock },
): Tokens => {
  const { env, clock, random, webIdentity } = options
  const { region, name: clusterName } = pair.hub
  const aws = awsClient({ endpoints: endpointsFrom(env), proxyEnv: env })
  const none = (): Promise<never> => Promise.reject(new Error('not used here'))
  const own = { arn: managedRoleArn(pair), sessionName: sessionName(pair), region: pair.managed.region }
  const controller = webIdentity
    ? fromWebIdentity(aws, own, webIdentity)
    : fromDefaultChain({ env, aws, region: env['AWS_REGION'] || pair.managed.region, clock })
  const cache = new CredentialCache({ aws, controller, secret: none, token: none, clock, random })
  const recipe: Recipe = {
    kind: 'role',
    source: { kind: 'controller' },
    role: { arn: hubRoleArn(pair), sessionName: sessionName(pair), region },
  }
  const fresh = () => eksTokens({ clusterName, region, source: cache.source(recipe), clock, random })
  let mint = fresh()
  return {
    get: async (signal) => (await mint(signal)).token,
    forget: () => {
      cache.forget(() => true)
      mint = fresh()
    },
  }
}

/** What CloudTrail on the hub's side shows: which cluster. 2 to 64 characters of those that EKS names have. */
const sessionName = ({ managed }: ClusterPair): string => `lanyard-${managed.name}`.slice(0, 64)

/** A hub that has just lost or changed our mapping answers 401 to good tokens: new ones are not asked for more often than this. */
const forgetAtMostMs = 10_000

/** The hub as our role there. The same credential is returned while the token is the same, so that connections are kept. */
const asRole = (tokens: Tokens, hub: HubAddress, options: ClientOptions): Api => {
  const now = options.now ?? Date.now
  let last: Credential = {}
  let forgotten = -Infinity
  return clientFor(
    {
      source: hub.source,
      server: hub.server,
      tlsServerName: hub.tlsServerName,
      proxyUrl: hub.proxyUrl,
      credentials: async ({ rejected, signal } = {}) => {
        // The role may have been made anew: sessions of the old one are dead, whatever their expiration says.
        if (rejected && rejected === last && now() - forgotten >= forgetAtMostMs) {
          forgotten = now()
          tokens.forget()
        }
        const token = await tokens.get(signal)
        if (last.token !== token) last = { ca: hub.ca, token }
        return last
      },
    },
    options,
  )
}
