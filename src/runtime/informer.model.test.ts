import assert from 'node:assert/strict'
import { setImmediate as turn } from 'node:timers/promises'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { manualClock } from '../../testkit/manual-clock.ts'
import {
  ApiError,
  initialEventsEnd,
  keyOf,
  resource,
  type Client,
  type KubeObject,
  type WatchBatch,
} from '../kube/index.ts'
import { Informer } from './informer.ts'
import { jsonLogger } from './log.ts'

interface Thing extends KubeObject {
  colour: string
}
const Thing = resource<Thing>({ group: 'x', version: 'v1', kind: 'Thing', plural: 'things', namespaced: false })

const where = { server: 'stub', source: 'stub', method: 'WATCH', path: '/things' }

/** A server in memory whose watches can be cut, and whose history can be forgotten, at exactly the wrong moment. */
class StubServer {
  readonly objects = new Map<string, Thing>()
  streaming = true
  #version = 1
  #oldest = 0
  #uid = 0
  #history: { version: number; event: WatchBatch<Thing>[number] }[] = []
  #streams = new Set<{ queue: WatchBatch<Thing>; wake: () => void; open: boolean }>()

  write(name: string, colour: string): void {
    const old = this.objects.get(name)
    const metadata = { name, uid: old?.metadata.uid ?? `uid${++this.#uid}`, resourceVersion: String(++this.#version) }
    const object: Thing = { metadata, colour }
    this.objects.set(name, object)
    this.#send({ type: old ? 'MODIFIED' : 'ADDED', object })
  }

  delete(name: string): void {
    const old = this.objects.get(name)
    if (!old) return
    this.objects.delete(name)
    const object = { ...old, metadata: { ...old.metadata, resourceVersion: String(++this.#version) } }
    this.#send({ type: 'DELETED', object })
  }

  bookmark(): void {
    this.#send({ type: 'BOOKMARK', object: { metadata: { resourceVersion: String(this.#version) } } })
  }

  cut(): void {
    for (const stream of this.#streams) {
      stream.open = false
      stream.wake()
    }
    this.#streams.clear()
  }

  /** What happened until now cannot be watched any more. */
  forget(): void {
    this.#oldest = this.#version
    this.#history = []
  }

  client(): Client {
    const list = () => ({
      metadata: { resourceVersion: String(this.#version) },
      items: [...this.objects.values()].map((o) => structuredClone(o)),
    })
    const watch = async (options: { resourceVersion?: string; sendInitialEvents?: boolean; signal: AbortSignal }) => {
      if (options.sendInitialEvents && !this.streaming)
        throw new ApiError(where, 422, { reason: 'Invalid', message: 'sendInitialEvents is forbidden' })
      const from = Number(options.resourceVersion ?? this.#version)
      if (from < this.#oldest) throw new ApiError(where, 410, { reason: 'Expired', message: 'too old' })
      const stream = { queue: [] as WatchBatch<Thing>, wake: () => {}, open: true }
      if (options.sendInitialEvents) {
        for (const object of list().items) stream.queue.push({ type: 'ADDED', object })
        const metadata = { resourceVersion: String(this.#version), annotations: { [initialEventsEnd]: 'true' } }
        stream.queue.push({ type: 'BOOKMARK', object: { metadata } })
      } else
        for (const { version, event } of this.#history) if (version > from) stream.queue.push(structuredClone(event))
      this.#streams.add(stream)
      options.signal.addEventListener('abort', () => {
        stream.open = false
        stream.wake()
      })
      return (async function* () {
        for (;;) {
          if (stream.queue.length) yield stream.queue.splice(0)
          if (!stream.open) return
          if (!stream.queue.length) await new Promise<void>((resolve) => (stream.wake = resolve))
        }
      })()
    }
    return { of: () => ({ list: async () => list(), watch }) } as unknown as Client
  }

  #send(event: WatchBatch<Thing>[number]): void {
    if (event.type !== 'BOOKMARK') this.#history.push({ version: this.#version, event })
    for (const stream of this.#streams) {
      stream.queue.push(structuredClone(event))
      stream.wake()
    }
  }
}

const name = fc.constantFrom('a', 'b', 'c', 'd')
const colour = fc.constantFrom('red', 'green', 'blue')
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('write' as const), name, colour }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('delete' as const), name }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('bookmark' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('cut' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('forget' as const) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('settle' as const) }) },
)

test('R0.13 R0.15 cache, indexes and handlers end with the last state, however the watch is cut and whatever is forgotten', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60, size: 'max' }), fc.boolean(), async (steps, streaming) => {
      const server = new StubServer()
      server.streaming = streaming
      const clock = manualClock()
      const mistakes: string[] = []
      const informer = new Informer({
        client: server.client(),
        resource: Thing,
        clock,
        log: jsonLogger((line) => mistakes.push(line), { level: 'error' }),
        indexes: { colour: (thing) => [thing.colour] },
      })
      // A handler that keeps its own copy from what it is told, and checks that each report fits what it knew.
      const told = new Map<string, Thing>()
      informer.on({
        added: (thing) => {
          assert.ok(!told.has(keyOf(thing)), `${keyOf(thing)} was added twice`)
          told.set(keyOf(thing), thing)
        },
        updated: (thing, old) => {
          assert.equal(told.get(keyOf(thing)), old)
          assert.equal(thing.metadata.uid, old.metadata.uid)
          told.set(keyOf(thing), thing)
        },
        deleted: (thing) => {
          assert.equal(told.get(keyOf(thing))?.metadata.uid, thing.metadata.uid)
          told.delete(keyOf(thing))
        },
      })
      const stop = new AbortController()
      const running = informer.run(stop.signal)
      const settle = async (): Promise<void> => {
        for (let i = 0; i < 6; i++) {
          await turn()
          clock.advance(31_000) // past any back-off
        }
      }
      for (const at of steps) {
        if (at.do === 'write') server.write(at.name, at.colour)
        else if (at.do === 'settle') await settle()
        else if (at.do === 'delete') server.delete(at.name)
        else server[at.do]()
      }
      await settle()
      await settle()

      assert.deepEqual(mistakes, [])
      const expected = [...server.objects.values()].toSorted(byName)
      assert.deepEqual(informer.list().toSorted(byName), expected)
      assert.deepEqual([...told.values()].toSorted(byName), expected)
      for (const shade of ['red', 'green', 'blue'])
        assert.deepEqual(
          informer.by('colour', shade).toSorted(byName),
          expected.filter((thing) => thing.colour === shade),
        )
      stop.abort()
      await running
    }),
    { numRuns: 300 },
  )
})

const byName = (a: Thing, b: Thing): number => (keyOf(a) < keyOf(b) ? -1 : 1)
