import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eventually, startControlPlane, type ControlPlane } from '../../../testkit/index.ts'
import { startServiceAccountScene, type ServiceAccountScene } from '../../../testkit/service-account-scene.ts'
import {
  label,
  ManagedCluster,
  ManagedClusterSet,
  ManagedClusterSetBinding,
  ManagedServiceAccount,
} from '../../api/index.ts'
import { Namespace, Secret } from '../../kube/index.ts'
import { findCondition, inParallel } from '../../runtime/index.ts'
import { managedSelector, mark, parentLabel } from '../contract.ts'

/** Twenty clusters: two with an API server of their own, the others are namespaces of the hub's, each with its own agent. */
let plane: ControlPlane
let others: ControlPlane[]
let scene: ServiceAccountScene
const slow = { timeoutMs: 120_000 }
const names = Array.from({ length: 20 }, (_, i) => `m${String(i).padStart(2, '0')}`)
before(async () => {
  const quiet = { controllerManager: false, audit: false }
  ;[plane, ...others] = (await Promise.all([1, 2, 3].map(() => startControlPlane(quiet)))) as [
    ControlPlane,
    ...ControlPlane[],
  ]
  scene = await startServiceAccountScene(plane)
  const { admin } = scene
  await admin.of(Namespace).create({ metadata: { name: 'team' } })
  for (const name of ['shops', 'labs']) await admin.of(ManagedClusterSet).create({ metadata: { name } })
  await inParallel(
    4,
    names.map(
      (name, i) => () =>
        scene.join(name, { labels: { [label.clusterSet]: 'shops' }, ...(others[i] && { plane: others[i] }) }),
    ),
  )
})
after(async () => {
  await scene?.stop()
  await Promise.all([plane, ...(others ?? [])].map((one) => one?.stop()))
})

const bind = (set: string) =>
  scene.admin
    .of(ManagedClusterSetBinding)
    .create({ metadata: { name: set, namespace: 'team' }, spec: { clusterSet: set } })
const unbind = (set: string) => scene.admin.of(ManagedClusterSetBinding, 'team').delete(set)
const into = (cluster: string, set: string) =>
  scene.admin.of(ManagedCluster).patch(cluster, { merge: { metadata: { labels: { [label.clusterSet]: set } } } })
const children = async (name: string): Promise<ManagedServiceAccount[]> =>
  (await scene.admin.of(ManagedServiceAccount).list()).items.filter(
    ({ metadata }) => metadata.name === name && metadata.namespace !== 'team',
  )
/** Waits until exactly these clusters have it: the object, the account, and the token. */
const isOn = (name: string, expected: readonly string[]) =>
  eventually(async () => {
    const found = (await children(name)).map(({ metadata }) => metadata.namespace!)
    assert.deepEqual(found.toSorted(), expected)
    const tokens = (await scene.admin.of(Secret).list({ labelSelector: managedSelector })).items
    const holding = tokens.filter(({ metadata }) => metadata.name === name).map(({ metadata }) => metadata.namespace!)
    assert.deepEqual(holding.toSorted(), expected)
    const accounts = await Promise.all(names.map((cluster) => scene.account(cluster, name)))
    assert.deepEqual(
      names.filter((_, i) => accounts[i]),
      expected,
    )
  }, slow)
const counts = (name: string, selected: number, present: number, reported: number, message = /(?:)/) =>
  eventually(async () => {
    const now = await scene.accounts('team').get(name)
    assert.deepEqual(
      now.status?.clusters,
      { selected, replicated: present, present, reported },
      JSON.stringify(now.status),
    )
    const all = findCondition(now, 'AllServiceAccountPresent')!
    assert.match(`${all.status} ${all.reason} ${all.message}`, message)
    assert.equal(all.observedGeneration, now.metadata.generation)
    return now
  }, slow)

