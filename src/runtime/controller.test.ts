import assert from 'node:assert/strict'
import { setImmediate as turn } from 'node:timers/promises'
import { test, type TestContext } from 'node:test'
import { manualClock } from '../../testkit/manual-clock.ts'
import type { KubeObject } from '../kube/index.ts'
import { Controller, watching, type Reconcile } from './controller.ts'
import { stalled, waiting } from './errors.ts'
import type { Handler } from './informer.ts'
import { Metrics } from './metrics.ts'

const running = (t: TestContext, reconcile: Reconcile, options: { workers?: number; mayWork?: () => boolean } = {}) => {
  const clock = manualClock()
  const metrics = new Metrics()
  const stop = new AbortController()
  t.after(() => stop.abort())
  const controller = new Controller({
    name: 'c',
    watches: [],
    reconcile,
    clock,
    metrics,
    queue: { random: () => 1 },
    ...options,
  })
  const ended = controller.run(stop.signal)
  const settle = async (): Promise<void> => {
    for (let i = 0; i < 5; i++) await turn()
  }
  return { clock, metrics, controller, stop, ended, settle }
}

test('R0.17 requeueAfterMs brings the key back then', async (t) => {
  const seen: number[] = []
  const { clock, controller, settle } = running(t, async () => {
    seen.push(clock.now())
    return seen.length < 3 ? { requeueAfterMs: 60_000 } : {}
  })
  controller.enqueue('a')
  await settle()
  for (let i = 0; i < 10; i++) {
    clock.advance(30_000)
    await settle()
  }
  assert.deepEqual(seen, [0, 60_000, 120_000])
})

test('R0.10 errors say what is to be done: retry backs off, wait looks again later, stall does nothing until a change', async (t) => {
  const calls: string[] = []
  const errors: Record<string, Error> = {
    retry: new Error('no luck'),
    wait: waiting('NotYet', { message: 'cluster c1 is not accepted', afterMs: 5000 }),
    stall: stalled('RoleNotTrusted', { message: 'role r does not trust us', next: 'run: lanyard doctor' }),
  }
  const { clock, controller, metrics, settle } = running(t, async (key) => {
    calls.push(key)
    throw errors[key]!
  })
  for (const key of Object.keys(errors)) controller.enqueue(key)
  await settle()
  clock.advance(10)
  await settle()
  clock.advance(20)
  await settle()
  assert.deepEqual(calls, ['retry', 'wait', 'stall', 'retry', 'retry'])
  clock.advance(5000)
  await settle()
  assert.equal(calls.filter((key) => key === 'wait').length, 2)
  assert.equal(calls.filter((key) => key === 'stall').length, 1)
  assert.match(metrics.text(), /controller_runtime_terminal_reconcile_errors_total\{controller="c"\} 1/)
  assert.match(metrics.text(), /controller_runtime_reconcile_total\{controller="c",result="requeue_after"\} 2/)
  controller.enqueue('stall')
  await settle()
  assert.equal(calls.filter((key) => key === 'stall').length, 2)
})

test('R0.21 no key is begun after the signal, and what is under way finishes', async (t) => {
  const begun: string[] = []
  let finish = (): void => {}
  const { controller, stop, ended, settle } = running(
    t,
    (key) => {
      begun.push(key)
      return new Promise((resolve) => (finish = () => resolve({})))
    },
    { workers: 1 },
  )
  controller.enqueue('a')
  controller.enqueue('b')
  await settle()
  stop.abort()
  let over = false
  void ended.then(() => (over = true))
  await settle()
  assert.equal(over, false)
  finish()
  await ended
  assert.deepEqual(begun, ['a'])
})

test('R0.24 a replica that may not work any more leaves keys alone', async (t) => {
  const begun: string[] = []
  let leads = true
  const { controller, settle } = running(
    t,
    async (key) => {
      begun.push(key)
      return {}
    },
    { mayWork: () => leads },
  )
  controller.enqueue('a')
  await settle()
  leads = false
  controller.enqueue('b')
  await settle()
  assert.deepEqual(begun, ['a'])
})

test('R0.18 changes of a watched kind become keys: of the old and the new object, and behind news when they come from a list', () => {
  let handler!: Handler<KubeObject>
  const informer = {
    on: (h: Handler<KubeObject>) => {
      handler = h
      return () => {}
    },
  }
  const added: [string, number | undefined][] = []
  const owner = (object: KubeObject): string[] => [object.metadata.labels!['owner']!]
  watching(
    informer,
    owner,
    (object) => object.metadata.name !== 'ignored',
  )((key, options) => added.push([key, options?.priority]))
  const of = (name: string, labels: Record<string, string>): KubeObject => ({ metadata: { name, labels } })

  handler.added!(of('x', { owner: 'a' }), { initial: true })
  handler.updated!(of('x', { owner: 'b' }), of('x', { owner: 'a' }), { initial: false })
  handler.deleted!(of('x', { owner: 'b' }))
  handler.added!(of('ignored', { owner: 'c' }), { initial: false })
  assert.deepEqual(added, [
    ['a', -100],
    ['b', undefined],
    ['a', undefined],
    ['b', undefined],
  ])
})
