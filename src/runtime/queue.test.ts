import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../testkit/manual-clock.ts'
import { Metrics } from './metrics.ts'
import { queueMetrics } from './queue-metrics.ts'
import { lowPriority, WorkQueue } from './queue.ts'

const queueAt = (options: ConstructorParameters<typeof WorkQueue>[0] = {}) => {
  const clock = manualClock()
  return { clock, queue: new WorkQueue({ clock, random: () => 1, ...options }) }
}

/** What the queue would give now. */
const drain = async (queue: WorkQueue): Promise<string[]> => {
  const keys: string[] = []
  while (queue.depth > 0) {
    const key = (await queue.take())!
    keys.push(key)
    queue.done(key)
  }
  return keys
}

test('R0.16 a key is there once however often it is added', async () => {
  const { queue } = queueAt()
  for (const key of ['a', 'b', 'a', 'a', 'b']) queue.add(key)
  assert.deepEqual(await drain(queue), ['a', 'b'])
})

test('R0.16 a key that is added while it is worked on comes again, after that', async () => {
  const { queue } = queueAt()
  queue.add('a')
  assert.equal(await queue.take(), 'a')
  queue.add('a')
  queue.add('a')
  assert.equal(queue.depth, 0)
  queue.done('a')
  assert.deepEqual(await drain(queue), ['a'])
})

test('R0.16 whoever waits for a key gets the next one, and nothing when the queue closes', async () => {
  const { queue } = queueAt()
  const first = queue.take()
  const second = queue.take()
  queue.add('a')
  assert.equal(await first, 'a')
  queue.close()
  assert.equal(await second, undefined)
  queue.add('b')
  assert.equal(await queue.take(), undefined)
})

test('R0.17 a delayed key comes when it is due, and at once when it is added without delay', async () => {
  const { clock, queue } = queueAt()
  queue.add('a', { afterMs: 1000 })
  queue.add('b', { afterMs: 1000 })
  queue.add('b', { afterMs: 5000 }) // the earlier time stays
  queue.add('c', { afterMs: 5000 })
  queue.add('c', { afterMs: 10 }) // the earlier time wins
  queue.add('a')
  assert.deepEqual(await drain(queue), ['a'])
  clock.advance(10)
  assert.deepEqual(await drain(queue), ['c'])
  clock.advance(990)
  assert.deepEqual(await drain(queue), ['b'])
  clock.advance(100_000)
  assert.deepEqual(await drain(queue), [])
  assert.equal(clock.pending, 0)
})

test('R0.17 each failure doubles the wait up to the limit, and success starts it afresh', async () => {
  const { clock, queue } = queueAt({ baseDelayMs: 100, maxDelayMs: 350 })
  const waits: number[] = []
  for (let i = 0; i < 4; i++) {
    queue.retry('a')
    const start = clock.now()
    while (queue.depth === 0) clock.advance(50)
    waits.push(clock.now() - start)
    await drain(queue)
  }
  assert.deepEqual(waits, [100, 200, 350, 350])
  assert.equal(queue.failures('a'), 4)
  queue.forget('a')
  queue.retry('a')
  clock.advance(100)
  assert.equal(queue.depth, 1)
})

test('R0.17 half of the wait is random, so that what failed together does not return together', () => {
  const { clock, queue } = queueAt({ baseDelayMs: 100, random: () => 0 })
  queue.retry('a')
  clock.advance(50)
  assert.equal(queue.depth, 1)
})

test('R0.18 news comes before a re-list, and a key keeps the highest priority it was added with', async () => {
  const { queue } = queueAt()
  for (const key of ['old1', 'old2', 'old3']) queue.add(key, { priority: lowPriority })
  queue.add('new')
  queue.add('old3')
  queue.add('old3', { priority: lowPriority })
  assert.deepEqual(await drain(queue), ['new', 'old3', 'old1', 'old2'])
})

test('R0.18 a key of low priority gets its turn though higher ones never end', async () => {
  const { clock, queue } = queueAt()
  queue.add('low', { priority: lowPriority })
  const seen: string[] = []
  for (let i = 0; i < 20 && !seen.includes('low'); i++) {
    clock.advance(1)
    queue.add(`high${i}`)
    queue.add(`more${i}`)
    const key = (await queue.take())!
    queue.done(key)
    seen.push(key)
  }
  assert.ok(seen.includes('low'), `only ${seen.join(', ')}`)
})

test('R0.22 the queue tells its depth, its adds and its retries under the names dashboards know', async () => {
  const clock = manualClock()
  const metrics = new Metrics()
  const queue = new WorkQueue({ clock, metrics: queueMetrics(metrics, 'acceptance', clock) })
  queue.add('a')
  queue.add('b')
  queue.retry('c')
  await queue.take()
  clock.advance(2000)
  const text = metrics.text()
  const labels = '{name="acceptance",controller="acceptance"}'
  assert.ok(text.includes(`workqueue_depth${labels} 2\n`), text)
  assert.ok(text.includes(`workqueue_adds_total${labels} 3\n`), text)
  assert.ok(text.includes(`workqueue_retries_total${labels} 1\n`), text)
  assert.ok(text.includes(`workqueue_longest_running_processor_seconds${labels} 2\n`), text)
})
