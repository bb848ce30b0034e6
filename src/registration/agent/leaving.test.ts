import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../../testkit/index.ts'
import type { ManagedCluster } from '../../api/index.ts'
import { setConditions, type ConditionState, type Reason } from '../../runtime/index.ts'
import { Accepted, ClockSynced, Joined } from '../contract.ts'
import { nextLook, untilReason, whatToWaitFor, whyLeave, type Standing } from './leaving.ts'

const cluster = (hubAcceptsClient: boolean, states: ConditionState[]): ManagedCluster => ({
  metadata: { name: 'c1' },
  spec: { hubAcceptsClient },
  status: { conditions: setConditions([], states, { now: 0 }) },
})
const good = cluster(true, [Accepted.accepted(), Joined.joined()])
const denied = cluster(false, [Accepted.denied()])
const standing = (over: Partial<Standing> = {}): Standing => ({
  server: 'https://hub',
  name: 'c1',
  now: 1_000_000,
  contact: {},
  cluster: good,
  otherHubs: true,
  refusalMs: 30_000,
  timeoutMs: 600_000,
  ...over,
})
const leaves = (over: Partial<Standing>): string | undefined => whyLeave(standing(over))?.reason
const waits = (over: Partial<Standing>): string | undefined => whatToWaitFor(standing(over))?.reason
const since = (ms: number) => ({ since: 1_000_000 - ms, why: 'because' })

test('R1.50 an agent stays where all is well', () => {
  assert.equal(leaves({}), undefined)
  assert.equal(waits({}), undefined)
})

test('R1.56 a credential is dropped when it cannot be used, or is refused for longer than a moment', () => {
  const unusable = { reason: 'CertificateExpired', message: 'it ended' }
  assert.equal(leaves({ unusable }), 'CertificateExpired')
  assert.equal(leaves({ contact: { refused: since(29_999) } }), undefined)
  assert.equal(leaves({ contact: { refused: since(30_000) } }), 'CredentialRefused')
})

test('R1.17 a hub is left for another one when it denies or deletes the cluster, or is silent for long', () => {
  assert.equal(leaves({ cluster: denied }), 'Denied')
  assert.equal(leaves({ cluster: undefined, deleted: true }), 'Deleted')
  assert.equal(leaves({ contact: { unreachable: since(599_999) } }), undefined)
  assert.equal(leaves({ contact: { unreachable: since(600_000) } }), 'HubUnreachable')
})

test('R1.56 without another hub the agent stays and waits, and says for what', () => {
  const alone = { otherHubs: false }
  for (const over of [
    { cluster: denied },
    { cluster: undefined, deleted: true },
    { contact: { unreachable: since(1e9) } },
  ])
    assert.equal(leaves({ ...alone, ...over }), undefined)
  assert.equal(waits({ cluster: denied }), 'Denied')
  assert.equal(waits({ cluster: undefined, deleted: true }), 'Deleted')
  assert.equal(waits({ contact: { unreachable: since(1) } }), 'Unreachable')
  assert.equal(waits({ contact: { refused: since(1) } }), 'Refused')
})

test('R1.48 a cluster that nobody has looked at yet is not denied', () => {
  const fresh = cluster(false, [])
  assert.equal(leaves({ cluster: fresh }), undefined)
  assert.equal(waits({ cluster: fresh }), 'NotAccepted')
})

test('R1.45 what goes wrong on the hub during acceptance is passed on', () => {
  const failed = cluster(true, [Accepted.failed('no such role')])
  assert.match(whatToWaitFor(standing({ cluster: failed }))!.message, /to finish its acceptance: no such role/)
  assert.equal(waits({ cluster: cluster(true, [Accepted.accepted()]) }), 'NotReported')
  assert.equal(waits({ cluster: cluster(true, [Accepted.accepted(), ClockSynced.outOfSync('')]) }), 'ClockOutOfSync')
})

test('R1.50 the agent looks again exactly when time alone can change the decision', async () => {
  const clock = manualClock(1000)
  const looks: number[] = []
  const contact = { refused: { since: 1000, why: 'no' } }
  const look = (): { reason: Reason | undefined; nextAt: number } => {
    looks.push(clock.now())
    const now = standing({ now: clock.now(), contact })
    return { reason: whyLeave(now), nextAt: nextLook(now, 500_000) }
  }
  const left = untilReason({ look, subscribe: () => [], clock }, new AbortController().signal)
  clock.advance(100_000)
  assert.equal((await left).reason, 'CredentialRefused')
  assert.deepEqual(looks, [1000, 31_000])
  assert.equal(clock.pending, 0)
})

test('R0.21 a lookout ends with the signal and leaves nothing behind', async () => {
  const clock = manualClock()
  const ending = new AbortController()
  let off = 0
  const look = (): { reason: undefined; nextAt: number } => ({ reason: undefined, nextAt: 500 })
  const left = untilReason({ look, subscribe: () => [() => off++], clock }, ending.signal)
  ending.abort(new Error('over'))
  await assert.rejects(left, /over/)
  assert.deepEqual([off, clock.pending], [1, 0])
})
