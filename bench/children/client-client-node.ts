import { CustomObjectsApi } from '@kubernetes/client-node'
import { configure, managedClusters } from './client-node.ts'
import { measureGets } from './client-steps.ts'

await measureGets((kubeconfig) => {
  const api = configure(kubeconfig).makeApiClient(CustomObjectsApi)
  return (name) => api.getClusterCustomObject({ ...managedClusters, name })
})
