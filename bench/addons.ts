import { setTimeout as pause } from 'node:timers/promises'
import { AddOnTemplate, annotation, ManagedCluster, ManagedClusterAddOn } from '../src/api/index.ts'
import { Namespace, Secret, type Client } from '../src/kube/index.ts'
import { inParallel, isTrue } from '../src/runtime/index.ts'
import { eventually, startControlPlane, startHub } from '../testkit/index.ts'
import { builtProgram } from './built-program.ts'
import { startChild, type Child } from './child-process.ts'
import { metricOf, requestsOf } from './hub-figures.ts'
import { progress, rounded, type Bench, type Figures, type Line } from './measure.ts'

type Driver = 'token' | 'csr'

const idleSeconds = 60
/** What they are is in docs/benchmarks.md. */
const mostAgentWrites = 4
const year = 365 * 86_400_000

/** Credentials for many add-ons of one cluster, and for some on each of many clusters: by token and by certificate. */
export const addons: Bench = async (print) => {
  for (const driver of ['token', 'csr'] as const)
    for (const [clusters, each] of [
      [1, 120],
      [100, 10],
    ] as const)
      print(await measure(driver, clusters, each))
}

const measure = async (driver: Driver, clusterCount: number, each: number): Promise<Line> => {
  const name = `addons.${driver}.${clusterCount}x${each}`
  const program = builtProgram()
  progress(`${name}: starting a control plane and a hub`)
  await using plane = await startControlPlane({ audit: false })
  const hub = await startHub(plane, { program, args: ['--no-webhooks', '--no-leader-elect'] })
  const admin = plane.client()
  const clusters = Array.from({ length: clusterCount }, (_, i) => `cluster-${i}`)
  const addOns = Array.from({ length: each }, (_, i) => `addon-${i}`)
  await prepare(admin, clusters, addOns)
  const agents = startChild('addon-agents.ts', {
    server: plane.server,
    authorityFiles: plane.authorityFiles,
    clusters,
    driver,
  })
  await agents.report()
  await pause(5000) // every agent follows its add-ons

  progress(`${name}: enabling ${clusterCount * each} add-ons`)
  const before = { hub: await requestsOf(hub), agents: await agents.ask() }
  const started = performance.now()
  await inParallel(
    32,
    clusters.flatMap((cluster) => addOns.map((addOn) => () => enable(admin, cluster, addOn))),
  )
  const enabledMs = performance.now() - started
  const type = driver === 'token' ? 'AddonTokenRefreshed' : 'ClusterCertificateRotated'
  await eventually(
    async () => {
      const { items } = await admin.of(ManagedClusterAddOn).list({ resourceVersion: '0', limit: 0 })
      const left = items.filter((one) => !isTrue(one, type)).length
      if (left)
        throw new Error(
          `${left} add-ons have no credential yet: ${JSON.stringify(items.find((one) => !isTrue(one, type))?.status)}`,
        )
    },
    { timeoutMs: 600_000 },
  )
  const allMs = performance.now() - started
  await pause(10_000) // the last reports
  const after = { hub: await requestsOf(hub), agents: await agents.ask() }
  progress(`${name}: idle for ${idleSeconds} s`)
  await pause(idleSeconds * 1000)
  const idle = { hub: await requestsOf(hub), agents: await agents.ask() }
  const total = clusterCount * each
  const figures = rounded({
    allCredentialsMs: allMs,
    enabledMs,
    agentWritesPerAddOn: (after.agents['writes']! - before.agents['writes']!) / total,
    agentPutOffPerAddOn: (after.agents['putOff']! - before.agents['putOff']!) / total,
    hubWritesPerAddOn: (after.hub.writes - before.hub.writes) / total,
    agentIdleRequests: idle.agents['requests']! - after.agents['requests']!,
    hubIdleRequests: idle.hub.all - after.hub.all,
    hubRssMB: (await metricOf(hub, 'process_resident_memory_bytes')) / 2 ** 20,
    agentsRssMB: idle.agents['rssMB']!,
    ...(driver === 'token' && clusterCount === 1 ? await refreshed(admin, agents, each) : {}),
  })
  await agents.end()
  return {
    bench: name,
    clusters: clusterCount,
    addOns: total,
    ...figures,
    target: `agentWritesPerAddOn and refreshWritesPerAddOn at most ${mostAgentWrites}; no idle request but of watches`,
    ok:
      figures['agentWritesPerAddOn']! <= mostAgentWrites &&
      (figures['refreshWritesPerAddOn'] ?? 0) <= mostAgentWrites &&
      figures['agentIdleRequests']! <= 5 * clusterCount,
  }
}

/** R2.45 All tokens of a cluster near their end at once: what their refreshing costs. */
const refreshed = async (admin: Client, agents: Child, each: number): Promise<Figures> => {
  const secrets = admin.of(Secret, 'install-cluster-0')
  const tokens = async (): Promise<string[]> =>
    (await secrets.list({ resourceVersion: '0' })).items.flatMap(({ data }) => data?.['token'] ?? [])
  const old = new Set(await tokens())
  progress(`all ${each} tokens have used 85 % of their lifetime`)
  const started = performance.now()
  const before = await agents.ask({ jumpMs: year * 0.85 })
  await eventually(
    async () => {
      const now = await tokens()
      const left = each - now.filter((token) => !old.has(token)).length
      if (left) throw new Error(`${left} tokens are not refreshed yet`)
    },
    { timeoutMs: 300_000 },
  )
  const refreshAllMs = performance.now() - started
  await pause(10_000) // the last reports
  const after = await agents.ask()
  return { refreshAllMs, refreshWritesPerAddOn: (after['writes']! - before['writes']!) / each }
}

const prepare = async (admin: Client, clusters: string[], addOns: string[]): Promise<void> => {
  await inParallel(16, [
    ...addOns.map((addonName) => async () => {
      const spec = { addonName, agentSpec: {}, registration: [{ type: 'KubeClient' as const }] }
      await admin.of(AddOnTemplate).create({ metadata: { name: addonName }, spec })
    }),
    ...clusters.map((name) => async () => {
      await admin.of(ManagedCluster).create({ metadata: { name }, spec: { hubAcceptsClient: true } })
      await admin.of(Namespace).create({ metadata: { name: `install-${name}` } })
    }),
  ])
  await eventually(
    async () => {
      const { items } = await admin.of(ManagedCluster).list({ resourceVersion: '0' })
      return items.every((one) => isTrue(one, 'HubAcceptedManagedCluster')) && items.length === clusters.length
    },
    { timeoutMs: 300_000 },
  )
}

const enable = async (admin: Client, cluster: string, addOn: string): Promise<void> => {
  const group = AddOnTemplate.group
  await admin.of(ManagedClusterAddOn, cluster).create({
    metadata: { name: addOn, namespace: cluster, annotations: { [annotation.installNamespace]: `install-${cluster}` } },
    spec: { configs: [{ group, resource: AddOnTemplate.plural, name: addOn }] },
  })
}
