import assert from 'node:assert/strict'
import { test } from 'node:test'
import { helpText, parseFlags, parseGates, UsageError } from './flags.ts'

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
  assert.deepEqual(values, { kubeconfig: 'a', 'health-port': 1, drivers: ['x', 'csr', 'grpc'], 'leader-elect': false })
  assert.deepEqual(parseFlags([], flags), {
    kubeconfig: '',
    'health-port': 8000,
    drivers: ['csr'],
    'leader-elect': true,
  })
})

test('what is not a flag, or not a number, is said', () => {
  assert.throws(() => parseFlags(['--nope'], flags), /Unknown option '--nope'; --help/)
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
