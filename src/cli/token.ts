import { randomInt } from 'node:crypto'
import { ClusterManager } from '../api/index.ts'
import {
  type ClusterRoleBinding,
  isForbidden,
  isNotFound,
  Secret,
  ServiceAccount,
  type Client,
  type Credential,
} from '../kube/index.ts'
import { bootstrapAccount, bootstrapRole, namespace } from '../operator/contract.ts'
import { applyAll } from './apply.ts'
import { pinsOf } from './ca.ts'
import type { Cluster } from './cluster.ts'
import type { Cli } from './command.ts'
import { CliError } from './errors.ts'

/** What a managed cluster needs to ask for admission. */
export interface JoinTicket {
  'hub-token': string
  'hub-apiserver': string
  /** Absent when the hub's certificate is from a well-known authority. */
  'ca-hash'?: string
  /** Where the hub knows clusters by AWS IAM alone. */
  'eks-hub-cluster-arn'?: string
  expires?: string
}

interface TokenRequestStatus {
  status: { token: string; expirationTimestamp: string }
}

/** A new token of the bootstrap account, good for `seconds`. */
export const ticketFor = async (cli: Cli, cluster: Cluster, options: TokenOptions): Promise<JoinTicket> => {
  const { ca } = await cluster.connection.credentials({ signal: cli.signal })
  const hash = hashOf({ ca })
  const arn = await onlyByArn(cluster.client, cli)
  const token = options.bootstrapToken
    ? await bootstrapToken(cluster.client, cli, options.seconds)
    : await accountToken(cluster.client, cli, options.seconds)
  return {
    'hub-token': token.token,
    'hub-apiserver': cluster.connection.server,
    ...(hash && { 'ca-hash': hash }),
    ...(arn && { 'eks-hub-cluster-arn': arn }),
    expires: token.expires,
  }
}

/** The ARN of a hub with aws-irsa and nothing else: a join without it would wait for a certificate for ever. */
const onlyByArn = async (client: Client, cli: Cli): Promise<string | undefined> => {
  const managers = await client
    .of(ClusterManager)
    .list({ signal: cli.signal })
    .then(({ items }) => items)
    .catch((error: unknown) => {
      if (isNotFound(error) || isForbidden(error)) return [] // a hub that no operator runs, or a person who may only make tokens
      throw error
    })
  const drivers = managers[0]?.spec?.registrationConfiguration?.registrationDrivers ?? []
  return drivers.length === 1 ? drivers[0]?.awsirsa?.hubClusterArn : undefined
}

export interface TokenOptions {
  seconds: number
  /** A token of Kubernetes' own bootstrap mechanism instead of one of the account. */
  bootstrapToken: boolean
}

// A kubeconfig may hold several authorities. The last one is the root where it is a chain, and any of them will do.
const hashOf = ({ ca }: Credential): string | undefined => (ca ? pinsOf(ca).at(-1)?.hash : undefined)

const accountToken = async (client: Client, cli: Cli, seconds: number) => {
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: seconds } }
  try {
    const { status } = await client
      .of(ServiceAccount, namespace.operator)
      .subresource<TokenRequestStatus>(bootstrapAccount, 'token', { method: 'POST', body }, { signal: cli.signal })
    return { token: status.token, expires: status.expirationTimestamp }
  } catch (cause) {
    if (!isNotFound(cause)) throw cause
    throw new CliError(
      `the account that new clusters register with, ${namespace.operator}/${bootstrapAccount}, does not exist`,
      { next: `run ${cli.program} init, which creates it again where it was deleted`, cause },
    )
  }
}

const alphabet = 'abcdefghijklmnopqrstuvwxyz0123456789'
const randomText = (length: number): string =>
  Array.from({ length }, () => alphabet[randomInt(alphabet.length)]).join('')

/** The group that bootstrap tokens of ours carry. */
export const bootstrapGroup = 'system:bootstrappers:managedcluster'
/** Finds those tokens again. */
export const bootstrapTokenLabels = { app: 'cluster-manager' }
export const bootstrapGroupBinding = `${bootstrapRole}:managedcluster`

const bootstrapToken = async (client: Client, cli: Cli, seconds: number) => {
  const [id, secret] = [randomText(6), randomText(16)]
  const expires = new Date(cli.clock.now() + seconds * 1000).toISOString()
  await applyAll(
    client,
    [
      {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'ClusterRoleBinding',
        metadata: { name: bootstrapGroupBinding },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: bootstrapRole },
        subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: bootstrapGroup }],
      } as ClusterRoleBinding,
    ],
    { dryRun: false, signal: cli.signal },
  )
  await client.of(Secret, 'kube-system').create(
    {
      metadata: { name: `bootstrap-token-${id}`, namespace: 'kube-system', labels: bootstrapTokenLabels },
      type: 'bootstrap.kubernetes.io/token',
      stringData: {
        'token-id': id,
        'token-secret': secret,
        expiration: expires,
        'usage-bootstrap-authentication': 'true',
        'auth-extra-groups': bootstrapGroup,
      },
    },
    { signal: cli.signal },
  )
  return { token: `${id}.${secret}`, expires }
}

/** The command that a person runs at the managed cluster. */
export const joinCommand = (
  program: string,
  ticket: JoinTicket,
  { clusterName = '<cluster_name>', token = true, wait = false } = {},
): string =>
  [
    `${program} join`,
    ...(token ? [`--hub-token ${ticket['hub-token']}`] : []),
    `--hub-apiserver ${ticket['hub-apiserver']}`,
    ...(ticket['ca-hash'] ? [`--ca-hash ${ticket['ca-hash']}`] : []),
    ...(ticket['eks-hub-cluster-arn']
      ? ['--registration-auth=aws-irsa', `--eks-hub-cluster-arn ${ticket['eks-hub-cluster-arn']}`]
      : []),
    ...(wait ? ['--wait'] : []),
    `--cluster-name ${clusterName}`,
  ].join(' ')

/** What to do with it, for a person. */
export const joinAdvice = (cli: Cli, ticket: JoinTicket, { wait = false } = {}): string =>
  [
    'Log on to the cluster that is to be managed and run:',
    '',
    `    ${joinCommand(cli.program, ticket, { wait })}`,
    '',
    'Replace <cluster_name> by the name that the cluster is to have on this hub.',
    'To keep the token off the command line, put it in $LANYARD_HUB_TOKEN or in a file that --hub-token-file names:',
    '',
    `    ${joinCommand(cli.program, ticket, { wait, token: false })}`,
    ...(ticket.expires ? ['', `The token can be used until ${ticket.expires}.`] : []),
  ].join('\n')
