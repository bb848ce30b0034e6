import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eventually, startControlPlane, type ControlPlane } from '../../../testkit/index.ts'
import { manifest, startWorkScene, type WorkScene } from '../../../testkit/work-agent.ts'
import { AppliedManifestWork, installCrds, ManifestWork } from '../../api/index.ts'
import { ConfigMap } from '../../kube/index.ts'
import { findCondition, systemClock, type Clock } from '../../runtime/index.ts'

let plane: ControlPlane
before(async () => {
  // With the garbage collector, so that an owner reference too many or too few would show.
  plane = await startControlPlane()
  await installCrds(plane.client(), [
    ManifestWork.crd({ conversion: 'none' }),
    AppliedManifestWork.crd({ conversion: 'none' }),
  ])
})
after(() => plane.stop())

const maps = () => plane.client().of(ConfigMap, 'default')
const ownersOf = async (name: string): Promise<number> => (await maps().get(name)).metadata.ownerReferences?.length ?? 0
const remove = async (scene: WorkScene, name: string): Promise<void> => {
  await scene.hub.of(ManifestWork, scene.cluster).delete(name)
  await scene.deleted(name)
}
/** Until the garbage collector has had its say about what was deleted before. */
const collected = async (): Promise<void> => {
  const owner = await maps().create({ metadata: { name: 'gc-owner' } })
  const ownerReferences = [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'gc-owner', uid: owner.metadata.uid! }]
  await maps().create({ metadata: { name: 'gc-owned', ownerReferences } })
  await maps().delete('gc-owner')
  await eventually(async () => (await maps().find('gc-owned')) === undefined)
}

test('R1.52 Orphan and SelectivelyOrphan leave behind exactly what they name, also when the work was changed and deleted at once', async (t) => {
  const scene = await startWorkScene(t, { hub: plane, cluster: 'r1' })
  const orphan = { resource: 'configmaps', namespace: 'default', name: 'kept' }
  await scene.create('some', [manifest.configMap('default', 'kept'), manifest.configMap('default', 'goes')], {
    deleteOption: { propagationPolicy: 'SelectivelyOrphan', selectivelyOrphans: { orphaningRules: [orphan] } },
  })
  await scene.create('all', [manifest.configMap('default', 'all-1')])
  await scene.applied('some')
  await scene.applied('all')
  assert.deepEqual([await ownersOf('kept'), await ownersOf('goes'), await ownersOf('all-1')], [0, 1, 1])

  await scene.stop()
  await scene.change('all', (spec) => ({ ...spec, deleteOption: { propagationPolicy: 'Orphan' } }))
  await scene.hub.of(ManifestWork, 'r1').delete('all')
  scene.start()
  await scene.deleted('all')
  await remove(scene, 'some')
  await collected()
  assert.ok(await maps().find('kept'))
  assert.ok(await maps().find('all-1'))
  assert.equal(await maps().find('goes'), undefined)
})

test('R1.52 an object of two works goes with the last of them', async (t) => {
  const scene = await startWorkScene(t, { hub: plane, cluster: 'r2' })
  await scene.create('one', [manifest.configMap('default', 'both'), manifest.configMap('default', 'only-one')])
  await scene.create('two', [manifest.configMap('default', 'both')])
  await scene.applied('one')
  await scene.applied('two')
  await eventually(async () => (await ownersOf('both')) === 2)
  const { uid } = (await maps().get('both')).metadata

  await remove(scene, 'one')
  await collected()
  assert.equal(await maps().find('only-one'), undefined)
  assert.equal(await ownersOf('both'), 1)
  assert.equal((await maps().get('both')).metadata.uid, uid, 'it was never gone')
  await scene.change('two', (spec) => ({ ...spec, workload: { manifests: [] } }))
  await eventually(async () => (await maps().find('both')) === undefined)
})

