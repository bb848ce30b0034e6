/** What stands in the way of a move is found before anything is paused; and the way by a directory. */
import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test, type TestContext } from 'node:test'
import { createCluster, mayBuild } from '../../../testkit/aws-network.ts'
import { ownedBy } from '../../../testkit/cluster-api.ts'
import {
  controllerIdentity,
  createKeys,
  hubNamespace,
  isReady,
  namespace,
  region,
  roleReference,
  runIdentities,
  serveWebhooks,
  stands,
  staticReference,
} from '../../../testkit/identity-hub.ts'
import { eventually, startLocalAws, type LocalAws } from '../../../testkit/index.ts'
import {
  byKeys,
  clusterctl,
  contentsOfNamespace,
  installForeign,
  machineDeployments,
  machines,
  machineTemplates,
  withMachines,
} from '../../../testkit/move-scene.ts'
import {
  beginMove,
  keysOf,
  letAda,
  moved,
  refused,
  startTwoHubs,
  unseen,
  type TwoHubs,
} from '../../../testkit/two-hubs.ts'
import {
  AWSCluster,
  AWSClusterControllerIdentity,
  AWSClusterStaticIdentity,
  Cluster,
  installCrds,
} from '../../api/index.ts'
import { Secret, type Client } from '../../kube/index.ts'

let hubs: TwoHubs
let local: LocalAws
before(async () => {
  ;[hubs, local] = await Promise.all([startTwoHubs(), startLocalAws()])
  await installForeign(hubs.here)
  for (const client of [hubs.here, hubs.there]) await installCrds(client, [machines.crd])
})
after(() => Promise.all([hubs.stop(), local.stop()]))

const all = { allowedNamespaces: {} }
const moving = (space: string, ...more: string[]): string[] => ['-n', space, '--no-account-check', ...more]

test('R3.56 R3.74 a target without a kind, with an older one, a paused cluster, a broken chain, a missing Secret, no rights on a side: each is named with the way out, before anything is paused', async () => {
  const { one, two, here, there } = hubs
  const name = await unseen(here, 'pre/c')
  await withMachines(here, 'pre/c')
  const move = moving('pre')

  await refused(hubs, move, /CRD machinedeployments.cluster.x-k8s.io is missing/)
  const crd = machineDeployments.crd
  const at = (name: string, storage: boolean) => ({ ...crd.spec.versions[0]!, name, storage })
  const serving = (...versions: ReturnType<typeof at>[]) => ({ ...crd, spec: { ...crd.spec, versions } })
  await installCrds(there, [serving(at('v1alpha4', true)), machineTemplates.crd])
  await refused(hubs, move, /serves MachineDeployment as cluster.x-k8s.io\/v1alpha4 and not as .*v1beta1.*older/)
  await installCrds(there, [serving(at('v1beta1', true), at('v1alpha4', false))])
  await eventually(() => there.of(machineDeployments.kind, 'default').list()) // discovery follows a moment later

  const clusters = here.of(Cluster, 'pre')
  await clusters.patch('c', { merge: { spec: { paused: true } } })
  await refused(hubs, move, /Cluster pre\/c is paused, by somebody[^]*"paused":null/)
  await clusters.patch('c', { merge: { spec: { paused: null } } })
  const own = here.of(AWSCluster, 'pre')
  await own.patch('c', { merge: { metadata: { annotations: { 'cluster.x-k8s.io/paused': '' } } } })
  await refused(hubs, move, /AWSCluster pre\/c is paused[^]*annotate awsclusters.* c cluster.x-k8s.io\/paused-/)
  await own.patch('c', { merge: { metadata: { annotations: { 'cluster.x-k8s.io/paused': null } } } })

  await own.patch('c', { merge: { spec: { identityRef: roleReference('nowhere') } } })
  await refused(
    hubs,
    move,
    /AWSCluster pre\/c: its identity cannot be used at the source[^]*AWSClusterRoleIdentity nowhere does not exist/,
  )
  await own.patch('c', { merge: { spec: { identityRef: staticReference(name) } } })

  await here.of(Secret, hubNamespace).delete(name)
  await refused(
    hubs,
    move,
    new RegExp(`secret ${hubNamespace}/${name} of AWSClusterStaticIdentity ${name} does not exist`),
  )
  await createKeys(here, `${hubNamespace}/${name}`, keysOf(name))

  for (const client of [here, there]) await letAda(client, ['get', 'list'])
  const ada = { user: 'ada' }
  await refused(hubs, move, /you may not delete clusters.cluster.x-k8s.io in namespace pre at the source/, {
    from: { kubeconfig: one.kubeconfigFor(ada) },
  })
  await refused(hubs, move, /you may not create awsclusters.* in namespace pre at the target/, {
    to: { kubeconfig: two.kubeconfigFor(ada) },
  })
  await letAda(there, ['get', 'list', 'create', 'update', 'patch'])
  await refused(hubs, ['-n', 'pre'], /you may not delete awsclusters.* in namespace pre at the target/, {
    to: { kubeconfig: two.kubeconfigFor(ada) },
  })
  await refused(hubs, move, /same cluster/, { to: one })

  const said = await moved([...move, '--dry-run'], one, two)
  assert.match(said, /^KIND +NAME +SOURCE +TARGET +NOTE\nAWSClusterStaticIdentity +pre-c +keep +create\n/)
  await moved(move, one, two)
})

