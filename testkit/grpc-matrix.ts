import { ManagedCluster, ManagedClusterAddOn, ManifestWork } from '../src/api/index.ts'
import { code, dataType, GrpcError, type Action, type EventClient, type Side } from '../src/events/index.ts'
import { isForbidden, type Client } from '../src/kube/index.ts'
import { agentRequest, said } from './grpc-hub.ts'

const sides: Side[] = ['spec', 'status']
const actions: Action[] = [
  'create_request',
  'update_request',
  'delete_request',
  'watch_request',
  'resync_request',
  'resync_response',
]

/** What a caller may do to a cluster’s things, as `data type: what`, found by trying everything. */
export const allowedTo = async (admin: Client, client: EventClient, cluster: string): Promise<string[]> => {
  const known = await admin
    .of(ManagedCluster)
    .get(cluster)
    .catch(() => undefined)
  const addOn = await admin
    .of(ManagedClusterAddOn, cluster)
    .get('metrics')
    .catch(() => undefined)
  const work = await admin
    .of(ManifestWork, cluster)
    .get('w')
    .catch(() => undefined)
  const payload: Record<string, object> = {
    [dataType.managedClusters]: known ?? { metadata: { name: cluster }, spec: {} },
    [dataType.certificateSigningRequests]: agentRequest(cluster, `${cluster}-${Math.random().toString(36).slice(2)}`)
      .object,
    [dataType.addOns]: addOn ?? { metadata: { name: 'metrics', namespace: cluster, resourceVersion: '1' } },
    [dataType.addOnsAlpha]: addOn ?? { metadata: { name: 'metrics', namespace: cluster, resourceVersion: '1' } },
    [dataType.leases]: {
      metadata: { name: 'managed-cluster-lease', namespace: cluster },
      spec: { renewTime: '2026-01-01T00:00:00.000000Z' },
    },
    [dataType.events]: { metadata: { name: 'e', namespace: cluster } },
    [dataType.manifestBundles]: { conditions: [], resourceStatus: [] },
    [dataType.tokenRequests]: { metadata: { name: 'default', namespace: cluster, uid: 'u' }, spec: {} },
  }
  const found = new Set<string>()
  const isRefused = (error: unknown): boolean =>
    isForbidden(error) ||
    (error instanceof GrpcError &&
      [code.invalidArgument, code.permissionDenied, code.unauthenticated].includes(error.code as 3))
  for (const of of Object.values(dataType)) {
    const name = of.split('.').slice(-2).join('.')
    const subscription = await client
      .subscribe({ source: 'm', clusterName: cluster, dataType: of })
      .catch(() => undefined)
    if (subscription) found.add(`${name}: subscribe`)
    for (const side of sides)
      for (const action of actions) {
        const first = of === dataType.managedClusters && action === 'create_request'
        const fresh = first ? { metadata: { name: cluster }, spec: {} } : payload[of]!
        const data = action === 'resync_request' ? { resourceVersions: [] } : fresh
        const event = said(cluster, {
          dataType: of,
          side,
          action,
          data,
          resourceVersion: 1,
          ...(of === dataType.manifestBundles ? { resourceId: work?.metadata.uid ?? 'u' } : {}),
        })
        const error = await client.publish(event).then(
          () => undefined,
          (e: unknown) => e,
        )
        if (!isRefused(error)) found.add(`${name}: ${side}.${action}`)
      }
    subscription?.close()
  }
  return [...found].toSorted()
}
