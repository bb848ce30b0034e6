import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import {
  accept,
  eventually,
  rounds,
  seededRandom,
  sendTo,
  startAgent,
  startControlPlane,
  startHub,
  type ControlPlane,
  type LanyardProcess,
  type Random,
} from '../../testkit/index.ts'
import { AppliedManifestWork, label, ManagedCluster, ManifestWork } from '../api/index.ts'
import {
  CertificateSigningRequest,
  ClusterRole,
  ClusterRoleBinding,
  ConfigMap,
  Namespace,
  RoleBinding,
  Secret,
  type KubeObject,
  type Resource,
} from '../kube/index.ts'
import { Informer, isTrue } from '../runtime/index.ts'

let hubPlane: ControlPlane
let managed: ControlPlane
let hub: LanyardProcess
before(async () => {
  ;[hubPlane, managed] = await Promise.all([startControlPlane({ audit: false }), startControlPlane({ audit: false })])
  hub = await startHub(hubPlane, { args: ['--lease-seconds=4'] })
  await sendTo(managed, hubPlane)
})
after(() => Promise.all([hubPlane.stop(), managed.stop()]))

const patience = { timeoutMs: 90_000 }
const agentNamespace = 'open-cluster-management-agent'

/**
 * Kills one of the processes now and then, and now and then an API server under them, until the story is over. Half of the kills
 * wait until the last victim is up again: on a machine where that takes longer than the pauses, nobody would ever get to work.
 */
const harm = async (random: Random, victims: LanyardProcess[], over: AbortSignal): Promise<Record<string, number>> => {
  const kills: Record<string, number> = {}
  const count = (name: string): void => void (kills[name] = (kills[name] ?? 0) + 1)
  while (!over.aborted) {
    await pause(300 + random.below(2500), undefined, { signal: over }).catch(() => {})
    if (over.aborted) break
    if (random.below(8) === 0) {
      const { apiServer } = random.pick([hubPlane, managed])
      count('API servers')
      await apiServer.kill()
      await apiServer.start()
    } else {
      const { process } = random.pick(victims)
      count(process.name.replace(/-.*/, ''))
      await process.kill()
      await pause(random.below(500))
      process.spawn()
      const up = process.ready().catch(() => {}) // it may end by itself, when its cluster is gone
      if (random.below(2)) await Promise.race([up, pause(20_000, undefined, { signal: over }).catch(() => {})])
    }
  }
  return kills
}

/** Watches the requests of a cluster, and remembers the most that were ever open at once. */
const openRequests = (cluster: string, over: AbortSignal): { most: () => number } => {
  const csrs = new Informer({
    client: hubPlane.client(),
    resource: CertificateSigningRequest,
    labelSelector: `${label.clusterName}=${cluster}`,
  })
  let most = 0
  const count = (): void => {
    const open = csrs.list().filter(({ status }) => !status?.certificate && !status?.conditions?.length)
    most = Math.max(most, open.length)
  }
  csrs.on({ added: count, updated: count })
  void csrs.run(over)
  return { most: () => most }
}

const workOf = (cluster: string, version: string): ManifestWork => ({
  metadata: { name: 'w', namespace: cluster },
  spec: {
    workload: {
      manifests: [
        { apiVersion: 'v1', kind: 'Namespace', metadata: { name: `ns-${cluster}` } },
        { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a', namespace: `ns-${cluster}` }, data: { version } },
        {
          apiVersion: 'rbac.authorization.k8s.io/v1',
          kind: 'ClusterRole',
          metadata: { name: `role-${cluster}` },
          rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }],
        },
      ],
    },
  },
})

