import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startControlPlane } from '../../../testkit/index.ts'
import { AWSCluster, installCrds } from '../../api/index.ts'
import type { Resource } from '../../kube/index.ts'
import type { Found } from './bundle.ts'
import { givingUp, mark, markOf } from './marks.ts'
import { pauseAll } from './pause.ts'

test('R3.77 who gives a move up is not overruled by one that had looked before; what others write meanwhile is no matter', async () => {
  await using plane = await startControlPlane({ controllerManager: false, audit: false })
  const client = plane.client()
  await installCrds(client, [AWSCluster.crd({ conversion: 'none' })])
  const clusters = client.of(AWSCluster, 'default')
  await clusters.create({ metadata: { namespace: 'default', name: 'c' }, spec: {} })
  const { signal } = new AbortController()
  const look = async () => ({ resource: AWSCluster as unknown as Resource, object: (await clusters.get('c')) as never })
  const pause = (found: Found): Promise<void> =>
    pauseAll(client, [{ ...found, fate: 'move', wave: 0 }], { id: 'there' }, signal)
  const markedAs = (to: string) =>
    clusters.patch('c', { merge: { metadata: { annotations: { [mark.movingTo]: to } } } })

  const before = await look()
  await clusters.patch('c', { merge: { metadata: { labels: { touched: 'yes' } } } })
  await pause(before)
  assert.equal(markOf(await clusters.get('c'), 'movingTo'), 'there')

  await clusters.patch('c', { merge: { metadata: { annotations: { 'cluster.x-k8s.io/paused': null } } } })
  const seen = await look()
  await markedAs(givingUp('there'))
  await assert.rejects(pause(seen), /AWSCluster default\/c was marked by another move, or by somebody who gives one up/)
  assert.equal(markOf(await clusters.get('c'), 'movingTo'), givingUp('there'))
})