test('R1.52 an object that somebody else made anew is not deleted, and one that others hold is waited for and named', async (t) => {
  const scene = await startWorkScene(t, { hub: plane, cluster: 'r3' })
  await scene.create('held', [manifest.configMap('default', 'anew'), manifest.configMap('default', 'held')])
  await scene.applied('held')
  await maps().patch('held', { merge: { metadata: { finalizers: ['test.lanyard.io/hold'] } } })
  await scene.stop()
  await maps().delete('anew')
  await maps().create({ metadata: { name: 'anew' }, data: { by: 'somebody else' } })
  await scene.hub.of(ManifestWork, 'r3').delete('held')
  scene.start()

  await eventually(async () => {
    const said = findCondition((await scene.work('held'))!, 'Deleting')
    assert.deepEqual([said?.status, said?.reason], ['True', 'WorkDeleting'])
    assert.match(
      said?.message ?? '',
      /1 objects are still there: ConfigMap default\/held is held by test\.lanyard\.io\/hold/,
    )
  })
  await maps().patch('held', { merge: { metadata: { finalizers: null } } })
  await scene.deleted('held')
  await collected()
  assert.deepEqual((await maps().get('anew')).data, { by: 'somebody else' })
})

test('R1.52 a record that somebody deletes is made anew, and its objects stay the same ones', async (t) => {
  const scene = await startWorkScene(t, { hub: plane, cluster: 'r4' })
  await scene.create('record', [manifest.configMap('default', 'recorded')])
  await scene.applied('record')
  const { uid } = (await maps().get('recorded')).metadata
  const record = await scene.record('record')
  await scene.local.of(AppliedManifestWork).delete(record!.metadata.name!)
  const next = await eventually(async () => {
    const found = await scene.record('record')
    return found !== undefined && found.metadata.uid !== record?.metadata.uid && found
  })
  await eventually(
    async () => (await maps().get('recorded')).metadata.ownerReferences?.[0]?.uid === (next || undefined)?.metadata.uid,
  )
  await collected()
  assert.equal((await maps().get('recorded')).metadata.uid, uid)
})

test('R1.52 what a vanished work left goes after the grace period; other agents and a work that returns are respected', async (t) => {
  let offset = 0
  const clock: Clock = { now: () => Date.now() + offset, after: (ms, run) => systemClock.after(ms, run) }
  const scene = await startWorkScene(t, { hub: plane, cluster: 'r5', agentId: 'me', clock })
  await scene.create('gone', [manifest.configMap('default', 'left-here')])
  await scene.create('back', [manifest.configMap('default', 'back-again')])
  await scene.applied('gone')
  await scene.applied('back')
  const records = scene.local.of(AppliedManifestWork)
  const spec = { hubHash: 'another', manifestWorkName: 'gone' }
  await records.create({ metadata: { name: 'another-gone' }, spec: { ...spec, agentID: 'somebody' } })
  await records.create({ metadata: { name: 'old-hub-gone' }, spec: { ...spec, agentID: 'me' } })

  // A hub that was restored from an old copy does not know the works.
  await scene.stop()
  for (const name of ['gone', 'back']) {
    await scene.hub.of(ManifestWork, 'r5').patch(name, { merge: { metadata: { finalizers: null } } })
    await scene.hub.of(ManifestWork, 'r5').delete(name)
  }
  scene.start()
  await eventually(async () =>
    Boolean(
      (await scene.record('gone'))?.status?.evictionStartTime &&
      (await scene.record('back'))?.status?.evictionStartTime,
    ),
  )
  assert.ok(await maps().find('left-here'))
  await scene.create('back', [manifest.configMap('default', 'back-again')])
  await eventually(async () => (await scene.record('back'))?.status?.evictionStartTime === undefined)
  await eventually(async () => Boolean((await records.get('old-hub-gone')).status?.evictionStartTime))

  await scene.stop()
  offset = 61 * 60_000
  scene.start()
  await eventually(
    async () => (await scene.record('gone')) === undefined && (await records.find('old-hub-gone')) === undefined,
  )
  assert.equal(await maps().find('left-here'), undefined)
  assert.ok(await maps().find('back-again'))
  assert.equal((await records.get('another-gone')).status?.evictionStartTime, undefined)
})
