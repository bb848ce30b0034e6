import { kubeconfigText, parseKubeconfig } from '../../kube/index.ts'
import type { AgentDriver, AgentIdentity, HubAddress } from '../drivers/driver.ts'

/**
 * The kubeconfig in the hub secret. Other agents and operators mount the secret as a folder and read this file, so its names
 * are fixed; the entry of the cluster is called what the bootstrap kubeconfig calls it, because they compare that.
 */
export const hubKubeconfig = (hub: HubAddress, driver: AgentDriver, identity: AgentIdentity): Promise<string> =>
  kubeconfigText({
    cluster: hub.clusterEntry,
    context: 'default-context',
    userName: 'default-auth',
    namespace: 'configuration',
    server: hub.server,
    ca: hub.ca,
    tlsServerName: hub.tlsServerName,
    proxyUrl: hub.proxyUrl,
    user: driver.kubeconfigUser(identity),
  })

/** The hub that a kubeconfig in our secret leads to; undefined when it cannot be read, whatever the reason. */
export const addressIn = async (text: string | undefined, source: string): Promise<HubAddress | undefined> => {
  if (!text) return undefined
  try {
    const { currentContext, contexts, clusters } = await parseKubeconfig(text, { source })
    const clusterEntry = contexts.get(currentContext ?? '')?.value.cluster ?? ''
    const cluster = clusters.get(clusterEntry)?.value
    if (!cluster?.server) return undefined
    const ca = cluster['certificate-authority-data']
    return {
      source,
      server: cluster.server,
      ca: ca && Buffer.from(ca, 'base64').toString('utf8'),
      tlsServerName: cluster['tls-server-name'],
      proxyUrl: cluster['proxy-url'],
      clusterEntry,
    }
  } catch {
    return undefined
  }
}
