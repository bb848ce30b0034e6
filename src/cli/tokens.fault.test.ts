/** `lanyard token` and `lanyard kubeconfig`, with a real hub that manages itself as c1, and real kubectls. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import {
  eventually,
  programPath,
  rounds,
  runCli,
  seededRandom,
  startControlPlane,
  startFaultProxy,
  type ControlPlane,
} from '../../testkit/index.ts'
import { startTokenScene, type Minted, type TokenScene } from '../../testkit/token-scene.ts'
import { ManagedCluster } from '../api/index.ts'
import { mergedText } from './tokens/merge.ts'

let hub: ControlPlane
let scene: TokenScene
let minted: Minted
const slow = { timeoutMs: 90_000 }
const who = '--cluster c1 --name reader'.split(' ')

before(async () => {
  hub = await startControlPlane({ controllerManager: false })
  scene = await startTokenScene(hub)
  await scene.join('c1', hub)
  await scene.account('c1', 'reader')
  minted = await scene.rotate('c1', 'reader')
})
after(() => hub?.stop())

/** A home folder with a cache of its own. */
const home = (): string => mkdtempSync(join(tmpdir(), 'lanyard-home-'))
const environment = (HOME: string) => ({ HOME, PATH: process.env['PATH'], KUBECONFIG: hub.kubeconfig })
const clockAt = (shift: () => number) => ({
  now: () => Date.now() + shift(),
  after: (_: number, run: () => void) => {
    const timer = setTimeout(run, 5)
    return () => clearTimeout(timer)
  },
})
const readsSince = async (since: Date): Promise<string[]> =>
  (await hub.requestsBy('lanyard-token', { since })).entries.map(({ verb, uri }) => `${verb} ${uri}`)
const oneRead = ['get /api/v1/namespaces/c1/secrets/reader']

interface ExecCredential {
  apiVersion: string
  status: { token: string; expirationTimestamp: string }
}
const printed = (out: string) => JSON.parse(out) as ExecCredential

test('R5.28 50 kubectl at once, with a kubeconfig that lanyard has written, make one read of the hub', async () => {
  const HOME = home()
  const file = join(HOME, 'c1.kubeconfig')
  const args = [
    'kubeconfig',
    '--cluster',
    'c1',
    '--service-account',
    'reader',
    '--exec-command',
    programPath('lanyard'),
  ]
  const { code, out, err } = await runCli([...args, '--file', file], { env: environment(HOME), program: 'lanyard' })
  assert.deepEqual([code, out], [0, ''], err)
  assert.equal(statSync(file).mode & 0o777, 0o600)
  assert.ok(!readFileSync(file, 'utf8').includes(minted.token.split('.')[2]!), 'it holds no token')

  // However long 50 processes take on the machine that runs this test.
  const longer = readFileSync(file, 'utf8').replace(/\n( +)- token\n/, '\n$1- token\n$1- --max-age=1h\n')
  assert.match(longer, /max-age/)
  writeFileSync(file, longer)
  const since = new Date()
  const path = '/api/v1/namespaces/default/pods'
  const asking = ['get', '--raw', path, '--request-timeout=120s']
  const kubectl = () => hub.kubectl(asking, { kubeconfig: file, env: { HOME } })
  const lists = await Promise.all(Array.from({ length: 50 }, kubectl))
  assert.equal(lists.filter((list) => (JSON.parse(list) as { kind: string }).kind === 'PodList').length, 50)
  assert.deepEqual(await readsSince(since), oneRead)
  const reader = { user: 'system:serviceaccount:open-cluster-management-agent-addon:reader' }
  const { entries } = await hub.requestsBy(reader, { since })
  assert.equal(entries.filter(({ resource, code }) => resource === 'pods' && code === 200).length, 50)
})

test('R5.28 the plug-in says when a token ends, notices rotation within a minute and the end of a token at once', async () => {
  const env = environment(home())
  let shift = 0
  const clock = clockAt(() => shift)
  const token = async () => printed((await runCli(['token', ...who], { env, clock })).out)
  const first = await token()
  assert.equal(first.apiVersion, 'client.authentication.k8s.io/v1')
  assert.equal(first.status.token, minted.token)
  assert.equal(first.status.expirationTimestamp, minted.expires)

  minted = await scene.rotate('c1', 'reader')
  assert.notEqual((await token()).status.token, minted.token)
  shift = 61_000
  assert.equal((await token()).status.token, minted.token)
  const next = await scene.rotate('c1', 'reader')
  shift = Date.parse(minted.expires) - Date.now() + 1
  minted = next
  const { out } = await runCli(['token', ...who, '-o', 'token'], { env, clock })
  assert.equal(out.trim(), next.token)
})

