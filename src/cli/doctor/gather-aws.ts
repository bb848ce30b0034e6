import { annotation } from '../../api/index.ts'
import {
  assumeRole,
  assumeRoleWithWebIdentity,
  AwsError,
  awsClient,
  clusterPair,
  endpointsFrom,
  failedFor,
  fromDefaultChain,
  getCallerIdentity,
  hubAccessPolicy,
  hubRoleArn,
  hubRoleName,
  hubTrustPolicy,
  managedPrerequisite,
  mintEksToken,
  missingFrom,
  pathOf,
  type AwsClient,
  type ClusterPair,
  type Credentials,
  type RequiredRole,
} from '../../aws/index.ts'
import { ConfigMap, ServiceAccount, type Client } from '../../kube/index.ts'
import { agentAccount, defaultName, namespace, roleAnnotation } from '../../operator/contract.ts'
import { asHolder, hubFromKubeconfig, type Access } from '../../registration/drivers/index.ts'
import type { Cli } from '../command.ts'
import type { AwsView, AwsWalk, RoleState } from './aws-view.ts'
import { perhaps, type Seen } from './faults.ts'
import { patienceMs, seen } from './look.ts'
import { clusterOf, hubOf, isLetIn, type Snapshot } from './snapshot.ts'
import { wayThrough } from './way-to-hub.ts'

/** The clients of the sides that there are. */
export interface Clients {
  hub: Client | undefined
  managed: Client | undefined
}

/** Which EKS clusters the two are; undefined for a cluster that has no ARN. */
const pairOf = (s: Snapshot): ClusterPair | undefined => {
  const notes = clusterSeen(s)?.metadata.annotations ?? {}
  const own = perhaps(s.managed?.klusterlet)?.spec?.registrationConfiguration?.registrationDriver?.awsIrsa
  const managers = perhaps(s.hub?.managers) ?? []
  const drivers = managers.flatMap(({ spec }) => spec?.registrationConfiguration?.registrationDrivers ?? [])
  const hubArn = drivers.flatMap(({ awsirsa }) => awsirsa?.hubClusterArn ?? [])[0] ?? own?.hubClusterArn
  const arn = notes[annotation.eksManagedClusterArn] ?? notes[annotation.managedClusterArn] ?? own?.managedClusterArn
  if (!hubArn || !arn) return undefined
  try {
    return clusterPair(hubArn, arn)
  } catch (error) {
    if (error instanceof AwsError) return undefined // what is wrong with it, acceptance says
    throw error
  }
}

const clusterSeen = (s: Snapshot): ReturnType<typeof clusterOf> => {
  try {
    return clusterOf(s)
  } catch {
    return undefined // nobody could look
  }
}

