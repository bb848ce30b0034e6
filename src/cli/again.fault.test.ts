/** Commands that are interrupted at any moment, run twice at the same time, or meet a hub that is gone: the next run finishes. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { crds, finalizer, installCrds, Klusterlet } from '../api/index.ts'
import { CertificateSigningRequest, kubeconfigText, Namespace, Secret, type Client } from '../kube/index.ts'
import {
  rounds,
  runCli,
  seededRandom,
  startControlPlane,
  type CliResult,
  type ControlPlane,
} from '../../testkit/index.ts'

let hub: ControlPlane
let managed: ControlPlane
let local: Client
let join: string[]

const at = (plane: ControlPlane, args: readonly string[], signal?: AbortSignal): Promise<CliResult> =>
  runCli([...args, '--kubeconfig', plane.kubeconfig], signal ? { signal } : {})
const ok = (result: CliResult): CliResult => {
  assert.equal(result.code, 0, result.err)
  return result
}

/** Sets up the hub, and answers with the command that joins it. */
const init = async (): Promise<string[]> => {
  const ticket = JSON.parse(ok(await at(hub, ['init', '-o', 'json'])).out) as Record<string, string>
  const words = `join --hub-token ${ticket['hub-token']} --hub-apiserver ${ticket['hub-apiserver']} --cluster-name c1`
  return [...words.split(' '), '--ca-hash', ticket['ca-hash']!]
}

before(async () => {
  ;[hub, managed] = await Promise.all([startControlPlane(), startControlPlane()])
  local = managed.client()
  await installCrds(hub.client(), crds({ conversion: 'none' }))
  join = await init()
})
after(() => Promise.all([hub.stop(), managed.stop()]))

/** Interrupts a command after a while, as Ctrl-C does; it ends by itself where it was quicker. */
const interrupted = async (plane: ControlPlane, args: readonly string[], afterMs: number): Promise<void> => {
  const stop = new AbortController()
  const timer = setTimeout(() => stop.abort(new Error('SIGINT')), afterMs)
  const { code, err } = await at(plane, args, stop.signal)
  clearTimeout(timer)
  assert.ok(code === 0 || code === 130, `${code}: ${err}`)
  if (code === 130) assert.match(err, /Error: interrupted\n {2}what was done stays; run the same command again/)
}

test('R1.65 init, join, unjoin and clean that are interrupted at any moment are finished by the next run', async (t) => {
  const random = seededRandom(t)
  for (let round = 0; round < rounds(1); round++) {
    await interrupted(hub, ['init'], random.below(600))
    join = await init()
    const own = (await hub.client().of(CertificateSigningRequest).list()).items
    assert.deepEqual(
      own.map(({ metadata }) => metadata.name),
      [],
    )
    await interrupted(managed, join, random.below(600))
    ok(await at(managed, join))
    assert.equal((await local.of(Klusterlet).get('klusterlet')).spec?.clusterName, 'c1')
    await interrupted(managed, ['unjoin'], random.below(600))
    ok(await at(managed, ['unjoin']))
    const left = await managed.kubectl(['get', 'crds,namespaces,clusterroles', '-o', 'name'])
    assert.doesNotMatch(left, /open-cluster-management/)
    await interrupted(hub, ['clean'], random.below(600))
    ok(await at(hub, ['clean']))
    const there = await hub.kubectl(['get', 'namespaces,clusterroles,clusterrolebindings', '-o', 'name'])
    assert.doesNotMatch(there, /open-cluster-management/)
  }
  join = await init()
})

test('R1.65 a command that is interrupted says so with exit code 130, and has cleaned up after itself', async () => {
  const stop = new AbortController()
  const run = runCli(['init', '--kubeconfig', hub.kubeconfig], {
    signal: stop.signal,
    onErr: (text) => text.includes('signs client') && stop.abort(),
  })
  const { code, err } = await run
  assert.equal(code, 130, err)
  assert.match(err, /Error: interrupted\n {2}what was done stays; run the same command again to finish it\n$/)
  assert.deepEqual((await hub.client().of(CertificateSigningRequest).list()).items, [])
})

test('R1.65 join and unjoin, each twice at the same time: both end well, or one says why not', async () => {
  for (const { code, err } of await Promise.all([at(managed, join), at(managed, join)])) assert.equal(code, 0, err)
  const both = await Promise.all([at(managed, ['unjoin']), at(managed, ['unjoin'])])
  for (const { code, err } of both) if (code !== 0) assert.match(err, /Error: /)
  ok(await at(managed, ['unjoin']))
})

test('R1.65 an unjoin that ended between agent and namespace is finished by the next one', async () => {
  ok(await at(managed, join))
  await local.of(Klusterlet).delete('klusterlet')
  assert.match(ok(await at(managed, ['unjoin'])).out, /What an earlier unjoin left is removed/)
  assert.equal(await local.of(Namespace).find('open-cluster-management-agent'), undefined)
})

const withHubCredential = async (server: string): Promise<void> => {
  ok(await at(managed, join))
  const { cert, key } = hub.clientCertificate({
    user: 'system:open-cluster-management:c1:a',
    groups: ['system:open-cluster-management:c1'],
  })
  const kubeconfig = await kubeconfigText({
    cluster: 'hub',
    server,
    ca: hub.ca,
    user: { certFile: 'tls.crt', keyFile: 'tls.key' },
  })
  const namespace = 'open-cluster-management-agent'
  const stringData = { kubeconfig, 'cluster-name': 'c1', 'agent-name': 'a', 'tls.crt': cert, 'tls.key': key }
  await local.of(Secret, namespace).create({ metadata: { name: 'hub-kubeconfig-secret', namespace }, stringData })
}

test('R1.54 a hub that is gone does not keep a cluster: unjoin says what remains there', async () => {
  await withHubCredential('https://127.0.0.1:1')
  const { out, err } = ok(await at(managed, ['unjoin', '--cluster-name', 'c1']))
  assert.match(err, /Warning: https:\/\/127\.0\.0\.1:1 was not told: .*nothing accepts connections there/)
  assert.match(out, /What remains on https:\/\/127\.0\.0\.1:1, if it still exists: ManagedCluster c1/)
  assert.equal(await local.of(Namespace).find('open-cluster-management-agent'), undefined)
})

test('R1.65 a Klusterlet whose operator does not run is waited for until --timeout, with exit code 3 and the reason', async () => {
  ok(await at(managed, join))
  await local.of(Klusterlet).patch('klusterlet', { merge: { metadata: { finalizers: [finalizer.klusterlet] } } })
  const { code, err } = await at(managed, ['unjoin', '--timeout', '1'])
  assert.equal(code, 3, err)
  assert.match(
    err,
    /Error: gave up after 1 s waiting for the operator to remove agent klusterlet: the operator does not run \(.*\)\n {2}is the operator running\?/,
  )
  // Without an operator at all nobody else would do it.
  await managed.kubectl(['delete', 'deployment', 'klusterlet', '--namespace', 'open-cluster-management'])
  assert.match(ok(await at(managed, ['unjoin'])).err, /Warning: the operator is gone already/)
  assert.match(ok(await at(managed, ['unjoin'])).out, /nothing to do/)
})
