import assert from 'node:assert/strict'
import { test } from 'node:test'
import { annotation, type ManagedCluster } from '../../api/index.ts'
import type { ClusterRole, KubeObject } from '../../kube/index.ts'
import { Accepted } from '../contract.ts'
import { whyNotAutomatically } from './auto-acceptance.ts'
import { farewellAt, rememberedFarewell } from './farewell.ts'
import { leavesByAnnotation, permissionsOf } from './permissions.ts'
import { cleanupPriority } from './records.ts'
import { nextToGo, priorityOf } from './remaining.ts'
import { hasReached, UnseenWrites } from './unseen-writes.ts'

test('R1.57 a farewell lasts until nothing remains or its time is up, and is never prolonged', () => {
  const farewellMs = 100
  const none = undefined
  assert.deepEqual(farewellAt(1000, { remembered: none, someRemain: true, farewellMs }), { leavesBy: 1100 })
  assert.deepEqual(farewellAt(1000, { remembered: none, someRemain: false, farewellMs }), { leavesBy: 1000 })
  const remembered = { leavesBy: 1100 }
  assert.deepEqual(farewellAt(1050, { remembered, someRemain: true, farewellMs }), { leavesBy: 1100 })
  assert.deepEqual(farewellAt(1050, { remembered, someRemain: false, farewellMs }), { leavesBy: 1050 })
  assert.deepEqual(farewellAt(2000, { remembered, someRemain: true, farewellMs }), { leavesBy: 1100 })
  assert.deepEqual(farewellAt(2000, { remembered, someRemain: false, farewellMs }), { leavesBy: 1100 })
})

test('R1.57 only a reduced role remembers a farewell: what is left from an earlier one counts for nothing', () => {
  const memory = { leavesBy: '2026-01-01T00:00:00.000Z' }
  const role = (standing: 'accepted' | 'denied', of = memory) =>
    permissionsOf('c1', standing, { labels: {}, memory: of })[0] as ClusterRole
  const leavesBy = Date.parse(memory.leavesBy)
  assert.deepEqual(rememberedFarewell('c1', role('denied')), { leavesBy, revokedOn: undefined })
  assert.equal(rememberedFarewell('c1', role('accepted')), undefined)
  assert.equal(role('accepted').metadata.annotations?.[leavesByAnnotation], memory.leavesBy)
  assert.equal(rememberedFarewell('c1', role('denied', { leavesBy: 'tomorrow' })), undefined)
  assert.equal(rememberedFarewell('c1', undefined), undefined)
})

test('R1.56 add-ons go before works, and of each those with the smallest priority', () => {
  const object = (name: string, priority?: string): KubeObject => ({
    metadata: { name, ...(priority === undefined ? {} : { annotations: { [cleanupPriority]: priority } }) },
  })
  const names = (objects: KubeObject[]): unknown[] => objects.map(({ metadata }) => metadata.name)
  assert.deepEqual(
    ['0', '7', '100', '101', '-1', '1.5', 'x', '', undefined].map((p) => priorityOf(object('o', p))),
    [0, 7, 100, 0, 0, 0, 0, 0, 0],
  )
  const works = [object('last', '9'), object('a', '2'), object('b', '2')]
  assert.deepEqual(names(nextToGo({ addOns: [object('addon', '50')], works })), ['addon'])
  assert.deepEqual(names(nextToGo({ addOns: [], works })), ['a', 'b'])
  assert.deepEqual(nextToGo({ addOns: [], works: [] }), [])
})

test('R1.39 a cluster is accepted without a person only when it is on, new and listed', () => {
  const cluster: ManagedCluster = { metadata: { name: 'c1' }, spec: {} }
  const asked = { cluster, isOn: true, hasPermissions: false, waitsForPerson: undefined }
  const condition = { ...Accepted.denied(), lastTransitionTime: '2026-01-01T00:00:00Z' }
  const marked = { name: 'c1', annotations: { [annotation.automaticallyAcceptedOn]: '2026-01-01T00:00:00Z' } }
  const notListed = { reason: 'NotListed', message: '' }
  const why = (change: Partial<typeof asked> & { waitsForPerson?: typeof notListed | undefined }) =>
    whyNotAutomatically({ ...asked, ...change })?.reason
  assert.equal(why({}), undefined)
  assert.equal(why({ isOn: false }), 'Off')
  assert.equal(why({ cluster: { ...cluster, metadata: marked } }), 'AcceptedBefore')
  assert.equal(why({ hasPermissions: true }), 'DecidedBefore')
  assert.equal(why({ cluster: { ...cluster, status: { conditions: [condition] } } }), 'DecidedBefore')
  assert.equal(whyNotAutomatically({ ...asked, waitsForPerson: notListed })?.reason, 'NotListed')
})

test('a look at the caches waits for what was written with the same intent, and not for ever', () => {
  const unseen = new UnseenWrites()
  let isSeen = false
  unseen.wrote('c1', 'accept', 0, [() => isSeen])
  assert.equal(unseen.waitMs('c1', 'accept', 1000), 4000)
  assert.equal(unseen.waitMs('c2', 'accept', 1000), 0)
  isSeen = true
  assert.equal(unseen.waitMs('c1', 'accept', 1000), 0)
  unseen.wrote('c1', 'accept', 0, [() => false])
  assert.equal(unseen.waitMs('c1', 'accept', 5000), 0)
  unseen.wrote('c1', 'accept', 0, [() => false])
  assert.equal(unseen.waitMs('c1', 'farewell', 0), 0)
})

test('a cache has reached what was written when it shows that version or a later one', () => {
  assert.equal(hasReached('10', '9'), true)
  assert.equal(hasReached('9', '10'), false)
  assert.equal(hasReached('100000000000000000000', '99999999999999999999'), true)
  assert.equal(hasReached('x', 'x'), true)
  assert.equal(hasReached('y', 'x'), false)
  assert.equal(hasReached(undefined, '1'), false)
})
