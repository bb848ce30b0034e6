import { serviceAccountTrustPolicy, roleTrustPolicy, type PolicyDocument } from '../../aws/index.ts'
import type { AWSClusterRoleIdentity, AWSServiceAccountIdentity } from '../../api/index.ts'
import { describeReference, identityKey, parseIamArn, type IamArn } from '../../identities/index.ts'
import type { Client } from '../../kube/index.ts'
import { hubNamespaceFlag, readDirectory, type AwsDirectory, type Known } from '../aws/directory.ts'
import { regionFlag, regionOf } from '../aws/session.ts'
import { withCluster } from '../cluster.ts'
import { defineCommand, outputFlag } from '../command.ts'
import { CliError } from '../errors.ts'
import { missing } from '../names.ts'

export default defineCommand({
  text: 'Prints the trust policy that the role of an identity needs in its account, so that the hub can take it on and nobody else: for an AWSServiceAccountIdentity its service account, by the issuer of this API server; for an AWSClusterRoleIdentity whatever it stands on.',
  flags: {
    'source-arn': {
      help: 'Who assumes the role, where it stands on the hub’s own credentials or on an access key: their ARN is known to AWS only (lanyard aws identities --check tells it)',
      default: '',
      value: 'ARN',
    },
    issuer: {
      help: 'The issuer of service-account tokens; unless told, this API server is asked',
      default: '',
      value: 'URL',
    },
    ...regionFlag,
    ...hubNamespaceFlag,
    ...outputFlag,
  },
  args: [
    { name: 'IDENTITY', about: 'an AWSClusterRoleIdentity as NAME, or an AWSServiceAccountIdentity as NAMESPACE/NAME' },
  ],
  examples: [
    'aws trust-policy team-a/builder > trust.json',
    'aws trust-policy prod --source-arn arn:aws:iam::111111111111:role/hub',
  ],
  run: (cli) =>
    withCluster(cli, async ({ client }) => {
      const directory = await readDirectory(cli, client, regionOf(cli))
      const known = await identityNamed(directory, cli.args[0] ?? '')
      const role = roleOf(known)
      const policy =
        known.namespace === undefined
          ? trustInSource(directory, known, cli.flags['source-arn'])
          : trustInToken(known, role, cli.flags.issuer || (await issuerOf(client, cli.signal)))
      cli.progress.say(
        `For role ${role.name} in account ${role.account}: aws iam update-assume-role-policy --role-name ${role.name.split('/').at(-1)} --policy-document file://trust.json`,
      )
      await cli.out.data(cli.flags.output, policy, () => JSON.stringify(policy, undefined, 2))
    }),
})

const identityNamed = async ({ identities }: AwsDirectory, word: string): Promise<Known> => {
  const [name, namespace = ''] = word.split('/').toReversed() as [string, string?]
  const kind = namespace ? 'AWSServiceAccountIdentity' : 'AWSClusterRoleIdentity'
  const key = identityKey({ kind, name }, namespace)
  const found = identities.find((known) => known.key === key)
  if (found) return found
  const others = identities.filter(({ reference }) => reference.kind === kind)
  throw await missing(
    kind,
    word,
    others.map(({ namespace: at, reference }) => (at ? `${at}/` : '') + reference.name),
  )
}

const roleOf = ({ identity, reference }: Known): IamArn => {
  const { roleARN } = (identity as AWSClusterRoleIdentity | AWSServiceAccountIdentity).spec
  const role = parseIamArn(roleARN)
  if (!role) throw new CliError(`${describeReference(reference)}: ${roleARN} is not the ARN of a role`)
  return role
}

const trustInToken = ({ identity, namespace = '', reference }: Known, role: IamArn, issuer: string): PolicyDocument => {
  const { audiences = [] } = (identity as AWSServiceAccountIdentity).spec
  return serviceAccountTrustPolicy({
    ...role,
    oidcProvider: issuer,
    subject: { namespace, name: reference.name },
    ...(audiences.length > 0 ? { audiences } : {}),
  })
}

const trustInSource = ({ identities }: AwsDirectory, known: Known, said: string): PolicyDocument => {
  const { externalID, tags = {} } = (known.identity as AWSClusterRoleIdentity).spec
  const source = identities.find(({ key }) => key === known.source)
  const arn = said || (source?.reference.kind === 'AWSClusterRoleIdentity' ? roleArnOf(source) : '')
  if (!arn)
    throw new CliError(
      `${describeReference(known.reference)} stands on ${source ? describeReference(source.reference) : 'nobody'}, whose ARN only AWS knows`,
      {
        next: 'give it with --source-arn; lanyard aws identities --check tells it',
      },
    )
  const isTagged = Object.keys(tags).length > 0
  return roleTrustPolicy({ principal: arn, isTagged, ...(externalID ? { externalId: externalID } : {}) })
}

const roleArnOf = ({ identity }: Known): string => (identity as AWSClusterRoleIdentity).spec.roleARN

const issuerOf = async (client: Client, signal: AbortSignal): Promise<string> => {
  const { issuer } = await client.json<{ issuer: string }>({
    method: 'GET',
    path: '/.well-known/openid-configuration',
    signal,
  })
  return issuer
}
