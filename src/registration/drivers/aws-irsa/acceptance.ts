import { ManagedCluster } from '../../../api/index.ts'
import { findCondition, Informer, isTrue } from '../../../runtime/index.ts'
import { Accepted } from '../../contract.ts'
import type { ObtainContext } from '../driver.ts'

/** Settles when the hub says that the cluster is accepted. That the condition is there is not enough: it may say that something failed. */
export const accepted = async (context: ObtainContext): Promise<void> => {
  const { hub, identity, clock, log, signal } = context
  const name = identity.cluster
  const fieldSelector = `metadata.name=${name}`
  const clusters = new Informer<ManagedCluster>({ client: hub, resource: ManagedCluster, fieldSelector, clock, log })
  const ending = new AbortController()
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const abort = (): void => reject(signal.reason as Error)
  const look = (cluster: ManagedCluster): void => {
    if (cluster.spec.hubAcceptsClient && isTrue(cluster, Accepted.type)) return resolve()
    const said = cluster.spec.hubAcceptsClient ? findCondition(cluster, Accepted.type) : undefined
    context.report({
      waitingFor:
        said?.status === 'False'
          ? `hub ${hub.connection.server} to finish its acceptance: ${said.message}`
          : `hub ${hub.connection.server} to accept cluster ${name}: clusteradm accept --clusters ${name}`,
    })
  }
  clusters.on({ added: look, updated: look })
  signal.addEventListener('abort', abort, { once: true })
  if (signal.aborted) abort()
  const running = clusters.run(ending.signal)
  try {
    await promise
  } finally {
    signal.removeEventListener('abort', abort)
    ending.abort()
    await running
  }
}
