import { setTimeout as pause } from 'node:timers/promises'
import { ManagedCluster } from '../src/api/index.ts'
import { Lease } from '../src/kube/index.ts'
import { findCondition, inParallel, isTrue } from '../src/runtime/index.ts'
import { eventually, startControlPlane, startHub } from '../testkit/index.ts'
import { startChild } from './child-process.ts'
import { builtProgram } from './built-program.ts'
import { metricOf, requestsOf } from './hub-figures.ts'
import { progress, rounded, type Bench } from './measure.ts'

const clusters = 1000
const minutes = 5
/** The lease duration that clusters have unless told; the agent adds up to a quarter of jitter. */
const periodMs = 60_000

/** A thousand agents in one process, each with its own credential, against one hub. */
export const fleet: Bench = async (print) => {
  const program = builtProgram()
  progress(`fleet: starting a control plane and a hub with ${clusters} clusters`)
  await using plane = await startControlPlane({ controllerManager: false, audit: false })
  const hub = await startHub(plane, { program, args: ['--no-webhooks', '--no-leader-elect'] })
  const admin = plane.client()
  const names = Array.from({ length: clusters }, (_, i) => `cluster-${i}`)
  await inParallel(
    32,
    names.map((name) => async () => {
      await admin.of(ManagedCluster).create({ metadata: { name }, spec: { hubAcceptsClient: true } })
    }),
  )
  await eventually(
    async () => {
      const { items } = await admin.of(ManagedCluster).list({ resourceVersion: '0' })
      const leases = await admin.of(Lease).list({ resourceVersion: '0', limit: 0 })
      const left = items.filter((one) => !isTrue(one, 'HubAcceptedManagedCluster')).length
      if (left || leases.items.length < clusters) throw new Error(`${left} clusters are not accepted yet`)
    },
    { timeoutMs: 300_000 },
  )
  progress('fleet: starting the agents')
  const { server, authorityFiles } = plane
  const agents = startChild('hollow-agents.ts', { server, authorityFiles, clusters, periodMs })
  await agents.report()

  progress(`fleet: ${minutes} minutes`)
  const hubBefore = { ...(await requestsOf(hub)), cpu: await metricOf(hub, 'process_cpu_seconds_total') }
  const before = await agents.ask()
  await pause(minutes * 60_000)
  const after = await agents.ask()
  const hubAfter = { ...(await requestsOf(hub)), cpu: await metricOf(hub, 'process_cpu_seconds_total') }
  const { items } = await admin.of(ManagedCluster).list()
  const unknown = items.filter((one) => findCondition(one, 'ManagedClusterConditionAvailable')?.status === 'Unknown')
  const seconds = minutes * 60
  const missed = after['failures']! + unknown.length
  print({
    bench: 'fleet',
    clusters,
    minutes,
    missedLeases: missed,
    ...rounded({
      longestGapMs: after['longestGapMs']!,
      agentRequestsPerSecond: (after['requests']! - before['requests']!) / seconds,
      agentRssMB: after['rssMB']! / clusters,
      hubRequestsPerSecond: (hubAfter.all - hubBefore.all) / seconds,
      hubWritesPerSecond: (hubAfter.writes - hubBefore.writes) / seconds,
      hubCpuPercent: ((hubAfter.cpu - hubBefore.cpu) / seconds) * 100,
      hubRssMB: (await metricOf(hub, 'process_resident_memory_bytes')) / 2 ** 20,
    }),
    baseline: { agentRequestsPerSecond: clusters / ((periodMs / 1000) * 1.125) },
    ratio: (after['requests']! - before['requests']!) / seconds / (clusters / ((periodMs / 1000) * 1.125)),
    target: 'no missed lease; the baseline is one request for each renewal, the least there can be',
    ok: missed === 0,
  })
  await agents.end()
}