/** What Cluster API says of its objects, up to v1beta1 and from v1beta2. */
const contracts = {
  v1beta1: {
    controlPlaneRef: undefined, // machines of the control plane tell that there is one
    infrastructureRef: { apiVersion: 'infrastructure.cluster.x-k8s.io/v1beta1', kind: 'DockerCluster', name: 'd' },
    initialized: { conditions: [{ type: 'ControlPlaneInitialized', status: 'True' }] },
    provisioned: { infrastructureReady: true },
    nodeRef: { apiVersion: 'v1', kind: 'Node', name: 'n' },
  },
  v1beta2: {
    controlPlaneRef: { apiGroup: 'controlplane.cluster.x-k8s.io', kind: 'KubeadmControlPlane', name: 'k' },
    infrastructureRef: { apiGroup: 'infrastructure.cluster.x-k8s.io', kind: 'DockerCluster', name: 'd' },
    initialized: { initialization: { controlPlaneInitialized: true } },
    provisioned: { initialization: { infrastructureProvisioned: true } },
    nodeRef: { name: 'n' },
  },
}

for (const [contract, says] of Object.entries(contracts))
  test(`R3.74 a control plane or infrastructure that is still being made, a machine without its node, and whatever is being deleted are not moved (${contract}); an AWSCluster that is being built is, for it goes on anywhere`, async () => {
    const { one, two, here, there } = hubs
    const space = `making-${contract}`
    const move = moving(space)
    await unseen(here, `${space}/c`)
    const clusters = here.of(Cluster, space)
    const owned = here.of(machines.kind, space)
    const labels = { 'cluster.x-k8s.io/control-plane': '', 'cluster.x-k8s.io/cluster-name': 'c' }
    const ownerReferences = [ownedBy(Cluster, await clusters.get('c'))]
    const machine = { namespace: space, labels, ownerReferences, finalizers: ['example.com/machine'] }
    await owned.create({ metadata: { ...machine, name: 'm' }, status: { nodeRef: says.nodeRef } })
    if (says.controlPlaneRef) {
      await owned.patch('m', { merge: { metadata: { labels: { 'cluster.x-k8s.io/control-plane': null } } } })
      await clusters.patch('c', { merge: { spec: { controlPlaneRef: says.controlPlaneRef } } })
    }
    await refused(hubs, move, new RegExp(`the control plane of Cluster ${space}/c is still being made`))
    await clusters.patch('c', { merge: { status: says.initialized } }, { subresource: 'status' })

    const { infrastructureRef } = (await clusters.get('c')).spec!
    await clusters.patch('c', { merge: { spec: { infrastructureRef: says.infrastructureRef } } })
    await refused(hubs, move, new RegExp(`DockerCluster d, the infrastructure of Cluster ${space}/c, is still being`))
    await clusters.patch('c', { merge: { status: says.provisioned } }, { subresource: 'status' })

    await owned.create({ metadata: { ...machine, name: 'new' } })
    await refused(hubs, move, new RegExp(`Machine ${space}/new has no node yet`))
    await owned.patch('new', { merge: { status: { nodeRef: says.nodeRef } } })
    await owned.delete('new')
    await refused(hubs, move, new RegExp(`Machine ${space}/new is being deleted[^]*wait until it is gone`))
    await owned.patch('new', { merge: { metadata: { finalizers: null } } })

    const other = here.of(AWSCluster, space)
    const identityRef = staticReference(`${space}-c`) as never
    const held = { namespace: space, name: 'goes', finalizers: ['example.com/aws'] }
    await other.create({ metadata: held, spec: { region, identityRef } })
    await other.delete('goes')
    await refused(hubs, move, new RegExp(`AWSCluster ${space}/goes is being deleted`))
    await other.patch('goes', { merge: { metadata: { finalizers: null } } })

    // Back to its AWSCluster, of which nothing says that it is ready.
    const reset = { infrastructureReady: null, initialization: { infrastructureProvisioned: null } }
    await clusters.patch('c', { merge: { status: reset } }, { subresource: 'status' })
    await clusters.patch('c', { merge: { spec: { infrastructureRef: null } } })
    await clusters.patch('c', { merge: { spec: { infrastructureRef } } })
    await moved(move, one, two)
    assert.deepEqual(
      (await there.of(machines.kind, space).list()).items.map(({ metadata }) => metadata.name),
      ['m'],
    )
  })

