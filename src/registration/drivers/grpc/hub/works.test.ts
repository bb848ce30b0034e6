/** Works over the endpoint: how they come to an agent, and what becomes of what it says of them. */
import assert from 'node:assert/strict'
import net from 'node:net'
import { after, before, test } from 'node:test'
import {
  agentIdentity,
  createWork,
  joinCluster,
  listening,
  prepareGrpcHub,
  toldCondition,
  said,
  startGrpcHub,
  type GrpcHub,
} from '../../../../../testkit/grpc-hub.ts'
import { eventually, startControlPlane, type ControlPlane } from '../../../../../testkit/index.ts'
import { stubTcp } from '../../../../../testkit/stub-server.ts'
import { finalizer, ManifestWork } from '../../../../api/index.ts'
import { dataType, type EventClient } from '../../../../events/index.ts'
import type { Client } from '../../../../kube/index.ts'
import { silentLogger, systemClock } from '../../../../runtime/index.ts'
import { grpcApi } from '../agent/api.ts'

let plane: ControlPlane
let admin: Client
let hub: GrpcHub
before(async () => {
  plane = await startControlPlane({ controllerManager: false })
  admin = plane.client()
  await prepareGrpcHub(plane)
  hub = await startGrpcHub(plane)
})
after(async () => {
  await hub.stop()
  await plane.stop()
})

const report = { side: 'status', action: 'update_request' } as const
const patient = { timeoutMs: 60_000 }

/** The agent of a cluster that was accepted. */
const joined = async (cluster: string): Promise<EventClient> => {
  await joinCluster(admin, cluster)
  return hub.asCluster(cluster)
}

test('R6.1 works are delivered and reported, once for each generation, and let go of when they are gone', async () => {
  const agent = await joined('w1')
  await createWork(admin, 'w1', 'first')
  const works = await listening(agent, 'w1', dataType.manifestBundles)
  const first = works.listed[0] ?? (await works.next())
  const { uid } = first.metadata() as { uid: string }
  assert.deepEqual([first.resourceId, first.resourceVersion, first.cluster], [uid, 1, 'w1'])
  assert.equal((first.data() as { manifests: unknown[] }).manifests.length, 1)
  const reported = (generation: number, conditions: object[], sequenceId: string) =>
    said('w1', {
      dataType: dataType.manifestBundles,
      ...report,
      resourceId: uid,
      resourceVersion: generation,
      sequenceId,
      metadata: first.metadata(),
      data: { conditions, resourceStatus: [] },
    })
  const work = () => admin.of(ManifestWork, 'w1').get('first')
  await agent.publish(reported(1, [toldCondition('Applied', 'True')], '10'))
  assert.deepEqual((await work()).metadata.finalizers, [finalizer.manifestWork])
  assert.equal((await work()).status?.conditions?.[0]?.type, 'Applied')
  const { resourceVersion } = (await work()).metadata
  // After a restart it says the same with another time, and what was overtaken comes late: nothing is written.
  await agent.publish(reported(1, [toldCondition('Applied', 'True', '2026-03-01T00:00:00Z')], '11'))
  await agent.publish(reported(1, [toldCondition('Applied', 'False')], '9'))
  assert.equal((await work()).metadata.resourceVersion, resourceVersion)

  await admin
    .of(ManifestWork, 'w1')
    .patch('first', { merge: { spec: { deleteOption: { propagationPolicy: 'Orphan' } } } })
  const second = await works.until(({ resourceVersion }) => resourceVersion === 2)
  assert.deepEqual((second.data() as { deleteOption: unknown }).deleteOption, { propagationPolicy: 'Orphan' })
  await agent.publish(reported(1, [toldCondition('Applied', 'False')], '12')) // of a generation that is over
  assert.equal((await work()).status?.conditions?.[0]?.status, 'True')

  await admin.of(ManifestWork, 'w1').delete('first')
  const going = await works.until(({ deletedAt }) => deletedAt !== undefined)
  assert.equal(going.data(), undefined)
  await agent.publish(reported(3, [toldCondition('Deleted', 'True')], '13'))
  assert.equal(await admin.of(ManifestWork, 'w1').find('first'), undefined)
  assert.equal((await works.until(({ action }) => action === 'delete_request')).resourceId, uid)
  await agent.publish(reported(3, [toldCondition('Deleted', 'True')], '14')) // what is gone is not missed
})

test('R6.7 a status that goes there and back faster than the hub hears of its own writes is written both times, and one from a clock that was set back too', async () => {
  const agent = await joined('w2')
  const { uid, name } = (await createWork(admin, 'w2', 'swings')).metadata
  const swing = (status: 'True' | 'False', sequenceId: string) =>
    said('w2', {
      dataType: dataType.manifestBundles,
      ...report,
      resourceId: uid!,
      resourceVersion: 1,
      sequenceId,
      metadata: { uid, name, namespace: 'w2' },
      data: { conditions: [toldCondition('Available', status)], resourceStatus: [] },
    })
  const now = async () => (await admin.of(ManifestWork, 'w2').get('swings')).status?.conditions?.[0]?.status
  await agent.publish(swing('True', '1000'))
  for (let number = 1001; number < 1020; number += 2) {
    // Both at once, over one connection: whichever comes first, the last word is that of the greater number.
    await Promise.all([agent.publish(swing('False', `${number}`)), agent.publish(swing('True', `${number + 1}`))])
    assert.equal(await now(), 'True', `after ${number + 1}`)
  }
  const restarted = hub.asCluster('w2')
  await restarted.publish(swing('False', '5'))
  assert.equal(await now(), 'False')
  await agent.publish(swing('True', '2000')) // it was on its way when the process ended
  assert.equal(await now(), 'False')
})