test('R5.28 what a client asks for in KUBERNETES_EXEC_INFO is heeded: the version, and the cluster of a ClusterProfile', async () => {
  const run = (info: object, args: string[]) =>
    runCli(['token', ...args], { env: { ...environment(home()), KUBERNETES_EXEC_INFO: JSON.stringify(info) } })
  const beta = 'client.authentication.k8s.io/v1beta1'
  const spec = { cluster: { server: hub.server, config: { clusterName: 'c1' } } }
  const given = await run({ apiVersion: beta, spec }, ['--managed-serviceaccount', 'reader'])
  assert.equal(printed(given.out).apiVersion, beta)
  assert.equal(printed(given.out).status.token, minted.token)
  const unknown = await run({ apiVersion: 'client.authentication.k8s.io/v1alpha1' }, who)
  assert.equal(unknown.code, 2)
  assert.match(unknown.err, /which this plug-in does not speak: write apiVersion: client.authentication.k8s.io\/v1/)
  assert.match((await run({ apiVersion: beta }, ['--name', 'reader'])).err, /--cluster is missing/)
})

test('R5.28 what is missing is said, with the right that it takes; no token is in any of it', async () => {
  const said = async (words: string, kubeconfig = hub.kubeconfig) => {
    const { code, err } = await runCli(words.split(' '), { env: { ...environment(home()), KUBECONFIG: kubeconfig } })
    assert.equal(code, 1, err)
    return err
  }
  assert.match(await said('token --cluster c1 --name nobody'), /no ManagedServiceAccount c1\/nobody: create it/)
  assert.match(await said('token --cluster c9 --name reader'), /no ManagedCluster c9/)
  await scene.account('c1', 'silent')
  assert.match(await said('token --cluster c1 --name silent'), /has no token yet: no agent has answered/)
  const kim = hub.kubeconfigFor({ user: 'kim' })
  assert.match(await said(`token ${who.join(' ')}`, kim), /may not read the token .*\n.*Secret reader in namespace c1/)
  assert.match(await said('kubeconfig --cluster c8 --service-account reader'), /no cluster c8\n.*there are c1/)
  await hub
    .client()
    .of(ManagedCluster)
    .create({ metadata: { name: 'far' }, spec: {} })
  const noAddress = await runCli(['kubeconfig', '--cluster', 'c1', '--service-account', 'reader', '--embed-token'])
  assert.match(noAddress.err, /--embed-token needs --file/)
})

test('R5.28 a kubeconfig whose current context is the managed cluster does not make the plug-in start itself for ever', async () => {
  const HOME = home()
  const file = join(HOME, 'config')
  cpSync(hub.kubeconfig, file)
  const env = { ...environment(HOME), KUBECONFIG: file }
  const merged = await runCli(
    ['kubeconfig', '--cluster', 'c1', '--service-account', 'reader', '--merge', '--use', '-n', 'default'],
    { env, program: 'lanyard' },
  )
  assert.equal(merged.code, 0, merged.err)
  const { code, err } = await runCli(['token', ...who], { env })
  assert.equal(code, 1)
  assert.match(err, /context reader@c1 is a managed cluster, .*\n.*name the hub with --context/)
  const contexts = await hub.kubectl(['config', 'get-contexts', '-o', 'name'], { kubeconfig: file })
  assert.ok(contexts.includes('reader@c1'), contexts)
  assert.equal(contexts.trim().split('\n').length, 2)
})

test('R5.29 kubeconfig prints YAML or JSON without a secret, and embeds the token only in a file that nobody else can read', async () => {
  const HOME = home()
  const env = environment(HOME)
  const args = ['kubeconfig', '--cluster', 'c1', '--service-account', 'reader']
  const json = await runCli([...args, '-o', 'json'], { env, program: 'lanyard' })
  const document = JSON.parse(json.out) as { 'current-context': string; users: { user: { exec: object } }[] }
  assert.equal(document['current-context'], 'reader@c1')
  assert.deepEqual(document.users[0]!.user.exec, {
    interactiveMode: 'Never',
    apiVersion: 'client.authentication.k8s.io/v1',
    command: 'lanyard',
    args: ['token', '--cluster', 'c1', '--name', 'reader', '--context', 'testkit'],
    env: [{ name: 'KUBECONFIG', value: hub.kubeconfig }],
    installHint: 'lanyard is not in your PATH; write this again with --exec-command and its path',
  })
  const file = join(HOME, 'embedded')
  const dry = await runCli([...args, '--embed-token', '--file', file, '--dry-run'], { env })
  assert.match(dry.err, /would be in/)
  assert.ok(!existsSync(file))
  await runCli([...args, '--embed-token', '--file', file], { env })
  assert.equal(statSync(file).mode & 0o777, 0o600)
  const pods = await hub.kubectl(['get', '--raw', '/api/v1/pods'], { kubeconfig: file })
  assert.equal((JSON.parse(pods) as { kind: string }).kind, 'PodList')
})

