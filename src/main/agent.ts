import { runAddOnAgent } from '../addons/agent/index.ts'
import { installCrds, managedClusterKinds } from '../api/index.ts'
import { newAgent } from '../registration/agent/index.ts'
import { drivers, parseDriverName, type AgentDriver } from '../registration/drivers/index.ts'
import { processMetrics, startHealthServer } from '../runtime/index.ts'
import { runWorkAgent } from '../work/agent/index.ts'
import { UsageError, type Flags, type ValuesOf } from './flags.ts'
import { clustersOf, commonFlags, runProgram, whereFlags } from './program.ts'
import { serviceAccountsElsewhere, serviceAccountsInAgent } from './service-accounts-in-agent.ts'

const flags = {
  ...commonFlags,
  ...whereFlags,
  'cluster-name': { help: 'The name on the hub; kept once it is known', default: '', aliases: ['spoke-cluster-name'] },
  'agent-name': {
    help: 'Tells agents of one cluster apart; chosen and kept unless told',
    default: '',
    aliases: ['agent-id'],
  },
  'install-crds': { help: 'Install or update the CRDs of a managed cluster at the start', default: false },
  'registration-auth': { help: 'How this cluster proves who it is: csr, aws-irsa or grpc', default: 'csr' },
  'hub-cluster-arn': { help: 'With aws-irsa: the ARN of the hub', default: '', aliases: ['eks-hub-cluster-arn'] },
  'managed-cluster-arn': { help: 'With aws-irsa: the ARN of this cluster', default: '' },
  'managed-cluster-role-suffix': {
    help: 'Follows from the two ARNs; accepted and not used',
    default: '',
    hidden: true,
  },
  'client-cert-expiration-seconds': { help: 'Lifetime of certificates to ask for; 0 leaves it to the hub', default: 0 },
  'bootstrap-kubeconfig-secret': {
    help: 'The secret that leads to the hub; several are several hubs, in order',
    default: ['bootstrap-hub-kubeconfig'],
    aliases: ['bootstrap-kubeconfigs'],
  },
  'hub-kubeconfig-secret': { help: 'The secret with the credential for the hub', default: 'hub-kubeconfig-secret' },
  'spoke-external-server-urls': { help: 'How the hub can reach this cluster', default: [] },
  'cluster-annotations': { help: 'key=value for the ManagedCluster, of agent.open-cluster-management.io', default: [] },
  'cluster-healthcheck-seconds': { help: 'How often the state of this cluster is looked at', default: 60 },
  'hub-connection-timeout-seconds': { help: 'How long a hub may be gone before the next one is tried', default: 600 },
  'max-custom-cluster-claims': { help: 'Claims that are reported beside the reserved ones', default: 20 },
  'reserved-cluster-claim-suffixes': { help: 'Claims that are always reported', default: [] },
  'addon-kubeclient-registration-auth': {
    help: 'How add-ons prove who they are to the hub: csr or token',
    default: 'csr',
  },
  'addon-token-expiration-seconds': { help: 'Lifetime of tokens to ask for add-ons; 0 is one year', default: 0 },
  'service-accounts': {
    help: 'Keep the accounts of add-on managed-serviceaccount in this process, without a Deployment of its own',
    default: false,
  },
  'appliedmanifestwork-eviction-grace-seconds': {
    help: 'How long objects stay whose work is gone from the hub without a word',
    default: 3600,
  },
} as const satisfies Flags

/** `lanyard agent`: everything that runs on a managed cluster, in one process. */
export const agent = (args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> =>
  runProgram(
    {
      usage: 'lanyard agent [flags]',
      text: 'Runs the agent of a managed cluster: registration, work and add-on credentials.',
      flags,
    },
    args,
    env,
    async ({ flags, log, metrics, signal }) => {
      const { local, home, namespace } = await clustersOf(flags, env, { userAgent: 'lanyard-agent', metrics })
      const { server, source } = local.connection
      log.info('managed cluster', { server, source, hosted: flags.hosted })
      if (flags['install-crds']) {
        const definitions = managedClusterKinds.map((kind) => kind.crd({ conversion: 'none' }))
        await installCrds(local, definitions, { signal })
      }
      const driver = driverOf(flags, env)
      const agent = newAgent({
        local,
        home,
        namespace,
        driver,
        clusterName: flags['cluster-name'] || undefined,
        agentName: flags['agent-name'] || undefined,
        bootstrapSecrets: flags['bootstrap-kubeconfig-secret'],
        hubSecret: flags['hub-kubeconfig-secret'],
        clientConfigs: flags['spoke-external-server-urls'].map((url) => ({ url })),
        clusterAnnotations: Object.fromEntries(flags['cluster-annotations'].map(keyAndValue)),
        healthCheckPeriodMs: flags['cluster-healthcheck-seconds'] * 1000,
        hubConnectionTimeoutMs: flags['hub-connection-timeout-seconds'] * 1000,
        maxCustomClaims: flags['max-custom-cluster-claims'],
        reservedClaimSuffixes: flags['reserved-cluster-claim-suffixes'],
        parts: [
          {
            name: 'work',
            run: ({ hub, hubServer, identity, clock, random, log, metrics, signal }) =>
              runWorkAgent(
                {
                  hub,
                  hubServer,
                  local,
                  cluster: identity.cluster,
                  evictionGraceMs: flags['appliedmanifestwork-eviction-grace-seconds'] * 1000,
                  clock,
                  random,
                  log,
                  metrics,
                },
                signal,
              ),
          },
          {
            name: 'addons',
            run: ({ hub, address, identity, clock, random, log, metrics, signal }) =>
              runAddOnAgent(
                {
                  hub,
                  address: address.addOns ?? address,
                  local,
                  identity,
                  owner: namespace,
                  driver: flags['addon-kubeclient-registration-auth'] || 'csr',
                  tokenExpirationSeconds: flags['addon-token-expiration-seconds'],
                  certificateFor: (subject) => driver.forAddOn(subject),
                  clock,
                  random,
                  log,
                  metrics,
                },
                signal,
              ),
          },
          flags['service-accounts'] ? serviceAccountsInAgent({ local, owner: namespace }) : serviceAccountsElsewhere(),
        ],
        log,
        metrics,
      })
      processMetrics(metrics)
      const health = await startHealthServer(
        { metrics, unhealthy: () => [], unready: () => agent.unready() },
        { host: flags['health-host'], port: flags['health-port'] },
      )
      log.info('health', { address: health.address })
      try {
        await agent.run(signal)
      } finally {
        await health.stop()
        local.close()
        home.close()
      }
    },
  )

const driverOf = (values: ValuesOf<typeof flags>, env: NodeJS.ProcessEnv): AgentDriver => {
  try {
    return drivers[parseDriverName(values['registration-auth'])].agent({
      expirationSeconds: values['client-cert-expiration-seconds'] || undefined,
      hubClusterArn: values['hub-cluster-arn'],
      managedClusterArn: values['managed-cluster-arn'],
      env,
    })
  } catch (error) {
    throw new UsageError(`--registration-auth: ${(error as Error).message}`, { cause: error })
  }
}

const keyAndValue = (said: string): [string, string] => {
  const at = said.indexOf('=')
  if (at < 1) throw new UsageError(`--cluster-annotations: write key=value, not ${said}`)
  return [said.slice(0, at), said.slice(at + 1)]
}
