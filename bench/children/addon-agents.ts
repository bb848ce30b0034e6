/** The add-on agents of many clusters in one process, each with its own credential for the hub, as `lanyard agent` runs them. */
import { runAddOnAgent } from '../../src/addons/agent/index.ts'
import { subject } from '../../src/api/index.ts'
import { csrAgentDriver } from '../../src/registration/drivers/index.ts'
import { Metrics } from '../../src/runtime/index.ts'
import { jumpingClock } from '../../testkit/jumping-clock.ts'
import { AgentClients } from './agent-clients.ts'
import { asked, cpuMs, report, rssMB, settings } from './child.ts'

const { server, authorityFiles, clusters, driver } = settings as {
  server: string
  authorityFiles: { cert: string; key: string }
  clusters: string[]
  driver: 'csr' | 'token'
}
const clients = new AgentClients(server, authorityFiles, { userAgent: 'bench-addon-agents', maxConnections: 4 })
const clock = jumpingClock()
const stop = new AbortController()

for (const cluster of clusters)
  void runAddOnAgent(
    {
      hub: clients.of(subject.agentUser(cluster, 'bench'), [subject.clusterGroup(cluster), subject.managedClusters]),
      address: { source: 'bench', server, ca: clients.authority.cert, clusterEntry: 'hub' },
      local: clients.of('bench-local', ['system:masters']),
      identity: { cluster, agent: 'bench' },
      owner: `agent-${cluster}`,
      driver,
      clock,
      certificateFor: (one) => csrAgentDriver().forAddOn(one),
      metrics: new Metrics(),
    },
    stop.signal,
  )
report({ rssMB: rssMB() })
for (;;) {
  const { jumpMs } = (await asked()) as { jumpMs?: number }
  if (jumpMs) clock.jump(jumpMs)
  const { requests, writes, putOff } = clients
  report({ requests, writes, putOff, rssMB: rssMB(), cpuMs: cpuMs() })
}
