import { ClusterPermission, ManagedCluster, ManifestWork, type PermissionSpec } from '../src/api/index.ts'
import { ClusterRole, keyOf, Namespace, type Client } from '../src/kube/index.ts'
import { findCondition, Informer, inParallel, isTrue, setConditions } from '../src/runtime/index.ts'
import { WorkApplied, WorkAvailable } from '../src/work/contract.ts'
import { accept, eventually, sendTo, startAgent, startControlPlane, startHub } from '../testkit/index.ts'
import { builtProgram } from './built-program.ts'
import { metricOf, requestsOf } from './hub-figures.ts'
import { percentiles, progress, rounded, type Bench } from './measure.ts'

const clusters = 100
const each = 10
const edits = 100
const targetMs = 2000
/** This one has a real agent and a real API server; the others have one that says at once that all is applied. */
const real = 'cluster-0'

/**
 * R4.18: how long it takes until many ClusterPermissions are applied and what that costs, and the delay from an edit on the
 * hub until the managed cluster has it.
 */
export const permissions: Bench = async (print) => {
  const program = builtProgram()
  progress(`permissions: starting a hub with ${clusters} clusters, one of them real`)
  await using plane = await startControlPlane({ audit: false })
  await using managed = await startControlPlane({ controllerManager: false, audit: false })
  const hub = await startHub(plane, { program, args: ['--no-leader-elect'] })
  const admin = plane.client()
  await sendTo(managed, plane)
  const agent = await startAgent(managed, real, { program })
  await accept(plane, real)
  await agent.process.ready()
  const others = Array.from({ length: clusters - 1 }, (_, i) => `cluster-${i + 1}`)
  await inParallel(
    16,
    others.map((name) => async () => {
      await admin.of(ManagedCluster).create({ metadata: { name }, spec: { hubAcceptsClient: true } })
    }),
  )
  const stop = new AbortController()
  await eventually(
    async () => {
      const { items } = await admin.of(Namespace).list({ resourceVersion: '0', metadataOnly: true })
      return others.every((name) => items.some(({ metadata }) => metadata.name === name))
    },
    { timeoutMs: 120_000 },
  )
  const hollow = hollowAgents(plane.client({ user: 'hollow', groups: ['system:masters'], userAgent: 'bench-hollow' }))
  const watching = hollow.run(stop.signal)
  const seen = new Informer({ client: admin, resource: ClusterPermission })
  const followed = seen.run(stop.signal)
  await Promise.all([hollow.synced, seen.synced])

  progress(`permissions: creating ${clusters * each} ClusterPermissions`)
  const before = await requestsOf(hub)
  const cpuBefore = await metricOf(hub, 'process_cpu_seconds_total')
  const started = performance.now()
  const wanted = [real, ...others].flatMap((cluster) =>
    Array.from({ length: each }, (_, i) => ({ cluster, name: `permission-${i}` })),
  )
  await inParallel(
    32,
    wanted.map(({ cluster, name }) => async () => {
      const metadata = { name, namespace: cluster }
      await admin.of(ClusterPermission, cluster).create({ metadata, spec: specWith('start') })
    }),
  )
  const createdMs = performance.now() - started
  await eventually(() => seen.list().filter((one) => isTrue(one, 'AppliedRBACManifestWork')).length === wanted.length, {
    timeoutMs: 300_000,
  })
  const seconds = (performance.now() - started) / 1000
  const after = await requestsOf(hub)
  print({
    bench: 'permissions.apply',
    permissions: wanted.length,
    clusters,
    ...rounded({
      seconds,
      perSecond: wanted.length / seconds,
      requestsEach: (after.all - before.all) / wanted.length,
      writesEach: (after.writes - before.writes) / wanted.length,
      hubCpuMsEach: (((await metricOf(hub, 'process_cpu_seconds_total')) - cpuBefore) * 1000) / wanted.length,
      hubRssMB: (await metricOf(hub, 'process_resident_memory_bytes')) / 2 ** 20,
    }),
    baseline: rounded({ seconds: createdMs / 1000 }),
    ratio: rounded({ seconds: seconds / (createdMs / 1000) }),
    target:
      'none; the baseline is the time in which the permissions themselves are created, with the hub at work beside',
    ok: true,
  })

  progress(`permissions: ${edits} edits, one after the other`)
  const roles = new Informer({ client: managed.client(), resource: ClusterRole })
  const rolesRun = roles.run(stop.signal)
  await roles.synced
  const delays: number[] = []
  const baselines: number[] = []
  await managed
    .client()
    .of(ClusterRole)
    .create({ metadata: { name: 'direct' }, rules: [] })
  for (let i = 0; i < edits; i++) {
    const name = `permission-${i % each}`
    const mark = `edit-${i}`
    delays.push(
      await until(roles, name, mark, () =>
        admin.of(ClusterPermission, real).patch(name, { merge: { spec: specWith(mark) } }),
      ),
    )
    baselines.push(
      await until(roles, 'direct', mark, () =>
        managed
          .client()
          .of(ClusterRole)
          .patch('direct', { merge: { rules: rulesWith(mark) } }),
      ),
    )
  }
  const ours = percentiles(delays)
  const baseline = percentiles(baselines)
  print({
    bench: 'permissions.edit',
    edits,
    permissions: wanted.length,
    ...rounded(ours),
    baseline: rounded(baseline),
    ratio: rounded({ p50Ms: ours['p50Ms']! / baseline['p50Ms']!, p99Ms: ours['p99Ms']! / baseline['p99Ms']! }),
    target: `p99Ms below ${targetMs}; the baseline is the same edit made on the managed cluster itself, until a watch sees it`,
    targetMs,
    ok: ours['p99Ms']! < targetMs,
  })
  stop.abort()
  await Promise.all([watching, followed, rolesRun])
}