test('R1.50 R1.51 R1.52 R1.57 killed at random during join, rotation, work and delete: it always converges, one ManagedCluster, one open request, no orphan', async (t) => {
  const random = seededRandom(t)
  for (let round = 0; round < rounds(1); round++) {
    const cluster = `c${round}`
    const over = new AbortController()
    t.after(() => over.abort())
    await managed.client().of(Secret, agentNamespace).delete('hub-kubeconfig-secret')
    const agent = await startAgent(managed, cluster, { args: ['--appliedmanifestwork-eviction-grace-seconds=5'] })
    const requests = openRequests(cluster, over.signal)
    const harmed = harm(random, [hub, agent], over.signal)
    t.after(() => harmed)
    const admin = hubPlane.client()
    const there = managed.client()
    const works = admin.of(ManifestWork, cluster)

    await eventually(() => accept(hubPlane, cluster), patience)
    await joined(cluster)
    await eventually(() => works.apply(workOf(cluster, '1'), { fieldManager: 'person', force: true }), patience)
    await delivered(cluster, '1')

    // The certificate is lost: the agent gets another one, under the same names.
    const before = await eventually(() => there.of(Secret, agentNamespace).get('hub-kubeconfig-secret'), patience)
    await eventually(
      () => there.of(Secret, agentNamespace).patch('hub-kubeconfig-secret', { merge: { data: { 'tls.crt': null } } }),
      patience,
    )
    await eventually(async () => {
      await accept(hubPlane, cluster)
      const { data } = await there.of(Secret, agentNamespace).get('hub-kubeconfig-secret')
      assert.ok(data?.['tls.crt'] && data['tls.crt'] !== before.data?.['tls.crt'])
      assert.equal(data['agent-name'], before.data?.['agent-name'])
    }, patience)

    await eventually(() => works.apply(workOf(cluster, '2'), { fieldManager: 'person', force: true }), patience)
    await delivered(cluster, '2')
    assert.deepEqual(
      (await eventually(() => admin.of(ManagedCluster).list(), patience)).items.map((c) => c.metadata.name),
      [cluster],
    )

    await eventually(() => admin.of(ManagedCluster).delete(cluster), patience)
    await gone(cluster)
    over.abort()
    t.diagnostic(`round ${round}: kills ${JSON.stringify(await harmed)}; at most ${requests.most()} open request`)
    assert.ok(requests.most() <= 1, `${requests.most()} requests were open at once`)
    await agent.process.kill()
    if (!hub.process.running) hub.process.spawn()
  }
})

const joined = (cluster: string): Promise<void> =>
  eventually(async () => {
    const seen = await hubPlane.client().of(ManagedCluster).get(cluster)
    for (const type of ['HubAcceptedManagedCluster', 'ManagedClusterJoined', 'ManagedClusterConditionAvailable'])
      assert.ok(isTrue(seen, type), `${type}: ${JSON.stringify(seen.status?.conditions)}`)
  }, patience)

const delivered = (cluster: string, version: string): Promise<void> =>
  eventually(async () => {
    const there = managed.client()
    assert.deepEqual((await there.of(ConfigMap, `ns-${cluster}`).get('a')).data, { version })
    assert.ok(await there.of(ClusterRole).find(`role-${cluster}`))
    const work = await hubPlane.client().of(ManifestWork, cluster).get('w')
    const applied = work.status?.conditions?.find((c) => c.type === 'Applied')
    assert.ok(applied?.status === 'True' && applied.observedGeneration === work.metadata.generation)
  }, patience)

/** Nothing of the cluster is left, on either side. */
const gone = (cluster: string): Promise<void> =>
  eventually(async () => {
    const [admin, there] = [hubPlane.client(), managed.client()]
    assert.equal(await admin.of(ManagedCluster).find(cluster), undefined)
    assert.equal(await admin.of(Namespace).find(cluster), undefined)
    const own = { labelSelector: `${label.clusterName}=${cluster}` }
    const kinds: Resource<KubeObject>[] = [ClusterRole, ClusterRoleBinding, RoleBinding]
    for (const kind of kinds) assert.deepEqual((await admin.of(kind).list(own)).items, [])
    assert.equal(await there.of(ClusterRole).find(`role-${cluster}`), undefined)
    assert.equal(await there.of(Namespace).find(`ns-${cluster}`), undefined)
    assert.deepEqual((await there.of(AppliedManifestWork).list()).items, [])
  }, patience)
