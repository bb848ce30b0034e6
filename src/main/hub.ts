import { startAddOns } from '../addons/hub/index.ts'
import { installCrds, crds } from '../api/index.ts'
import { isAlreadyExists, Namespace, type Client } from '../kube/index.ts'
import { permissionWebhookConfigurations, startPermissions } from '../permissions/hub/index.ts'
import {
  grpcService,
  hubDrivers,
  ownUser,
  parseDriverName,
  requesterBehind,
  type HubDriver,
  type HubDriverName,
} from '../registration/drivers/index.ts'
import {
  registrationWebhookConfigurations,
  registrationWebhooks,
  startRegistration,
} from '../registration/hub/index.ts'
import { EventRecorder, Manager, systemClock } from '../runtime/index.ts'
import { workWebhookConfigurations, workWebhooks } from '../work/hub/index.ts'
import { parseGates, UsageError, type Flags } from './flags.ts'
import { hubWebhooks } from './hub-webhooks.ts'
import { commonFlags, connectionTo, countedClient, runProgram } from './program.ts'
import { hubServiceAccounts } from './service-accounts-add-on.ts'

const flags = {
  ...commonFlags,
  kubeconfig: { help: 'The hub; without it the cluster that this process runs in', default: '' },
  context: { help: 'A context of the kubeconfig', default: '' },
  namespace: { help: 'Where leases and certificates are kept', default: 'open-cluster-management-hub' },
  'registration-drivers': {
    help: 'How clusters may prove who they are: csr, aws-irsa, grpc',
    default: ['csr'],
    aliases: ['registration-auth', 'enabled-registration-drivers'],
  },
  'feature-gates': { help: 'Gate=true,Other=false; an unknown gate lists those there are', default: [] },
  'auto-approved-csr-users': {
    help: 'Users whose clusters join without a person, with ManagedClusterAutoApproval=true',
    default: [],
    aliases: ['cluster-auto-approval-users'],
  },
  'hub-cluster-arn': { help: 'With aws-irsa: the ARN of the EKS cluster that this hub is', default: '' },
  'auto-approved-arn-patterns': {
    help: 'With aws-irsa and ManagedClusterAutoApproval=true: ARNs that need no person; none: all wait for one; *: all',
    default: [],
  },
  'aws-resource-tags': { help: 'With aws-irsa: key=value for roles and access entries', default: [] },
  'aws-access': { help: 'With aws-irsa: auto, aws-auth or access-entries', default: 'auto' },
  'aws-verify-seconds': {
    help: 'With aws-irsa: how often AWS is asked whether all is still there; 0 is never',
    default: 21_600,
  },
  'grpc-host': { help: 'With grpc: where its endpoint listens', default: '::' },
  'grpc-port': { help: 'With grpc: the port of its endpoint', default: 8090 },
  'grpc-names': {
    help: 'With grpc: names and addresses by which agents reach it, besides the Service lanyard-grpc',
    default: [],
    aliases: ['grpc-server'],
  },
  'grpc-signing-seconds': {
    help: 'With grpc: how long client certificates last at most',
    default: 2_592_000,
    seconds: true,
    aliases: ['grpc-signing-duration'],
  },
  'auto-approved-grpc-users': {
    help: 'With grpc: users whose clusters join without a person, with ManagedClusterAutoApproval=true',
    default: [],
  },
  labels: { help: 'key=value for everything that is made for a cluster', default: [] },
  'farewell-seconds': {
    help: 'How long a denied or deleted cluster may still remove its works',
    default: 600,
  },
  'agent-image': { help: 'The image of add-on agents that are this program', default: 'lanyard:latest' },
  'service-accounts-install-on': {
    help: 'Clusters that get add-on managed-serviceaccount by themselves: * or key=value,key=value',
    default: '',
  },
  'leader-elect': { help: 'Let one of several replicas work', default: true },
  'lease-seconds': { help: 'After how long another replica takes over', default: 15 },
  'install-crds': { help: 'Install or update the CRDs at the start', default: false },
  webhooks: { help: 'Serve admission and conversion webhooks', default: true },
  'webhook-host': { help: 'Where they listen', default: '::' },
  'webhook-port': { help: 'Their port', default: 9443 },
  'webhook-url': { help: 'How the API server reaches them, where that is not the Service', default: '' },
  'webhook-service': { help: 'The Service by which the API server reaches them', default: 'lanyard-webhook' },
} as const satisfies Flags

/** Names and defaults as in the field; they are written in camel case here and in any case on the command line. */
const gates = {
  managedClusterAutoApproval: false,
  defaultClusterSet: true,
  resourceCleanup: true,
  nilExecutorValidating: false,
  awsIdentities: false,
  autoControllerIdentityCreator: true,
  clusterProfile: false,
}

