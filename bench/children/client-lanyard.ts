import { ManagedCluster } from '../../src/api/index.ts'
import { measureGets } from './client-steps.ts'
import { connect } from './lanyard.ts'

await measureGets((kubeconfig) => {
  const clusters = connect(kubeconfig).of(ManagedCluster)
  return (name) => clusters.get(name)
})
