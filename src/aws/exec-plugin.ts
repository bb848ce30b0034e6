import type { AwsClient } from './client.ts'
import type { Clock } from './clock.ts'
import { fromDefaultChain } from './default-chain.ts'
import { mintEksToken, type EksToken } from './eks-token.ts'
import { AwsError, AwsInputError } from './errors.ts'
import { fromRole } from './sources.ts'

export interface ExecPluginOptions {
  aws: AwsClient
  env: Record<string, string | undefined>
  clusterName: string
  /** `AWS_REGION` unless said otherwise. */
  region?: string | undefined
  /** Taken on first, where given. */
  roleArn?: string | undefined
  clock?: Clock | undefined
}

/** What `lanyard eks-token` prints: a token for the cluster, in the name of who runs it or of a role. */
export const eksExecPlugin = async (options: ExecPluginOptions): Promise<string> => {
  const { aws, env, clusterName, roleArn, clock } = options
  const region = options.region ?? (env['AWS_REGION'] || env['AWS_DEFAULT_REGION'])
  if (!region) throw new AwsInputError(`the region of ${clusterName} is not known`, 'add --region, or set AWS_REGION')
  const own = fromDefaultChain({ env, aws, region, clock })
  const source = roleArn ? fromRole(aws, { arn: roleArn, sessionName: 'lanyard-eks-token', region }, own) : own
  return execCredential(await mintEksToken({ clusterName, region, source, clock }), env['KUBERNETES_EXEC_INFO'])
}

/** What an exec plug-in prints for kubectl: the version is the one that `KUBERNETES_EXEC_INFO` asks for. */
export const execCredential = ({ token, expiration }: EksToken, execInfo?: string): string =>
  JSON.stringify({
    kind: 'ExecCredential',
    apiVersion: execVersion(execInfo),
    spec: { interactive: false },
    status: { expirationTimestamp: new Date(expiration).toISOString().replace(/\.\d+Z$/, 'Z'), token },
  })

const execVersions = ['client.authentication.k8s.io/v1', 'client.authentication.k8s.io/v1beta1']

const execVersion = (execInfo: string | undefined): string => {
  if (!execInfo) return execVersions[1]! // as `aws eks get-token` does: kubectl before 1.24 knows no other
  let asked: unknown
  try {
    asked = (JSON.parse(execInfo) as { apiVersion?: unknown }).apiVersion
  } catch (cause) {
    throw new AwsError({
      reason: 'InvalidRequest',
      message: 'KUBERNETES_EXEC_INFO is not JSON',
      next: 'leave it to kubectl',
      policy: { kind: 'stall' },
      cause,
    })
  }
  const version = execVersions.find((known) => known === asked)
  if (version) return version
  throw new AwsInputError(
    `the kubeconfig asks for ${JSON.stringify(asked)}, which this plug-in does not speak`,
    `write apiVersion: ${execVersions[0]}`,
  )
}
