import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../testkit/manual-clock.ts'
import { CliError, explain, Interrupted, TimedOut } from './errors.ts'
import { outputTo, tableText, wantsColour } from './output.ts'
import { progressOn } from './progress.ts'
import { UsageError } from '../main/flags.ts'

const started = ({ isTTY = false, env = {} }: { isTTY?: boolean; env?: NodeJS.ProcessEnv } = {}) => {
  let text = ''
  const clock = manualClock()
  const stop = new AbortController()
  const sink = { write: (more: string) => void (text += more), isTTY }
  return { clock, stop, read: () => text, progress: progressOn({ sink, env, clock, signal: () => stop.signal }) }
}

test('without a terminal each piece of news is a line, with how long it has taken, and no colour', async () => {
  const { clock, read, progress } = started()
  const done = Promise.withResolvers<string>()
  const running = progress.step('waiting for the hub', async ({ seen }) => {
    seen('0 of 1 replicas')
    clock.advance(3000)
    seen('0 of 1 replicas') // no news
    seen('1 of 1 replicas')
    clock.advance(16_000)
    return done.promise
  })
  done.resolve('x')
  assert.equal(await running, 'x')
  assert.deepEqual(read().split('\n'), [
    'waiting for the hub',
    '  0 of 1 replicas (0 s)',
    '  1 of 1 replicas (3 s)',
    'still waiting for the hub: 1 of 1 replicas (15 s)',
    'done: waiting for the hub (19 s)',
    '',
  ])
  assert.equal(clock.pending, 0)
})

test('a terminal sees one line that moves, in colour unless NO_COLOR is set', async () => {
  const { clock, read, progress } = started({ isTTY: true })
  await progress.step('waiting', async ({ seen }) => {
    seen('nothing yet')
    clock.advance(100)
  })
  assert.ok(read().includes('\r\u001b[2K\u001b[36m⠙\u001b[0m waiting: nothing yet (0 s)'), read())
  assert.ok(read().endsWith('\u001b[32m✔\u001b[0m waiting (0 s)\n'), read())
  const plain = started({ isTTY: true, env: { NO_COLOR: '1' } })
  plain.progress.warn('careful')
  assert.equal(plain.read(), '\r\u001b[2KWarning: careful\n')
})

test('what takes too long ends with what was seen last, and exit code 3', async () => {
  const { clock, progress } = started()
  const running = progress.step(
    'waiting for the hub',
    ({ seen, signal }) =>
      new Promise((_, reject) => {
        seen('0 of 1 replicas')
        signal.addEventListener('abort', () => reject(signal.reason as Error))
      }),
    { timeoutMs: 5000, next: 'look at its pods' },
  )
  clock.advance(5000)
  const error = await running.catch((error: unknown) => error)
  assert.ok(error instanceof TimedOut)
  assert.deepEqual(explain(error), {
    code: 3,
    text: 'Error: gave up after 5 s waiting for the hub: 0 of 1 replicas\n  look at its pods\n',
  })
})

test('errors are one line and a way out, with an exit code that says what kind', () => {
  assert.deepEqual(explain(new CliError('no\nway', { next: 'go on' })), { code: 1, text: 'Error: no way\n  go on\n' })
  assert.equal(explain(new UsageError('what?')).code, 2)
  assert.equal(explain(new Interrupted()).code, 130)
  assert.equal(explain(new Error('aborted'), { interrupted: true }).code, 130)
  const deep = new CliError('outside', { cause: new Error('inside') })
  assert.doesNotMatch(explain(deep).text, /inside/)
  assert.match(explain(deep, { level: 1 }).text, /\n {2}because: inside\n/)
})

test('tables line up, are bold on a terminal only, and say when there is nothing', async () => {
  const table = {
    columns: ['Name', 'Age'],
    rows: [
      ['long-name', '3d'],
      ['x', ''],
    ],
    none: 'No clusters.',
  }
  assert.equal(tableText(table), 'NAME        AGE\nlong-name   3d\nx\n')
  assert.equal(tableText({ ...table, rows: [] }), 'No clusters.\n')
  assert.ok(tableText(table, { colour: true }).startsWith('\u001b[1mNAME'))
  assert.equal(wantsColour({ write: () => 0, isTTY: true }, { NO_COLOR: '1' }), false)
  assert.equal(wantsColour({ write: () => 0, isTTY: true }, {}), true)
  assert.equal(wantsColour({ write: () => 0 }, {}), false)
  let text = ''
  const out = outputTo({ write: (more) => void (text += more) }, {})
  await out.data('yaml', [{ on: 'yes' }], () => 'unused')
  assert.equal(text, '- "on": "yes"\n')
})
