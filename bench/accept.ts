import { setTimeout as pause } from 'node:timers/promises'
import { ManagedCluster } from '../src/api/index.ts'
import {
  ClusterRole,
  ClusterRoleBinding,
  isAlreadyExists,
  Lease,
  Namespace,
  RoleBinding,
  type Client,
} from '../src/kube/index.ts'
import { inParallel, Informer, isTrue } from '../src/runtime/index.ts'
import { startControlPlane, startHub, type ControlPlane, type LanyardProcess } from '../testkit/index.ts'
import { builtProgram } from './built-program.ts'
import { metricOf, requestsOf } from './hub-figures.ts'
import { progress, rounded, type Bench } from './measure.ts'

/** What the hub must reach of the rate at which a client that decides nothing writes the same objects. */
const leastRatio = 0.7
const mostMB = 120
const connections = 32
const quietSeconds = 60

/** Many clusters at once, until all are accepted with all their objects. */
export const accept: Bench = async (print) => {
  const program = builtProgram()
  for (const clusters of [200, 1000]) {
    progress(`accept ${clusters}: starting a control plane and a hub`)
    await using plane = await startControlPlane({ controllerManager: false, audit: false })
    const hub = await startHub(plane, { program, args: ['--no-webhooks', '--no-leader-elect'] })
    const admin = plane.client({ user: 'bench', groups: ['system:masters'] })

    await hub.process.stop()
    const before = await rawWrites(admin, 'before', clusters)
    await hub.process.start()
    const idle = await requestsOf(hub)
    const perSecond = await accepted(plane, admin, clusters)
    await settled(hub)
    const spent = await requestsOf(hub)
    progress(`accept ${clusters}: ${perSecond.toFixed(1)} a second; watching the hub do nothing for ${quietSeconds} s`)
    await pause(quietSeconds * 1000)
    const quiet = await requestsOf(hub)
    const rssMB = (await metricOf(hub, 'process_resident_memory_bytes')) / 2 ** 20
    const cpuMs = (await metricOf(hub, 'process_cpu_seconds_total')) * 1000
    await hub.process.stop()
    const afterwards = await rawWrites(admin, 'after', clusters)

    const baseline = (before + afterwards) / 2
    const writesAfter = quiet.writes - spent.writes
    print({
      bench: 'accept',
      clusters,
      ...rounded({
        perSecond,
        requestsPerCluster: (spent.all - idle.all) / clusters,
        writesPerCluster: (spent.writes - idle.writes) / clusters,
        cpuMsPerCluster: cpuMs / clusters,
        rssMB,
      }),
      writesInTheMinuteAfter: writesAfter,
      baseline: rounded({ perSecond: baseline }),
      ratio: rounded({ perSecond: perSecond / baseline }).perSecond,
      target: `ratio at least ${leastRatio} of the raw writes, rssMB at most ${mostMB}, no writes in the minute after`,
      ok: perSecond / baseline >= leastRatio && rssMB <= mostMB && writesAfter === 0,
    })
  }
}

/** Clusters a second, by a client that writes what the hub writes and decides nothing. */
const rawWrites = async (client: Client, prefix: string, clusters: number): Promise<number> => {
  progress(`accept ${clusters}: the same writes without a hub (${prefix})`)
  const names = Array.from({ length: clusters }, (_, i) => `raw-${prefix}-${i}`)
  const group = 'rbac.authorization.k8s.io'
  const subjects = (name: string) => [{ apiGroup: group, kind: 'Group', name: `group-of-${name}` }]
  const roleRef = (name: string) => ({ apiGroup: group, kind: 'ClusterRole', name })
  const started = performance.now()
  await inParallel(
    connections,
    names.map((name) => async () => {
      await client.of(ManagedCluster).create({ metadata: { name }, spec: { hubAcceptsClient: false } })
    }),
  )
  await inParallel(
    connections,
    names.map((name) => async () => {
      const rules = [
        { apiGroups: ['x'], resources: ['y'], resourceNames: [name], verbs: ['get', 'list', 'watch', 'update'] },
      ]
      await Promise.all([
        client.of(Namespace).create({ metadata: { name } }),
        client.of(ClusterRole).create({ metadata: { name: `bench:${name}` }, rules }),
        client
          .of(ClusterRoleBinding)
          .create({ metadata: { name: `bench:${name}` }, roleRef: roleRef(`bench:${name}`), subjects: subjects(name) }),
        client.of(ManagedCluster).patch(name, { merge: { metadata: { annotations: { bench: 'x' } } } }),
      ])
      await Promise.all([
        ...['registration', 'work'].map((what) =>
          client.of(RoleBinding).create({
            metadata: { name: `bench:${what}`, namespace: name },
            roleRef: roleRef(what),
            subjects: subjects(name),
          }),
        ),
        client.of(Lease).create({ metadata: { name: 'lease', namespace: name }, spec: {} }),
        client
          .of(ManagedCluster)
          .patch(name, { merge: { status: { version: { kubernetes: 'v1' } } } }, { subresource: 'status' }),
      ])
    }),
  )
  const rate = (clusters * 1000) / (performance.now() - started)
  // The hub must not meet them: it would count and taint them too.
  await client.of(ManagedCluster).deleteAll()
  return rate
}

/** Clusters a second, from the first that is created to the last that is accepted. */
const accepted = async (plane: ControlPlane, client: Client, clusters: number): Promise<number> => {
  progress(`accept ${clusters}: creating the clusters`)
  const stop = new AbortController()
  const informer = new Informer({ client: plane.client(), resource: ManagedCluster, transform: slim })
  const running = informer.run(stop.signal)
  await informer.synced
  const done = new Set<string>()
  const all = new Promise<void>((resolve) => {
    const look = (cluster: ManagedCluster): void => {
      if (!isTrue(cluster, 'HubAcceptedManagedCluster')) return
      done.add(cluster.metadata.name!)
      if (done.size === clusters) resolve()
    }
    informer.on({ added: look, updated: look })
  })
  const started = performance.now()
  await inParallel(
    connections,
    Array.from({ length: clusters }, (_, i) => async () => {
      const metadata = { name: `cluster-${i}` }
      await client
        .of(ManagedCluster)
        .create({ metadata, spec: { hubAcceptsClient: true } })
        .catch((error: unknown) => {
          if (!isAlreadyExists(error)) throw error
        })
    }),
  )
  await all
  const rate = (clusters * 1000) / (performance.now() - started)
  stop.abort()
  await running
  return rate
}

const slim = (cluster: ManagedCluster): ManagedCluster => ({
  metadata: {
    name: cluster.metadata.name,
    uid: cluster.metadata.uid,
    resourceVersion: cluster.metadata.resourceVersion,
  },
  spec: {},
  status: { conditions: cluster.status?.conditions },
})

/** Waits until the hub has written nothing for a few seconds. */
const settled = async (hub: LanyardProcess): Promise<void> => {
  for (let last = -1; ;) {
    const { writes } = await requestsOf(hub)
    if (writes === last) return
    last = writes
    await pause(3000)
  }
}
