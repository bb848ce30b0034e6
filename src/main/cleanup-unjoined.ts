import { ManagedCluster } from '../api/index.ts'
import { ClusterRole, Lease } from '../kube/index.ts'
import { leaseName, rbac } from '../registration/contract.ts'
import { whyKept } from '../operator/index.ts'
import { inParallel, systemClock } from '../runtime/index.ts'
import type { Flags } from './flags.ts'
import { commonFlags, connectionTo, countedClient, runProgram } from './program.ts'

const flags = {
  'log-level': commonFlags['log-level'],
  kubeconfig: { help: 'The hub; without it the cluster that this process runs in', default: '' },
  context: { help: 'A context of the kubeconfig', default: '' },
  'left-seconds': { help: 'How long clusters are kept whose agent said that it leaves', default: 900 },
  'silent-seconds': { help: 'How long denied clusters are kept whose agent said nothing', default: 7 * 86_400 },
} as const satisfies Flags

/** `lanyard cleanup-unjoined`: deletes the ManagedClusters of clusters that have left, once. */
export const cleanupUnjoined = (args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> =>
  runProgram(
    {
      usage: 'lanyard cleanup-unjoined [flags]',
      text: 'Deletes the ManagedClusters of clusters that have left the hub. Run from time to time.',
      flags,
    },
    args,
    env,
    async ({ flags, log, metrics, signal }) => {
      const client = countedClient(await connectionTo(flags, env), 'lanyard-cleanup', metrics)
      const clusters = client.of(ManagedCluster)
      const { items } = await clusters.list({ signal })
      // Most are accepted: nothing is asked about them.
      const candidates = items.filter(({ spec }) => spec.hubAcceptsClient !== true)
      let deleted = 0
      await inParallel(
        8,
        candidates.map((cluster) => async () => {
          const { name, uid, resourceVersion } = cluster.metadata
          const role = await client.of(ClusterRole).find(rbac.cluster(name!), { signal })
          const lease = await client.of(Lease, name).find(leaseName, { signal })
          const kept = whyKept({
            cluster,
            role,
            lease,
            now: systemClock.now(),
            leftMs: flags['left-seconds'] * 1000,
            silentMs: flags['silent-seconds'] * 1000,
          })
          if (kept) return log.debug('kept', { cluster: name, because: kept })
          // Only as it was seen: it may be accepted again in this moment.
          await clusters.delete(name!, { preconditions: { uid, resourceVersion }, signal })
          deleted++
          log.info('deleted: its cluster has left', { cluster: name })
        }),
      )
      log.info('done', { clusters: items.length, denied: candidates.length, deleted })
      client.close()
    },
  )
