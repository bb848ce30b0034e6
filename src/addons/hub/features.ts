import { label, ManagedCluster, type ManagedClusterAddOn } from '../../api/index.ts'
import { isNotFound } from '../../kube/index.ts'
import { findCondition, watching, type Reconcile } from '../../runtime/index.ts'
import { AddOnAvailable, feature } from '../contract.ts'
import { fieldManager, type AddOnHub } from './hub.ts'

/** Kubernetes takes at most 63 characters after the slash of a label's key. */
const fitsInKey = (addOn: string): boolean => `addon-${addOn}`.length <= 63

const featureOf = (addOn: ManagedClusterAddOn): string => {
  const status = findCondition(addOn, AddOnAvailable.type)?.status
  if (status === 'True') return feature.available
  return status === 'False' ? feature.unhealthy : feature.unreachable
}

/** Labels every ManagedCluster with how its add-ons are, so that clusters can be chosen by them. */
export const features = (hub: AddOnHub): void => {
  const reconcile: Reconcile = async (name, signal) => {
    const cluster = hub.clusters.get(name)
    if (!cluster) return {}
    const wanted = Object.fromEntries(
      hub.addOns
        .list(name)
        .filter(({ metadata }) => fitsInKey(metadata.name!))
        .map((addOn) => [`${label.addOnFeaturePrefix}${addOn.metadata.name}`, featureOf(addOn)]),
    )
    const present = cluster.metadata.labels ?? {}
    const stale = Object.keys(present).filter((key) => key.startsWith(label.addOnFeaturePrefix) && !(key in wanted))
    const changed = Object.entries(wanted).filter(([key, value]) => present[key] !== value)
    if (stale.length + changed.length === 0) return {}
    const labels = Object.fromEntries([...changed, ...stale.map((key) => [key, null] as const)])
    await hub.client
      .of(ManagedCluster)
      .patch(name, { merge: { metadata: { uid: cluster.metadata.uid, labels } } }, { fieldManager, signal })
      .catch((error: unknown) => {
        if (!isNotFound(error)) throw error
      })
    return {}
  }
  hub.manager.controller({
    name: 'add-on-features',
    reconcile,
    watches: [
      watching(
        hub.addOns,
        ({ metadata }) => [metadata.namespace!],
        (addOn, old) => !old || featureOf(addOn) !== featureOf(old),
      ),
      watching(hub.clusters, undefined, (_, old) => !old),
    ],
  })
}