const movingTo = 'move.lanyard.io/moving-to'

/** The names of Clusters and AWSClusters. */
const clustersIn = async (client: Client, space: string): Promise<(string | undefined)[]> => {
  const lists = await Promise.all([Cluster, AWSCluster].map((kind) => client.of(kind as typeof Cluster, space).list()))
  return lists.flatMap(({ items }) => items.map(({ metadata }) => metadata.name))
}

test('R3.72 R3.74 the time is up while somebody holds a cluster: who, and what to do, is said; nothing is lost, nobody moves it to a third cluster, and the next run completes', async () => {
  const { one, two, here, there } = hubs
  await unseen(here, 'long/c')
  const hold = (by: string | null): Promise<unknown> =>
    here
      .of(AWSCluster, 'long')
      .patch('c', { merge: { metadata: { annotations: { 'clusterctl.cluster.x-k8s.io/block-move': by } } } })
  await hold('lanyard')

  const { code, err } = await beginMove(moving('long', '--timeout', '2'), one, two).result
  assert.equal(code, 3)
  assert.match(err, /gave up after 2 s pausing them on .*: AWSCluster long\/c is still being worked on by lanyard/)
  assert.match(
    err,
    /clusterctl.cluster.x-k8s.io\/block-move off[^]*nothing is lost: run the same command again[^]*--timeout/,
  )
  assert.deepEqual([await clustersIn(here, 'long'), await clustersIn(there, 'long')], [['c', 'c'], []])

  // Somebody wants it elsewhere now. For this target the mark is made to be that of another one.
  const clusters = here.of(Cluster, 'long')
  const { annotations } = (await clusters.get('c')).metadata
  assert.equal(annotations?.['move.lanyard.io/moving-to-server'], two.server)
  await clusters.patch('c', { merge: { metadata: { annotations: { [movingTo]: 'a-first-one' } } } })
  await refused(
    hubs,
    moving('long', '--timeout', '20'),
    new RegExp(
      `Cluster long/c is on its way to another cluster, ${two.server} .*uid a-first-one[^]*finish that move first`,
    ),
  )
  await clusters.patch('c', { merge: { metadata: { annotations: { [movingTo]: annotations?.[movingTo] } } } })

  // It came in the moment before the pause, and gets its node after the move only.
  const ownerReferences = [ownedBy(Cluster, await clusters.get('c'))]
  const machine = { metadata: { namespace: 'long', name: 'late', ownerReferences }, spec: { clusterName: 'c' } }
  await here.of(machines.kind, 'long').create(machine)
  await hold(null)
  await moved(moving('long'), one, two)
  assert.ok(await there.of(machines.kind, 'long').find('late'))
  assert.deepEqual([await clustersIn(here, 'long'), await clustersIn(there, 'long')], [[], ['c', 'c']])
})

test('R3.74 a cluster of the same name that came to the target from a third cluster is refused, whether it has arrived or is still coming', async () => {
  const { here, there } = hubs
  await unseen(here, 'third/c')
  for (const mark of ['moving-from', 'moved-from']) {
    const annotations = { [`move.lanyard.io/${mark}`]: 'a-third-one' }
    await createCluster(there, 'third/c', { annotations })
    await refused(hubs, moving('third'), /AWSCluster third\/c exists on the target and did not come from this source/)
    await there.of(AWSCluster, 'third').delete('c')
    await there.of(Cluster, 'third').delete('c')
  }
})

test('R3.58 R3.74 what the hub of the target would refuse or not build is found before anything is paused, by its webhooks and by the names that are taken there; a normal bundle passes', async (t) => {
  const { one, two, here, there } = hubs
  const hub = await runIdentities(t, two, local)
  await serveWebhooks(two, hub)
  const accountID = '220000000041'
  const name = await unseen(here, 'hooks/c', { spec: { accountID, bastion: { enabled: true } } })
  await createKeys(here, `${hubNamespace}/${name}`, await hub.account(accountID).user(name, mayBuild))

  await refused(hubs, moving('hooks'), /the target refuses AWSCluster hooks\/c: .*spec.bastion.enabled/)
  await here.of(AWSCluster, 'hooks').patch('c', { merge: { spec: { bastion: null } } })
  const statics = here.of(AWSClusterStaticIdentity)
  await statics.patch(name, { merge: { spec: { allowedNamespaces: { list: ['hooks', 'team-*'] } } } })
  await refused(hubs, moving('hooks'), /the target refuses AWSClusterStaticIdentity hooks-c: .*spec.allowedNamespaces/)
  await statics.patch(name, { merge: { spec: { allowedNamespaces: { list: null } } } })

  await byKeys(hub, 'elsewhere/c', accountID, hubNamespace)
  await stands(there, 'elsewhere/c', isReady(accountID))
  await refused(
    hubs,
    moving('hooks'),
    /AWSCluster hooks\/c would not be built on the target: AWSCluster elsewhere\/c has its name there, in account 220000000041/,
  )
  for (const kind of [AWSCluster, Cluster]) await there.of(kind as typeof Cluster, 'elsewhere').delete('c')
  await eventually(async () => (await there.of(AWSCluster, 'elsewhere').find('c')) === undefined)

  await moved(['-n', 'hooks'], one, two)
  await stands(there, 'hooks/c', isReady(accountID))
})

