/** `clusterctl move` between two real management clusters and the local AWS, with controllers that build on both. */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, before, test } from 'node:test'
import {
  atOnce,
  contentsOf,
  ec2Of,
  isBuilt,
  mayBuild,
  oneCluster,
  removeCluster,
} from '../../../testkit/aws-network.ts'
import {
  createKeys,
  hubNamespace,
  isReady,
  namespace,
  runIdentities,
  serveWebhooks,
  stands,
  staticReference,
  type IdentityHub,
} from '../../../testkit/identity-hub.ts'
import { eventually, startLocalAws, type ControlPlane, type LocalAws } from '../../../testkit/index.ts'
import {
  byChain,
  byKeys,
  byToken,
  clusterctl,
  contentsOfNamespace,
  controlPlanes,
  installControlPlanes,
  installForeign,
  interrupted,
  machineDeployments,
  machineTemplates,
  machines,
  seenByClusterApi,
  withControlPlane,
  withMachines,
} from '../../../testkit/move-scene.ts'
import { startTwoHubs, type TwoHubs } from '../../../testkit/two-hubs.ts'
import { observeMove } from '../../../testkit/move-observer.ts'
import { runCli } from '../../../testkit/run-cli.ts'
import { AWSCluster, AWSClusterRoleIdentity, AWSClusterStaticIdentity, Cluster } from '../../api/index.ts'
import { Secret, type Client, type KubeObject, type Resource } from '../../kube/index.ts'

let hubs: TwoHubs
let one: ControlPlane
let two: ControlPlane
let local: LocalAws
before(async () => {
  // Garbage is collected on the second: what hangs on an owner that does not exist would go.
  ;[hubs, local] = await Promise.all([startTwoHubs({ garbage: true }), startLocalAws()])
  ;({ one, two } = hubs)
  for (const client of [hubs.here, hubs.there]) {
    await installForeign(client)
    await installControlPlanes(client)
  }
})
after(() => Promise.all([hubs.stop(), local.stop()]))

const elsewhere = 'capa-system'
const there = ['--hub-namespace', hubNamespace, '--to-hub-namespace', elsewhere]
const back = ['--hub-namespace', elsewhere, '--to-hub-namespace', hubNamespace]

type Named = Pick<ControlPlane, 'kubeconfig'>

