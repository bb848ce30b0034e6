import { ManagedClusterSet, ManagedClusterSetBinding } from '../../api/index.ts'
import { keyOf } from '../../kube/index.ts'
import { setConditions, watching, type Reconcile } from '../../runtime/index.ts'
import { Bound } from '../contract.ts'
import type { Hub } from './hub.ts'

/** Says of each ManagedClusterSetBinding whether its set exists. */
export const setBindings = (hub: Hub): void => {
  const sets = hub.manager.informer(ManagedClusterSet)
  const bindings = hub.manager.informer(ManagedClusterSetBinding, {
    indexes: { set: ({ spec }) => [spec.clusterSet] },
  })

  const reconcile: Reconcile = async (key, signal) => {
    const binding = bindings.get(key)
    if (!binding || binding.metadata.deletionTimestamp) return {}
    const { name, namespace, uid, resourceVersion, generation } = binding.metadata
    const set = binding.spec.clusterSet
    const state = sets.get(set)
      ? Bound.yes()
      : Bound.no(`ManagedClusterSet ${set} does not exist: create it, or delete this binding`)
    const present = binding.status?.conditions
    const conditions = setConditions(present, [state], { now: hub.clock.now(), generation })
    if (conditions === present) return {}
    const change = { metadata: { uid, resourceVersion }, status: { conditions } }
    const client = hub.client.of(ManagedClusterSetBinding, namespace)
    await client.patch(name!, { merge: change }, { subresource: 'status', fieldManager: 'lanyard', signal })
    return {}
  }

  hub.manager.controller({
    name: 'set-bindings',
    reconcile,
    watches: [
      watching(bindings),
      watching(
        sets,
        (set) => bindings.by('set', set.metadata.name!).map(keyOf),
        (_, old) => !old,
      ),
    ],
  })
}
