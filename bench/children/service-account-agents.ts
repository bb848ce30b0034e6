/** The service account agents of many clusters in one process, each with its own credential for the hub. */
import { readFileSync } from 'node:fs'
import { addOnEverywhereGroup, addOnGroup, defaultSubject } from '../../src/addons/contract.ts'
import { clientFor } from '../../src/kube/index.ts'
import { Metrics } from '../../src/runtime/index.ts'
import { issue } from '../../src/runtime/pki/index.ts'
import { runServiceAccountAgent } from '../../src/serviceaccounts/agent/index.ts'
import { addOnName } from '../../src/serviceaccounts/contract.ts'
import { asked, cpuMs, report, rssMB, settings } from './child.ts'

const { server, authorityFiles, clusters } = settings as {
  server: string
  authorityFiles: { cert: string; key: string }
  clusters: string[]
}
const authority = { cert: readFileSync(authorityFiles.cert, 'utf8'), key: readFileSync(authorityFiles.key, 'utf8') }
const day = 86_400_000
let requests = 0
let writes = 0

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
      userAgent: 'bench-service-accounts',
      maxConnections: clusters.length > 1 ? 4 : 32,
      onAnswer: ({ method, status }) => {
        requests++
        // What a busy API server asked to send later, it has not looked at.
        if (method !== 'GET' && status !== 429) writes++
      },
    },
  )
}

const started = clusters.map(
  (cluster) =>
    new Promise<void>((resolve) => {
      const { user } = defaultSubject('csr', cluster, addOnName)
      void runServiceAccountAgent(
        {
          hub: clientOf(user, [addOnGroup(cluster, addOnName), addOnEverywhereGroup(addOnName)]),
          local: clientOf('bench-local', ['system:masters']),
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
  report({ requests, writes, rssMB: rssMB(), cpuMs: cpuMs() })
}
