import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runCli } from '../../testkit/run-cli.ts'
import type { Branch } from './command.ts'
import { root } from './run.ts'

test('without words the program explains itself, under the name it was called by', async () => {
  for (const args of [[], ['--help'], ['-h'], ['help']]) {
    const { code, out, err } = await runCli(args, { program: 'clusterctl' })
    assert.equal(code, 0)
    assert.match(out, /^Usage: clusterctl COMMAND \[flags\]\n/)
    assert.match(out, /\n {2}join {2,}Ask a hub to manage a cluster\n/)
    assert.doesNotMatch(out, /__complete/)
    assert.equal(err, '')
  }
})

test('every command can be explained, and is listed where it belongs', async () => {
  const walk = async (branch: Branch, path: string[]): Promise<void> => {
    for (const [name, child] of Object.entries(branch.commands ?? {})) {
      if (child.group === 'Programs') continue // they explain themselves, on the process's own stdout
      const words = [...path, name]
      const { code, out } = await runCli([...words, '--help'])
      assert.equal(code, 0, words.join(' '))
      assert.ok(out.startsWith(`Usage: clusteradm ${words.join(' ')}`), out)
      await walk(child, words)
    }
  }
  await walk(root, [])
})

test('help for a command says the same by either way', async () => {
  const [asked, flag] = await Promise.all([runCli(['help', 'get', 'clusters']), runCli(['get', 'clusters', '--help'])])
  assert.equal(asked.out, flag.out)
  assert.match(flag.out, /--clusterset NAME {2,}Only those of this set/)
  assert.match(flag.out, /-o, --output FORM {2,}How to print: table, json or yaml \(table\)/)
})

test('an unknown command names the nearest, on stderr, with exit code 2', async () => {
  assert.deepEqual(await runCli(['acept']), {
    code: 2,
    out: '',
    err: 'Error: there is no command acept; did you mean accept?\n',
  })
  assert.match((await runCli(['get', 'clutsers'])).err, /there is no command get clutsers; did you mean get clusters\?/)
  assert.match((await runCli(['get', 'zzz'])).err, /there is no command get zzz; there follows token, clusters/)
})

test('an unknown flag or value names the nearest; a missing or extra word shows how it is written', async () => {
  const said = async (...args: string[]) => {
    const { code, out, err } = await runCli(args)
    assert.deepEqual([code, out], [2, ''], args.join(' '))
    return err
  }
  assert.match(await said('join', '--hub-tokn', 'x'), /there is no flag --hub-tokn; did you mean --hub-token\?/)
  assert.match(await said('init', '--registration-auth=aws-isra'), /not "aws-isra"; did you mean aws-irsa\?/)
  assert.match(await said('create', 'clusterset'), /NAME is missing: .*; write clusteradm create clusterset NAME/)
  assert.match(await said('create', 'clusterset', 'a', 'b'), /"b" is one word too many/)
  assert.match(await said('version', '-o', 'ymal'), /did you mean yaml\?/)
  assert.match(await said('completion', 'fihs'), /did you mean fish\?/)
})

test('flags that every command has may stand before it', async () => {
  const { code, err } = await runCli(['--kubeconfig', '/does/not/exist', '--timeout=5', 'get', 'clusters'])
  assert.equal(code, 1)
  assert.equal(err, 'Error: /does/not/exist: the file does not exist; check the path given for the kubeconfig\n')
})

test('the version is printed in every form', async () => {
  assert.match((await runCli(['version'])).out, /^clusteradm version \d+\.\d+\.\d+\n$/)
  const { program, version } = JSON.parse((await runCli(['version', '-o', 'json'])).out) as Record<string, string>
  assert.equal(program, 'clusteradm')
  assert.equal((await runCli(['version', '-o', 'yaml'])).out, `program: clusteradm\nversion: ${version}\n`)
})
