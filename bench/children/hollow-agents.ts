/** Agents without clusters: each has its own credential, follows its own ManagedCluster and works, and renews its own lease. */
import { ManagedCluster, ManifestWork, subject } from '../../src/api/index.ts'
import { Lease } from '../../src/kube/index.ts'
import { Informer, microTimestamp } from '../../src/runtime/index.ts'
import { AgentClients } from './agent-clients.ts'
import { asked, cpuMs, report, rssMB, settings } from './child.ts'

const { server, authorityFiles, clusters, periodMs } = settings as {
  server: string
  authorityFiles: { cert: string; key: string }
  clusters: number
  periodMs: number
}
const names = Array.from({ length: clusters }, (_, i) => `cluster-${i}`)
const clients = new AgentClients(server, authorityFiles, { userAgent: 'bench-hollow', maxConnections: 1 })
const stop = new AbortController()
let beats = 0
let failures = 0
let longestGapMs = 0

const start = async (name: string): Promise<void> => {
  const client = clients.of(subject.agentUser(name, 'hollow'), [subject.clusterGroup(name), subject.managedClusters])
  const own = new Informer({ client, resource: ManagedCluster, fieldSelector: `metadata.name=${name}` })
  const works = new Informer({ client, resource: ManifestWork, namespace: name })
  void own.run(stop.signal)
  void works.run(stop.signal)
  await Promise.all([own.synced, works.synced])
  const leases = client.of(Lease, name)
  let lease = await leases.get('managed-cluster-lease')
  let last = Date.now()
  const beat = async (): Promise<void> => {
    try {
      const now = Date.now()
      lease = await leases.update({ ...lease, spec: { ...lease.spec, renewTime: microTimestamp(now) } })
      beats++
      longestGapMs = Math.max(longestGapMs, now - last)
      last = now
    } catch {
      failures++
      lease = await leases.get('managed-cluster-lease').catch(() => lease)
    }
    setTimeout(() => void beat(), periodMs * (1 + Math.random() / 4))
  }
  // As in life, they do not all beat at once.
  setTimeout(() => void beat(), Math.random() * periodMs)
}

for (let i = 0; i < names.length; i += 20) await Promise.all(names.slice(i, i + 20).map(start))
report({ rssMB: rssMB() })
for (;;) {
  await asked()
  report({ beats, failures, requests: clients.requests, longestGapMs, rssMB: rssMB(), cpuMs: cpuMs() })
}
