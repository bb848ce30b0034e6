import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../../testkit/index.ts'
import { ApiError } from '../../kube/index.ts'
import { silentLogger } from '../../runtime/index.ts'
import { SigningKeys } from './signing-keys.ts'

const hour = 3_600_000
const signal = new AbortController().signal
const signedBy = (kid?: string): string => {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  return [part({ alg: 'ES256', kid }), part({ sub: 'x' }), 'c2ln'].join('.')
}

/** What a cluster publishes, in the test's hand: one that publishes less than it signs with cannot be had for real. */
const scene = (...ids: string[]) => {
  const clock = manualClock()
  const cluster = { ids, reads: 0, cutMs: 0, fails: undefined as Error | undefined }
  const text = async (): Promise<string> => {
    cluster.reads++
    if (cluster.fails) throw cluster.fails
    return JSON.stringify({ keys: cluster.ids.map((kid) => ({ kid, kty: 'EC' })) })
  }
  const missedMs = (): number => cluster.cutMs
  return { cluster, clock, keys: new SigningKeys({ local: { text }, clock, log: silentLogger, missedMs }) }
}

test('R5.19 a key is gone when the cluster no longer publishes it, and never before it is known which it publishes', async () => {
  const { cluster, keys } = scene('k1')
  const first = keys.received(signedBy('k1'))
  assert.match(first, /^[0-9a-f]{16}$/)
  assert.equal(keys.isGone(first), false)
  await keys.look(signal)
  assert.equal(keys.isGone(first), false)
  // The usual way: both for a while, then the new one alone.
  cluster.ids = ['k1', 'k2']
  await keys.look(signal)
  assert.equal(keys.isGone(first), false)
  cluster.ids = ['k2']
  await keys.look(signal)
  assert.equal(keys.isGone(first), true)
  const second = keys.received(signedBy('k2'))
  assert.notEqual(second, first)
  assert.equal(keys.isGone(second), false)

  // What says nothing is no reason to renew: another version's status, a token that names no key, an empty set, an outage.
  for (const none of [undefined, '', keys.received(signedBy()), keys.received('no-jwt')])
    assert.equal(keys.isGone(none), false)
  cluster.ids = []
  await keys.look(signal)
  assert.equal(keys.isGone(first), false)
  cluster.ids = ['k3']
  cluster.fails = new Error('connection refused')
  await keys.look(signal)
  assert.equal(keys.isGone(second), false)
})

test('R5.19 R5.33 a new token whose key is not published waits for the next look; a cluster that goes on signing with such a key is left alone', async () => {
  const { cluster, keys } = scene('k1')
  await keys.look(signal)
  // Another of several API servers has signed it, with a key that this one has not, or has not any more.
  const other = keys.received(signedBy('k0'))
  assert.equal(keys.isGone(other), false)
  await keys.look(signal)
  assert.equal(keys.isGone(other), true)
  assert.equal(keys.isGone(keys.received(signedBy('k1'))), false)

  const hidden = keys.received(signedBy('k0'))
  for (let i = 0; i < 3; i++) {
    assert.equal(keys.isGone(hidden), false, 'it would be renewed for ever')
    await keys.look(signal)
  }
  cluster.ids = ['k0', 'k1']
  await keys.look(signal)
  assert.equal(keys.isGone(hidden), false)
})

test('R5.33 the keys are read once an hour, and within a minute after the API server was away; a refusal is no reason to ask more often', async (t) => {
  const { cluster, clock, keys } = scene('k1')
  const over = new AbortController()
  t.after(() => over.abort())
  await keys.look(over.signal)
  let told = 0
  void keys.follow(() => told++, over.signal)
  /** Minute by minute, each with time for what follows from it. */
  const pass = async (ms: number): Promise<number> => {
    const before = cluster.reads
    for (let at = 0; at < ms; at += 60_000) {
      clock.advance(60_000)
      await new Promise((resolve) => setImmediate(resolve))
    }
    return cluster.reads - before
  }
  assert.equal(await pass(hour - 60_000), 0)
  assert.equal(await pass(60_000), 1)
  assert.equal(told, 1)
  cluster.cutMs = 5
  assert.equal(await pass(60_000), 1)
  cluster.fails = new Error('connection refused')
  assert.equal(await pass(120_000), 2)
  cluster.cutMs = 0
  cluster.fails = new ApiError({ method: 'GET', path: '/openid/v1/jwks', server: 'https://c1', source: 'c1' }, 403, {})
  await pass(60_000)
  assert.equal(await pass(hour - 60_000), 0)
  assert.equal(await pass(60_000), 1)
})
