import { ManagedCluster } from '../api/index.ts'
import { decoded, isConflict, isForbidden, isNotFound, Secret, type Api, type SecretData } from '../kube/index.ts'
import { remainsAnnotation, toldAnnotation } from '../operator/contract.ts'
import { goodbye, secretKey, secretName } from '../registration/contract.ts'
import { drivers, parseDriverName } from '../registration/drivers/index.ts'
import { describeError, sleep, systemClock, type Logger } from '../runtime/index.ts'
import { releaseWorks, removeWorks } from '../work/agent/index.ts'
import type { Flags } from './flags.ts'
import { clustersOf, commonFlags, runProgram, whereFlags } from './program.ts'

const flags = {
  'log-level': commonFlags['log-level'],
  ...whereFlags,
  'registration-auth': { help: 'How this cluster proves who it is', default: 'csr' },
  'hub-cluster-arn': { help: 'ARN of the hub, with awsirsa', default: '' },
  'managed-cluster-arn': { help: 'ARN of this cluster, with awsirsa', default: '' },
  'hub-kubeconfig-secret': { help: 'The secret with the credential for the hub', default: secretName.hub },
  'patience-seconds': { help: 'How long the hub, and objects that others hold, are waited for', default: 60 },
} as const satisfies Flags

/** `lanyard leave`: the last thing an agent does. It tells the hub, and removes what works have left; what remains is noted. */
export const leave = (args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> =>
  runProgram(
    { usage: 'lanyard leave [flags]', text: 'Takes a cluster away from its hub. No agent may be running.', flags },
    args,
    env,
    async ({ flags, log, metrics, signal }) => {
      const { local, home, namespace } = await clustersOf(flags, env, { userAgent: 'lanyard-leave', metrics })
      const secrets = home.of(Secret, namespace)
      const name = flags['hub-kubeconfig-secret']
      const secret = await secrets.find(name, { signal })
      const data = decoded(secret) ?? {}
      const remains: string[] = []
      if (data[secretKey.kubeconfig]) {
        const patienceMs = flags['patience-seconds'] * 1000
        const driver = drivers[parseDriverName(flags['registration-auth'])].agent({
          hubClusterArn: flags['hub-cluster-arn'],
          managedClusterArn: flags['managed-cluster-arn'],
          env,
        })
        const source = `secret ${namespace}/${name}`
        const address = await driver.hubOf(data, source)
        const hub = driver.asCluster(() => data, address, { userAgent: 'lanyard-leave' })
        // At once: a hub that does not answer must not hold up the rest.
        const parts = await Promise.all([
          tellHub(hub, data, {
            patienceMs,
            isTold: Boolean(secret?.metadata.annotations?.[toldAnnotation]),
            log,
            signal,
          }),
          removeWorks({ local, hubServer: address.server, patienceMs, log }, signal),
        ])
        remains.push(...parts.flat())
        if (remains.length === 0)
          await releaseWorks(hub, data[secretKey.clusterName] ?? '', signal).catch((error: unknown) =>
            log.warn('the hub keeps the works until the time of this cluster is up', { error }),
          )
        hub.close()
        const annotations = { [remainsAnnotation]: remains.length ? remains.join('; ') : null }
        await secrets.patch(name, { merge: { metadata: { annotations } } }, { signal })
      }
      log.info('left', { remains })
      local.close()
      if (home !== local) home.close()
    },
  )

/**
 * Sets `hubAcceptsClient` to false, which makes the hub clean up. Answers with what has to be done there by hand. A hub that was
 * told before is asked once, in case it has let the cluster in again; that it does not answer then is what was wanted.
 */
const tellHub = async (
  hub: Api,
  data: SecretData,
  { patienceMs, isTold, log, signal }: { patienceMs: number; isTold: boolean; log: Logger; signal: AbortSignal },
): Promise<string[]> => {
  const clusters = hub.of(ManagedCluster)
  const name = data[secretKey.clusterName] ?? ''
  const end = systemClock.now() + patienceMs
  for (;;) {
    try {
      const timeoutMs = 10_000
      const cluster = await clusters.get(name, { signal, timeoutMs })
      if (cluster.spec.hubAcceptsClient !== true) return []
      await clusters
        .patch(name, { merge: goodbye(cluster, systemClock.now()) }, { subresource: 'status', signal })
        .catch((error: unknown) => log.warn('no goodbye', { error }))
      const fresh = await clusters.get(name, { signal, timeoutMs })
      await clusters.update({ ...fresh, spec: { ...fresh.spec, hubAcceptsClient: false } }, { signal, timeoutMs })
      log.info('the hub knows', { cluster: name, hub: hub.connection.server })
      return []
    } catch (error) {
      if (isNotFound(error) || isTold) return []
      // Refused for good: a denied cluster's credential may have ended.
      const final = isForbidden(error) || systemClock.now() >= end
      if (final)
        return [
          `ManagedCluster ${name} on hub ${hub.connection.server}, which could not be told (${describeError(error)}); delete it there`,
        ]
      if (!isConflict(error)) await sleep(systemClock, 2000, signal)
    }
  }
}