test('R6.4 who knows the UID of a work of another cluster can neither report it nor keep its agent from doing so', async () => {
  const [owner, other] = [await joined('w5'), await joined('w6')]
  const { uid, name } = (await createWork(admin, 'w5', 'mine')).metadata
  const words = (cluster: string, status: 'True' | 'False', sequenceId: string) =>
    said(cluster, {
      dataType: dataType.manifestBundles,
      ...report,
      resourceId: uid!,
      resourceVersion: 1,
      sequenceId,
      metadata: { uid, name, namespace: cluster },
      data: { conditions: [toldCondition('Available', status)], resourceStatus: [] },
    })
  const now = async () => (await admin.of(ManifestWork, 'w5').get('mine')).status?.conditions?.[0]?.status
  await owner.publish(words('w5', 'True', '1'))
  await other.publish(words('w6', 'False', '9'.repeat(20)))
  assert.equal(await now(), 'True')
  await owner.publish(words('w5', 'False', '2'))
  assert.equal(await now(), 'False')
})

test('R6.7 a status whose answer was lost is not taken for said: what was there before it can be reported again', async (t) => {
  await joined('w3')
  await createWork(admin, 'w3', 'swings')
  let isMute = false
  const wire = await stubTcp(t, (socket) => {
    const onward = net.connect(Number(new URL(hub.server).port), '127.0.0.1')
    socket.on('close', () => onward.destroy()).pipe(onward)
    onward.on('error', () => {}).on('close', () => socket.destroy())
    onward.on('data', (chunk) => isMute || socket.write(chunk))
  })
  const credential = { ca: hub.ca, ...hub.certificateFor(agentIdentity('w3')) }
  const connection = { source: 'test', server: wire.server, credentials: async () => credential }
  const agent = grpcApi({ connection, cluster: 'w3', clock: systemClock, random: Math.random, log: silentLogger })
  t.after(() => agent.close())
  const works = agent.of(ManifestWork, 'w3')
  const say = (status: 'True' | 'False') => {
    const merge = { status: { conditions: [toldCondition('Available', status)], resourceStatus: { manifests: [] } } }
    return works.patch('swings', { merge }, { subresource: 'status' })
  }
  const onHub = async () => (await admin.of(ManifestWork, 'w3').get('swings')).status?.conditions?.[0]?.status
  await say('True')
  assert.equal(await onHub(), 'True')
  isMute = true
  const lost = assert.rejects(say('False'))
  await eventually(async () => assert.equal(await onHub(), 'False'), patient)
  for (const socket of wire.sockets) socket.destroy()
  await lost
  isMute = false
  // What an agent compares with before it says anything.
  assert.equal((await eventually(() => works.get('swings'), patient)).status, undefined)
  await say('True')
  assert.equal(await onHub(), 'True')
})

test('R6.3 after a reconnect a resync sends what is newer, what is going and what has gone, and nothing else', async () => {
  const first = await joined('r1')
  const [kept, changed, removed] = await Promise.all(
    ['kept', 'changed', 'removed'].map((name) => createWork(admin, 'r1', name)),
  )
  const held = [kept!, changed!, removed!].map(({ metadata }) => ({ resourceID: metadata.uid!, resourceVersion: 1 }))
  const before = await listening(first, 'r1', dataType.manifestBundles)
  const known = new Set(before.listed.map(({ resourceId }) => resourceId))
  while (known.size < 3) known.add((await before.next()).resourceId)
  first.close()
  await admin
    .of(ManifestWork, 'r1')
    .patch('changed', { merge: { spec: { deleteOption: { propagationPolicy: 'Orphan' } } } })
  await admin.of(ManifestWork, 'r1').delete('removed')
  await createWork(admin, 'r1', 'added')
  const again = await eventually(async () => {
    const again = await listening(hub.asCluster('r1'), 'r1', dataType.manifestBundles, held)
    again.close()
    return again.listed.length === 3 && again.listed
  }, patient)
  const said1 = again.map(({ resourceId, action, resourceVersion, deletedAt }) => [
    resourceId === changed!.metadata.uid ? 'changed' : resourceId === removed!.metadata.uid ? 'removed' : 'other',
    deletedAt === undefined ? resourceVersion : action,
  ])
  assert.deepEqual(
    said1.toSorted(([a], [b]) => String(a).localeCompare(String(b))),
    [
      ['changed', 2],
      ['other', 1],
      ['removed', 'delete_request'],
    ],
  )
})
