import { ManagedCluster } from '../../src/api/index.ts'
import { Informer } from '../../src/runtime/index.ts'
import { measureInformer } from './informer-steps.ts'
import { connect } from './lanyard.ts'

await measureInformer(async (kubeconfig, updated) => {
  const informer = new Informer({ client: connect(kubeconfig), resource: ManagedCluster })
  informer.on({ updated })
  void informer.run(new AbortController().signal)
  await informer.synced
  return () => informer.size
})
