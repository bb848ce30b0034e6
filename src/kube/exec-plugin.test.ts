import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { inspect } from 'node:util'
import { createAuthority, issue } from '../runtime/pki/index.ts'
import type { CredentialSource } from './connection.ts'
import { credentialFromExec } from './exec-plugin.ts'
import type { ExecPlugin } from './exec-plugin.ts'
import { KubeconfigError } from './kubeconfig-error.ts'
import type { ExecConfig } from './kubeconfig-schema.ts'

const v1 = 'client.authentication.k8s.io/v1'
const answer = (status: unknown, apiVersion = v1): string =>
  JSON.stringify({ kind: 'ExecCredential', apiVersion, status })
const seconds = (at: number): string => new Date(at * 1000).toISOString()

interface Bench {
  folder: string
  /** What the plug-in prints from now on. */
  prints: (text: string) => Promise<void>
  runs: () => Promise<number>
  at: (seconds: number) => void
  credentials: CredentialSource
}

/** A plug-in that is a shell script; by default it counts its runs and prints the file `answer`. */
const bench = async (
  t: TestContext,
  script = 'cat "$HERE/answer"',
  exec: ExecConfig = {},
  options: Partial<ExecPlugin> = {},
): Promise<Bench> => {
  const folder = await mkdtemp(path.join(tmpdir(), 'lanyard-exec-'))
  t.after(() => rm(folder, { recursive: true }))
  const command = path.join(folder, 'plug-in')
  await writeFile(command, `#!/bin/sh\necho run >> "$HERE/runs"\n${script}\n`, { mode: 0o755 })
  let clock = 0
  return {
    folder,
    prints: (text) => writeFile(path.join(folder, 'answer'), text),
    runs: async () => (await readFile(path.join(folder, 'runs'), 'utf8').catch(() => '')).split('\n').length - 1,
    at: (now) => (clock = now * 1000),
    credentials: credentialFromExec({
      exec: { apiVersion: v1, command, interactiveMode: 'Never', ...exec },
      cluster: async () => ({ server: 'https://h' }),
      source: 'user "u" of file',
      env: { PATH: process.env['PATH'], HERE: folder, INHERITED: 'yes' },
      now: () => clock,
      ...options,
    }),
  }
}

const refusal =
  (...says: RegExp[]) =>
  (error: Error): boolean => {
    assert.ok(error instanceof KubeconfigError, `${error.stack}`)
    for (const one of [/^user "u" of file: exec plug-in ".+": .+; .+/, ...says]) assert.match(error.message, one)
    assert.doesNotMatch(inspect(error, { depth: 9 }), /SECRET/)
    return true
  }

test('R0.6 a token is asked for once, however many callers there are, and kept', async (t) => {
  const { prints, runs, credentials, at } = await bench(t)
  await prints(answer({ token: 'one' }))

  const all = await Promise.all(Array.from({ length: 20 }, () => credentials()))

  assert.deepEqual(all[0], { token: 'one' })
  assert.equal(new Set(all).size, 1)
  at(10_000_000)
  assert.equal(await credentials(), all[0])
  assert.equal(await runs(), 1)
})

test('R0.6 v1beta1 and client certificates work', async (t) => {
  const authority = createAuthority({ commonName: 'ca', validForMs: 1e6, now: new Date() })
  const pair = issue(authority, {
    commonName: 'c',
    usages: ['client'],
    notBefore: new Date(),
    notAfter: new Date(Date.now() + 1e6),
  })
  const v1beta1 = 'client.authentication.k8s.io/v1beta1'
  const { prints, credentials } = await bench(t, undefined, { apiVersion: v1beta1 })
  await prints(answer({ clientCertificateData: pair.cert, clientKeyData: pair.key }, v1beta1))
  assert.deepEqual(await credentials(), pair)
})

