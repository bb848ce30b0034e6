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
import { caCommand } from './grpc-ca.ts'

/** What a managed cluster needs to ask for admission. */
export interface JoinTicket {
  'hub-token': string
  'hub-apiserver': string
  /** Absent when the hub's certificate is from a well-known authority. */
  'ca-hash'?: string
  /** Where the hub knows clusters by AWS IAM alone. */
  'eks-hub-cluster-arn'?: string
  /** Where the hub has clusters over gRPC: the address of its endpoint. */
  'grpc-server'?: string
  /** The strategy that the join command is for; csr unless told. */
  'registration-auth'?: 'aws-irsa' | 'grpc'
  expires?: string
}

interface TokenRequestStatus {
  status: { token: string; expirationTimestamp: string }
}

/** A new token of the bootstrap account, good for `seconds`. */
export const ticketFor = async (cli: Cli, cluster: Cluster, options: TokenOptions): Promise<JoinTicket> => {
  const { ca } = await cluster.connection.credentials({ signal: cli.signal })
  const hash = hashOf({ ca })
  const ways = await waysIn(cluster.client, cli)
  const token = options.bootstrapToken
    ? await bootstrapToken(cluster.client, cli, options.seconds)
    : await accountToken(cluster.client, cli, options.seconds)
  return {
    'hub-token': token.token,
    'hub-apiserver': cluster.connection.server,
    ...(hash && { 'ca-hash': hash }),
    ...ways,
    expires: token.expires,
  }
}

type Ways = Pick<JoinTicket, 'eks-hub-cluster-arn' | 'grpc-server' | 'registration-auth'>

/** How clusters join this hub. Where there is one strategy alone, a join with another would wait for ever. */
const waysIn = async (client: Client, cli: Cli): Promise<Ways> => {
  const managers = await client
    .of(ClusterManager)
    .list({ signal: cli.signal })
    .then(({ items }) => items)
    .catch((error: unknown) => {
      if (isNotFound(error) || isForbidden(error)) return [] // a hub that no operator runs, or a person who may only make tokens
      throw error
    })
  const spec = managers[0]?.spec
  const drivers = spec?.registrationConfiguration?.registrationDrivers ?? []
  const only = drivers.length === 1 ? drivers[0] : undefined
  const arn = only?.awsirsa?.hubClusterArn
  if (arn) return { 'eks-hub-cluster-arn': arn, 'registration-auth': 'aws-irsa' }
  if (!drivers.some(({ authType }) => authType === 'grpc')) return {}
  return { 'grpc-server': endpointIn(spec), ...(only && { 'registration-auth': 'grpc' }) }
}

/** As `init --grpc-server` has said it; a load balancer whose name the cloud chooses has to be looked up by a person. */
const endpointIn = (spec: ClusterManager['spec']): string => {
  const ways = spec?.serverConfiguration?.endpointsExposure ?? []
  const { type = 'hostname', ...at } = ways.find(({ protocol = 'grpc' }) => protocol === 'grpc')?.grpc ?? {}
  return at[type]?.host || '<grpc_server>'
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

/** Where the join command looks for the CA of a gRPC endpoint. */
const caFile = 'grpc-ca.crt'

interface CommandOptions {
  clusterName?: string
  /** Whether the token is part of it. */
  token?: boolean
  wait?: boolean
  auth?: JoinTicket['registration-auth']
}

/** The command that a person runs at the managed cluster. */
export const joinCommand = (program: string, ticket: JoinTicket, options: CommandOptions = {}): string => {
  const { clusterName = '<cluster_name>', token = true, wait = false, auth = ticket['registration-auth'] } = options
  return [
    `${program} join`,
    ...(token ? [`--hub-token ${ticket['hub-token']}`] : []),
    ...wayOf(ticket, auth),
    ...(wait ? ['--wait'] : []),
    `--cluster-name ${clusterName}`,
  ].join(' ')
}

/** Over gRPC the API server is not named: where the cluster runs it may be out of reach, and join would ask it. */
const wayOf = (ticket: JoinTicket, auth: JoinTicket['registration-auth']): string[] =>
  auth === 'grpc'
    ? ['--registration-auth=grpc', `--grpc-server ${ticket['grpc-server']}`, `--grpc-ca-file ${caFile}`]
    : [
        `--hub-apiserver ${ticket['hub-apiserver']}`,
        ...(ticket['ca-hash'] ? [`--ca-hash ${ticket['ca-hash']}`] : []),
        ...(auth === 'aws-irsa'
          ? ['--registration-auth=aws-irsa', `--eks-hub-cluster-arn ${ticket['eks-hub-cluster-arn']}`]
          : []),
      ]

/** What to do with it, for a person. */
export const joinAdvice = (cli: Cli, ticket: JoinTicket, { wait = false } = {}): string => {
  const { 'grpc-server': endpoint, 'registration-auth': auth } = ticket
  const isChoice = endpoint !== undefined && auth !== 'grpc'
  return [
    'Log on to the cluster that is to be managed and run:',
    '',
    `    ${joinCommand(cli.program, ticket, { wait })}`,
    '',
    ...(isChoice
      ? [
          'Or, where the API server of this hub cannot be reached, through its gRPC endpoint:',
          '',
          `    ${joinCommand(cli.program, ticket, { wait, auth: 'grpc' })}`,
          '',
        ]
      : []),
    ...(endpoint === undefined
      ? []
      : [
          `${caFile} is the CA of the endpoint. Write it on this hub, and take it along:`,
          '',
          `    ${caCommand(caFile)}`,
          '',
        ]),
    'Replace <cluster_name> by the name that the cluster is to have on this hub.',
    ...(endpoint === '<grpc_server>' ? ['Replace <grpc_server> by the host:port under which clusters reach it.'] : []),
    'To keep the token off the command line, put it in $LANYARD_HUB_TOKEN or in a file that --hub-token-file names:',
    '',
    `    ${joinCommand(cli.program, ticket, { wait, token: false })}`,
    ...(ticket.expires ? ['', `The token can be used until ${ticket.expires}.`] : []),
  ].join('\n')
}
