import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { sendOverGrpc, startHubWithGrpc, type GrpcHubProcess } from '../../testkit/grpc-agent.ts'
import { stubRelay } from '../../testkit/stub-server.ts'
import {
  accept,
  eventually,
  rounds,
  seededRandom,
  startAgent,
  startControlPlane,
  type ControlPlane,
  type Random,
} from '../../testkit/index.ts'
import { ManagedCluster, ManifestWork } from '../api/index.ts'
import { ConfigMap, Lease, Namespace } from '../kube/index.ts'
import { findCondition } from '../runtime/index.ts'

let hubPlane: ControlPlane
let managed: ControlPlane
let hub: GrpcHubProcess
before(async () => {
  ;[hubPlane, managed] = await Promise.all([
    startControlPlane({ audit: false }),
    startControlPlane({ controllerManager: false }),
  ])
  hub = await startHubWithGrpc(hubPlane, { args: ['--lease-seconds=4'] })
})
after(() => Promise.all([hubPlane?.stop(), managed?.stop()]))

const cluster = 'c1'
const names = ['a', 'b', 'c', 'd']
const patience = { timeoutMs: 180_000 }

const workOf = (name: string, value: string): ManifestWork => ({
  metadata: { name, namespace: cluster },
  spec: {
    workload: {
      manifests: [{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'delivered' }, data: { value } }],
    },
  },
})

/** Tries until it works. A hub that was killed, or has ended itself because it lost its lead, is started again as kubelets do. */
const through = <T>(work: () => Promise<T>): Promise<T> =>
  eventually(async () => {
    if (!hub.process.running) hub.process.spawn()
    return work()
  }, patience)

/** Everything is here as it was wanted last, and the hub has heard of exactly that. */
const converged = (wanted: ReadonlyMap<string, { value: string; generation: number }>): Promise<void> =>
  through(async () => {
    const works = await hubPlane.client().of(ManifestWork, cluster).list()
    assert.deepEqual(works.items.map(({ metadata }) => metadata.name!).toSorted(), [...wanted.keys()].toSorted())
    const maps = await managed.client().of(ConfigMap, 'delivered').list()
    const here = Object.fromEntries(maps.items.map(({ metadata, data }) => [metadata.name, data?.['value']]))
    assert.deepEqual(here, Object.fromEntries([...wanted].map(([name, { value }]) => [name, value])))
    for (const work of works.items) {
      const { generation } = wanted.get(work.metadata.name!)!
      assert.equal(work.metadata.generation, generation)
      for (const type of ['Applied', 'Available']) {
        const { status, observedGeneration } = findCondition(work, type) ?? {}
        assert.deepEqual([status, observedGeneration], ['True', generation], `${type} of ${work.metadata.name}`)
      }
      assert.equal(work.status?.resourceStatus?.manifests?.length, 1)
    }
  })

/** What can happen to an agent's way to its hub. */
const faultsOn = (wire: Awaited<ReturnType<typeof stubRelay>>): Record<string, () => Promise<unknown>> => ({
  'connection cut': async () => wire.sockets.forEach((socket) => socket.resetAndDestroy()),
  'endpoint killed': () => hub.process.kill(),
  'API server restarted': async () => {
    await hubPlane.apiServer.kill()
    await hubPlane.apiServer.start()
  },
})

const shuffled = (of: readonly string[], random: Random): string[] => {
  const left = [...of]
  return Array.from({ length: left.length }, () => left.splice(random.below(left.length), 1)[0]!)
}

test('R1.51 R1.52 R6.7 over gRPC, with the connection cut, the endpoint killed and the API server restarted at random moments: all works converge, each generation is applied once, and no status is lost', async (t) => {
  const random = seededRandom(t)
  await managed
    .client()
    .of(Namespace)
    .create({ metadata: { name: 'delivered' } })
  const wire = await stubRelay(t, `https://${hub.endpoint}`)
  const faults = faultsOn(wire)
  await sendOverGrpc(managed, hubPlane, new URL(wire.server).host)
  const agent = await startAgent(managed, cluster, { args: ['--registration-auth=grpc'] })
  await accept(hubPlane, cluster)
  await agent.process.ready()

  const works = hubPlane.client().of(ManifestWork, cluster)
  const wanted = new Map<string, { value: string; generation: number }>()
  const applies = new Map<string, number>()
  /** One change of each work, through whatever is broken at the moment: made once, also when its answer was lost. */
  const change = async (name: string, round: number): Promise<void> => {
    await pause(random.below(1500))
    const before = wanted.get(name)
    const value = `${name}${round}`
    await through(() => works.apply(workOf(name, value), { fieldManager: 'person', force: true }))
    wanted.set(name, { value, generation: (before?.generation ?? 0) + 1 })
    applies.set(name, (applies.get(name) ?? 0) + 1)
  }
  const remove = async (name: string): Promise<void> => {
    await pause(random.below(1500))
    await through(() => works.delete(name))
    wanted.delete(name)
  }

  let kinds: string[] = []
  const done: Record<string, number> = {}
  for (let round = 0; round < rounds(3, 50); round++) {
    if (kinds.length === 0) kinds = shuffled(Object.keys(faults), random)
    const kind = kinds.pop()!
    done[kind] = (done[kind] ?? 0) + 1
    // Each round one of them goes, and comes back in the next.
    const gone = round % 2 === 1 ? random.pick(names) : undefined
    const moment = random.below(2000)
    t.diagnostic(`round ${round}: ${kind} after ${moment} ms${gone ? `, without ${gone}` : ''}`)
    await Promise.all([
      pause(moment).then(() => faults[kind]!()),
      ...names.map((name) => (name === gone ? remove(name) : change(name, round))),
    ])
    await converged(wanted)
  }
  assert.ok(Object.keys(done).length === Math.min(3, rounds(3, 50)), JSON.stringify(done))

  // By the audit log of the managed cluster: what was written is what was wanted, once.
  const { entries } = await managed.requestsBy('lanyard-agent')
  for (const name of names) {
    const isOfIt = (one: (typeof entries)[number]): boolean =>
      one.resource === 'configmaps' && one.namespace === 'delivered' && one.name === name && (one.code ?? 500) < 300
    const writes = entries.filter((one) => isOfIt(one) && ['create', 'update', 'patch'].includes(one.verb))
    assert.equal(
      writes.length,
      applies.get(name),
      `${name}: ${JSON.stringify(writes.map(({ verb, at }) => [verb, at]))}`,
    )
  }
  await through(async () => {
    const now = await hubPlane.client().of(ManagedCluster).get(cluster)
    assert.equal(findCondition(now, 'ManagedClusterConditionAvailable')?.status, 'True')
    assert.ok((await hubPlane.client().of(Lease, cluster).get('managed-cluster-lease')).spec.renewTime)
    assert.equal(await agent.unready(), '')
  })
})