test('R3.58 the target’s own controller says that it reaches another account: nothing is moved, and what was copied is taken back', async (t) => {
  const { two, here } = hubs
  const hub = await runIdentities(t, two, local)
  await here.of(AWSClusterControllerIdentity).create({ metadata: { name: 'default' }, spec: all })
  const accountID = '999999999999'
  await createCluster(here, 'wrong/c', { spec: { identityRef: controllerIdentity as never, accountID } })

  await refused(
    hubs,
    ['-n', 'wrong'],
    /does not reach the account of AWSCluster wrong\/c by AWSClusterControllerIdentity default[^]*lives in account 999999999999[^]*reaches account 111111111111/,
  )
  assert.equal((await here.of(Cluster, 'wrong').get('c')).spec?.paused, undefined)
  assert.deepEqual((await hub.client.of(AWSClusterControllerIdentity).list()).items, [])
  await here.of(AWSCluster, 'wrong').delete('c')
  await here.of(Cluster, 'wrong').delete('c')
})

const folder = (t: TestContext): string => {
  const path = mkdtempSync(join(tmpdir(), 'lanyard-move-'))
  t.after(() => rmSync(path, { recursive: true }))
  return join(path, 'export')
}

const textsIn = (path: string): string =>
  readdirSync(path)
    .map((file) => readFileSync(join(path, file), 'utf8'))
    .join('\n')

test('R3.56 R3.73 into a directory and out of it: paused until somebody reads it, no secret in clear unless asked for, here again or on another hub', async (t) => {
  const { one, two, here, there } = hubs
  const hub = await runIdentities(t, two, local)
  const name = 'files-c'
  const keys = await hub.account('220000000031').user(name)
  await namespace(here, 'files')
  await createKeys(here, `${hubNamespace}/${name}`, keys)
  await here.of(AWSClusterStaticIdentity).create({ metadata: { name }, spec: { ...all, secretRef: name } })
  await createCluster(here, 'files/c', {
    spec: { identityRef: staticReference(name) as never, accountID: '220000000031' },
  })
  await withMachines(here, 'files/c')
  const whole = await contentsOfNamespace(here, 'files')
  const pausedHere = async () => (await here.of(Cluster, 'files').get('c')).spec?.paused

  const closed = folder(t)
  assert.match(await moved(['-n', 'files', '--to-directory', closed], one), /2 Secrets are there by name only/)
  assert.equal(await pausedHere(), true)
  assert.doesNotMatch(
    textsIn(closed),
    new RegExp(`${Buffer.from(keys.secretAccessKey).toString('base64')}|the key of the cluster`),
  )
  assert.ok(readdirSync(closed).every((file) => (statSync(join(closed, file)).mode & 0o077) === 0))
  // Elsewhere its Secrets are missing; here they are not, and here it goes on.
  const without = await clusterctl(['--from-directory', closed, '--hub-namespace', hubNamespace], one, two)
  assert.equal(without.code, 1)
  assert.match(without.err, /Secret files\/c-ca was exported without its content[^]*--include-secrets/)
  await moved(['--from-directory', closed], one, one)
  assert.equal(await pausedHere(), undefined)
  const { annotations } = (await here.of(machineTemplates.kind, 'files').get('c-md')).metadata
  assert.equal(annotations?.['move.lanyard.io/moving-to'], undefined)

  const open = folder(t)
  await moved(['-n', 'files', '--to-directory', open, '--include-secrets'], one)
  await moved(['--from-directory', open], one, two)
  await stands(there, 'files/c', isReady('220000000031'))
  assert.deepEqual(await contentsOfNamespace(there, 'files'), whole)
  assert.equal((await there.of(Cluster, 'files').get('c')).spec?.paused, undefined)
  // Read a second time it changes nothing; and what was left here goes, although the other hub has acted since.
  await moved(['--from-directory', open], one, two)
  assert.equal(await pausedHere(), true)
  await moved(['-n', 'files'], one, two)
  assert.deepEqual(await contentsOfNamespace(here, 'files'), [])
  assert.deepEqual(await contentsOfNamespace(there, 'files'), whole)
})
