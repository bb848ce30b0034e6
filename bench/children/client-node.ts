import { KubeConfig } from '@kubernetes/client-node'
import { readAccess } from './kubeconfig.ts'

/** Where client-node finds ManagedClusters. */
export const managedClusters = { group: 'cluster.open-cluster-management.io', version: 'v1', plural: 'managedclusters' }

/** The configuration of client-node. */
export const configure = (kubeconfig: string): KubeConfig => {
  const { server, ca, cert, key } = readAccess(kubeconfig)
  const config = new KubeConfig()
  config.loadFromClusterAndUser(
    { name: 'bench', server, caData: ca, skipTLSVerify: false },
    { name: 'bench', certData: cert, keyData: key },
  )
  return config
}
