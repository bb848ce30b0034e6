import { isNotFound, Namespace, type Api } from '../../../kube/index.ts'
import { waiting } from '../../../runtime/index.ts'

/**
 * Which agent holds a cluster. It stands on the cluster's namespace on the hub: agents cannot write there, as they can on
 * their ManagedCluster, and it goes away with the cluster.
 */
export const holderAnnotation = 'registration.lanyard.io/agent'

/** Undefined when no certificate was ever issued to an agent of the cluster. */
export const holderOf = async (client: Api, cluster: string, signal: AbortSignal): Promise<string | undefined> => {
  const namespace = await client.of(Namespace).find(cluster, { signal })
  return namespace?.metadata.annotations?.[holderAnnotation]
}

/** Remembers the agent before its certificate can exist. */
export const recordHolder = async (
  client: Api,
  cluster: string,
  agent: string | null,
  signal: AbortSignal,
): Promise<void> => {
  try {
    await client
      .of(Namespace)
      .patch(cluster, { merge: { metadata: { annotations: { [holderAnnotation]: agent } } } }, { signal })
  } catch (cause) {
    if (!isNotFound(cause)) throw cause
    if (agent === null) return
    throw waiting('NamespaceMissing', {
      message: `cluster ${cluster}: its namespace on the hub does not exist yet`,
      next: 'its certificate is approved when acceptance has created it',
      afterMs: 2000,
      cause,
    })
  }
}
