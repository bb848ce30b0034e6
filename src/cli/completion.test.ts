import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
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

const contexts = ['arn:aws:eks:eu-west-1:111122223333:cluster/hub', 'kubernetes-admin@kubernetes', 'plain']
const kubeconfig = {
  contexts: contexts.map((name) => ({ name, context: { cluster: 'k', user: 'u' } })),
  clusters: [{ name: 'k', cluster: { server: 'https://127.0.0.1:1' } }],
  users: [{ name: 'u', user: {} }],
}

/** What a bash at a terminal makes of lines that are typed with a tab at their end: the words it would have run. */
const typedInBash = async (t: TestContext, lines: readonly string[]): Promise<string[]> => {
  const folder = await mkdtemp(join(tmpdir(), 'lanyard-completion-'))
  t.after(() => rm(folder, { recursive: true }))
  const program = fileURLToPath(new URL('../../bin/lanyard', import.meta.url))
  const { out: script } = await runCli(['completion', 'bash'], { program: 'lanyard' })
  const shown = `printf '\nRAN'; printf ' <%s>' "$@"; echo`
  const lanyard = `lanyard() { if [[ "$1" == __complete ]]; then '${program}' "$@"; else ${shown}; fi; }`
  await writeFile(join(folder, 'rc'), `${lanyard}\n${script}`)
  await writeFile(join(folder, 'kubeconfig'), JSON.stringify(kubeconfig))
  const bash = ['bash', '--noprofile', '--rcfile', join(folder, 'rc'), '-i']
  const { stdout } = spawnSync('python3', ['-c', 'import pty, sys; pty.spawn(sys.argv[1:])', ...bash], {
    input: `${lines.map((line) => `${line}\t\n`).join('')}exit\n`,
    encoding: 'utf8',
    env: { ...process.env, TERM: 'dumb', HOME: folder, INPUTRC: '/dev/null', KUBECONFIG: join(folder, 'kubeconfig') },
  })
  return [...stdout.matchAll(/^RAN (.*?)\r?$/gm)].map(([, words]) => words!)
}

test('a bash at a terminal completes commands, flags and values, also behind = and in names with : and @', async (t) => {
  const [arn, admin] = contexts
  const typed = {
    'lanyard get cl': '<get> <clusters>',
    'lanyard   get clusters --outp': '<get> <clusters> <--output>',
    'lanyard version --output=y': '<version> <--output=yaml>',
    'lanyard get clusters --context arn:aws:eks:eu-w': `<get> <clusters> <--context> <${arn}>`,
    'lanyard get clusters --context=arn:': `<get> <clusters> <--context=${arn}>`,
    'lanyard get clusters --context=kubernetes-admin@': `<get> <clusters> <--context=${admin}>`,
    [`lanyard get --context ${arn} works --clu`]: `<get> <--context> <${arn}> <works> <--clusters>`,
  }
  assert.deepEqual(await typedInBash(t, Object.keys(typed)), Object.values(typed))
})
