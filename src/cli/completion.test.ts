import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { test } from 'node:test'
import { runCli } from '../../testkit/run-cli.ts'
import { shells } from './completion.ts'

const candidates = async (...words: string[]): Promise<string[]> => {
  const { code, out, err } = await runCli(['__complete', '--', ...words])
  assert.deepEqual([code, err], [0, ''])
  return out.split('\n').flatMap((line) => (line ? [line.split('\t')[0]!] : []))
}

test('commands, flags and values are completed; what is hidden is not', async () => {
  assert.deepEqual(await candidates('ac'), ['accept', 'access'])
  assert.deepEqual(await candidates('get', 'cl'), ['clusters', 'clustersets'])
  assert.deepEqual(await candidates('__'), [])
  assert.deepEqual(await candidates('join', '--ca'), ['--ca-hash', '--ca-file'])
  assert.deepEqual(await candidates('get', 'clusters', '-o', ''), ['table', 'json', 'yaml'])
  assert.deepEqual(await candidates('get', 'clusters', '--output=j'), ['--output=json'])
  assert.deepEqual(await candidates('get', 'clusters', '--output', '=', 'j'), ['--output=json'])
  assert.deepEqual(await candidates('init', '--registration-auth', 'csr,g'), ['csr,grpc'])
  assert.deepEqual(await candidates('--timeout', '5', 'upg'), ['upgrade'])
})

test('what cannot be completed gives nothing, and no error', async () => {
  for (const words of [
    ['nope', ''],
    ['accept', '--clusters', ''],
    ['get', 'clusters', '--nope', ''],
    ['version', ''],
  ])
    assert.deepEqual(await candidates(...words), [], words.join(' '))
})

test('each shell gets a script that asks the program under the name it was called by', async () => {
  for (const shell of shells) {
    const { out } = await runCli(['completion', shell], { program: 'clusterctl' })
    assert.match(out, /clusterctl/)
    assert.match(out, /__complete -- /)
    assert.doesNotMatch(out, /lanyard/)
  }
})

test('bash completes with the script, also behind =', async () => {
  const { out: script } = await runCli(['completion', 'bash'], { program: 'lanyard' })
  const program = fileURLToPath(new URL('../../bin/lanyard', import.meta.url))
  const completed = (...words: string[]): string[] => {
    const all = [program, ...words].map((word) => `'${word}'`).join(' ')
    const run = `${script}\nCOMP_WORDS=(${all}); COMP_CWORD=${words.length}; _lanyard_complete; printf '%s\\n' "\${COMPREPLY[@]}"`
    return execFileSync('bash', ['-c', run], { encoding: 'utf8' }).trim().split('\n')
  }
  assert.deepEqual(completed('get', 'cl'), ['clusters', 'clustersets'])
  assert.deepEqual(completed('version', '--output', '=', 'y'), ['yaml'])
  assert.deepEqual(completed('version', '--output', '='), ['table', 'json', 'yaml'])
})
