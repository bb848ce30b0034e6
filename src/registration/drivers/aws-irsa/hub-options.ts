import {
  awsClient,
  CredentialCache,
  endpointsFrom,
  fromDefaultChain,
  parseEksClusterArn,
  type AwsCall,
  type AwsClient,
  type CredentialSource,
  type EksCluster,
} from '../../../aws/index.ts'
import type { Api } from '../../../kube/index.ts'
import type { Clock, Logger } from '../../../runtime/index.ts'
import { parsePattern, type Pattern } from './pattern.ts'
import { bothMappingsMs, type Access } from './wanted.ts'

export interface AwsIrsaHubOptions {
  client: Api
  /** The hub's own namespace, where it writes down what it gave. */
  namespace?: string | undefined
  /** Which EKS cluster the hub is. */
  hubClusterArn?: string | undefined
  /** Clusters whose ARN one of these matches need no person, with the gate on. */
  autoApprovedArnPatterns?: readonly string[] | undefined
  /** `key=value`, for roles and access entries. */
  awsResourceTags?: readonly string[] | undefined
  /** `auto` asks EKS. */
  awsAccess?: string | undefined
  /** How often AWS is asked whether everything is still there; 0 is never. */
  awsVerifySeconds?: number | undefined
  /** How long clusters that are moved have both mappings. */
  bothMappingsMs?: number | undefined
  env?: Record<string, string | undefined> | undefined
  clock: Clock
  log: Logger
  random?: (() => number) | undefined
}

/** The options, read. */
export interface HubSettings {
  hub: EksCluster
  namespace: string
  patterns: readonly Pattern[]
  tags: Record<string, string>
  access: Access | undefined
  verifyMs: number
  bothMappingsMs: number
}

const accesses: Record<string, Access | undefined> = {
  auto: undefined,
  'aws-auth': 'aws-auth',
  'access-entries': 'access-entry',
  'access-entry': 'access-entry',
}

/** What `--aws-access` says; undefined leaves it to EKS. */
export const accessOf = (said: string): Access | undefined => {
  if (Object.hasOwn(accesses, said)) return accesses[said]
  throw new RangeError(`--aws-access takes auto, aws-auth or access-entries, not ${JSON.stringify(said)}`)
}

/** Throws an error that names the flag. */
export const hubSettings = (options: AwsIrsaHubOptions): HubSettings => {
  const { hubClusterArn, awsAccess = 'auto' } = options
  if (!hubClusterArn)
    throw new RangeError('--hub-cluster-arn is missing: aws-irsa needs the ARN of the EKS cluster that this hub is')
  return {
    hub: parseEksClusterArn(hubClusterArn),
    namespace: options.namespace ?? 'open-cluster-management-hub',
    patterns: (options.autoApprovedArnPatterns ?? []).map(parsePattern),
    tags: parseTags(options.awsResourceTags ?? []),
    access: accessOf(awsAccess),
    verifyMs: (options.awsVerifySeconds ?? 6 * 3600) * 1000,
    bothMappingsMs: options.bothMappingsMs ?? bothMappingsMs,
  }
}

/** `key=value`; the value may hold further equals signs. */
export const parseTags = (said: readonly string[]): Record<string, string> => {
  const tags: Record<string, string> = {}
  for (const one of said) {
    const at = one.indexOf('=')
    const [key, value] = [one.slice(0, at).trim(), one.slice(at + 1).trim()]
    const wrong = (what: string): RangeError => new RangeError(`the tag ${JSON.stringify(one.slice(0, 100))} ${what}`)
    if (at < 0 || !key) throw wrong('is not key=value')
    if (/^aws:/i.test(key)) throw wrong('begins with "aws:", which AWS keeps for itself')
    if (key.length > 128 || value.length > 256)
      throw wrong('is too long: AWS takes keys of 128 and values of 256 characters')
    if (Object.hasOwn(tags, key)) throw wrong('is there twice')
    tags[key] = value
  }
  if (Object.keys(tags).length > 50) throw new RangeError('there are more than 50 tags, and AWS takes no more')
  return tags
}

/** AWS as this process sees it: where it is, and who we are there. Credentials are kept until they have to be renewed. */
export const awsFrom = (
  env: Record<string, string | undefined>,
  options: { region: string; onCall?: (call: AwsCall) => void },
): { aws: AwsClient; credentials: CredentialSource; forget: () => void } => {
  const { region, onCall } = options
  const aws = awsClient({ endpoints: endpointsFrom(env), proxyEnv: env, onCall })
  const none = (): Promise<never> => Promise.reject(new Error('not used here'))
  const controller = fromDefaultChain({ env, aws, region })
  const cache = new CredentialCache({ aws, controller, secret: none, token: none })
  return { aws, credentials: cache.source({ kind: 'controller' }), forget: () => cache.forget(() => true) }
}