/** Looks at what a cluster has in AWS, with whatever AWS credentials the person has, and by going the agent's own way. */
export const gatherAws = async (cli: Cli, s: Snapshot, clients: Clients): Promise<AwsView | undefined> => {
  const pair = pairOf(s)
  if (!pair) return undefined
  const aws = awsClient({ endpoints: endpointsFrom(cli.env), proxyEnv: cli.env, timeoutMs: patienceMs })
  const { signal } = cli
  try {
    const identity = await seenAws(() => podIdentity(s, clients.managed, signal), signal)
    const oidcProvider = map(identity, ({ claims }) => claims.iss.replace(/^https:\/\//, ''))
    const record = await lookAt(clients.hub, 'hub', signal, (hub) =>
      recordedAccess(hub, pair, hubOf(s).namespace, signal),
    )
    const [walk, ownRole, hubRole, mapping] = await Promise.all([
      'is' in identity ? seenAws(() => goTheWay(cli, aws, s, { pair, ...identity.is }), signal) : identity,
      'is' in oidcProvider
        ? inAccount(cli, aws, managedPrerequisite(pair, { oidcProvider: oidcProvider.is, klusterlet: nameOf(s) }), pair)
        : oidcProvider,
      inAccount(cli, aws, roleOnHub(pair), pair),
      mappingOf(cli, aws, clients.hub, pair, perhaps(record)),
    ])
    return {
      pair,
      oidcProvider,
      skewMs: map(identity, ({ claims }) => claims.iat * 1000 - s.now),
      accounts: await lookAt(clients.managed, 'managed cluster', signal, (client) => accountsOf(s, client, signal)),
      walk,
      ownRole,
      hubRole,
      record,
      mapping,
    }
  } finally {
    aws.close()
  }
}

const map = <T, U>(from: Seen<T>, as: (value: T) => U): Seen<U> => ('is' in from ? { is: as(from.is) } : from)

const lookAt = <T>(
  client: Client | undefined,
  what: string,
  signal: AbortSignal,
  look: (client: Client) => Promise<T>,
): Promise<Seen<T>> =>
  client ? seen(look(client), signal) : Promise.resolve({ unseen: `there is no kubeconfig for the ${what}` })

/** What AWS answers, or why it could not be asked. */
const seenAws = async <T>(look: () => Promise<T>, signal: AbortSignal): Promise<Seen<T>> => {
  try {
    return await seen(look(), signal)
  } catch (error) {
    if (error instanceof AwsError || error instanceof Unlooked) return { unseen: error.message }
    throw error
  }
}

class Unlooked extends Error {}

const nameOf = ({ managed }: Snapshot): string => perhaps(managed?.klusterlet)?.metadata.name ?? defaultName.klusterlet

const accountsOf = async (s: Snapshot, client: Client, signal: AbortSignal) => {
  const place = s.managed?.namespace ?? namespace.agent
  const name = agentAccount.work(nameOf(s))
  const found = await client.of(ServiceAccount, place).find(name, { timeoutMs: patienceMs, signal })
  return [{ name: `${place}/${name}`, role: found?.metadata.annotations?.[roleAnnotation] }]
}

interface Claims {
  iss: string
  iat: number
}

/** A token as EKS mounts it into the agent's pod, for ten minutes; the API server keeps nothing of it. */
const podIdentity = async (
  s: Snapshot,
  client: Client | undefined,
  signal: AbortSignal,
): Promise<{ token: string; claims: Claims; role: string | undefined }> => {
  if (!client) throw new Unlooked('there is no kubeconfig for the managed cluster')
  const [account] = await accountsOf(s, client, signal)
  const [place, name] = account!.name.split('/') as [string, string]
  const body = {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: { audiences: ['sts.amazonaws.com'], expirationSeconds: 600 },
  }
  const { status } = await client
    .of(ServiceAccount, place)
    .subresource<{ status: { token: string } }>(
      name,
      'token',
      { method: 'POST', body },
      { timeoutMs: patienceMs, signal },
    )
  const claims = JSON.parse(Buffer.from(status.token.split('.')[1]!, 'base64url').toString()) as Claims
  return { token: status.token, claims, role: account!.role }
}

/** From the pod's token over both roles to the hub: what is refused on the way is refused to the agent too. */
const goTheWay = async (
  cli: Cli,
  aws: AwsClient,
  s: Snapshot,
  { pair, token, role }: { pair: ClusterPair; token: string; role: string | undefined },
): Promise<AwsWalk> => {
  const { signal } = cli
  if (!role) throw new Unlooked('the service account of the agent names no role')
  const session = { sessionName: 'lanyard-doctor', region: pair.hub.region }
  const link = async <T>(at: 'own' | 'hub', call: Promise<T>): Promise<{ is: T } | AwsWalk> => {
    try {
      return { is: await call }
    } catch (error) {
      if (failedFor(error, 'ClockSkew', 'ExpiredToken')) return { kind: 'clock', why: error.what }
      if (failedFor(error, 'AccessDenied', 'NotFound', 'WebIdentityRefused', 'InvalidRequest'))
        return { kind: 'refused', at, why: error.what }
      throw error
    }
  }
  const own = await link('own', assumeRoleWithWebIdentity(aws, token, { arn: role, ...session }, signal))
  if (!('is' in own)) return own
  if (!isLetIn(s)) return { kind: 'waits' }
  const onHub = await link('hub', assumeRole(aws, own.is, { arn: hubRoleArn(pair), ...session }, signal))
  if (!('is' in onHub)) return onHub
  const { token: bearer } = await mintEksToken({
    clusterName: pair.hub.name,
    region: pair.hub.region,
    source: async () => onHub.is,
  })
  const data = perhaps(s.managed?.bootstrap) ?? perhaps(s.managed?.credential)
  if (!data) throw new Unlooked('no secret on the managed cluster says where the hub is')
  const address = await hubFromKubeconfig(data, 'the secret of the agent', cli.env)
  const hub = asHolder(() => ({ token: bearer }), address, { userAgent: cli.program })
  try {
    const way = await wayThrough(cli, hub, { name: s.name })
    if (way.kind === 'refused') return { kind: 'unmapped', server: way.server }
    if (way.kind === 'open' || way.kind === 'forbidden') return { kind: 'open' } // who it is, the hub knows
    throw new Unlooked('why' in way ? way.why : `${way.server} is no hub`)
  } finally {
    hub.close()
  }
}

const roleOnHub = (pair: ClusterPair): RequiredRole => ({
  partition: pair.hub.partition,
  account: pair.hub.account,
  name: hubRoleName(pair),
  trust: hubTrustPolicy(pair),
  policyName: '',
  access: hubAccessPolicy(pair),
  tags: {},
})

/** The person's own credentials, if they are for this account. */
const credentialsFor = async (cli: Cli, aws: AwsClient, account: string, region: string): Promise<Credentials> => {
  const own = await fromDefaultChain({ env: cli.env, aws, region })(cli.signal)
  const caller = await getCallerIdentity(aws, own, region, cli.signal)
  if (caller.account === account) return own
  throw new Unlooked(`you are ${caller.arn}: to look into account ${account}, use credentials of it (AWS_PROFILE)`)
}

const inAccount = (cli: Cli, aws: AwsClient, role: RequiredRole, { hub }: ClusterPair): Promise<Seen<RoleState>> =>
  seenAws(async () => {
    const { region } = hub
    const credentials = await credentialsFor(cli, aws, role.account, region)
    const none = { Version: '2012-10-17' as const, Statement: [] }
    const call = { service: 'iam', region, credentials, signal: cli.signal, version: '2010-05-08' } as const
    try {
      await aws.query({ ...call, action: 'GetRole', parameters: { RoleName: role.name } })
    } catch (error) {
      if (failedFor(error, 'NotFound')) return { isThere: false, trust: [], tags: [] }
      throw error
    }
    const [trust, tags] = await Promise.all([
      missingFrom(aws, credentials, { ...role, access: none, tags: {} }, region),
      missingFrom(aws, credentials, { ...role, access: none, trust: none }, region),
    ])
    return { isThere: true, trust, tags }
  }, cli.signal)

const recordedAccess = async (
  hub: Client,
  pair: ClusterPair,
  place: string,
  signal: AbortSignal,
): Promise<Access | undefined> => {
  const found = await hub.of(ConfigMap, place).find(hubRoleName(pair), { timeoutMs: patienceMs, signal })
  return found?.data?.['access']?.split(',').at(-1) as Access | undefined
}

/** Whether the role is where the hub has written down that it is. */
const mappingOf = async (
  cli: Cli,
  aws: AwsClient,
  hub: Client | undefined,
  pair: ClusterPair,
  access: Access | undefined,
): Promise<Seen<boolean>> => {
  const { signal } = cli
  if (!access) return { unseen: 'the hub has not given the cluster a role yet' }
  if (access === 'aws-auth')
    return lookAt(hub, 'hub', signal, async (client) => {
      const map = await client.of(ConfigMap, 'kube-system').find('aws-auth', { timeoutMs: patienceMs, signal })
      return (map?.data?.['mapRoles'] ?? '').includes(hubRoleArn(pair))
    })
  return seenAws(async () => {
    const { region, account, name } = pair.hub
    const credentials = await credentialsFor(cli, aws, account, region)
    const path = pathOf('clusters', name, 'access-entries', hubRoleArn(pair))
    const call = { service: 'eks', operation: 'DescribeAccessEntry', method: 'GET', region, credentials, path } as const
    try {
      await aws.json({ ...call, signal })
      return true
    } catch (error) {
      if (failedFor(error, 'NotFound')) return false
      throw error
    }
  }, signal)
}
