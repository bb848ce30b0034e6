/** `clusterctl move` between two real management clusters and the local AWS, with controllers that build on both. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { atOnce, contentsOf, isBuilt, mayBuild, oneCluster } from '../../../testkit/aws-network.ts'
import {
  createKeys,
  hubNamespace,
  isReady,
  region,
  runIdentities,
  serveWebhooks,
  stands,
  staticReference,
  type IdentityHub,
} from '../../../testkit/identity-hub.ts'
import {
  eventually,
  startControlPlane,
  startLocalAws,
  type ControlPlane,
  type LocalAws,
} from '../../../testkit/index.ts'
import {
  byChain,
  byKeys,
  byToken,
  changesIn,
  clusterctl,
  contentsOfNamespace,
  installForeign,
  machineDeployments,
  mortal,
  withMachines,
} from '../../../testkit/move-scene.ts'
import {
  AWSCluster,
  AWSClusterRoleIdentity,
  AWSClusterStaticIdentity,
  Cluster,
  crds,
  installCrds,
} from '../../api/index.ts'
import { hubAt, moveBundle, MoveRefused, prepareMove, type Steps } from '../../identities/move/index.ts'
import { Secret, type Client } from '../../kube/index.ts'
import { systemClock } from '../../runtime/index.ts'

let one: ControlPlane
let two: ControlPlane
let local: LocalAws
before(async () => {
  // Garbage is collected on one of them: what hangs on an owner that does not exist would go.
  ;[one, two, local] = await Promise.all([
    startControlPlane({ controllerManager: false, audit: false }),
    startControlPlane({ audit: false }),
    startLocalAws(),
  ])
  for (const plane of [one, two]) {
    await installCrds(plane.client(), crds({ conversion: 'none', borrowed: true }))
    await installForeign(plane.client())
  }
})
after(() => Promise.all([one.stop(), two.stop(), local.stop()]))

const elsewhere = 'capa-system'
const there = ['--hub-namespace', hubNamespace, '--to-hub-namespace', elsewhere]
const back = ['--hub-namespace', elsewhere, '--to-hub-namespace', hubNamespace]

const moved = async (words: string[], from: ControlPlane, to: ControlPlane): Promise<string> => {
  const { code, out, err } = await clusterctl(words, from, to)
  assert.equal(code, 0, `${err}${out}`)
  return out
}

test('R3.56 R3.57 R3.59 clusters by keys, by a chain of roles and by tokens move to another hub and back; AWS sees no change', async (t) => {
  const a = await runIdentities(t, one, local, { infrastructure: atOnce })
  const b = await runIdentities(t, two, local, { infrastructure: atOnce, namespace: elsewhere })
  await serveWebhooks(one, a)
  await serveWebhooks(two, b)
  const accounts = { 'team/keys': '220000000001', 'team/chain': '220000000002', 'team/token': '220000000003' }
  await byKeys(a, 'team/keys', accounts['team/keys'], hubNamespace)
  await byChain(a, 'team/chain', accounts['team/chain'], hubNamespace)
  await byToken(a, 'team/token', accounts['team/token'])
  for (const key of Object.keys(accounts)) await isBuilt(a.client, key)
  await withMachines(a.client, 'team/keys')
  const before = await contentsOfNamespace(a.client, 'team')
  const specs = await specsOn(a, Object.keys(accounts))
  const changes = changesIn(a.front).length
  const isQuiet = async (): Promise<void> => {
    assert.deepEqual(changesIn(a.front).slice(changes), [])
    assert.deepEqual(changesIn(b.front), [])
    for (const [key, id] of Object.entries(accounts))
      assert.deepEqual(await contentsOf(a.aws, a.account(id)), oneCluster, key)
  }

  const plan = await clusterctl(['-n', 'team', '--dry-run', '-o', 'json', ...there], one, two)
  assert.equal(plan.code, 0, plan.err)
  const lines = JSON.parse(plan.out) as { kind: string; name: string; source: string; target: string; note: string }[]
  const said = (name: string) =>
    lines
      .filter((line) => line.name === name)
      .map(({ kind, source, target, note }) => `${kind} ${source} ${target} ${note}`.trim())
  assert.deepEqual(said('team-keys'), ['AWSClusterStaticIdentity keep create'])
  assert.deepEqual(said(`${hubNamespace}/team-keys`), [`Secret keep create becomes ${elsewhere}/team-keys`])
  assert.deepEqual(said('team/keys'), ['Cluster delete create', 'AWSCluster delete create'])
  assert.deepEqual(await contentsOfNamespace(b.client, 'team'), [])

  assert.match(await moved(['-n', 'team', ...there], one, two), /which acts for the clusters/)
  for (const key of Object.keys(accounts)) await isBuilt(b.client, key)
  await isQuiet()
  assert.deepEqual(await contentsOfNamespace(a.client, 'team'), [])
  assert.deepEqual(await contentsOfNamespace(b.client, 'team'), before)
  assert.deepEqual(await specsOn(b, Object.keys(accounts)), specs)
  // Owners are those that it has there; nothing was collected as garbage, and finalizers came along.
  const cluster = await b.client.of(Cluster, 'team').get('keys')
  const deployment = await b.client.of(machineDeployments.kind, 'team').get('keys-md')
  assert.deepEqual(
    deployment.metadata.ownerReferences?.map(({ uid }) => uid),
    [cluster.metadata.uid],
  )
  assert.deepEqual(deployment.metadata.finalizers, ['example.com/machines'])
  assert.equal(cluster.spec?.paused, undefined)
  // What other namespaces may use stays where it was, and the Secret is where the other controller looks.
  const identity = await a.client.of(AWSClusterStaticIdentity).get('team-chain')
  assert.ok(await a.client.of(Secret, hubNamespace).find('team-chain'))
  assert.ok(await a.client.of(AWSClusterRoleIdentity).find('team-chain-jump'))
  assert.deepEqual(identity.spec.secretRef, { namespace: hubNamespace, name: 'team-chain' })
  const copy = await b.client.of(AWSClusterStaticIdentity).get('team-chain')
  assert.deepEqual(copy.spec.secretRef, { namespace: elsewhere, name: 'team-chain' })
  assert.ok(await b.client.of(Secret, elsewhere).find('team-chain'))

  // It goes on with an identity of its own.
  await createKeys(b.client, `${elsewhere}/own`, await b.account(accounts['team/keys']).user('own', mayBuild))
  await b.client
    .of(AWSClusterStaticIdentity)
    .create({ metadata: { name: 'own' }, spec: { allowedNamespaces: {}, secretRef: 'own' } })
  await b.client.of(AWSCluster, 'team').patch('keys', { merge: { spec: { identityRef: staticReference('own') } } })
  await isUsing(b.client, 'own')

  // And back: the identities are there already, and are found to be the same.
  await moved(['-n', 'team', ...back], two, one)
  for (const key of Object.keys(accounts)) await isBuilt(a.client, key)
  await isQuiet()
  assert.deepEqual(await contentsOfNamespace(a.client, 'team'), before)
  assert.deepEqual(await contentsOfNamespace(b.client, 'team'), [])
  await isUsing(a.client, 'own')
  assert.deepEqual((await specsOn(a, Object.keys(accounts))).slice(1), specs.slice(1))

  const again = await clusterctl(['-n', 'team', ...back], two, one)
  assert.equal(again.code, 0, again.err)
  assert.match(again.out, /There is no cluster in namespace team/)
  for (const { client } of [a, b]) for (const kind of [Cluster, AWSCluster]) await clear(client, kind)
})

/** The cluster of keys gets its credentials by this identity, which owns it then. */
const isUsing = (client: Client, name: string): Promise<unknown> =>
  eventually(
    async () => {
      const { metadata } = await stands(client, 'team/keys', isReady('220000000001'))
      const { uid } = (await client.of(AWSClusterStaticIdentity).get(name)).metadata
      return metadata.ownerReferences?.some((owner) => owner.uid === uid) ?? false
    },
    { timeoutMs: 60_000 },
  )