const rulesWith = (mark: string) => [{ apiGroups: ['bench.example.com'], resources: [mark], verbs: ['get'] }]

const specWith = (mark: string): PermissionSpec => ({
  clusterRole: { rules: rulesWith(mark) },
  clusterRoleBinding: { subject: { kind: 'Group', name: 'bench' } },
  roles: [{ namespace: 'default', rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }] }],
  roleBindings: [{ namespace: 'default', roleRef: { kind: 'Role' }, subject: { kind: 'User', name: 'bench' } }],
})

/** From the moment before an edit is sent until a watch shows the role with its mark. */
const until = async (
  roles: Informer<ClusterRole>,
  name: string,
  mark: string,
  edit: () => Promise<unknown>,
): Promise<number> => {
  const { promise, resolve } = Promise.withResolvers<number>()
  const look = (role: ClusterRole): void => {
    if (keyOf(role) === name && role.rules?.[0]?.resources?.[0] === mark) resolve(performance.now())
  }
  const off = roles.on({ added: look, updated: look })
  const started = performance.now()
  await edit()
  const ended = await promise
  off()
  return ended - started
}

/** Agents of the clusters that are not there: each work is reported as applied as soon as it is seen. */
const hollowAgents = (client: Client): Informer<ManifestWork> => {
  const works = new Informer({ client, resource: ManifestWork })
  const look = (work: ManifestWork): void => {
    const { namespace, name, generation } = work.metadata
    if (namespace === real || findCondition(work, WorkApplied.type)?.observedGeneration === generation) return
    const states = [WorkApplied.complete(), WorkAvailable.available()]
    const conditions = setConditions([], states, { now: Date.now(), generation })
    void client
      .of(ManifestWork, namespace)
      .patch(name!, { merge: { status: { conditions } } }, { subresource: 'status' })
      .catch(() => {}) // gone with the benchmark
  }
  works.on({ added: look, updated: look })
  return works
}
