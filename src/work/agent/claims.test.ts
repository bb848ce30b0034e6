import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eventually, startControlPlane, type ControlPlane } from '../../../testkit/index.ts'
import { manifest, startWorkScene, type WorkScene } from '../../../testkit/work-agent.ts'
import { AppliedManifestWork, installCrds, ManifestWork } from '../../api/index.ts'
import { ClusterRole, RoleBinding } from '../../kube/index.ts'

let plane: ControlPlane
before(async () => {
  plane = await startControlPlane()
  await installCrds(plane.client(), [
    ManifestWork.crd({ conversion: 'none' }),
    AppliedManifestWork.crd({ conversion: 'none' }),
  ])
})
after(() => plane.stop())

const claimed = <T extends { metadata: object }>(object: T, claim: string): T => ({
  ...object,
  metadata: { ...object.metadata, annotations: { 'work.lanyard.io/claim': claim } },
})
const role = (name: string, claim = 'us', verbs = ['get']) => claimed(manifest.clusterRole(name, verbs), claim)
const binding = (name: string, to: string, claim = 'us') => claimed(manifest.roleBinding('default', name, to), claim)
const roles = () => plane.client().of(ClusterRole)
const verbsOf = async (name: string): Promise<string[] | undefined> => (await roles().find(name))?.rules?.[0]?.verbs
const bindingOf = (name: string) => plane.client().of(RoleBinding, 'default').find(name)
const said = async (scene: WorkScene, name: string): Promise<string> =>
  JSON.stringify((await scene.failed(name)).status)

test('R4.21 a claimed object is made, protected, and goes with its work like any other', async (t) => {
  const scene = await startWorkScene(t, { hub: plane, cluster: 'plain' })
  await scene.create('w', [binding('plain', 'plain'), role('plain')])
  await scene.applied('w')
  await roles().patch('plain', {
    merge: { rules: [], metadata: { ownerReferences: [], annotations: { 'work.lanyard.io/claim': 'theirs' } } },
  })
  await eventually(async () => assert.deepEqual(await verbsOf('plain'), ['get']))
  await roles().delete('plain')
  await eventually(async () => assert.deepEqual(await verbsOf('plain'), ['get']))
  await scene.hub.of(ManifestWork, 'plain').delete('w')
  await scene.deleted('w')
  assert.deepEqual([await verbsOf('plain'), await bindingOf('plain')], [undefined, undefined])
})

test('R4.21 a claim does not take what the cluster has under that name, nor binds it, and takes its place when it goes', async (t) => {
  await roles().create({ metadata: { name: 'taken' }, rules: [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }] })
  const scene = await startWorkScene(t, { hub: plane, cluster: 'taken' })
  await scene.create('w', [binding('taken', 'taken'), role('taken')])
  const status = await said(scene, 'w')
  assert.match(status, /already one of this name on the managed cluster, which is not from this hub/)
  assert.match(status, /it waits for ClusterRole taken, without which it would bind something else/)
  assert.deepEqual([await verbsOf('taken'), await bindingOf('taken')], [['*'], undefined])
  // Neither after a restart, when only the record remembers.
  await scene.stop()
  scene.start()
  await scene.change('w', (spec) => ({ ...spec, deleteOption: { propagationPolicy: 'Foreground' } }))
  assert.match(await said(scene, 'w'), /is not from this hub/)
  assert.deepEqual([await verbsOf('taken'), await bindingOf('taken')], [['*'], undefined])

  await roles().delete('taken')
  await scene.applied('w')
  assert.deepEqual(await verbsOf('taken'), ['get'])
  assert.ok(await bindingOf('taken'))
})

test('R4.21 two works share an object only under the same claim', async (t) => {
  const scene = await startWorkScene(t, { hub: plane, cluster: 'shared' })
  await scene.create('one', [role('shared', 'copy of R')])
  await scene.applied('one')
  await scene.create('two', [role('shared', 'copy of R')])
  await scene.applied('two')
  await scene.create('three', [binding('thief', 'shared', 'mine'), role('shared', 'mine', ['delete'])])
  assert.match(await said(scene, 'three'), /which belongs to [0-9a-f]{64}-one, [0-9a-f]{64}-two/)
  assert.deepEqual([await verbsOf('shared'), await bindingOf('thief')], [['get'], undefined])

  await scene.hub.of(ManifestWork, 'shared').delete('one')
  await scene.deleted('one')
  assert.deepEqual(await verbsOf('shared'), ['get'])
  await scene.hub.of(ManifestWork, 'shared').delete('two')
  await scene.deleted('two')
  await scene.applied('three', 90_000)
  assert.deepEqual(await verbsOf('shared'), ['delete'])
})