test('R5.29 the commands explain themselves, and clusters are completed', async () => {
  for (const command of ['token', 'kubeconfig']) {
    const { code, out } = await runCli([command, '--help'], { program: 'lanyard' })
    assert.equal(code, 0)
    assert.match(out, new RegExp(`Usage: lanyard ${command}`))
    const completed = await runCli(['__complete', '--', command, '--cluster', 'c'], { env: environment(home()) })
    assert.equal(completed.out.trim(), 'c1')
  }
})

test('R5.29 merging keeps what is there, comments too, and replaces what has the same name', async () => {
  const present =
    '# mine\napiVersion: v1\nkind: Config\ncurrent-context: a # work\ncontexts:\n  - name: a\n    context: { cluster: a }\nclusters: []\n'
  const context = (cluster: string) =>
    `apiVersion: v1\nkind: Config\nclusters: [{ name: b, cluster: { server: "https://${cluster}" } }]\nusers: [{ name: b, user: {} }]\ncontexts: [{ name: b, context: { cluster: b, user: b } }]\ncurrent-context: b\n`
  const once = await mergedText(present, context('one'), { source: 'mine', use: false })
  assert.match(once, /^# mine\n/)
  assert.match(once, /current-context: a # work/)
  const twice = await mergedText(once, context('two'), { source: 'mine', use: true })
  assert.match(twice, /https:\/\/two/)
  assert.doesNotMatch(twice, /https:\/\/one/)
  assert.match(twice, /current-context: b/)
  await assert.rejects(mergedText('contexts: 7', context('one'), { source: 'mine', use: false }), /mine.*contexts/)
})

test('R5.28 a plug-in that is killed while it asks the hub holds nobody up', async (t) => {
  const random = seededRandom(t)
  const proxy = await startFaultProxy(hub, { user: 'killed', groups: ['system:masters'] })
  t.after(() => proxy.stop())
  for (let round = 0; round < rounds(3); round++) {
    const HOME = home()
    const env = { ...environment(HOME), KUBECONFIG: proxy.kubeconfig }
    proxy.stall()
    const victim = spawn(programPath('lanyard'), ['token', ...who], { env, stdio: 'ignore' })
    const folder = join(HOME, '.cache', 'lanyard', 'tokens')
    await eventually(() => existsSync(folder) && readdirSync(folder).some((name) => name.endsWith('.lock')), slow)
    const waiting = Array.from({ length: 3 }, () => runCli(['token', ...who], { env }))
    await new Promise((resolve) => setTimeout(resolve, random.below(60))) // anywhere in the waiting of the others
    victim.kill('SIGKILL')
    await once(victim, 'exit')
    proxy.release()
    for (const { code, out, err } of await Promise.all(waiting)) {
      assert.equal(code, 0, err)
      assert.equal(printed(out).status.token, minted.token)
    }
    assert.equal(readdirSync(folder).filter((name) => name.endsWith('.lock')).length, 0)
  }
})

test('R5.28 while the hub is away the plug-in goes on with the token that it has, and says so', async (t) => {
  const proxy = await startFaultProxy(hub, { user: 'away', groups: ['system:masters'] })
  t.after(() => proxy.stop())
  const env = { ...environment(home()), KUBECONFIG: proxy.kubeconfig }
  let shift = 0
  const clock = clockAt(() => shift)
  assert.equal((await runCli(['token', ...who], { env, clock })).code, 0)
  shift = 61_000
  proxy.answer({}, { status: 503, body: { kind: 'Status', message: 'away' } }, { times: 100 })
  const { code, out, err } = await runCli(['token', ...who], { env, clock })
  assert.equal(code, 0, err)
  assert.equal(printed(out).status.token, minted.token)
  assert.match(err, /the hub does not answer, the token from before is used/)
  writeFileSync(proxy.kubeconfig, `${readFileSync(proxy.kubeconfig, 'utf8')}\n`)
  assert.equal(
    (await runCli(['token', ...who], { env, clock })).code,
    1,
    'a kubeconfig that changed may mean another hub',
  )
})
