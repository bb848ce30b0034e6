import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import {
  AWSCluster,
  AWSClusterControllerIdentity,
  AWSClusterRoleIdentity,
  AWSClusterStaticIdentity,
  AWSServiceAccountIdentity,
} from '../src/api/index.ts'
import { awsClient, fromKeys, type AwsClient, type Credentials } from '../src/aws/index.ts'
import {
  identityWebhookConfigurations,
  identityWebhooks,
  startIdentities,
  startInfrastructure,
  type IdentitySettings,
  type InfrastructureSettings,
} from '../src/identities/index.ts'
import {
  ConfigMap,
  isAlreadyExists,
  isInvalid,
  Namespace,
  Secret,
  type Client,
  type KubeObject,
  type Resource,
} from '../src/kube/index.ts'
import { findCondition, Manager, type Clock, type Logger } from '../src/runtime/index.ts'
import {
  MutatingWebhookConfiguration,
  ValidatingWebhookConfiguration,
  webhookServer,
} from '../src/runtime/webhook/index.ts'
import { allowing, awsAccount, type AwsAccount } from './aws-account.ts'
import { startAwsFront, type AwsFront } from './aws-front.ts'
import type { ControlPlane } from './control-plane.ts'
import { eventually } from './eventually.ts'
import type { LocalAws } from './local-aws.ts'

export const hubNamespace = 'lanyard-hub'
export const region = 'eu-west-1'
/** Where the controller lives. */
export const managementAccount = '111111111111'

export interface IdentityHub {
  /** An administrator's client that is not the hub's. */
  client: Client
  front: AwsFront
  aws: AwsClient
  account: (id: string) => AwsAccount
  /** The ARN of the controller's user. */
  controllerArn: string
  hub: ReturnType<typeof startIdentities>
  /** Ends as a process does that is killed. */
  stop: () => Promise<void>
  /** What has to be done before everything is removed. */
  atEnd: (() => Promise<unknown>)[]
}

export interface IdentityHubOptions {
  settings?: Partial<IdentitySettings>
  /** Clusters are built too, as the hub program does. */
  infrastructure?: Partial<InfrastructureSettings>
  clock?: Clock
  log?: Logger
  userAgent?: string
  /** Where it lives, if not in `hubNamespace`. */
  namespace?: string
  /** What was made of AWS before, for a hub that starts again. */
  before?: IdentityHub
}

const assumesAnything = allowing({ Action: ['sts:AssumeRole', 'sts:TagSession'], Resource: '*' })

/** A user who may assume whatever trusts it; the same one when it is asked for again. */
const users = new WeakMap<LocalAws, Promise<Credentials>>()

/** The controllers of AWS identities in this process, over a way to the local AWS that counts, until the test ends. */
export const runIdentities = async (
  t: TestContext,
  plane: ControlPlane,
  local: LocalAws,
  options: IdentityHubOptions = {},
): Promise<IdentityHub> => {
  const direct = awsClient({ endpoints: { all: local.endpoint } })
  const account = (id: string): AwsAccount => awsAccount(direct, id)
  if (!users.has(local)) users.set(local, account(managementAccount).user('capa', assumesAnything))
  const front = options.before?.front ?? (await startAwsFront(t, local.endpoint))
  const aws = awsClient({ endpoints: { all: front.endpoint }, timeoutMs: 10_000 })
  const client = plane.client({ user: 'hub', groups: ['system:masters'], userAgent: options.userAgent ?? 'test-hub' })
  const admin = plane.client()
  const own = options.namespace ?? hubNamespace
  await namespace(admin, own)
  const { clock, log } = options
  const manager = new Manager({ client, clock, log, gracePeriodMs: 0 })
  const hub = startIdentities(manager, {
    client,
    aws,
    controller: fromKeys((await users.get(local))!),
    namespace: own,
    region,
    settings: options.settings,
    clock,
    log,
  })
  if (options.infrastructure) startInfrastructure(hub, { aws, settings: options.infrastructure })
  const end = new AbortController()
  const running = manager.run(end.signal)
  let stopped: Promise<void> | undefined
  const stop = (): Promise<void> =>
    (stopped ??= (async () => {
      end.abort()
      await running
      await hub.events.flush()
      hub.credentials.close()
      client.close()
      aws.close()
    })())
  const atEnd: IdentityHub['atEnd'] = []
  t.after(async () => {
    await stop()
    for (const end of atEnd) await end()
    await removeAll(admin, own)
    direct.close()
  })
  const controllerArn = `arn:aws:iam::${managementAccount}:user/capa`
  return { client: admin, front, aws: direct, account, controllerArn, hub, stop, atEnd }
}

