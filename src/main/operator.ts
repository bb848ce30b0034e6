import { drivers } from '../registration/drivers/index.ts'
import { keepAgents, keepHubs } from '../operator/index.ts'
import { EventRecorder, Manager, systemClock } from '../runtime/index.ts'
import { UsageError, type Flags } from './flags.ts'
import { commonFlags, connectionTo, countedClient, runProgram } from './program.ts'

const flags = {
  ...commonFlags,
  kubeconfig: { help: 'The cluster; without it the one that this process runs in', default: '' },
  context: { help: 'A context of the kubeconfig', default: '' },
  namespace: { help: 'Where the operator runs: its lease, its pull secret', default: 'open-cluster-management' },
  kind: { help: 'What it operates: ClusterManager on a hub, Klusterlet on a managed cluster', default: [] },
  image: { help: 'The image of what it starts, where the object names none', default: 'lanyard:latest' },
  'deployment-replicas': { help: 'Replicas of the hub; one works, the others wait', default: 1 },
  'work-role': { help: 'The ClusterRole that works are applied with', default: 'cluster-admin' },
  'leave-seconds': { help: 'How long a removed agent may take to leave its hub and remove its works', default: 300 },
  'leader-elect': { help: 'Let one of several replicas work', default: true },
  'lease-seconds': { help: 'After how long another replica takes over', default: 15 },
} as const satisfies Flags

const kinds = { clustermanager: keepHubs, klusterlet: keepAgents }

/** `lanyard operator`: turns ClusterManagers and Klusterlets into what runs. */
export const operator = (args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> =>
  runProgram(
    { usage: 'lanyard operator --kind=KIND [flags]', text: 'Runs a hub or the agents of a managed cluster.', flags },
    args,
    env,
    async ({ flags, log, metrics, instance, signal }) => {
      const keep = flags.kind.map((kind) => {
        const name = kind.toLowerCase() as keyof typeof kinds
        if (!Object.hasOwn(kinds, name))
          throw new UsageError(`--kind takes ClusterManager or Klusterlet, or both, not ${kind}`)
        return name
      })
      if (keep.length === 0) throw new UsageError('--kind is missing: say ClusterManager or Klusterlet, or both')
      const connection = await connectionTo(flags, env)
      const client = countedClient(connection, 'lanyard-operator', metrics)
      log.info('operator', { server: connection.server, source: connection.source, kinds: flags.kind, instance })
      const { namespace } = flags
      const name = keep.includes('clustermanager') ? 'cluster-manager-operator' : 'klusterlet-operator'
      const manager = new Manager({
        client,
        metrics,
        log,
        health: { host: flags['health-host'], port: flags['health-port'] },
        leaderElection: flags['leader-elect']
          ? { namespace, name, identity: instance, leaseMs: flags['lease-seconds'] * 1000 }
          : undefined,
      })
      const events = new EventRecorder({ client, controller: 'lanyard.io/operator', instance, log })
      for (const kind of keep)
        kinds[kind]({
          client,
          manager,
          events,
          clock: systemClock,
          log,
          settings: {
            image: flags.image,
            drivers: Object.keys(drivers),
            hubReplicas: flags['deployment-replicas'],
            workRole: flags['work-role'],
            namespace,
            leaveMs: flags['leave-seconds'] * 1000,
          },
        })
      try {
        await manager.run(signal)
      } finally {
        await events.flush()
        client.close()
      }
    },
  )
