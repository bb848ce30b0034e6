import assert from 'node:assert/strict'
import { setImmediate as turn } from 'node:timers/promises'
import { test, type TestContext } from 'node:test'
import { manualClock } from '../../testkit/index.ts'
import {
  ApiError,
  ConfigMap,
  initialEventsEnd,
  type Client,
  type WatchBatch,
  type WatchOptions,
} from '../kube/index.ts'
import { Reflector } from './reflector.ts'

const bookmark = (version: string, annotations?: Record<string, string>): WatchBatch<ConfigMap>[number] => ({
  type: 'BOOKMARK',
  object: { metadata: { resourceVersion: version, ...(annotations ? { annotations } : {}) } },
})
const end = bookmark('10', { [initialEventsEnd]: 'true' })

/** A client whose watches follow a script: each is a list of batches, or an error. The last one stays open. */
const scripted = (
  t: TestContext,
  script: (WatchBatch<ConfigMap>[] | Error)[],
  options: { silenceMs?: number } = {},
) => {
  const clock = manualClock()
  const asked: WatchOptions[] = []
  const watch = async (about: WatchOptions) => {
    asked.push(about)
    const next = script[asked.length - 1] ?? []
    if (next instanceof Error) throw next
    const last = asked.length >= script.length
    return (async function* () {
      yield* next
      if (last)
        await new Promise((_, reject) =>
          about.signal!.addEventListener('abort', () => reject(about.signal!.reason as Error)),
        )
    })()
  }
  const list = async () => ({ metadata: { resourceVersion: '5' }, items: [] })
  const client = { of: () => ({ watch, list }) } as unknown as Client
  const sink = { replace: () => {}, put: () => {}, remove: () => {}, slim: (object: ConfigMap) => object }
  const reflector = new Reflector({ client, resource: ConfigMap, sink, clock, random: () => 1, ...options })
  const stop = new AbortController()
  t.after(() => stop.abort())
  void reflector.run(stop.signal)
  const settle = async (): Promise<void> => {
    for (let i = 0; i < 10; i++) await turn()
  }
  return { clock, reflector, asked, settle }
}

const expired = new ApiError({ server: 's', source: 's', method: 'WATCH', path: '/' }, 410, { reason: 'Expired' })

test('R0.12 a bookmark moves the position: the next watch goes on from there', async (t) => {
  const { asked, settle } = scripted(t, [[[end], [bookmark('50')]], []])
  await settle()
  assert.deepEqual(
    asked.map((about) => [about.resourceVersion, about.sendInitialEvents]),
    [
      [undefined, true],
      ['50', false],
    ],
  )
})

test('R0.13 a 410 leads to a list at once; a second one in a row waits', async (t) => {
  const { clock, asked, settle } = scripted(t, [[[end]], expired, expired, []])
  await settle()
  assert.deepEqual(
    asked.map((about) => about.resourceVersion),
    [undefined, '10', undefined],
  )
  clock.advance(60_000)
  await settle()
  assert.equal(asked.length, 4)
})

test('R0.11 a server that ignores the request to stream is noticed by its first bookmark', async (t) => {
  const { asked, settle } = scripted(t, [[[bookmark('7')]], []])
  await settle()
  assert.deepEqual(
    asked.map((about) => [about.resourceVersion, about.sendInitialEvents]),
    [
      [undefined, true],
      ['5', false],
    ],
  )
})

test('R0.14 R0.23 silence counts as death sooner once bookmarks are known to come', async (t) => {
  const { clock, reflector, asked, settle } = scripted(t, [[[end]], []], { silenceMs: 1000 })
  assert.ok(reflector.allowedSilenceMs > 600_000, 'without bookmarks only the end of the watch is a sign')
  await settle()
  assert.equal(reflector.allowedSilenceMs, 1000)
  assert.equal(asked.length, 2)
  clock.advance(999)
  await settle()
  assert.equal(asked.length, 2)
  clock.advance(1)
  await settle()
  clock.advance(60_000)
  await settle()
  assert.ok(asked.length > 2)
})

test('R0.11 R0.14 initial events that never end, as from a server whose storage was just replaced: after a while a list is taken instead', async (t) => {
  const { clock, asked, settle } = scripted(t, [[]])
  await settle()
  clock.advance(89_000)
  await settle()
  assert.deepEqual(
    asked.map((about) => about.sendInitialEvents),
    [true],
  )
  clock.advance(1000)
  await settle()
  assert.deepEqual([asked[1]?.resourceVersion, asked[1]?.sendInitialEvents], ['5', false])
})

test('R0.14 a watch that ends as soon as it begins is not opened again without a wait', async (t) => {
  const { clock, asked, settle } = scripted(t, [[[end]], [], [], []])
  await settle()
  assert.equal(asked.length, 2)
  clock.advance(500)
  await settle()
  assert.equal(asked.length, 3)
})

test('R0.14 the time in which there was no watch is known: from a failure, or from the last sign of a watch that died unnoticed', async (t) => {
  const { clock, reflector, settle } = scripted(t, [[[end]], new Error('refused'), [], []], { silenceMs: 1000 })
  await settle()
  clock.advance(500) // the wait after the failure; then the third watch opens
  await settle()
  assert.equal(reflector.missedMs(0), 500)
  assert.equal(reflector.missedMs(200), 300)
  clock.advance(1000) // it is silent for too long: all of that was missed
  await settle()
  assert.equal(reflector.missedMs(500), 1000)
})
