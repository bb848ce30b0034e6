import { readFile } from 'node:fs/promises'
import type { AwsClient } from './client.ts'
import { realClock, type Clock } from './clock.ts'
import type { Credentials, CredentialSource } from './credentials.ts'
import { AwsError, AwsInputError } from './errors.ts'
import { httpClient } from './http.ts'
import { fromKeys, fromWebIdentity } from './sources.ts'

type Environment = Record<string, string | undefined>

export interface DefaultChainOptions {
  env: Environment
  aws: AwsClient
  /** Where STS is called for a web identity; `AWS_REGION` unless said otherwise. */
  region?: string | undefined
  clock?: Clock | undefined
  /** Where nothing in the environment says what to use: profiles, SSO and instance metadata, by the AWS SDK. */
  otherwise?: CredentialSource | undefined
}

/**
 * The credentials that a process finds around it, in the order of the AWS SDKs. What happens in clusters is done here: keys in
 * the environment, EKS's tokens for service accounts, EKS Pod Identity. Only for the rest the SDK is loaded (15 MB, 50 ms).
 * Tokens and files are read each time, so nothing has to be restarted when they change.
 */
export const fromDefaultChain = (options: DefaultChainOptions): CredentialSource => {
  const { env, otherwise = fromSdk() } = options
  if (env['AWS_PROFILE']) return otherwise
  if (env['AWS_ACCESS_KEY_ID'] && env['AWS_SECRET_ACCESS_KEY']) return fromKeys(keysIn(env))
  if (env['AWS_WEB_IDENTITY_TOKEN_FILE'] && env['AWS_ROLE_ARN']) return fromTokenFile(options)
  if (env['AWS_CONTAINER_CREDENTIALS_FULL_URI'] || env['AWS_CONTAINER_CREDENTIALS_RELATIVE_URI'])
    return fromContainer(env, options.clock ?? realClock)
  return otherwise
}

const keysIn = (env: Environment): Credentials => ({
  accessKeyId: env['AWS_ACCESS_KEY_ID']!,
  secretAccessKey: env['AWS_SECRET_ACCESS_KEY']!,
  sessionToken: env['AWS_SESSION_TOKEN'] || undefined,
})

/** EKS mounts a token for the service account and says which role it is for. */
const fromTokenFile = ({ env, aws, region: chosen }: DefaultChainOptions): CredentialSource => {
  const region = chosen ?? (env['AWS_REGION'] || env['AWS_DEFAULT_REGION'])
  if (!region)
    return async () => {
      throw new AwsInputError('there is a web identity, but no region to call STS in', 'set AWS_REGION')
    }
  const role = { arn: env['AWS_ROLE_ARN']!, sessionName: env['AWS_ROLE_SESSION_NAME'] || 'lanyard', region }
  const path = env['AWS_WEB_IDENTITY_TOKEN_FILE']!
  return fromWebIdentity(aws, role, async () => (await readFile(path, 'utf8')).trim())
}

/** Who may be told a token without TLS: this machine, and the addresses of ECS and of EKS Pod Identity. */
const localHosts = new Set(['localhost', '127.0.0.1', '[::1]', '169.254.170.2', '169.254.170.23', '[fd00:ec2::23]'])

/** EKS Pod Identity and ECS: an agent beside the pod gives credentials to who shows its token. */
const fromContainer = (env: Environment, clock: Clock): CredentialSource => {
  const http = httpClient({ clock, timeoutMs: 5000, maxSockets: 1 })
  const full = env['AWS_CONTAINER_CREDENTIALS_FULL_URI']
  const url = new URL(full || `http://169.254.170.2${env['AWS_CONTAINER_CREDENTIALS_RELATIVE_URI']!}`)
  const tokenFile = env['AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE']
  return async (signal) => {
    if (url.protocol !== 'https:' && !localHosts.has(url.hostname))
      throw new AwsInputError(
        `${url.origin} is neither near by nor HTTPS`,
        'see who set AWS_CONTAINER_CREDENTIALS_FULL_URI',
      )
    const token = tokenFile ? (await readFile(tokenFile, 'utf8')).trim() : env['AWS_CONTAINER_AUTHORIZATION_TOKEN']
    const headers = { accept: 'application/json', ...(token ? { authorization: token } : {}) }
    const answer = await http.send({ method: 'GET', url, headers, signal })
    if (answer.status !== 200)
      throw new AwsError({
        reason: answer.status >= 500 ? 'Unavailable' : 'AccessDenied',
        message: `${url.origin} gives no credentials: status ${answer.status}`,
        next: 'see that the service account has an EKS Pod Identity association',
        status: answer.status,
      })
    return read(JSON.parse(answer.body) as Record<string, string | undefined>)
  }
}

const read = (given: Record<string, string | undefined>): Credentials => ({
  accessKeyId: given['AccessKeyId'] ?? '',
  secretAccessKey: given['SecretAccessKey'] ?? '',
  sessionToken: given['Token'],
  expiration: given['Expiration'] ? Date.parse(given['Expiration']) : undefined,
  accountId: given['AccountId'],
})

/** The AWS SDK's own chain, loaded when it is asked. It reads the environment and the files of the person itself. */
const fromSdk = (): CredentialSource => {
  let provider: Promise<() => Promise<SdkCredentials>> | undefined
  const load = async (): Promise<() => Promise<SdkCredentials>> => {
    const { defaultProvider } = await import('@aws-sdk/credential-provider-node')
    return defaultProvider()
  }
  return async () => {
    provider ??= load()
    try {
      const { expiration, ...keys } = await (await provider)()
      return { ...keys, expiration: expiration?.getTime() }
    } catch (cause) {
      throw new AwsError({
        reason: 'SourceFailed',
        message: `there are no AWS credentials: ${cause instanceof Error ? cause.message : 'no provider has any'}`,
        next: 'set AWS_PROFILE or AWS_ACCESS_KEY_ID, sign in with aws sso login, or give the pod a role',
        cause,
      })
    }
  }
}

interface SdkCredentials {
  accessKeyId: string
  secretAccessKey: string
  sessionToken?: string
  expiration?: Date
  accountId?: string
}