/** The webhooks of a hub, known to the API server until the test ends. */
export const serveWebhooks = async (plane: ControlPlane, { hub, client, atEnd }: IdentityHub): Promise<void> => {
  const pair = plane.serverCertificate()
  const routes = identityWebhooks({ client: hub.client, records: hub.records })
  const server = webhookServer({ host: '127.0.0.1', port: 0, certificate: () => pair, routes })
  await server.start()
  const caBundle = Buffer.from(plane.ca).toString('base64')
  const [mutation, validation] = identityWebhookConfigurations({ url: `https://127.0.0.1:${server.port}`, caBundle })
  const mutations = client.of(MutatingWebhookConfiguration)
  const validations = client.of(ValidatingWebhookConfiguration)
  await mutations.create(mutation!)
  await validations.create(validation!)
  atEnd.push(async () => {
    await mutations.delete(mutation!.metadata.name!)
    await validations.delete(validation!.metadata.name!)
    await server.stop()
  })
  // Configurations take a moment to arrive.
  const probe = { metadata: { name: 'probe', namespace: 'default' }, spec: { region: 'no region' } }
  await eventually(() => assert.rejects(client.of(AWSCluster, 'default').create(probe, { dryRun: true }), isInvalid))
  const unnamed = { ...probe, spec: { region } }
  await eventually(async () => {
    const stored = await client.of(AWSCluster, 'default').create(unnamed, { dryRun: true })
    return stored.spec?.identityRef !== undefined
  })
}

const kinds: Resource<KubeObject>[] = [
  AWSCluster,
  AWSClusterControllerIdentity,
  AWSClusterRoleIdentity,
  AWSClusterStaticIdentity,
  AWSServiceAccountIdentity,
]

/** So that the next test begins with nothing, as on a hub that has never seen an identity. */
const removeAll = async (client: Client, own: string): Promise<void> => {
  await client.of(ConfigMap, own).delete('lanyard-aws-identities')
  for (const kind of kinds) {
    const { items } = await client.of(kind).list()
    await Promise.all(
      items.map(async ({ metadata }) => {
        const objects = client.of(kind, metadata.namespace)
        await objects.patch(metadata.name!, { merge: { metadata: { finalizers: null } } })
        await objects.delete(metadata.name!)
      }),
    )
  }
}

export const namespace = (client: Client, name: string, labels: Record<string, string> = {}): Promise<unknown> =>
  client
    .of(Namespace)
    .create({ metadata: { name, labels } })
    .catch((error: unknown) => {
      if (!isAlreadyExists(error)) throw error
    })

export interface ClusterOptions {
  identity?: { kind: string; name: string }
  region?: string
  accountID?: string
  finalizers?: string[]
}

/** An AWSCluster as a workload operator makes it. */
export const createAwsCluster = async (
  client: Client,
  key: string,
  { identity, finalizers, ...spec }: ClusterOptions = {},
): Promise<AWSCluster> => {
  const [space, name] = key.split('/') as [string, string]
  await namespace(client, space)
  return client.of(AWSCluster, space).create({
    metadata: { namespace: space, name, ...(finalizers ? { finalizers } : {}) },
    spec: { region, ...spec, ...(identity ? { identityRef: identity as never } : {}) },
  })
}

/** The names of a Secret's keys come from the specification. */
export const createKeys = (client: Client, key: string, keys: Credentials): Promise<Secret> => {
  const [space, name] = key.split('/') as [string, string]
  const stringData = {
    AccessKeyID: keys.accessKeyId,
    SecretAccessKey: keys.secretAccessKey,
    ...(keys.sessionToken ? { SessionToken: keys.sessionToken } : {}),
  }
  return client
    .of(Secret, space)
    .apply({ metadata: { namespace: space, name }, stringData }, { fieldManager: 'test', force: true })
}

export const roleReference = (name: string) => ({ kind: 'AWSClusterRoleIdentity', name })
export const staticReference = (name: string) => ({ kind: 'AWSClusterStaticIdentity', name })
export const controllerIdentity = { kind: 'AWSClusterControllerIdentity', name: 'default' }

/** A role that a principal may assume, perhaps with a word that only they know. */
export const trusting = (principal: string, externalId?: string) =>
  allowing({
    Principal: { AWS: principal },
    Action: ['sts:AssumeRole', 'sts:TagSession'],
    ...(externalId ? { Condition: { StringEquals: { 'sts:ExternalId': externalId } } } : {}),
  })

/** What a cluster says about its identity: `usage/reason credential/reason account`. */
export const standing = (cluster: AWSCluster | undefined): string => {
  if (!cluster) return 'gone'
  const said = (type: string): string => {
    const condition = findCondition(cluster, type)
    return condition ? `${condition.status}/${condition.reason}` : '-'
  }
  return `${said('PrincipalUsageAllowed')} ${said('PrincipalCredentialRetrieved')} ${cluster.spec?.accountID ?? '-'}`
}

export const isReady = (account: string): string =>
  `True/PrincipalUsageAllowed True/PrincipalCredentialRetrieved ${account}`

/** Waits until a cluster stands like this, for its current generation, and answers it. */
export const stands = async (client: Client, key: string, wanted: string | RegExp): Promise<AWSCluster> => {
  const [space, name] = key.split('/') as [string, string]
  return eventually(
    async () => {
      const cluster = await client.of(AWSCluster, space).find(name)
      const now = standing(cluster)
      const fits = typeof wanted === 'string' ? now === wanted : wanted.test(now)
      const seen = cluster?.status?.conditions?.map(({ reason, message }) => `${reason}: ${message}`).join('\n')
      if (!fits || !cluster) throw new Error(`${key}: ${now}\n${seen}`)
      return cluster
    },
    { timeoutMs: 60_000, message: `${key} does not stand as ${String(wanted)}` },
  )
}

/** What one condition of a cluster says. */
export const messageOf = (
  cluster: AWSCluster,
  type: 'PrincipalUsageAllowed' | 'PrincipalCredentialRetrieved',
): string => findCondition(cluster, type)?.message ?? ''
