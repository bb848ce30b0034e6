import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { eventually, rounds, seededRandom, startControlPlane, type ControlPlane } from '../../../testkit/index.ts'
import { manifest, startWorkScene } from '../../../testkit/work-agent.ts'
import { AppliedManifestWork, installCrds, ManifestWork } from '../../api/index.ts'
import { ConfigMap, isConflict, Namespace, type KubeObject } from '../../kube/index.ts'

let plane: ControlPlane
before(async () => {
  // Without the garbage collector: whatever is removed, the agent has removed.
  plane = await startControlPlane({ controllerManager: false, audit: false })
  await installCrds(plane.client(), [
    ManifestWork.crd({ conversion: 'none' }),
    AppliedManifestWork.crd({ conversion: 'none' }),
  ])
  await plane
    .client()
    .of(Namespace)
    .create({ metadata: { name: 'arena' } })
})
after(() => plane.stop())

const namesOf = (objects: KubeObject[]): string[] => objects.map(({ metadata }) => metadata.name!).toSorted()

test('R1.52 stopped at random moments while works come, change and go, the agent leaves exactly what the works want', async (t) => {
  const random = seededRandom(t)
  const scene = await startWorkScene(t, { hub: plane, cluster: 'k1' })
  const works = scene.hub.of(ManifestWork, 'k1')
  const maps = scene.local.of(ConfigMap, 'arena')
  for (const i of [0, 1, 2]) await maps.create({ metadata: { name: `others-${i}` }, data: { by: 'others' } })
  /** What each work wants: names of ConfigMaps, with the data that they should hold. */
  const wanted = new Map<string, string[]>()
  let serial = 0
  // Works share some objects, with the same content.
  const some = (): string[] => [...new Set(Array.from({ length: 1 + random.below(6) }, () => `m${random.below(12)}`))]
  const manifestsOf = (names: string[]) => names.map((name) => manifest.configMap('arena', name, { name }))

  const actions = [
    async () => {
      const name = `w${serial++}`
      const names = some()
      await scene.create(name, manifestsOf(names))
      wanted.set(name, names)
    },
    async () => {
      const name = [...wanted.keys()][random.below(wanted.size)]
      if (!name) return
      const names = some()
      await scene.change(name, (spec) => ({ ...spec, workload: { manifests: manifestsOf(names) } }))
      wanted.set(name, names)
    },
    async () => {
      const name = [...wanted.keys()][random.below(wanted.size)]
      if (!name) return
      await works.delete(name)
      wanted.delete(name)
    },
    async () => {
      await maps.delete(`m${random.below(12)}`)
    },
    async () => {
      const name = `m${random.below(12)}`
      if (await maps.find(name)) await maps.patch(name, { merge: { data: { name: 'drift' } } }).catch(() => {})
    },
  ]
  for (let round = 0; round < rounds(20); round++) {
    for (let i = 0; i < 1 + random.below(4); i++)
      await random
        .pick(actions)()
        .catch((error: unknown) => {
          if (!isConflict(error)) throw error
        })
    await sleep(random.below(60)) // the moment is what is random here
    await scene.stop()
    scene.start()
  }

  await eventually(
    async () => {
      const expected = [...new Set([...wanted.values()].flat())].toSorted()
      const present = (await maps.list()).items.filter(({ metadata }) => metadata.name !== 'kube-root-ca.crt')
      const ours = present.filter(({ metadata }) => !metadata.name!.startsWith('others-'))
      assert.deepEqual(namesOf(ours), expected)
      for (const { metadata, data } of ours) assert.deepEqual(data, { name: metadata.name })
      assert.deepEqual(namesOf((await works.list()).items), [...wanted.keys()].toSorted())
      const records = (await scene.local.of(AppliedManifestWork).list()).items
      assert.deepEqual(records.map(({ spec }) => spec.manifestWorkName).toSorted(), [...wanted.keys()].toSorted())
      for (const record of records) {
        const refs = record.status?.appliedResources ?? []
        assert.deepEqual(refs.map(({ name }) => name).toSorted(), wanted.get(record.spec.manifestWorkName)!.toSorted())
        for (const { name, uid } of refs)
          assert.equal(ours.find(({ metadata }) => metadata.name === name)?.metadata.uid, uid)
        const owned = ours.filter(({ metadata }) =>
          metadata.ownerReferences?.some((o) => o.uid === record.metadata.uid),
        )
        assert.deepEqual(namesOf(owned), wanted.get(record.spec.manifestWorkName)!.toSorted())
      }
      const others = present.filter(({ metadata }) => metadata.name!.startsWith('others-'))
      assert.equal(others.length, 3)
      for (const { data, metadata } of others)
        assert.deepEqual([data, metadata.ownerReferences], [{ by: 'others' }, undefined])
    },
    { timeoutMs: 60_000 },
  )
})
