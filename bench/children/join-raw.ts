/** The calls that a join cannot do without, and nothing else: the baseline of the join benchmark. */
import { ManagedCluster } from '../../src/api/index.ts'
import { CertificateSigningRequest, clientFor, connectionFrom, loadKubeconfig } from '../../src/kube/index.ts'
import { createRequest } from '../../src/runtime/pki/index.ts'
import { report, settings } from './child.ts'

const { kubeconfig, name } = settings as { kubeconfig: string; name: string }
const connection = connectionFrom(await loadKubeconfig({ path: kubeconfig, env: {} }))
const bootstrap = clientFor(connection)
await bootstrap.of(ManagedCluster).create({ metadata: { name }, spec: { hubAcceptsClient: false } })
const user = `system:open-cluster-management:${name}`
const { csr, key } = createRequest({
  commonName: `${user}:raw`,
  organizations: [user, 'system:open-cluster-management:managed-clusters'],
})
const csrs = bootstrap.of(CertificateSigningRequest)
await csrs.create({
  metadata: { name: `${name}-raw`, labels: { 'open-cluster-management.io/cluster-name': name } },
  spec: {
    request: Buffer.from(csr).toString('base64'),
    signerName: 'kubernetes.io/kube-apiserver-client',
    usages: ['digital signature', 'key encipherment', 'client auth'],
  },
})
let cert = ''
for await (const batch of await csrs.watch({ fieldSelector: `metadata.name=${name}-raw` })) {
  for (const event of batch)
    if (event.type !== 'BOOKMARK') cert ||= Buffer.from(event.object.status?.certificate ?? '', 'base64').toString()
  if (cert) break
}
const { ca } = await connection.credentials()
const cluster = clientFor({ ...connection, credentials: async () => credential })
const credential = { ca, cert, key }
const own = cluster.of(ManagedCluster)
for await (const batch of await own.watch({ fieldSelector: `metadata.name=${name}` })) {
  const accepted = batch.some(
    (event) =>
      event.type !== 'BOOKMARK' &&
      event.object.status?.conditions?.some((c) => c.type === 'HubAcceptedManagedCluster' && c.status === 'True'),
  )
  if (accepted) break
}
const now = `${new Date().toISOString().slice(0, 19)}Z`
const joined = {
  type: 'ManagedClusterJoined',
  status: 'True',
  reason: 'ManagedClusterJoined',
  message: '',
  lastTransitionTime: now,
}
const present = await own.get(name)
await own.updateStatus({ ...present, status: { conditions: [...(present.status?.conditions ?? []), joined as never] } })
report({ joined: 1 })