test('R0.6 the plug-in gets arguments, inherited and own environment, and what KUBERNETES_EXEC_INFO says', async (t) => {
  const cluster = { server: 'https://h', 'tls-server-name': undefined, config: { audience: 'a' } }
  const { folder, credentials } = await bench(
    t,
    `printf '%s\\n' "$KUBERNETES_EXEC_INFO" "$INHERITED" "$OWN" "$@" > "$HERE/seen"; echo '${answer({ token: 't' })}'`,
    {
      args: ['a b', '', '$HOME'],
      env: [
        { name: 'OWN', value: 'mine' },
        { name: 'INHERITED', value: 'no' },
      ],
      provideClusterInfo: true,
    },
    { cluster: async () => cluster },
  )
  await credentials()
  const [info = '', ...rest] = (await readFile(path.join(folder, 'seen'), 'utf8')).split('\n')
  assert.deepEqual(rest, ['no', 'mine', 'a b', '', '$HOME', ''])
  assert.deepEqual(JSON.parse(info), {
    kind: 'ExecCredential',
    apiVersion: v1,
    spec: { interactive: false, cluster: { server: 'https://h', config: { audience: 'a' } } },
  })
})

test('R0.6 an expiring token is renewed at nine tenths of its life, at most a minute early', async (t) => {
  const { prints, runs, credentials, at } = await bench(t)
  await prints(answer({ token: 'one', expirationTimestamp: seconds(100) }))
  await credentials()
  await prints(answer({ token: 'two', expirationTimestamp: seconds(10_000) }))
  at(89)
  assert.equal((await credentials()).token, 'one')
  at(90)
  assert.equal((await credentials()).token, 'two')
  at(9939)
  assert.equal((await credentials()).token, 'two')
  assert.equal(await runs(), 2)
  at(9940)
  await prints(answer({ token: 'three' }))
  assert.equal((await credentials()).token, 'three')
})

test('R0.6 a token is fetched anew after a 401, unless that was done already', async (t) => {
  const { prints, runs, credentials } = await bench(t)
  await prints(answer({ token: 'one' }))
  const first = await credentials()
  await prints(answer({ token: 'two' }))

  const after = await Promise.all([1, 2, 3].map(() => credentials({ rejected: first })))

  assert.deepEqual(
    after.map(({ token }) => token),
    ['two', 'two', 'two'],
  )
  assert.equal((await credentials({ rejected: first })).token, 'two')
  assert.equal(await runs(), 2)
})

test('R0.6 a server that refuses everything does not make the plug-in run for every request', async (t) => {
  const { prints, runs, credentials, at } = await bench(t)
  await prints(answer({ token: 'one' }))
  let current = await credentials()
  for (let second = 0; second < 60; second += 1) {
    at(second)
    await prints(answer({ token: `${second}` }))
    current = await credentials({ rejected: current })
    current = await credentials({ rejected: current })
  }
  assert.equal(await runs(), 7) // at the start, then after 0, 1, 3, 7, 15 and 31 s

  at(1000)
  await prints(answer({ token: 'later' }))
  assert.equal((await credentials({ rejected: current })).token, 'later')
})

test('R0.6 the same answer after a 401 gives the same object, so that nobody tries again in vain', async (t) => {
  const { prints, runs, credentials } = await bench(t)
  await prints(answer({ token: 'one' }))
  const first = await credentials()
  assert.equal(await credentials({ rejected: first }), first)
  assert.equal(await runs(), 2)
})

test('R0.38 a plug-in that fails is not run again at once, and its last credential is used until it expires', async (t) => {
  const { folder, prints, runs, credentials, at } = await bench(t, 'cat "$HERE/answer" || exit 3')
  await prints(answer({ token: 'one', expirationTimestamp: seconds(100) }))
  const first = await credentials()
  await rm(path.join(folder, 'answer'))

  at(95)
  assert.equal(await credentials(), first)
  assert.equal(await credentials(), first)
  assert.equal(await runs(), 2)
  await assert.rejects(credentials({ rejected: first }), refusal(/failed with exit code 3/))
  assert.equal(await runs(), 2)
  at(96)
  assert.equal(await credentials(), first) // and waits two seconds now
  at(97)
  assert.equal(await credentials(), first)
  assert.equal(await runs(), 3)
  at(100)
  await assert.rejects(credentials(), refusal(/failed with exit code 3/))
  await prints(answer({ token: 'two' }))
  await assert.rejects(credentials(), refusal(/failed with exit code 3/))
  at(200)
  assert.equal((await credentials()).token, 'two')
})

