import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { manualClock, startControlPlane, type ControlPlane } from '../../testkit/index.ts'
import { ConfigMap, Event, type Client } from '../kube/index.ts'
import { EventRecorder } from './events.ts'

let plane: ControlPlane
let client: Client
before(async () => {
  plane = await startControlPlane({ controllerManager: false, audit: false })
  client = plane.client()
})
after(() => plane.stop())

const recorderFor = async (name: string) => {
  const clock = manualClock(Date.now())
  const created = await client.of(ConfigMap, 'default').create({ metadata: { name, namespace: 'default' } })
  const object = { apiVersion: 'v1', kind: 'ConfigMap', ...created }
  const recorder = new EventRecorder({ client, controller: 'lanyard.io/test', instance: 'test-1', clock })
  const events = async (): Promise<Event[]> => {
    await recorder.flush()
    const { items } = await client.of(Event, 'default').list()
    return items.filter((event) => event.regarding.uid === object.metadata.uid)
  }
  return { clock, object, recorder, events }
}
const refused = {
  type: 'Warning',
  reason: 'Refused',
  action: 'Approve',
  note: 'the CSR names another cluster',
} as const

test('R0.26 equal events become one with a count; after a pause a new one begins', async () => {
  const { clock, object, recorder, events } = await recorderFor('repeated')
  for (let i = 0; i < 5; i++) {
    recorder.record(object, refused)
    clock.advance(1000)
  }
  const [one, ...others] = await events()
  assert.deepEqual(others, [])
  assert.equal(one!.series?.count, 5)
  assert.equal(one!.note, refused.note)
  assert.equal(one!.regarding.name, 'repeated')
  clock.advance(10 * 60_000)
  recorder.record(object, refused)
  assert.equal((await events()).length, 2)
})

test('R0.26 different events are different objects, until one object has too many', async () => {
  const { clock, object, recorder, events } = await recorderFor('noisy')
  for (let i = 0; i < 60; i++) recorder.record(object, { ...refused, note: `number ${i}` })
  assert.equal((await events()).length, 25)
  clock.advance(300_000)
  recorder.record(object, { ...refused, note: 'later' })
  assert.equal((await events()).length, 26)
})

test('R0.26 an event that was deleted is written anew, and one that cannot be written is dropped without harm', async () => {
  const { object, recorder, events } = await recorderFor('deleted')
  recorder.record(object, refused)
  const [first] = await events()
  await client.of(Event, 'default').delete(first!.metadata.name!)
  recorder.record(object, refused)
  assert.equal((await events()).length, 1)
  recorder.record(
    { ...object, metadata: { ...object.metadata, namespace: 'no-such-namespace' } },
    { ...refused, note: 'lost' },
  )
  recorder.record(object, { ...refused, note: 'next' })
  assert.equal((await events()).length, 2)
})
