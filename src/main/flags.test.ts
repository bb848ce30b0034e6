import assert from 'node:assert/strict'
import { test } from 'node:test'
import { helpText, parseArguments, parseFlags, parseGates, UsageError } from './flags.ts'

const flags = {
  kubeconfig: { help: 'Which file', default: '' },
  'health-port': { help: 'Where', default: 8000 },
  drivers: { help: 'Which', default: ['csr'], aliases: ['registration-auth'] },
  'leader-elect': { help: 'Whether', default: true },
}

test('flags are read in every spelling, lists repeated or with commas, aliases too', () => {
  const values = parseFlags(
    ['--kubeconfig=a', '--health-port', '1', '--registration-auth', 'csr,grpc', '--drivers=x', '--no-leader-elect'],
    flags,
  )
  assert.deepEqual(values, { kubeconfig: 'a', 'health-port': 1, drivers: ['csr', 'grpc', 'x'], 'leader-elect': false })
  assert.deepEqual(parseFlags([], flags), {
    kubeconfig: '',
    'health-port': 8000,
    drivers: ['csr'],
    'leader-elect': true,
  })
})

test('what is not a flag, or not a number, is said', () => {
  assert.throws(() => parseFlags(['--nope'], flags), /there is no flag --nope; --help lists the flags/)
  assert.throws(
    () => parseFlags(['--health-prot=1'], flags),
    /there is no flag --health-prot; did you mean --health-port\?/,
  )
  assert.throws(() => parseFlags(['more'], flags), /"more" is not a flag/)
  assert.throws(() => parseFlags(['--health-port=x'], flags), UsageError)
})

test('help shows each flag with its default', () => {
  const text = helpText('lanyard hub [flags]', 'Runs the hub.', flags)
  assert.match(text, /--health-port {3}Where \(8000\)/)
  assert.match(text, /--kubeconfig {4}Which file\n/)
})

test('gates are set by name in any case; unknown ones list the known', () => {
  const defaults = { autoApproval: false, cleanup: true }
  assert.deepEqual(parseGates(['AutoApproval=true'], defaults), { autoApproval: true, cleanup: true })
  assert.throws(() => parseGates(['Nope=true'], defaults), /there is no gate Nope; there are autoApproval, cleanup/)
  assert.throws(() => parseGates(['cleanup=yes'], defaults), /write cleanup=true or cleanup=false/)
})

const rich = {
  output: { help: 'How', default: 'table', short: 'o', choices: ['table', 'json', 'yaml'] },
  clusters: { help: 'Which', default: [], short: 'c' },
  wait: { help: 'Whether', default: false },
  v: { help: 'How much', default: 0, short: 'v', bare: 1 },
  timeout: { help: 'How long', default: 300, seconds: true },
}

test('letters, words between flags, and everything after -- as words', () => {
  const { values, words, given } = parseArguments(['a', '-o', 'json', '-c=x', 'b', '-cy', '--', '--wait'], rich)
  assert.deepEqual(words, ['a', 'b', '--wait'])
  assert.deepEqual([values.output, values.clusters, values.wait], ['json', ['x', 'y'], false])
  assert.deepEqual([...given].toSorted(), ['clusters', 'output'])
})

test('a list goes on after a comma and a space; an underscore is a dash', () => {
  assert.deepEqual(parseArguments(['--clusters', 'a,', 'b', '--wait'], rich).values.clusters, ['a', 'b'])
  assert.equal(parseFlags(['--health_port=1'], flags)['health-port'], 1)
})

test('-v takes a number or stands alone', () => {
  const levels = [['-v'], ['-v', '6'], ['-v=4'], ['--v', '2'], ['-v', 'word']].map((args) => parseArguments(args, rich))
  assert.deepEqual(
    levels.map(({ values, words }) => [values.v, words]),
    [
      [1, []],
      [6, []],
      [4, []],
      [2, []],
      [1, ['word']],
    ],
  )
})

test('times are seconds, or have a unit; booleans are words or nothing', () => {
  const timeout = (said: string) => parseArguments(['--timeout', said], rich).values.timeout
  assert.deepEqual(['90', '90s', '5m', '1h'].map(timeout), [90, 90, 300, 3600])
  assert.throws(() => timeout('5x'), /--timeout takes a number of seconds, or 90s, 5m, 1h, not "5x"/)
  assert.equal(parseArguments(['--wait=false'], rich).values.wait, false)
  assert.throws(() => parseArguments(['--wait=maybe'], rich), /--wait takes true or false, not "maybe"/)
})

test('a value that is not among the choices is refused with the nearest; one that is missing is asked for', () => {
  assert.throws(
    () => parseArguments(['-o', 'jsn'], rich),
    /--output takes table, json, yaml, not "jsn"; did you mean json\?/,
  )
  assert.throws(() => parseArguments(['--output', '--wait'], rich), /--output needs a value/)
  assert.throws(() => parseArguments(['--output'], rich), UsageError)
})
