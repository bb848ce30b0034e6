import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { manualClock } from '../../testkit/manual-clock.ts'
import { WorkQueue } from './queue.ts'

/** The queue as one would write it without a thought for speed: lists that are searched. */
class Model {
  now = 0
  ready: { key: string; priority: number }[] = []
  waiting: { key: string; due: number; priority: number }[] = []
  processing: string[] = []
  dirty: { key: string; priority: number }[] = []

  add(key: string, afterMs: number, priority: number): void {
    const sooner = this.ready.some((r) => r.key === key) || this.dirty.some((d) => d.key === key)
    if (afterMs === 0) this.#makeReady(key, priority)
    else if (!sooner) {
      const old = this.waiting.find((w) => w.key === key)
      const due = Math.min(this.now + afterMs, old?.due ?? Infinity)
      this.waiting = this.waiting.filter((w) => w.key !== key)
      this.waiting.push({ key, due, priority: Math.max(priority, old?.priority ?? priority) })
    }
  }

  take(key: string): void {
    this.ready = this.ready.filter((r) => r.key !== key)
    this.processing.push(key)
  }

  done(key: string): void {
    this.processing = this.processing.filter((k) => k !== key)
    const again = this.dirty.find((d) => d.key === key)
    this.dirty = this.dirty.filter((d) => d.key !== key)
    if (again) this.#makeReady(key, again.priority)
  }

  advance(ms: number): void {
    this.now += ms
    const due = this.waiting.filter((w) => w.due <= this.now).toSorted((a, b) => a.due - b.due)
    for (const { key, priority } of due) this.#makeReady(key, priority)
  }

  #makeReady(key: string, priority: number): void {
    this.waiting = this.waiting.filter((w) => w.key !== key)
    const list = this.processing.includes(key) ? this.dirty : this.ready
    const present = list.find((r) => r.key === key)
    if (!present) list.push({ key, priority })
    else present.priority = Math.max(present.priority, priority)
  }
}

const key = fc.constantFrom('a', 'b', 'c', 'd', 'e')
const step = fc.oneof(
  fc.record({
    do: fc.constant('add' as const),
    key,
    afterMs: fc.constantFrom(0, 0, 5, 20),
    priority: fc.constantFrom(0, 0, -100, 7),
  }),
  fc.record({ do: fc.constant('take' as const) }),
  fc.record({ do: fc.constant('done' as const), which: fc.nat() }),
  fc.record({ do: fc.constant('advance' as const), ms: fc.nat(25) }),
)

test('R0.16 R0.18 the queue does what a simple model does, for any sequence of calls', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 120, size: 'max' }), async (steps) => {
      const clock = manualClock()
      const queue = new WorkQueue({ clock })
      const model = new Model()
      let taken = 0
      for (const at of steps) {
        if (at.do === 'add') {
          queue.add(at.key, at)
          model.add(at.key, at.afterMs, at.priority)
        } else if (at.do === 'take' && model.ready.length) {
          const got = (await queue.take())!
          const entry = model.ready.find((r) => r.key === got)
          assert.ok(entry, `${got} was given though it is not ready`)
          assert.ok(!model.processing.includes(got), `${got} is worked on twice at once`)
          const highest = Math.max(...model.ready.map((r) => r.priority))
          if (++taken % 8 !== 0) assert.equal(entry.priority, highest)
          model.take(got)
        } else if (at.do === 'done' && model.processing.length) {
          const finished = model.processing[at.which % model.processing.length]!
          queue.done(finished)
          model.done(finished)
        } else if (at.do === 'advance') {
          clock.advance(at.ms)
          model.advance(at.ms)
        }
        assert.equal(queue.depth, model.ready.length)
        assert.deepEqual([...queue.processing.keys()].sort(), model.processing.toSorted())
      }
    }),
    { numRuns: 400 },
  )
})
