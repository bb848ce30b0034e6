import {
  CustomObjectsApi,
  makeInformer,
  type KubernetesListObject,
  type KubernetesObject,
} from '@kubernetes/client-node'
import { configure, managedClusters } from './client-node.ts'
import { measureInformer } from './informer-steps.ts'

await measureInformer(async (kubeconfig, updated) => {
  const config = configure(kubeconfig)
  const api = config.makeApiClient(CustomObjectsApi)
  const { group, version, plural } = managedClusters
  const informer = makeInformer(
    config,
    `/apis/${group}/${version}/${plural}`,
    async () => (await api.listClusterCustomObject(managedClusters)) as KubernetesListObject<KubernetesObject>,
  )
  informer.on('update', updated)
  informer.on('error', (error: unknown) => {
    throw error
  })
  await informer.start() // settles when the list is in the cache and the watch is open
  return () => informer.list().length
})
