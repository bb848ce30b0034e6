/** A controller process as Lanyard's are: a manager, ten informers, three controllers that have nothing to do, health. */
import {
  ClusterPermission,
  ManagedCluster,
  ManagedClusterAddOn,
  ManagedServiceAccount,
  ManifestWork,
} from '../../src/api/index.ts'
import {
  ClusterRole,
  ConfigMap,
  Namespace,
  RoleBinding,
  Secret,
  type KubeObject,
  type Resource,
} from '../../src/kube/index.ts'
import { Manager, watching } from '../../src/runtime/index.ts'
import { asked, cpuMs, report, rssMB, settings } from './child.ts'
import { connect } from './lanyard.ts'

const { kubeconfig, userAgent } = settings as { kubeconfig: string; userAgent: string }
const manager = new Manager({ client: connect(kubeconfig, userAgent), health: { port: 0 } })

const clusters = manager.informer(ManagedCluster)
const addOns = manager.informer(ManagedClusterAddOn)
const works = manager.informer(ManifestWork)
const others: Resource<KubeObject>[] = [
  ManagedServiceAccount,
  ClusterPermission,
  Namespace,
  Secret,
  ConfigMap,
  ClusterRole,
  RoleBinding,
]
for (const kind of others) manager.informer(kind)

const reconcile = async () => ({})
manager.controller({ name: 'clusters', reconcile, watches: [watching(clusters)] })
manager.controller({ name: 'add-ons', reconcile, watches: [watching(addOns)] })
manager.controller({ name: 'works', reconcile, watches: [watching(works)] })

void manager.run(new AbortController().signal)
await manager.informers.synced()
report({})
for (;;) {
  await asked()
  report({ rssMB: rssMB(), cpuMs: cpuMs() })
}
