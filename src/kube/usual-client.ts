import { clientFor, type Client } from './client.ts'
import { connectionFrom } from './connection-from.ts'
import { inCluster } from './in-cluster.ts'
import { loadKubeconfig, type Environment } from './kubeconfig.ts'

/** A client of the cluster that a program is meant for: from the pod's own files in a cluster, else from the usual kubeconfig. */
export const usualClient = async (env: Environment, userAgent: string): Promise<Client> => {
  const inside = env['KUBERNETES_SERVICE_HOST'] !== undefined
  const connection = inside ? await inCluster({ env }) : connectionFrom(await loadKubeconfig({ env }), { env })
  return clientFor(connection, { userAgent })
}
