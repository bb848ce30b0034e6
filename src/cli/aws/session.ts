import {
  AwsError,
  awsClient,
  endpointsFrom,
  fromDefaultChain,
  type AwsClient,
  type CredentialSource,
} from '../../aws/index.ts'
import type { Flags } from '../../main/flags.ts'
import type { Cli } from '../command.ts'
import { CliError } from '../errors.ts'

export const regionFlag = {
  region: { help: 'The AWS region, instead of $AWS_REGION', default: '', value: 'REGION' },
} as const satisfies Flags

/** AWS as the person who types may use it: by the environment variables, profiles and endpoints of AWS's own tools. */
export interface AwsSession {
  readonly aws: AwsClient
  readonly own: CredentialSource
  readonly region: string
}

/** As the hub chooses it for clusters that name none. */
const usualRegion = 'us-east-1'

export const regionOf = ({ env, flags }: { env: NodeJS.ProcessEnv; flags: { region?: string } }): string =>
  flags.region || env['AWS_REGION'] || env['AWS_DEFAULT_REGION'] || usualRegion

/** Runs something with AWS. What AWS refuses becomes an error with the way out. */
export const withAws = async <T>(
  cli: Pick<Cli, 'env'> & { flags: { region?: string } },
  run: (session: AwsSession) => Promise<T>,
): Promise<T> => {
  const region = regionOf(cli)
  const aws = awsClient({ endpoints: endpointsFrom(cli.env), proxyEnv: cli.env })
  try {
    return await run({ aws, region, own: fromDefaultChain({ env: cli.env, aws, region }) })
  } catch (error) {
    throw error instanceof AwsError ? new CliError(error.what, { next: error.next, cause: error }) : error
  } finally {
    aws.close()
  }
}