test('R5.8 R5.9 R5.23 in the namespace of a set an account is on all 20 clusters, follows clusters and bindings as they come and go, and leaves nothing', async () => {
  const name = 'fleet'
  await scene.create('team', name, { audiences: ['foo'], rotation: { validity: '2h' } })
  await scene.says('team', name, 'AllServiceAccountPresent', 'False', /NamespaceNotUsable/)
  await bind('shops')
  await isOn(name, names)
  await counts(name, 20, 20, 20, /^True AllServiceAccountsPresent 20 of 20 clusters/)
  assert.deepEqual((await scene.accounts('team').get(name)).status?.troubles, [])
  for (const cluster of ['m00', 'm01', 'm19']) await scene.works(cluster, name, { audiences: ['foo'] })
  const child = await scene.accounts('m05').get(name)
  assert.deepEqual(child.spec, { audiences: ['foo'], rotation: { enabled: true, validity: '2h' } })
  assert.equal(child.metadata.annotations?.[mark.parent], 'team/fleet')

  // A change of the spec reaches all; edits and deletions of children are taken back.
  await scene.accounts('team').patch(name, { merge: { spec: { audiences: ['bar'] } } })
  for (const cluster of ['m00', 'm01', 'm07']) await scene.works(cluster, name, { audiences: ['bar'] })
  await scene.accounts('m03').patch(name, { merge: { spec: { audiences: ['mine'] } } })
  await eventually(async () => assert.deepEqual((await scene.accounts('m03').get(name)).spec?.audiences, ['bar']), slow)
  await scene.accounts('m03').patch(name, { merge: { metadata: { labels: { [parentLabel]: null } } } })
  await eventually(async () => assert.ok((await scene.accounts('m03').get(name)).metadata.labels?.[parentLabel]), slow)
  await scene.accounts('m04').delete(name)
  await scene.works('m04', name, { audiences: ['bar'] })
  await isOn(name, names)

  await into('m02', 'labs')
  await isOn(
    name,
    names.filter((one) => one !== 'm02'),
  )
  await scene.admin.of(ManagedCluster).patch('m03', { merge: { spec: { hubAcceptsClient: false } } })
  await counts(name, 18, 18, 18)
  await bind('labs')
  await isOn(
    name,
    names.filter((one) => one !== 'm03'),
  )
  await scene.admin.of(ManagedCluster).patch('m03', { merge: { spec: { hubAcceptsClient: true } } })
  await isOn(name, names)
  await unbind('shops')
  await isOn(name, ['m02'])
  await counts(name, 1, 1, 1)
  await bind('shops')
  await isOn(name, names)

  // The hub is away while everything changes.
  await scene.stopHub()
  await unbind('labs')
  await into('m06', 'labs')
  await scene.accounts('m08').delete(name)
  scene.startHub()
  await isOn(
    name,
    names.filter((one) => !['m02', 'm06'].includes(one)),
  )
  await scene.stopHub()
  await scene.accounts('team').delete(name)
  scene.startHub()
  await isOn(name, [])
  for (const cluster of ['m02', 'm06']) await into(cluster, 'shops')
})

test('R5.8 R5.23 an object of that name on a cluster is shown as a clash and left as it is; a cluster whose agent is silent is named; a set that is missing is named', async () => {
  const name = 'clash'
  await scene.create('m09', name, { audiences: ['own'] })
  const own = await scene.works('m09', name, { audiences: ['own'] })
  await scene.stopAgent('m10')
  await scene.create('team', name)
  const now = await eventually(async () => {
    const found = await scene.accounts('team').get(name)
    assert.deepEqual(found.status?.clusters, { selected: 20, replicated: 19, present: 18, reported: 18 })
    return found
  }, slow)
  assert.deepEqual(
    now.status?.troubles?.map(({ cluster, reason }) => [cluster, reason]),
    [
      ['m09', 'NameTaken'],
      ['m10', 'WaitingForAgent'],
    ],
  )
  const said = findCondition(now, 'AllServiceAccountPresent')!
  assert.match(
    `${said.status} ${said.message}`,
    /^False 18 of 20 clusters have the service account; not yet: m09, m10;/,
  )
  assert.equal(await scene.works('m09', name, { audiences: ['own'] }), own)
  await scene.accounts('m09').delete(name)
  scene.startAgent('m10')
  await counts(name, 20, 20, 20, /^True/)

  await bind('nowhere')
  await counts(name, 20, 20, 20, /^False .*there is no ManagedClusterSet nowhere/)
  await unbind('nowhere')
  await counts(name, 20, 20, 20, /^True/)
  // Deleted and made again while nobody looks: another identity, so that the tokens of the one before die.
  const before = await scene.works('m00', name)
  await scene.stopHub()
  await scene.accounts('team').delete(name)
  await scene.create('team', name)
  scene.startHub()
  await scene.works('m00', name, { not: before })
  await counts(name, 20, 20, 20, /^True/)
  await scene.accounts('team').delete(name)
  await isOn(name, [])
})
