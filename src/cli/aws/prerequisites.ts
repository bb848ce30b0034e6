import {
  asCloudFormation,
  asCommands,
  asJson,
  asTerraform,
  AwsError,
  getCallerIdentity,
  missingFrom,
  parseEksClusterArn,
  pathOf,
  type EksCluster,
  type RequiredRole,
} from '../../aws/index.ts'
import { UsageError, type Flags, type ValuesOf } from '../../main/flags.ts'
import type { Cli } from '../command.ts'
import { CliError } from '../errors.ts'
import { withAws, type AwsSession } from './session.ts'

export const prerequisiteFlags = {
  'oidc-provider': {
    help: 'The OIDC issuer of the cluster; EKS is asked for it if absent',
    default: '',
    value: 'URL',
  },
  verify: { help: 'Check the account against it, and say what is missing or differs', default: false },
  output: {
    help: 'How to print: json, commands (of the aws CLI), terraform or cloudformation',
    default: 'json',
    short: 'o',
    value: 'FORM',
    choices: ['json', 'commands', 'terraform', 'cloudformation'],
  },
} as const satisfies Flags

const forms: Record<string, (role: RequiredRole) => string> = {
  json: asJson,
  commands: asCommands,
  terraform: asTerraform,
  cloudformation: asCloudFormation,
}

/** An ARN of a flag, or an error that names the flag. */
export const clusterOf = (flag: string, text: string): EksCluster => {
  if (!text) throw new UsageError(`${flag} is missing: the ARN of the EKS cluster`)
  try {
    return parseEksClusterArn(text)
  } catch (cause) {
    throw new UsageError(`${flag}: ${(cause as Error).message}`, { cause })
  }
}

/** Prints a role that has to be there first, or says how the account differs from it. */
export const prerequisite = async (
  cli: Cli<typeof prerequisiteFlags>,
  cluster: EksCluster,
  roleFor: (oidcProvider: string) => RequiredRole,
): Promise<number> => {
  const { flags } = cli
  const given = issuerOf(flags)
  const session = { env: cli.env, flags: { region: cluster.region } }
  const provider = given ?? (await withAws(session, (aws) => issuerAt(aws, cluster)))
  const role = checkedRole(() => roleFor(provider))
  if (!flags.verify) {
    cli.out.line(forms[flags.output]!(role).trimEnd())
    return 0
  }
  return withAws(session, async ({ aws, own, region }) => {
    const credentials = await own()
    const { account, arn } = await getCallerIdentity(aws, credentials, region, cli.signal)
    if (account !== role.account)
      throw new CliError(`the role belongs into account ${role.account}, and you are ${arn} of account ${account}`, {
        next: `use credentials of account ${role.account}: AWS_PROFILE, or AWS_ACCESS_KEY_ID and its secret`,
      })
    const missing = await missingFrom(aws, credentials, role, region)
    for (const one of missing) cli.out.line(`✘ ${one}`)
    if (missing.length === 0) cli.out.line(`✔ role ${role.name} of account ${role.account} is as it should be`)
    else cli.progress.say('to make it so, see the same command with -o commands in place of --verify')
    return missing.length === 0 ? 0 : 1
  })
}

const checkedRole = (make: () => RequiredRole): RequiredRole => {
  try {
    return make()
  } catch (error) {
    throw error instanceof AwsError ? new CliError(error.what, { next: error.next, cause: error }) : error
  }
}

const issuerOf = (flags: ValuesOf<typeof prerequisiteFlags>): string | undefined => {
  const said = flags['oidc-provider'].replace(/^https:\/\//, '').replace(/\/$/, '')
  if (!said) return undefined
  if (/^[a-z0-9][a-z0-9.-]+(:\d+)?(\/[\w./-]+)?$/i.test(said)) return said
  throw new UsageError(
    `--oidc-provider ${JSON.stringify(said.slice(0, 200))} is not an issuer such as https://oidc.eks.us-west-2.amazonaws.com/id/ABC`,
  )
}

const issuerAt = async ({ aws, own }: AwsSession, cluster: EksCluster): Promise<string> => {
  const next = `give it with --oidc-provider: aws eks describe-cluster --name ${cluster.name} --region ${cluster.region} --query cluster.identity.oidc.issuer`
  const call = { service: 'eks', region: cluster.region, operation: 'DescribeCluster', method: 'GET' } as const
  const path = pathOf('clusters', cluster.name)
  try {
    const answer = await aws.json<{ cluster?: { arn?: string; identity?: { oidc?: { issuer?: string } } } }>({
      ...call,
      path,
      credentials: await own(),
    })
    const issuer = answer.cluster?.identity?.oidc?.issuer
    // A cluster of the same name in the account of whoever asks would give a trust policy for somebody else.
    if (issuer && answer.cluster?.arn?.split(':')[4] === cluster.account) return issuer.replace(/^https:\/\//, '')
    throw new CliError(`EKS does not say what the OIDC issuer of cluster ${cluster.name} is`, { next })
  } catch (error) {
    if (!(error instanceof AwsError)) throw error
    throw new CliError(`EKS was asked for the OIDC issuer of cluster ${cluster.name}: ${error.what}`, {
      next,
      cause: error,
    })
  }
}
