/** The service account agents of many clusters in one process, each with its own credential for the hub. */
import { addOnEverywhereGroup, addOnGroup, defaultSubject } from '../../src/addons/contract.ts'
import { Metrics } from '../../src/runtime/index.ts'
import { runServiceAccountAgent } from '../../src/serviceaccounts/agent/index.ts'
import { addOnName } from '../../src/serviceaccounts/contract.ts'
import { AgentClients } from './agent-clients.ts'
import { asked, cpuMs, report, rssMB, settings } from './child.ts'

const { server, authorityFiles, clusters } = settings as {
  server: string
  authorityFiles: { cert: string; key: string }
  clusters: string[]
}
const maxConnections = clusters.length > 1 ? 4 : 32
const clients = new AgentClients(server, authorityFiles, { userAgent: 'bench-service-accounts', maxConnections })

const started = clusters.map(
  (cluster) =>
    new Promise<void>((resolve) => {
      const { user } = defaultSubject('csr', cluster, addOnName)
      void runServiceAccountAgent(
        {
          hub: clients.of(user, [addOnGroup(cluster, addOnName), addOnEverywhereGroup(addOnName)]),
          local: clients.of('bench-local', ['system:masters']),
          cluster,
          namespace: `agent-of-${cluster}`,
          metrics: new Metrics(),
          onReady: resolve,
        },
        new AbortController().signal,
      )
    }),
)
await Promise.all(started)
report({ rssMB: rssMB() })
for (;;) {
  await asked()
  const { requests, writes } = clients
  report({ requests, writes, rssMB: rssMB(), cpuMs: cpuMs() })
}
