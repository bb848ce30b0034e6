import assert from 'node:assert/strict'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { after, before, test } from 'node:test'
import { eventually, startControlPlane, type ControlPlane } from '../../../testkit/index.ts'
import { manifest, startWorkScene } from '../../../testkit/work-agent.ts'
import { AppliedManifestWork, installCrds, ManifestWork } from '../../api/index.ts'
import { ConfigMap } from '../../kube/index.ts'

let plane: ControlPlane
before(async () => {
  plane = await startControlPlane({ controllerManager: false, audit: false })
  await installCrds(plane.client(), [
    ManifestWork.crd({ conversion: 'none' }),
    AppliedManifestWork.crd({ conversion: 'none' }),
  ])
})
after(() => plane.stop())

test('R1.52 a work of 10,000 manifests is applied and reported as far as it fits, and works beside it are served meanwhile', async (t) => {
  const scene = await startWorkScene(t, { hub: plane, cluster: 'l1', concurrency: 32 })
  const manifests: unknown[] = Array.from({ length: 10_000 }, (_, i) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: `m${i}`, namespace: 'default' },
  }))
  manifests[9_999] = { apiVersion: 'v1', kind: 'Nonsense', metadata: { name: 'x' } }
  const delay = monitorEventLoopDelay({ resolution: 10 })
  delay.enable()
  await scene.create('large', manifests)
  await eventually(async () => (await scene.record('large')) !== undefined)
  await scene.create('small', [manifest.configMap('kube-system', 'small')])
  await scene.applied('small')
  // Watched, not asked for again and again: it is a megabyte.
  const large = await eventually.watching(
    scene.hub.of(ManifestWork, 'l1'),
    (works) => works.find((work) => work.metadata.name === 'large' && work.status?.conditions) ?? false,
    { timeoutMs: 120_000 },
  )
  delay.disable()
  t.diagnostic(`longest pause of the event loop: ${Math.round(delay.max / 1e6)} ms`)

  const shown = large.status?.resourceStatus?.manifests ?? []
  assert.match(
    large.status?.conditions?.[0]?.message ?? '',
    new RegExp(`^1 of 10000 manifests failed: Nonsense x: .*; ${shown.length} of 10000 manifests are listed`),
  )
  assert.equal(shown.at(-1)?.resourceMeta.ordinal, 9_999, 'the one that failed is among them')
  assert.equal(
    (await scene.local.of(ConfigMap, 'default').list()).items.filter(({ metadata }) => metadata.name?.startsWith('m'))
      .length,
    9_999,
  )
  assert.equal((await scene.record('large'))?.status?.appliedResources?.length, 9_999)

  await scene.local.of(ConfigMap, 'default').delete('m5000')
  await eventually(() => scene.local.of(ConfigMap, 'default').get('m5000'))
})
