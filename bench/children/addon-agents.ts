/** The add-on agents of many clusters in one process, each with its own credential for the hub, as `lanyard agent` runs them. */
import { readFileSync } from 'node:fs'
import { runAddOnAgent } from '../../src/addons/agent/index.ts'
import { subject } from '../../src/api/index.ts'
import { clientFor } from '../../src/kube/index.ts'
import { csrAgentDriver } from '../../src/registration/drivers/index.ts'
import { Metrics } from '../../src/runtime/index.ts'
import { issue } from '../../src/runtime/pki/index.ts'
import { asked, cpuMs, report, rssMB, settings } from './child.ts'

const { server, authorityFiles, clusters, driver } = settings as {
  server: string
  authorityFiles: { cert: string; key: string }
  clusters: string[]
  driver: 'csr' | 'token'
}
const authority = { cert: readFileSync(authorityFiles.cert, 'utf8'), key: readFileSync(authorityFiles.key, 'utf8') }
const day = 86_400_000
const stop = new AbortController()
let requests = 0
let writes = 0
/** Writes that a busy API server asked to send later: it has not looked at them. */
let putOff = 0

const clientOf = (commonName: string, organizations: string[]) => {
  const { cert, key } = issue(authority, {
    commonName,
    organizations,
    usages: ['client'],
    notBefore: new Date(Date.now() - day),
    notAfter: new Date(Date.now() + day),
  })
  const credential = { ca: authority.cert, cert, key }
  return clientFor(
    { source: commonName, server, credentials: async () => credential },
    {
      userAgent: 'bench-addon-agents',
      maxConnections: 4,
      onAnswer: ({ method, status }) => {
        requests++
        if (method === 'GET') return
        if (status === 429) putOff++
        else writes++
      },
    },
  )
}

for (const cluster of clusters)
  void runAddOnAgent(
    {
      hub: clientOf(subject.agentUser(cluster, 'bench'), [subject.clusterGroup(cluster), subject.managedClusters]),
      address: { source: 'bench', server, ca: authority.cert, clusterEntry: 'hub' },
      local: clientOf('bench-local', ['system:masters']),
      identity: { cluster, agent: 'bench' },
      owner: `agent-${cluster}`,
      driver,
      certificateFor: (one) => csrAgentDriver().forAddOn(one),
      metrics: new Metrics(),
    },
    stop.signal,
  )
report({ rssMB: rssMB() })
for (;;) {
  await asked()
  report({ requests, writes, putOff, rssMB: rssMB(), cpuMs: cpuMs() })
}