test('R0.38 a missing plug-in is named, with the hint of the kubeconfig', async (t) => {
  const hint = { installHint: 'see \u001b[31mhttps://example.com' }
  const absolute = await bench(t, '', { command: '/none/plug-in', ...hint })
  await assert.rejects(
    absolute.credentials(),
    refusal(/"\/none\/plug-in" does not exist; install it: "see \\u001b\[31mhttps:/),
  )
  const bare = await bench(t, '', { command: 'no-such-plug-in', args: ['SECRET'] })
  await assert.rejects(bare.credentials(), refusal(/"no-such-plug-in" is not in any folder of PATH; install it$/))
  const forbidden = await bench(t, '', { command: tmpdir() })
  await assert.rejects(forbidden.credentials(), refusal(/may not be executed/))
  const impossible = await bench(t, '', { args: ['SECRET\0'] })
  await assert.rejects(impossible.credentials(), refusal(/cannot be started with these arguments/))
})

test('R0.38 a failing plug-in is shown with its exit code and the end of what it complained', async (t) => {
  const { credentials } = await bench(
    t,
    `echo '{"token":"SECRET"}'; for i in 1 2 3 4 5 6 7; do echo "line $i" >&2; done
     printf '\\033[31mred\\033[0m eyJhbGciOi.eyJzdWIiOi.SECRET \\n-----BEGIN EC PRIVATE KEY-----\\nSECRET' >&2; exit 42`,
  )
  await assert.rejects(
    credentials(),
    refusal(
      /it failed with exit code 42, saying: line 5 \| line 6 \| line 7 \| red \[token\] \| \[PEM\]; run it by hand/,
    ),
  )
  const killed = await bench(t, 'kill -TERM $$')
  await assert.rejects(killed.credentials(), refusal(/it was ended by SIGTERM/))
})

// What a plug-in may print instead of a credential; none of it may be shown.
const rubbish: [title: string, printed: string, says: RegExp][] = [
  ['nothing', '', /something that is not a JSON object/],
  ['text', 'SECRET', /something that is not a JSON object/],
  ['a list', '["SECRET"]', /not a JSON object/],
  ['null', 'null', /not a JSON object/],
  ['cut JSON', answer({ token: 'SECRET' }).slice(0, -4), /not a JSON object/],
  ['another kind', '{"kind":"SECRET"}', /whose kind is not ExecCredential/],
  [
    'another version',
    answer({ token: 'SECRET' }, 'client.authentication.k8s.io/v1beta1'),
    /answers with apiVersion ".*v1beta1", but ".*\/v1"/,
  ],
  ['a strange version', answer({ token: 'SECRET' }, '\u001bSECRET'), /apiVersion of another form/],
  ['no status', answer(undefined), /without a status/],
  ['a status of text', answer('SECRET'), /without a status/],
  ['an empty status', answer({ secret: 'SECRET' }), /neither a token nor a certificate/],
  ['a token that is a number', answer({ token: 1 }), /must be text/],
  ['a token that cannot be sent', answer({ token: 'SECRET\r\nX: y' }), /cannot be sent in a header/],
  ['a certificate without a key', answer({ clientCertificateData: 'SECRET' }), /a certificate or a key, but not both/],
  [
    'a certificate that is none',
    answer({ clientCertificateData: 'SECRET', clientKeyData: 'SECRET' }),
    /no certificate in PEM form/,
  ],
  ['a time that is none', answer({ token: 'SECRET', expirationTimestamp: 'SECRET' }), /not an RFC 3339 time/],
  ['a time that is a number', answer({ token: 'SECRET', expirationTimestamp: 12 }), /not an RFC 3339 time/],
  ['an expired token', answer({ token: 'SECRET', expirationTimestamp: seconds(-1) }), /expired at 1969-12-31T23:59:59/],
]
for (const [title, printed, says] of rubbish) {
  test(`R0.38 a plug-in that prints ${title} is refused without showing it`, async (t) => {
    const { prints, credentials } = await bench(t)
    await prints(printed)
    await assert.rejects(credentials(), refusal(says))
  })
}

test('R0.38 a plug-in that prints without end is stopped', async (t) => {
  const { credentials } = await bench(t, 'yes SECRET')
  await assert.rejects(credentials(), refusal(/it printed more than 1 MiB and was ended/))
})

/** A plug-in that hangs, with a child of its own that hangs too and keeps a connection to us while it lives. */
const hanging = async (t: TestContext): Promise<{ started: () => Promise<Socket>; bench: Bench }> => {
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    t.after(() => socket.destroy())
  }).listen(0, '127.0.0.1')
  t.after(() => server.close())
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  const script = `"$NODE" -e "require('net').connect(${port}, '127.0.0.1').resume().on('close', process.exit)" &\nwait`
  const started = async (): Promise<Socket> => {
    const [socket] = (await once(server, 'connection')) as [Socket]
    return socket
  }
  return { started, bench: await bench(t, script, { env: [{ name: 'NODE', value: process.execPath }] }) }
}