/** `lanyard hub`: everything that runs on a hub. */
export const hub = (args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> =>
  runProgram(
    { usage: 'lanyard hub [flags]', text: 'Runs the hub: registration, work admission, webhooks.', flags },
    args,
    env,
    async ({ flags, log, metrics, instance, signal }) => {
      const connection = await connectionTo(flags, env)
      const client = countedClient(connection, 'lanyard-hub', metrics)
      const { namespace } = flags
      const on = parseGates(flags['feature-gates'], gates)
      log.info('hub', { server: connection.server, source: connection.source, instance })
      await ensureNamespace(client, namespace, signal)
      const where = flags['webhook-url']
        ? { url: flags['webhook-url'] }
        : { service: { namespace, name: flags['webhook-service'], port: 443 } }
      if (flags['install-crds']) {
        const service = 'service' in where ? { service: { ...where.service, path: '/convert' } } : undefined
        const conversion = flags.webhooks ? (service ?? { url: `${flags['webhook-url']}/convert` }) : 'none'
        await installCrds(client, crds({ conversion }), { signal })
      }
      const manager = new Manager({
        client,
        metrics,
        log,
        health: { host: flags['health-host'], port: flags['health-port'] },
        leaderElection: flags['leader-elect']
          ? { namespace, name: 'lanyard-hub', identity: instance, leaseMs: flags['lease-seconds'] * 1000 }
          : undefined,
      })
      const events = new EventRecorder({ client, controller: 'lanyard.io/registration', instance, log })
      const chosen = enabledDrivers(flags['registration-drivers'])
      const endpointUser = chosen.includes('grpc') ? await ownUser(client, signal) : ''
      const enabled = chosen.map((name): HubDriver => {
        try {
          return hubDrivers[name]({
            client,
            gates: on,
            autoApproveUsers: flags['auto-approved-csr-users'],
            namespace,
            hubClusterArn: flags['hub-cluster-arn'],
            autoApprovedArnPatterns: flags['auto-approved-arn-patterns'],
            awsResourceTags: flags['aws-resource-tags'],
            awsAccess: flags['aws-access'],
            awsVerifySeconds: flags['aws-verify-seconds'],
            grpc: {
              host: flags['grpc-host'],
              port: flags['grpc-port'],
              names: [`${grpcService}.${namespace}.svc`, ...flags['grpc-names']],
              signingMs: flags['grpc-signing-seconds'] * 1000,
              autoApproveUsers: flags['auto-approved-grpc-users'],
              endpointUser,
            },
            env,
            events,
            clock: systemClock,
            log,
          })
        } catch (error) {
          throw new UsageError(`--registration-drivers: ${(error as Error).message}`, { cause: error })
        }
      })
      startRegistration(manager, {
        client,
        instance,
        log,
        settings: {
          gates: on,
          drivers: enabled,
          labels: parseLabels(flags.labels),
          farewellMs: flags['farewell-seconds'] * 1000,
        },
      })
      const image = flags['agent-image']
      const installOn = flags['service-accounts-install-on']
      const addOns = await hubServiceAccounts(manager, { client, image, installOn, log }, signal)
      // Their agents' requests over gRPC are made by the hub, in the name of whoever asked.
      const requesterOf = endpointUser ? requesterBehind(endpointUser) : undefined
      startAddOns(manager, { client, manager: true, addOns, requesterOf, events, log })
      const permissions = startPermissions(manager, { client, admission: flags.webhooks, log })
      if (on.clusterProfile) {
        const { ensureProfileKind, startProfiles } = await import('../serviceaccounts/profiles/index.ts')
        await ensureProfileKind(client, { install: flags['install-crds'], signal })
        startProfiles(manager, { client, events, log })
      }
      const aws = on.awsIdentities
        ? (await import('./hub-aws.ts')).hubAws(manager, { client, namespace, instance, env, log, gates: on })
        : undefined
      if (flags.webhooks)
        manager.add(
          hubWebhooks({
            client,
            namespace,
            log,
            where,
            host: flags['webhook-host'],
            port: flags['webhook-port'],
            routes: {
              ...registrationWebhooks({ client, gates: on }),
              ...workWebhooks({ client, gates: on }),
              ...permissions.webhooks,
              ...aws?.routes,
            },
            configurations: (at) => [
              ...registrationWebhookConfigurations(at),
              ...workWebhookConfigurations(at),
              ...permissionWebhookConfigurations(at),
              ...(aws?.configurations(at) ?? []),
            ],
          }),
        )
      try {
        await manager.run(signal)
      } finally {
        await events.flush()
        await aws?.close()
        client.close()
      }
    },
  )

/** In the order of the table, whatever order they were named in. */
const enabledDrivers = (said: readonly string[]): HubDriverName[] => {
  try {
    const known = Object.keys(hubDrivers) as HubDriverName[]
    const chosen = new Set(said.map((name) => parseDriverName(name, known)))
    return known.filter((name) => chosen.has(name))
  } catch (error) {
    throw new UsageError(`--registration-drivers: ${(error as Error).message}`, { cause: error })
  }
}

const ensureNamespace = async (client: Client, name: string, signal: AbortSignal): Promise<void> => {
  if (await client.of(Namespace).find(name, { signal })) return
  await client
    .of(Namespace)
    .create({ metadata: { name } }, { signal })
    .catch((error: unknown) => {
      if (!isAlreadyExists(error)) throw error
    })
}

const parseLabels = (said: readonly string[]): Record<string, string> =>
  Object.fromEntries(
    said.map((one) => {
      const [key, value, ...more] = one.split('=')
      if (!key || value === undefined || more.length) throw new UsageError(`--labels: write key=value, not ${one}`)
      return [key, value]
    }),
  )
