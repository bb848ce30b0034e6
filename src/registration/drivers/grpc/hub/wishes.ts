import { group } from '../../../../api/index.ts'
import { dataType } from '../../../../events/index.ts'
import type { Wish } from './authorization.ts'

/** The right that reading a data type of one cluster needs, as RBAC has it for agents that read the API server itself. */
const readWish = (of: string, cluster: string, verb: 'list' | 'watch'): Wish | undefined => {
  const inNamespace = { cluster, verb, namespace: cluster }
  switch (of) {
    case dataType.managedClusters:
      return { cluster, verb, group: group.cluster, resource: 'managedclusters', name: cluster }
    case dataType.certificateSigningRequests:
      return { cluster, verb, group: 'certificates.k8s.io', resource: 'certificatesigningrequests' }
    case dataType.addOns:
    case dataType.addOnsAlpha:
      return { ...inNamespace, group: group.addon, resource: 'managedclusteraddons' }
    case dataType.leases:
      return { ...inNamespace, group: 'coordination.k8s.io', resource: 'leases' }
    case dataType.manifestBundles:
      return { ...inNamespace, group: group.work, resource: 'manifestworks' }
    default:
      return undefined
  }
}

export const listWish = (of: string, cluster: string): Wish | undefined => readWish(of, cluster, 'list')

/** Token requests have nothing to watch; whoever may request tokens may listen for them. */
export const watchWish = (of: string, cluster: string): Wish | undefined =>
  of === dataType.tokenRequests
    ? { cluster, verb: 'subscribe', resource: 'serviceaccounts', subresource: 'token', namespace: cluster }
    : readWish(of, cluster, 'watch')
