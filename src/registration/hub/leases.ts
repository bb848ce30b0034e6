import { Lease } from '../../kube/index.ts'
import type { Informer } from '../../runtime/index.ts'
import { leaseName } from '../contract.ts'
import type { Hub } from './hub.ts'

// A thousand of them are renewed every minute: only what is read of them is kept.
const slim = ({ metadata, spec }: Lease): Lease => ({
  metadata: {
    namespace: metadata.namespace,
    name: metadata.name,
    uid: metadata.uid,
    resourceVersion: metadata.resourceVersion,
  },
  spec: { renewTime: spec.renewTime },
})

/** The leases of all clusters, by name: a label could be taken off by the agent, which may update its lease. */
export const clusterLeases = (hub: Pick<Hub, 'manager'>): Informer<Lease> =>
  hub.manager.informer(Lease, { fieldSelector: `metadata.name=${leaseName}`, transform: slim })

/** The cluster that a lease is of. */
export const clusterOf = (lease: Lease): string => lease.metadata.namespace!

/** When it was renewed last, by the clock of whoever did it. */
export const renewedAt = ({ spec }: Lease): number => (spec.renewTime ? Date.parse(spec.renewTime) : 0)