test('R0.38 a plug-in that hangs is ended after a minute, with all that it started', async (t) => {
  const { started, bench } = await hanging(t)
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const asked = bench.credentials()
  const refused = assert.rejects(asked, refusal(/it did not finish within 60 s and was ended/))
  const socket = await started()

  t.mock.timers.tick(60_000)

  await Promise.all([refused, once(socket.resume(), 'close')])
})

test('R0.6 a caller that gives up leaves the others waiting; when the last has left, the plug-in is ended', async (t) => {
  const { started, bench } = await hanging(t)
  const [one, two] = [new AbortController(), new AbortController()]
  const first = bench.credentials({ signal: one.signal })
  const second = bench.credentials({ signal: two.signal })
  const socket = await started()

  one.abort(new Error('gave up'))
  await assert.rejects(first, /gave up/)
  assert.equal(socket.destroyed, false)
  two.abort(new Error('gave up, too'))
  await assert.rejects(second, /gave up, too/)

  await once(socket.resume(), 'close')
  await assert.rejects(bench.credentials({ signal: one.signal }), /gave up/)
  assert.equal(await bench.runs(), 1)
})

test('R0.6 giving up does not count as a failure of the plug-in: the next caller has it run at once', async (t) => {
  const { started, bench } = await hanging(t)
  for (const round of [1, 2]) {
    const caller = new AbortController()
    const asked = bench.credentials({ signal: caller.signal })
    const socket = await started()
    caller.abort(new Error(`gave up ${round}`))
    await assert.rejects(asked, new RegExp(`gave up ${round}`))
    await once(socket.resume(), 'close')
  }
})

test('R0.38 a plug-in under way does not outlive our process', async (t) => {
  const { started, bench } = await hanging(t)
  const script = `import { credentialFromExec } from ${JSON.stringify(new URL('exec-plugin.ts', import.meta.url).href)}
    const exec = { apiVersion: '${v1}', command: process.env.PLUGIN, interactiveMode: 'Never' }
    for (let i = 0; i < 20; i += 1) void credentialFromExec({ exec, cluster: async () => ({}), source: 's', env: process.env })()
    process.stdin.once('data', () => process.exit())`
  const env = {
    PATH: process.env['PATH'],
    NODE: process.execPath,
    HERE: bench.folder,
    PLUGIN: path.join(bench.folder, 'plug-in'),
  }
  const ours = spawn(process.execPath, ['--input-type=module', '-e', script], {
    env,
    stdio: ['pipe', 'ignore', 'pipe'],
  })
  const said = text(ours.stderr)
  const socket = await started()

  ours.stdin.end('exit')

  await once(socket.resume(), 'close')
  assert.equal(await said, '')
})

test('R0.6 a plug-in may ask a person only where there is a terminal and the kubeconfig lets it', async (t) => {
  const info = `sed 's/.*"interactive":\\([a-z]*\\).*/{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io\\/v1","status":{"token":"\\1"}}/'`
  const asked = async (interactiveMode: string, terminal: boolean): Promise<string | undefined> => {
    const { credentials } = await bench(
      t,
      `printf '%s\\n' "$KUBERNETES_EXEC_INFO" | ${info}`,
      { interactiveMode },
      { terminal },
    )
    return (await credentials()).token
  }
  assert.equal(await asked('Never', true), 'false')
  assert.equal(await asked('IfAvailable', false), 'false')
  assert.equal(await asked('IfAvailable', true), 'true')
  assert.equal(await asked('Always', true), 'true')
  await assert.rejects(
    asked('Always', false),
    refusal(/always asks a person .* there is no terminal; log in where there is one/),
  )
})

test('R0.6 without a terminal the plug-in reads nothing from us', async (t) => {
  const { credentials } = await bench(t, `cat > /dev/null; echo '${answer({ token: 't' })}'`)
  assert.equal((await credentials()).token, 't')
})
