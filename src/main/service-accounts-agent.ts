import { readFileSync } from 'node:fs'
import { connectionFrom, loadKubeconfig } from '../kube/index.ts'
import { processMetrics, sleep, startHealthServer, systemClock } from '../runtime/index.ts'
import { runServiceAccountAgent } from '../serviceaccounts/agent/index.ts'
import { UsageError, type Flags } from './flags.ts'
import { clustersOf, commonFlags, countedClient, runProgram, whereFlags } from './program.ts'

const flags = {
  ...commonFlags,
  ...whereFlags,
  'cluster-name': { help: 'The name of this cluster on the hub', default: '' },
  'hub-kubeconfig': {
    help: 'The way to the hub: the kubeconfig that add-on registration keeps, in its folder',
    default: '/etc/hub/kubeconfig',
  },
} as const satisfies Flags

/** `lanyard service-accounts-agent`: the agent of the add-on `managed-serviceaccount`, as a process of its own. */
export const serviceAccountsAgent = (args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> =>
  runProgram(
    {
      usage: 'lanyard service-accounts-agent --cluster-name=NAME [flags]',
      text: 'Keeps the ManagedServiceAccounts of a managed cluster.',
      flags,
    },
    args,
    env,
    async ({ flags, log, metrics, signal }) => {
      const cluster = flags['cluster-name']
      if (!cluster) throw new UsageError('--cluster-name is missing: say what this cluster is called on the hub')
      const path = flags['hub-kubeconfig']
      const userAgent = 'lanyard-service-accounts'
      const { local, home, namespace } = await clustersOf(flags, env, { userAgent, metrics })
      const text = readFileSync(path, 'utf8')
      const hub = countedClient(connectionFrom(await loadKubeconfig({ path, env }), { env }), userAgent, metrics)
      let isReady = false
      processMetrics(metrics)
      const health = await startHealthServer(
        {
          metrics,
          unhealthy: () => [],
          unready: () => (isReady ? [] : ['the hub or the managed cluster has not answered yet']),
        },
        { host: flags['health-host'], port: flags['health-port'] },
      )
      log.info('service accounts', { cluster, namespace, hub: hub.connection.server, health: health.address })
      const onReady = (): void => void (isReady = true)
      const replaced = new AbortController()
      const until = AbortSignal.any([signal, replaced.signal])
      void whenReplaced(path, text, until).then(() => replaced.abort())
      try {
        await runServiceAccountAgent({ hub, local, cluster, namespace, log, metrics, onReady }, until)
        if (replaced.signal.aborted && !signal.aborted)
          throw new Error(`${path} is another kubeconfig than at the start: ending, so that a new start uses it`)
      } finally {
        await health.stop()
        hub.close()
        local.close()
        if (home !== local) home.close()
      }
    },
  )

/**
 * A renewed token or certificate lies in a file beside the kubeconfig and is read anew; another hub or driver needs a new start.
 * Kubernetes replaces the folder, by a link: looking is what works everywhere.
 */
const whenReplaced = async (path: string, text: string, signal: AbortSignal): Promise<void> => {
  while (!signal.aborted && isSame(path, text)) await sleep(systemClock, 5000, signal).catch(() => {})
}

const isSame = (path: string, text: string): boolean => {
  try {
    return readFileSync(path, 'utf8') === text
  } catch {
    return true // being replaced
  }
}
