import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { ApiError, ConnectionError, isExpired, type KubeObject, type WatchEvent } from './index.ts'
import { decodeWatch } from './watch.ts'

const request = { server: 'https://api:6443', source: 'context "a" of b', method: 'WATCH', path: '/api/v1/configmaps' }

/** Everything a watch gives, and the error that ended it. */
const readAll = async (
  chunks: Iterable<Buffer | string>,
): Promise<{ events: WatchEvent<KubeObject>[]; error: unknown }> => {
  const events: WatchEvent<KubeObject>[] = []
  try {
    for await (const batch of decodeWatch(
      Readable.from(
        [...chunks].map((one) => Buffer.from(one)),
        { objectMode: false },
      ),
      request,
    ))
      events.push(...batch)
    return { events, error: undefined }
  } catch (error) {
    return { events, error }
  }
}

const cutAt = (bytes: Buffer, places: number[]): Buffer[] => {
  const cuts = [0, ...places.map((place) => place % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
  return cuts.slice(1).map((end, i) => bytes.subarray(cuts[i], end))
}

const event = fc.record({
  type: fc.constantFrom('ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK'),
  object: fc.record({
    metadata: fc.record({ name: fc.string({ unit: 'binary' }), resourceVersion: fc.nat().map(String) }),
    data: fc.dictionary(fc.string(), fc.constantFrom('ä', '日本', '🦜', '\n', '"', '', '\u2028')),
  }),
})

test('R0.40 a watch gives the same events however its bytes are cut into chunks', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(event, { maxLength: 8 }),
      fc.array(fc.nat(5000), { maxLength: 40 }),
      async (events, places) => {
        const bytes = Buffer.from(events.map((one) => `${JSON.stringify(one)}\n`).join(''))
        const seen = await readAll(cutAt(bytes, places))
        assert.deepEqual(seen, { events: JSON.parse(JSON.stringify(events)), error: undefined })
      },
    ),
  )
})

test('R0.40 where a watch breaks off, every whole event before is given, none after, however the bytes are cut', async () => {
  const bad = fc.constantFrom(
    '{"type":"ADDED","obj',
    'rubbish\n',
    '{}\n',
    'null\n',
    '42\n',
    '{"type":"ADDED","object":null}\n',
  )
  await fc.assert(
    fc.asyncProperty(fc.array(event, { maxLength: 5 }), bad, fc.array(fc.nat(3000)), async (events, bad, places) => {
      const good = events.map((one) => `${JSON.stringify(one)}\n`).join('')
      const seen = await readAll(cutAt(Buffer.from(good + bad), places))
      assert.deepEqual(seen.events, JSON.parse(JSON.stringify(events)))
      assert.ok(seen.error instanceof ConnectionError && seen.error.code === 'WATCH_CUT', String(seen.error))
      assert.match(seen.error.message, /at https:\/\/api:6443 \(context "a" of b\): the watch .*; open it again/)
    }),
  )
})

test('R0.10 an ERROR event is the error that its status says, after the events before it', async () => {
  const added = { type: 'ADDED', object: { metadata: { name: 'a' } } }
  const status = { kind: 'Status', code: 410, reason: 'Expired', message: 'too old resource version: 1 (7)' }
  const lines = [added, { type: 'ERROR', object: status }, added].map((one) => `${JSON.stringify(one)}\n`).join('')

  const { events, error } = await readAll([lines])

  assert.deepEqual(events, [added])
  assert.ok(isExpired(error) && error.status === 410 && error.serverMessage === status.message)
})

test('R0.10 an ERROR event without a status is still an error', async () => {
  for (const object of ['{}', 'null', '{"message":"no"}']) {
    const { error } = await readAll([`{"type":"ERROR","object":${object}}\n`])
    assert.ok(error instanceof ApiError && error.status === 500)
  }
})

test('empty lines and line breaks of Windows are passed over', async () => {
  const line = JSON.stringify({ type: 'ADDED', object: { metadata: { name: 'a' } } })
  const { events, error } = await readAll([`\n${line}\r\n\n`, `${line}\n`, '\n'])
  assert.equal(error, undefined)
  assert.equal(events.length, 2)
})

test('a line of many chunks costs no more than its bytes', async () => {
  const object = { metadata: { name: 'big' }, data: { value: 'x'.repeat(4_000_000) } }
  const bytes = Buffer.from(`${JSON.stringify({ type: 'ADDED', object })}\n`)
  const places = Array.from({ length: 4000 }, (_, n) => n * 1000)
  const { events } = await readAll(cutAt(bytes, places))
  assert.deepEqual(events[0]?.object, object)
})
