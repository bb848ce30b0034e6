import assert from 'node:assert/strict'
import { test } from 'node:test'
import { describeError, jsonLogger } from './log.ts'

test('a line is one JSON object with time, level, message and the fields of its logger', () => {
  const lines: string[] = []
  const log = jsonLogger((line) => lines.push(line), { now: () => 0 }).with({ controller: 'acceptance' })
  log.debug('not shown')
  log.warn('failed', { key: 'c1', error: new Error('no', { cause: new TypeError('why') }) })
  assert.deepEqual(lines, [
    '{"time":"1970-01-01T00:00:00.000Z","level":"warn","message":"failed","controller":"acceptance","key":"c1","error":"no: caused by TypeError: why"}\n',
  ])
})

test('an error is told with its causes, and without its stack', () => {
  assert.equal(describeError('text'), 'text')
  assert.equal(describeError(new RangeError('far', { cause: new Error('near') })), 'RangeError: far: caused by near')
})
