/** The calls that a join over gRPC cannot do without, and nothing else. */
import type { ManagedCluster } from '../../src/api/index.ts'
import { dataType, EventClient, makeEvent, readEvent, type EventParts, type ReadEvent } from '../../src/events/index.ts'
import type { CertificateSigningRequest, KubeObject } from '../../src/kube/index.ts'
import { createRequest } from '../../src/runtime/pki/index.ts'
import { report, settings } from './child.ts'

const { server, ca, bootstrap, name } = settings as {
  server: string
  ca: string
  bootstrap: { cert: string; key: string }
  name: string
}
const clientOf = (pair: { cert: string; key: string }): EventClient => {
  const credential = { ca, ...pair }
  return new EventClient({ source: 'bench', server, credentials: async () => credential })
}
const said = (parts: Pick<EventParts, 'dataType' | 'side' | 'action' | 'data'>) =>
  makeEvent({ source: name, cluster: name, now: Date.now(), ...parts })
/** Everything of a kind, and then what changes. */
const following = async (client: EventClient, of: string): Promise<AsyncGenerator<ReadEvent>> => {
  const events = await client.subscribe({ source: name, clusterName: name, dataType: of })
  await client.publish(said({ dataType: of, side: 'spec', action: 'resync_request', data: { resourceVersions: [] } }))
  return (async function* () {
    for await (const event of events) {
      const read = readEvent(event)
      if (read) yield read
    }
  })()
}
const object = (of: KubeObject) => of as object

const first = clientOf(bootstrap)
const create = { side: 'spec', action: 'create_request' } as const
await first.publish(said({ dataType: dataType.managedClusters, ...create, data: object({ metadata: { name } }) }))
const user = `system:open-cluster-management:${name}`
const { csr, key } = createRequest({
  commonName: `${user}:raw`,
  organizations: [user, 'system:open-cluster-management:managed-clusters'],
})
const requests = await following(first, dataType.certificateSigningRequests)
const request = {
  metadata: { name: `${name}-raw`, labels: { 'open-cluster-management.io/cluster-name': name } },
  spec: {
    request: Buffer.from(csr).toString('base64'),
    signerName: 'open-cluster-management.io/grpc',
    usages: ['digital signature', 'key encipherment', 'client auth'],
  },
}
await first.publish(said({ dataType: dataType.certificateSigningRequests, ...create, data: request }))
let cert = ''
for await (const event of requests) {
  cert = Buffer.from((event.data() as CertificateSigningRequest).status?.certificate ?? '', 'base64').toString()
  if (cert) break
}
const own = clientOf({ cert, key })
const now = `${new Date().toISOString().slice(0, 19)}Z`
const joined = {
  type: 'ManagedClusterJoined',
  status: 'True',
  reason: 'ManagedClusterJoined',
  message: '',
  lastTransitionTime: now,
}
for await (const event of await following(own, dataType.managedClusters)) {
  const cluster = event.data() as ManagedCluster
  const conditions = cluster.status?.conditions ?? []
  if (!conditions.some(({ type, status }) => type === 'HubAcceptedManagedCluster' && status === 'True')) continue
  const data = { ...cluster, status: { ...cluster.status, conditions: [...conditions, joined] } }
  // Somebody else may have written it in between; its next state comes as an event.
  const written = await own
    .publish(said({ dataType: dataType.managedClusters, side: 'status', action: 'update_request', data }))
    .then(
      () => true,
      () => false,
    )
  if (written) break
}
report({ joined: 1 })
