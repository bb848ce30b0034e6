import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { after, before, test } from 'node:test'
import {
  asCluster,
  createClusters,
  declare,
  enable,
  installHubCrds,
  requestToken,
  runAddOnHub,
} from '../../../testkit/add-on-hub.ts'
import {
  eventually,
  rounds,
  seededRandom,
  startControlPlane,
  type ControlPlane,
  type Random,
} from '../../../testkit/index.ts'
import { conditionType, label, ManagedClusterAddOn } from '../../api/index.ts'
import {
  isAlreadyExists,
  isNotFound,
  Role,
  RoleBinding,
  ServiceAccount,
  type Client,
  type KubeObject,
  type Resource,
} from '../../kube/index.ts'
import { accountName, defaultSubject, readTokenReady } from '../contract.ts'
import { inOwnNamespace, reads } from '../rules.ts'
import { defineAddOn } from './definition.ts'

let plane: ControlPlane
let admin: Client
before(async () => {
  plane = await startControlPlane({ audit: false })
  admin = plane.client()
  await installHubCrds(admin)
})
after(() => plane.stop())

const clusters = ['k1', 'k2']
const names = ['one', 'two', 'three']
const addOns = names.map((name) =>
  defineAddOn({
    name,
    manifests: () => [],
    registrations: [{ type: 'kubeClient' }],
    permissions: [inOwnNamespace(reads({ resource: 'configmaps', names: [name] }))],
  }),
)

const unless =
  (...expected: ((error: unknown) => boolean)[]) =>
  (error: unknown): undefined => {
    if (expected.some((is) => is(error))) return undefined
    throw error
  }

const namesIn = async (resource: Resource<KubeObject>, cluster: string, labelSelector: string): Promise<string[]> =>
  (await admin.of(resource, cluster).list({ labelSelector })).items.map(
    ({ metadata }) => `${resource.kind} ${metadata.name}`,
  )

/** What the hub has made for a cluster, and what it should have made by what the add-ons say. */
const madeAndWanted = async (cluster: string): Promise<[string[], string[]]> => {
  const kinds: Resource<KubeObject>[] = [ServiceAccount, Role, RoleBinding]
  const made = await Promise.all([
    ...kinds.map((kind) => namesIn(kind, cluster, `${label.tokenInfrastructure}=true`)),
    ...[Role, RoleBinding].map((kind) => namesIn(kind, cluster, label.addOnName)),
  ])
  const { items } = await admin.of(ManagedClusterAddOn, cluster).list()
  const wanted = items.flatMap(({ metadata: { name = '' }, status }) => {
    const { driver, subject } = status?.registrations?.[0]?.kubeClient ?? {}
    const permissions = subject?.user
      ? ['Role', 'RoleBinding'].map((kind) => `${kind} open-cluster-management:${name}:agent`)
      : []
    const tokens = [
      `ServiceAccount ${accountName(cluster, name)}`,
      `Role ${name}-token-role`,
      `RoleBinding ${name}-token-role`,
    ]
    return [...permissions, ...(driver === 'token' ? tokens : [])]
  })
  return [made.flat().toSorted(), wanted.toSorted()]
}

const converged = async (): Promise<void> => {
  for (const cluster of clusters)
    await eventually(
      async () => {
        const [made, wanted] = await madeAndWanted(cluster)
        assert.deepEqual(made, wanted)
      },
      { timeoutMs: 120_000 },
    )
}

/** Something that happens to an add-on, whether or not a hub is there to see it. */
const disturb = async (random: Random, agents: ReadonlyMap<string, Client>): Promise<void> => {
  const cluster = random.pick(clusters)
  const name = random.pick(names)
  const driver = random.pick(['csr', 'token'] as const)
  const subject = defaultSubject(driver, cluster, name)
  const account = accountName(cluster, name)
  const events: (() => Promise<unknown>)[] = [
    () => declare(agents.get(cluster)!, cluster, name, driver, { user: subject.user, groups: [...subject.groups] }),
    () => declare(agents.get(cluster)!, cluster, name, driver, { user: subject.user, groups: [...subject.groups] }),
    () => admin.of(ManagedClusterAddOn, cluster).delete(name),
    () => enable(admin, cluster, name),
    () => admin.of(ServiceAccount, cluster).delete(account),
    () => admin.of(RoleBinding, cluster).delete(`${name}-token-role`),
    () => admin.of(Role, cluster).patch(`${name}-token-role`, { merge: { rules: [] } }),
  ]
  await random.pick(events)().catch(unless(isNotFound, isAlreadyExists))
}

test('R2.18 R2.21 R2.42 a hub that is killed at any moment of registration and of driver switches leaves nothing behind', async (t) => {
  const random = seededRandom(t)
  let hub = await runAddOnHub(t, plane, { addOns })
  await createClusters(admin, clusters)
  for (const cluster of clusters) for (const name of names) await enable(admin, cluster, name)
  const agents = new Map(clusters.map((cluster) => [cluster, asCluster(plane, cluster)]))
  const kills = 15 * rounds(1)
  for (let kill = 0; kill < kills; kill++) {
    for (let i = random.below(4); i >= 0; i--) await disturb(random, agents)
    await sleep(random.below(120)) // a kill at a random moment of what follows from it
    await hub.stop()
    await disturb(random, agents)
    hub = await runAddOnHub(t, plane, { addOns })
  }
  t.diagnostic(`${kills} kills`)
  await converged()
  for (const cluster of clusters) {
    for (const name of names) await enable(admin, cluster, name).catch(unless(isAlreadyExists))
    for (const name of names) {
      await declare(agents.get(cluster)!, cluster, name, 'token', { user: defaultSubject('token', cluster, name).user })
      await eventually(
        async () => {
          const { status } = await admin.of(ManagedClusterAddOn, cluster).get(name)
          const ready = status?.conditions?.find(({ type }) => type === conditionType.addOn.tokenInfrastructureReady)
          const { metadata } = await admin.of(ServiceAccount, cluster).get(accountName(cluster, name))
          assert.equal(readTokenReady(ready?.message ?? '')?.uid, metadata.uid)
        },
        { timeoutMs: 120_000 },
      )
      assert.match(await requestToken(agents.get(cluster)!, cluster, accountName(cluster, name)), /^ey/)
    }
  }
  // Some go while nobody looks, the others under the eyes of the hub.
  await hub.stop()
  for (const name of names) await admin.of(ManagedClusterAddOn, random.pick(clusters)).delete(name)
  await runAddOnHub(t, plane, { addOns })
  await converged()
  for (const cluster of clusters) await admin.of(ManagedClusterAddOn, cluster).deleteAll()
  await converged()
  for (const cluster of clusters) assert.deepEqual((await madeAndWanted(cluster))[0], [])
})
