import type { ManagedCluster } from '../../api/index.ts'

/** Where the API server of a managed cluster is. */
export interface Address {
  /** `https://host:port`, as the client wants it: no slash at the end. */
  server: string
  /** PEM; what the ManagedCluster says besides the `ca.crt` of a token. */
  ca?: string | undefined
}

/** The first way to reach a cluster that its ManagedCluster names. The hub sends credentials there: anything but https is none. */
export const addressOf = ({ spec }: Pick<ManagedCluster, 'spec'>): Address | undefined => {
  for (const { url, caBundle } of spec.managedClusterClientConfigs ?? []) {
    const parsed = URL.parse(url)
    if (parsed?.protocol !== 'https:' || !parsed.hostname || parsed.username || parsed.password) continue
    return {
      server: `${parsed.origin}${parsed.pathname.replace(/\/+$/, '')}`,
      ca: caBundle ? Buffer.from(caBundle, 'base64').toString('utf8') : undefined,
    }
  }
  return undefined
}

/**
 * The certificates that the API server is checked against: what the ManagedCluster names for its address, and what the agent
 * sees inside the cluster. The address may be a load balancer with an authority of its own, so that either must do.
 */
export const trustOf = (address: Address, ca: string | undefined): string | undefined => {
  const bundles = new Set([address.ca, ca].flatMap((pem) => (pem?.trim() ? [pem.trim()] : [])))
  return bundles.size > 0 ? `${[...bundles].join('\n')}\n` : undefined
}

/** What to do about a cluster of which nobody has said where it is. */
export const addressAdvice = (cluster: string): string =>
  `set spec.managedClusterClientConfigs of ManagedCluster ${cluster} to the https address of its API server: its agent does with --spoke-external-server-urls`