const moved = async (words: string[], from: Named, to: Named): Promise<string> => {
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
  const observer = await observeMove(t, 'team', [
    { name: 'one', ...a },
    { name: 'two', ...b },
  ])
  const isQuiet = async (): Promise<void> => {
    observer.assertQuiet()
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
  await observer.sawAwake('keys', 'one')
  assert.deepEqual(observer.turns('keys'), ['one', 'two', 'one'])
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

test('R3.59 R3.56 a cluster takes over the description of itself by the kubeconfig in its Secret, acts for itself, and goes back to be removed; neither move changes anything in AWS', async (t) => {
  const infrastructure = { ...atOnce, driftMs: 300 }
  const a = await runIdentities(t, one, local, { infrastructure })
  const [key, id] = ['self/two', '220000000051']
  await byKeys(a, key, id, hubNamespace)
  await withControlPlane(a.client, key, readFileSync(two.kubeconfig, 'utf8'))
  const built = await isBuilt(a.client, key)
  const whole = await contentsOfNamespace(a.client, 'self')
  const own = await ownedIn(a.client)

  // As a person does it, with nothing but what the first hub has.
  const folder = mkdtempSync(join(tmpdir(), 'lanyard-move-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const itself = { kubeconfig: join(folder, 'two.kubeconfig') }
  const encoded = await one.kubectl(['-n', 'self', 'get', 'secret', 'two-kubeconfig', '-o', 'jsonpath={.data.value}'])
  writeFileSync(itself.kubeconfig, Buffer.from(encoded, 'base64'), { mode: 0o600 })
  const b = await runIdentities(t, two, local, { infrastructure, namespace: elsewhere })
  const sides = [
    { name: 'one', ...a },
    { name: 'two', ...b },
  ] as const
  const out = await observeMove(t, 'self', sides)
  await moved(['-n', 'self', ...there], one, itself)
  await isBuilt(b.client, key)
  await out.sawAwake('two', 'two')
  out.assertQuiet()
  assert.deepEqual(await contentsOfNamespace(a.client, 'self'), [])
  assert.deepEqual(await contentsOfNamespace(b.client, 'self'), whole)
  assert.deepEqual(await ownedIn(b.client), own)
  const { data } = await b.client.of(Secret, 'self').get('two-kubeconfig')
  assert.equal(data?.['value'], encoded) // it has the key to itself

  // What it stands on is its own affair from now on.
  const calls = a.front.calls.length
  const ec2 = ec2Of(b.aws, b.account(id))
  const table = built.spec!.network!.subnets!.find(({ isPublic }) => isPublic)!.routeTableId!
  const way = async () => {
    const [{ routes } = { routes: [] }] = await ec2.routeTables({ ids: [table] })
    return routes.find(({ destination }) => destination === '0.0.0.0/0')?.gatewayId
  }
  const wanted = await way()
  await ec2.replaceRoute(table, '0.0.0.0/0', { natGatewayId: 'nat-of-somebody' })
  await eventually(async () => assert.equal(await way(), wanted), { timeoutMs: 60_000 })
  assert.deepEqual(a.front.calls.slice(calls), [])

  // Nobody can remove what he stands on: before it goes, somebody else has to take it.
  await seenByClusterApi(b.client, key)
  const home = await observeMove(t, 'self', sides)
  await moved(['-n', 'self', ...back], itself, one)
  await isBuilt(a.client, key)
  await home.sawAwake('two', 'one')
  home.assertQuiet()
  assert.deepEqual(await contentsOfNamespace(a.client, 'self'), whole)
  assert.deepEqual(await ownedIn(a.client), own)
  assert.deepEqual(await contentsOf(a.aws, a.account(id)), oneCluster)
  await removeCluster(a.client, key)
  assert.deepEqual(await contentsOf(a.aws, a.account(id)), {})
})

/** Who owns what of the cluster that describes itself. Owners that nobody has any more would be named with their uid. */
const ownedIn = async (client: Client): Promise<string[]> => {
  const kinds = [Cluster, AWSCluster, controlPlanes.kind, machines.kind, Secret] as Resource<KubeObject>[]
  const lists = await Promise.all(kinds.map(async (kind) => (await client.of(kind, 'self').list()).items))
  const names = new Map(lists.flat().map(({ metadata }) => [metadata.uid, metadata.name]))
  return lists
    .flat()
    .flatMap(({ metadata }) =>
      (metadata.ownerReferences ?? []).map(({ kind, uid }) => ({ of: metadata.name, kind, uid })),
    )
    .filter(({ kind }) => kind === 'Cluster' || kind === 'KubeadmControlPlane')
    .map(({ of, kind, uid }) => `${of} of ${kind} ${names.get(uid) ?? uid}`)
    .toSorted()
}

test('R3.72 R3.77 a move that was interrupted says which ways are left; it is given up as long as nothing was removed at the source, and completed afterwards', async (t) => {
  const a = await runIdentities(t, one, local, { infrastructure: atOnce })
  const b = await runIdentities(t, two, local, { infrastructure: atOnce, namespace: elsewhere })
  await byKeys(a, 'ways/keys', '220000000061', hubNamespace)
  await withMachines(a.client, 'ways/keys')
  await isBuilt(a.client, 'ways/keys')
  const whole = await contentsOfNamespace(a.client, 'ways')
  const observer = await observeMove(t, 'ways', [
    { name: 'one', ...a },
    { name: 'two', ...b },
  ])
  const words = ['-n', 'ways', ...there]
  const abort = (...more: string[]) => clusterctl([...words, '--abort', ...more], one, two)
  const marks = async ({ client }: IdentityHub): Promise<string[]> => {
    const { items } = await client.of(AWSCluster, 'ways').list()
    return items.flatMap(({ metadata }) =>
      Object.keys(metadata.annotations ?? {}).filter((key) => /mov(ing|ed)-/.test(key)),
    )
  }

  // Somebody made these on the target; they are alike, so nothing stands in the way, and they are not ours to remove.
  await namespace(b.client, 'ways')
  const { metadata: _metadata, ...deployment } = await a.client.of(machineDeployments.kind, 'ways').get('keys-md')
  const { metadata: _other, ...template } = await a.client.of(machineTemplates.kind, 'ways').get('keys-md')
  const metadata = { namespace: 'ways', name: 'keys-md' }
  await b.client.of(machineDeployments.kind, 'ways').create({ ...deployment, metadata })
  await b.client.of(machineTemplates.kind, 'ways').create({ ...template, metadata })
  const theirs = await contentsOfNamespace(b.client, 'ways')

  const nothing = await abort()
  assert.equal(nothing.code, 0, nothing.err)
  assert.match(nothing.out, /No move of namespace ways to there is under way/)

  const onItsWay = (to: string | null) => ({
    merge: { metadata: { annotations: { 'move.lanyard.io/moving-to': to } } },
  })
  await a.client.of(Cluster, 'ways').patch('keys', onItsWay('uid-of-another'))
  const other = await abort()
  assert.equal(other.code, 1, other.out)
  assert.match(other.err, /Cluster ways\/keys is on its way to another cluster .*uid uid-of-another[^]*--to-kubeconfig/)
  await a.client.of(Cluster, 'ways').patch('keys', onItsWay(null))

  const early = await interrupted(words, one, two, 'removing them from')
  assert.equal(early.code, 130, early.err)
  assert.deepEqual(await marks(b), ['move.lanyard.io/moving-from'])
  const plan = await abort('--dry-run')
  assert.match(plan.out, /^KIND +NAME +SOURCE +TARGET\n(?:.*\n)*AWSCluster +ways\/keys +act again +delete\n/)
  assert.match(plan.out, /\nSecret +ways\/keys-ca +keep +delete\n/)
  assert.deepEqual(await contentsOfNamespace(b.client, 'ways'), whole)
  const done = await abort()
  assert.equal(done.code, 0, done.err)
  assert.match(done.out, /is given up: .* acts for its clusters again.*keys that were copied.* stay there/)
  assert.deepEqual(await contentsOfNamespace(b.client, 'ways'), theirs)
  // With an owner that is gone it would be collected as garbage.
  const kept = await b.client.of(machineDeployments.kind, 'ways').get('keys-md')
  assert.deepEqual(kept.metadata.ownerReferences ?? [], [])
  assert.deepEqual(await contentsOfNamespace(a.client, 'ways'), whole)
  assert.deepEqual(await marks(a), [])
  await isBuilt(a.client, 'ways/keys')

  const paused = await interrupted(words, one, two, 'creating them on')
  assert.match(
    paused.err,
    /Error: interrupted\n {2}nothing is lost: run the same command again to go on from here, or with --abort to give the move up/,
  )
  assert.equal((await abort()).code, 0)
  assert.equal((await a.client.of(Cluster, 'ways').get('keys')).spec?.paused, undefined)

  // An export has its own way back.
  const path = join(mkdtempSync(join(tmpdir(), 'lanyard-move-')), 'export')
  t.after(() => rmSync(dirname(path), { recursive: true }))
  assert.equal((await clusterctl([...words.slice(0, 4), '--to-directory', path], one)).code, 0)
  assert.match((await abort()).out, /written to a directory. To go on here: clusterctl move --from-directory/)
  await moved(['--from-directory', path, '--hub-namespace', hubNamespace], one, one)
  await observer.sawAwake('keys', 'one')

  const late = await interrupted(words, one, two, 'letting ')
  assert.match(late.err, /run the same command again to go on from here; what is paused/)
  const refused = await abort()
  assert.equal(refused.code, 1, refused.out)
  assert.match(
    refused.err,
    /AWSCluster ways\/keys is no longer at the source[^]*complete the move, with the same command without --abort/,
  )
  await moved(words, one, two)
  assert.deepEqual(await contentsOfNamespace(b.client, 'ways'), whole)
  await observer.sawAwake('keys', 'two')
  observer.assertQuiet()
  for (const { client } of [a, b]) for (const kind of [Cluster, AWSCluster]) await clear(client, kind)
})

test('R3.56 flags are taken as clusterctl spells them; those that exclude each other are refused, with what to leave out', async () => {
  const usage = async (words: string[], says: RegExp): Promise<void> => {
    const { code, err } = await runCli(['move', ...words], { program: 'clusterctl' })
    assert.equal(code, 2, err)
    assert.match(err, says)
  }
  await usage(['--to-directory', 'd', '--from-directory', 'd'], /exclude each other/)
  await usage(['--to-directory', 'd', '--to-kubeconfig', 'f'], /--to-directory takes the place of --to-kubeconfig/)
  await usage(['--from-directory', 'd', '--to-kubeconfig', 'f', '--kubeconfig', 'g'], /takes the place of --kubeconfig/)
  await usage(['--from-directory', 'd', '-n', 'team'], /knows its namespace/)
  await usage(
    ['--to-directory', 'd', '--abort'],
    /--abort is for a move between two clusters.*--from-directory, here too/,
  )
  await usage(['--to-kubeconfig', 'f', '--include-secrets'], /--include-secrets is for --to-directory/)
  await usage(['--to-kubeconfig', 'f', '--hide-api-warnings', 'none'], /default, all|default or all/)
  await usage([], /say where to move/)

  const { contexts } = JSON.parse(await one.kubectl(['config', 'view', '-o', 'json'])) as {
    contexts: { name: string }[]
  }
  const context = contexts[0]!.name
  const spelled = ['--kubeconfig-context', context, '--to-kubeconfig-context', context, '--hide-api-warnings', 'all']
  const { code, out, err } = await clusterctl(['-n', 'nobody', ...spelled], one, two)
  assert.equal(code, 0, err)
  assert.match(out, /There is no cluster in namespace nobody/)
  const unknown = await clusterctl(['-n', 'nobody', '--kubeconfig-context', 'nowhere'], one, two)
  assert.match(unknown.err, /nowhere/)
})