const isPaused = (cluster: AWSCluster, owner: Cluster | undefined): boolean =>
  cluster.metadata.annotations?.['cluster.x-k8s.io/paused'] !== undefined || owner?.spec?.paused === true

const specsOn = async ({ client }: IdentityHub, keys: string[]): Promise<unknown[]> =>
  Promise.all(
    keys.map(async (key) => {
      const [space, name] = key.split('/') as [string, string]
      return (await client.of(AWSCluster, space).get(name)).spec
    }),
  )

const clear = async (client: IdentityHub['client'], kind: typeof Cluster | typeof AWSCluster): Promise<void> => {
  const { items } = await client.of(kind as typeof Cluster).list()
  for (const { metadata } of items) {
    const of = client.of(kind as typeof Cluster, metadata.namespace)
    await of.patch(metadata.name!, { merge: { metadata: { finalizers: null } } })
    await of.delete(metadata.name!)
  }
  await eventually(async () => (await client.of(kind as typeof Cluster).list()).items.length === 0)
}

test('R3.56 R3.72 cut off after any of its writes, the next run completes the move; neither side acts while the other may, and AWS sees no change', async (t) => {
  const a = await runIdentities(t, one, local, { infrastructure: atOnce })
  const b = await runIdentities(t, two, local, { infrastructure: atOnce, namespace: elsewhere })
  const sides = [
    { ...a, plane: one, own: hubNamespace },
    { ...b, plane: two, own: elsewhere },
  ] as const
  await byKeys(a, 'cut/keys', '220000000011', hubNamespace)
  await withMachines(a.client, 'cut/keys')
  await isBuilt(a.client, 'cut/keys')
  const whole = await contentsOfNamespace(a.client, 'cut')
  const changes = changesIn(a.front).length

  let cuts = 0
  for (let writes = 1; ; writes++) {
    const [from, to] = writes % 2 === 1 ? [sides[0], sides[1]] : [sides[1], sides[0]]
    const clients = [from.plane.client(), to.plane.client()] as const
    const process = mortal(clients, writes)
    const first = await attempt(clients, [from.own, to.own]).catch((error: unknown) => error)
    process.revive()
    if (!process.died()) {
      assert.equal(first, undefined)
      break
    }
    cuts += 1
    assert.match(String(first), /the process is gone/)
    const awake = await Promise.all(
      sides.map(async ({ client }) => {
        const [cluster, own] = [
          await client.of(Cluster, 'cut').find('keys'),
          await client.of(AWSCluster, 'cut').find('keys'),
        ]
        return own !== undefined && !isPaused(own, cluster)
      }),
    )
    assert.ok(!(awake[0] && awake[1]), `after ${writes} writes both may act`)
    await attempt(clients, [from.own, to.own])
    assert.deepEqual(await contentsOfNamespace(to.client, 'cut'), whole, `after ${writes} writes`)
    assert.deepEqual(await contentsOfNamespace(from.client, 'cut'), [], `after ${writes} writes`)
    const arrived = await to.client.of(AWSCluster, 'cut').get('keys')
    assert.ok(!isPaused(arrived, await to.client.of(Cluster, 'cut').get('keys')), `after ${writes} writes`)
    assert.ok(arrived.metadata.finalizers?.includes('awscluster.infrastructure.cluster.x-k8s.io'))
  }
  t.diagnostic(`${cuts} cuts`)
  assert.ok(cuts > 15, `${cuts} cuts`)
  assert.deepEqual([changesIn(a.front).slice(changes), changesIn(b.front)], [[], []])
  for (const { client } of sides) for (const kind of [Cluster, AWSCluster]) await clear(client, kind)
})

/** A whole run, as a process of its own would do it. */
const attempt = async (
  [from, to]: readonly [Client, Client],
  [here, there]: readonly [string, string],
): Promise<void> => {
  const { signal } = new AbortController()
  const [source, target] = [await hubAt(from, here, signal), await hubAt(to, there, signal)]
  const options = { keepAllowedNamespaces: false, defaultRegion: region, signal }
  const { move, obstacles } = await prepareMove(source, target, 'cut', options)
  if (obstacles.length > 0) throw new MoveRefused(obstacles)
  const steps: Steps = { clock: systemClock, step: (_, run) => run({ signal, seen: () => {} }) }
  await moveBundle(move, steps, { checkAccount: true })
}
