import { setTimeout as pause } from 'node:timers/promises'
import { addOnGroup } from '../src/addons/contract.ts'
import { ManagedCluster, ManagedClusterAddOn, ManagedServiceAccount } from '../src/api/index.ts'
import { Namespace, Role, RoleBinding, ServiceAccount, type Client } from '../src/kube/index.ts'
import { inParallel, isTrue } from '../src/runtime/index.ts'
import { addOnName, agentAccount, TokenReported } from '../src/serviceaccounts/contract.ts'
import { agentRules } from '../src/serviceaccounts/hub/index.ts'
import { eventually, startControlPlane, startHub } from '../testkit/index.ts'
import { builtProgram } from './built-program.ts'
import { startChild } from './child-process.ts'
import { metricOf, requestsOf } from './hub-figures.ts'
import { progress, rounded, type Bench, type Line } from './measure.ts'

const idleSeconds = 60
/** The account, its token, the Secret and the status. */
const mostAgentWrites = 4

/** Tokens for many accounts of one cluster, and for some on each of many clusters. */
export const serviceaccounts: Bench = async (print) => {
  for (const [clusters, each] of [
    [1, 1000],
    [100, 10],
  ] as const)
    print(await measure(clusters, each))
}

const measure = async (clusterCount: number, each: number): Promise<Line> => {
  const name = `serviceaccounts.${clusterCount}x${each}`
  const program = builtProgram()
  progress(`${name}: starting a control plane and a hub`)
  await using plane = await startControlPlane({ audit: false })
  const hub = await startHub(plane, { program, args: ['--no-webhooks', '--no-leader-elect'] })
  const admin = plane.client()
  const clusters = Array.from({ length: clusterCount }, (_, i) => `cluster-${i}`)
  await prepare(admin, clusters)
  const agents = startChild('service-account-agents.ts', {
    server: plane.server,
    authorityFiles: plane.authorityFiles,
    clusters,
  })
  await agents.report()
  await pause(5000) // the hub has done what new clusters and add-ons need
  const total = clusterCount * each
  progress(`${name}: creating ${total} accounts`)
  const before = { hub: await requestsOf(hub), agents: await agents.ask() }
  const started = performance.now()
  const accounts = clusters.flatMap((namespace) =>
    Array.from({ length: each }, (_, i) => async () => {
      await admin.of(ManagedServiceAccount).create({ metadata: { name: `account-${i}`, namespace } })
    }),
  )
  await inParallel(32, accounts)
  const createdMs = performance.now() - started
  await eventually(
    async () => {
      const { items } = await admin.of(ManagedServiceAccount).list({ resourceVersion: '0', limit: 0 })
      const left = items.filter((one) => !isTrue(one, TokenReported.type))
      if (left.length > 0) throw new Error(`${left.length} have no token yet: ${JSON.stringify(left[0]!.status)}`)
    },
    { timeoutMs: 600_000 },
  )
  const allMs = performance.now() - started
  await pause(12_000) // whatever is left to be said
  const after = { hub: await requestsOf(hub), agents: await agents.ask() }
  progress(`${name}: idle for ${idleSeconds} s`)
  await pause(idleSeconds * 1000)
  const idle = { hub: await requestsOf(hub), agents: await agents.ask() }
  const figures = rounded({
    allTokensMs: allMs,
    createdMs,
    tokensPerSecond: (total / allMs) * 1000,
    agentWritesPerAccount: (after.agents['writes']! - before.agents['writes']!) / total,
    hubWritesPerAccount: (after.hub.writes - before.hub.writes) / total,
    agentIdleWrites: idle.agents['writes']! - after.agents['writes']!,
    agentIdleRequests: idle.agents['requests']! - after.agents['requests']!,
    hubIdleWrites: idle.hub.writes - after.hub.writes,
    hubRssMB: (await metricOf(hub, 'process_resident_memory_bytes')) / 2 ** 20,
    agentsRssMB: idle.agents['rssMB']!,
  })
  await agents.end()
  return {
    bench: name,
    clusters: clusterCount,
    accounts: total,
    ...figures,
    target: `agentWritesPerAccount at most ${mostAgentWrites}; hubWritesPerAccount 0; no idle request but of watches`,
    ok:
      figures['agentWritesPerAccount']! <= mostAgentWrites &&
      figures['hubWritesPerAccount']! < 0.1 &&
      figures['agentIdleWrites'] === 0 &&
      figures['agentIdleRequests']! <= 2 * clusterCount,
  }
}

/** What registration and the add-on manager do. */
const prepare = async (admin: Client, clusters: string[]): Promise<void> => {
  const clusterKind = admin.of(ManagedCluster)
  await inParallel(
    16,
    clusters.map((name) => async () => {
      await clusterKind.create({ metadata: { name }, spec: { hubAcceptsClient: true } })
      const namespace = `agent-of-${name}`
      await admin.of(Namespace).create({ metadata: { name: namespace } })
      await admin.of(ServiceAccount).create({ metadata: { name: agentAccount, namespace } })
    }),
  )
  await eventually(
    async () => {
      const { items } = await clusterKind.list({ resourceVersion: '0' })
      return items.every((one) => isTrue(one, 'HubAcceptedManagedCluster')) && items.length === clusters.length
    },
    { timeoutMs: 300_000 },
  )
  const apiGroup = 'rbac.authorization.k8s.io'
  await inParallel(
    16,
    clusters.map((cluster) => async () => {
      const metadata = { name: 'bench-agent', namespace: cluster }
      await admin.of(Role).create({ metadata, rules: [...agentRules] })
      await admin.of(RoleBinding).create({
        metadata,
        roleRef: { apiGroup, kind: 'Role', name: 'bench-agent' },
        subjects: [{ apiGroup, kind: 'Group', name: addOnGroup(cluster, addOnName) }],
      })
      await admin.of(ManagedClusterAddOn).create({ metadata: { name: addOnName, namespace: cluster } })
    }),
  )
}
