import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { endpointAuthority } from '../../testkit/grpc-agent.ts'
import {
  eventually,
  mustRun,
  runProgram,
  startControlPlane,
  startRunner,
  type ControlPlane,
} from '../../testkit/index.ts'
import type { Runner } from '../../testkit/runner/index.ts'
import { Pod } from '../../testkit/runner/kinds.ts'
import { localAddress } from '../../testkit/runner/node.ts'
import { stubRelay } from '../../testkit/stub-server.ts'
import { Klusterlet, ManagedCluster, ManifestWork, subject } from '../api/index.ts'
import { ConfigMap, decoded, Namespace, parseYaml, Secret, ServiceAccount, type SecretData } from '../kube/index.ts'
import { isTrue, systemClock } from '../runtime/index.ts'
import { issue } from '../runtime/pki/index.ts'
import type { Cli } from './command.ts'
import { Deployment } from './deployment.ts'
import { bootstrapWay, ownWay } from './doctor/way-to-hub.ts'
import { joinAdvice, type JoinTicket } from './token.ts'

let hub: ControlPlane
let managed: ControlPlane
let runners: Runner[] = []
before(async () => {
  ;[hub, managed] = await Promise.all([startControlPlane(), startControlPlane({ audit: false })])
  runners = await Promise.all([startRunner(hub), startRunner(managed)])
})
after(async () => {
  await Promise.all(runners.map((runner) => runner.stop()))
  await Promise.all([hub?.stop(), managed?.stop()])
})

/** A token of an account of the hub. */
const tokenOf = async (namespace: string, name: string): Promise<string> => {
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 3600 } }
  const accounts = hub.client().of(ServiceAccount, namespace)
  const { status } = await accounts.subresource<{ status: { token: string } }>(name, 'token', { method: 'POST', body })
  return status.token
}

/** What doctor finds out about the way of an agent, good and bad. */
const eachWayIsTold = async (good: SecretData, endpoint: string): Promise<void> => {
  const cli = { env: {}, program: 'doctor', signal: AbortSignal.timeout(60_000), clock: systemClock } as unknown as Cli
  const config = JSON.parse(JSON.stringify((await parseYaml(good['config.yaml']!)).value)) as Record<string, string>
  const changed = (change: object): SecretData => ({ 'config.yaml': JSON.stringify({ ...config, ...change }) })
  const outsider = await tokenOf('default', 'default')
  const ways: [string, SecretData][] = [
    ['open', good],
    ['forbidden', changed({ token: outsider })],
    ['unreachable', changed({ url: '127.0.0.1:1' })],
    ['distrusted', changed({ caData: Buffer.from(hub.ca).toString('base64') })],
    ['refused', changed({ token: 'nobody' })],
    ['broken', changed({ url: '' })],
  ]
  for (const [kind, data] of ways)
    assert.equal((await bootstrapWay(cli, { data, source: 'it', name: 'c1' })).kind, kind, `${kind} at ${endpoint}`)

  const authority = await endpointAuthority(hub)
  const { token: _, ...address } = config
  const own = (cluster: string, untilMs: number): SecretData => {
    const from = { notBefore: new Date(Date.now() - 3_600_000), notAfter: new Date(Date.now() + untilMs) }
    const organizations = [subject.clusterGroup(cluster), subject.managedClusters]
    const who = { commonName: subject.agentUser(cluster, 'agent1'), organizations, usages: ['client' as const] }
    const { cert, key } = issue(authority, { ...who, ...from })
    const files = { clientCertFile: 'tls.crt', clientKeyFile: 'tls.key' }
    const text = JSON.stringify({ ...address, ...files })
    return { 'config.yaml': text, 'tls.crt': cert, 'tls.key': key, 'cluster-name': 'c1', 'agent-name': 'agent1' }
  }
  const ownWays: [string, SecretData][] = [
    ['open', own('c1', 3_600_000)],
    ['refused', own('c1', -60_000)],
    ['forbidden', own('c2', 3_600_000)],
  ]
  for (const [kind, data] of ownWays) {
    const way = await ownWay(cli, { data, source: 'it', name: 'c1' })
    assert.equal(way.kind, kind, JSON.stringify(way))
  }
}

const patience = { timeoutMs: 120_000 }
const hubNamespace = 'open-cluster-management-hub'
const onHub = (...args: string[]): Promise<string> => mustRun('clusteradm', args, { plane: hub })

/** What the processes said, for a failure that the objects do not explain. */
const told = (): string => runners.map((runner) => runner.log().slice(-20_000)).join('\n')

test('R1.45 R1.51 R1.52 R1.54 R1.58 R1.64 R6.6 init, join, accept, work and unjoin over gRPC, through the program, the operators and their pods, with no more rights than the hub has', async (t) => {
  t.after(() => t.passed || t.diagnostic(told()))
  const advice = await onHub('init', '--wait', '--registration-auth=grpc', '--grpc-server=127.0.0.1:8090')
  const wayIn = '--registration-auth=grpc --grpc-server 127.0.0.1:8090 --grpc-ca-file grpc-ca.crt'
  assert.match(advice, new RegExp(`join --hub-token \\S+ ${wayIn} --wait --cluster-name <cluster_name>`))
  const pod = await eventually(async () => {
    const { items } = await hub.client().of(Pod, hubNamespace).list({ labelSelector: 'app=clustermanager-hub' })
    return items.find(({ status }) => status?.podIP) ?? false
  }, patience)
  // Pods have addresses of a cluster, and listen on loopback.
  const wire = await stubRelay(t, `https://${localAddress(pod.status!.podIP!)}:8090`)
  const endpoint = `127.0.0.1:${wire.port}`
  const file = join(hub.folder, 'grpc-ca.crt')
  // As init says: what it prints is run, with the words that a shell would make of it.
  const caCommand = /kubectl (.*) > grpc-ca\.crt/.exec(advice)![1]!.replaceAll("'", '').split(' ')
  writeFileSync(file, await hub.kubectl(caCommand))
  const ticket = JSON.parse(await onHub('get', 'token', '-o', 'json')) as Record<string, string>
  const joinCommand = ticket['join-command']!
  assert.equal(joinCommand, `clusteradm join --hub-token ${ticket['hub-token']} ${wayIn} --cluster-name <cluster_name>`)

  const asked = (...more: string[]): ReturnType<typeof runProgram> =>
    runProgram('clusteradm', ['join', '--registration-auth=grpc', '--cluster-name', 'c1', ...more], {
      plane: managed,
      env: { LANYARD_HUB_TOKEN: ticket['hub-token']! },
    })
  const refusals: [RegExp, string[]][] = [
    [/--grpc-ca-file is missing/, ['--grpc-server', endpoint]],
    [/not an address such as hub.example.com:8090/, ['--grpc-server', 'x/y', '--grpc-ca-file', file]],
    [/not from the CA in/, ['--grpc-server', endpoint, '--grpc-ca-file', join(hub.folder, 'ca.pem')]],
    [/cannot be reached/, ['--grpc-server', '127.0.0.1:1', '--grpc-ca-file', file]],
  ]
  for (const [why, args] of refusals) {
    const { code, stderr } = await asked(...args)
    assert.notEqual(code, 0)
    assert.match(stderr, why)
  }
  assert.equal(await managed.client().of(Namespace).find('open-cluster-management-agent'), undefined)

  // The command that was printed, from where the test can reach the endpoint.
  const here: Record<string, string> = { '127.0.0.1:8090': endpoint, 'grpc-ca.crt': file, '<cluster_name>': 'c1' }
  const printed = joinCommand
    .split(' ')
    .slice(1)
    .map((word) => here[word] ?? word)
  const { code, stderr } = await runProgram('clusteradm', [...printed, '--wait'], { plane: managed })
  assert.equal(code, 0, stderr)
  const secret = await managed.client().of(Secret, 'open-cluster-management-agent').get('bootstrap-hub-kubeconfig')
  assert.deepEqual(Object.keys(secret.data!), ['config.yaml'])
  const klusterlet = await managed.client().of(Klusterlet).get('klusterlet')
  assert.equal(klusterlet.spec?.registrationConfiguration?.registrationDriver?.authType, 'grpc')

  await onHub('accept', '--clusters', 'c1', '--wait')
  await eventually(async () => {
    const cluster = await hub.client().of(ManagedCluster).get('c1')
    for (const type of ['ManagedClusterJoined', 'ManagedClusterConditionAvailable'])
      assert.ok(isTrue(cluster, type), JSON.stringify(cluster.status))
  }, patience)
  await eachWayIsTold(decoded(secret)!, endpoint)
  const manifest = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'it', namespace: 'default' },
    data: { a: 'b' },
  }
  const works = hub.client().of(ManifestWork, 'c1')
  await works.create({ metadata: { name: 'it', namespace: 'c1' }, spec: { workload: { manifests: [manifest] } } })
  await eventually(async () => {
    assert.ok(isTrue(await works.get('it'), 'Applied'))
    assert.deepEqual((await managed.client().of(ConfigMap, 'default').get('it')).data, { a: 'b' })
  }, patience)
  await mustRun('clusteradm', ['unjoin', '--cluster-name', 'c1', '--force'], { plane: managed })
  assert.equal(await managed.client().of(ConfigMap, 'default').find('it'), undefined)
  assert.equal((await hub.client().of(ManagedCluster).get('c1')).spec.hubAcceptsClient, false)

  const user = `system:serviceaccount:${hubNamespace}:registration-controller-sa`
  const { entries } = await hub.requestsBy({ user })
  assert.ok(entries.length > 0)
  const no = entries.filter((one) => one.code === 403).map(({ verb, uri }) => `${verb} ${uri}`)
  assert.deepEqual(no, [])
})

/** On the same planes, because they are there: the hub becomes one for certificates too, and hosts the agent of the other. */
test('R1.54 R1.64 R1.66 R1.68 R1.69 the hub hosts the agent of another cluster: join, doctor, upgrade and unjoin look at the cluster that is meant', async (t) => {
  t.after(() => t.passed || t.diagnostic(told()))
  await onHub('init', '--wait', '--registration-auth=csr,grpc', '--grpc-server=127.0.0.1:8090')
  const ticket = JSON.parse(await onHub('get', 'token', '-o', 'json')) as Record<string, string>
  const place = ['--hub-apiserver', ticket['hub-apiserver']!, '--ca-hash', ticket['ca-hash']!, '--cluster-name', 'h1']
  const joinHosted = (...more: string[]): ReturnType<typeof runProgram> =>
    runProgram('clusteradm', ['join', '--mode', 'hosted', ...place, ...more], {
      plane: hub,
      env: { LANYARD_HUB_TOKEN: ticket['hub-token']! },
    })
  assert.match((await joinHosted()).stderr, /--managed-cluster-kubeconfig is missing/)
  assert.match(
    (await joinHosted('--managed-cluster-kubeconfig', hub.kubeconfig)).stderr,
    /is a hub, and .*\n {2}choose that cluster with --managed-/,
  )
  const joined = await joinHosted('--managed-cluster-kubeconfig', managed.kubeconfig, '--wait')
  assert.equal(joined.code, 0, joined.stderr)
  const [klusterlet] = (await hub.client().of(Klusterlet).list()).items
  assert.equal(klusterlet!.spec?.externalServerURLs, undefined, 'the address of the hub is not that of the cluster')
  await onHub('accept', '--clusters', 'h1', '--wait')
  const again = await joinHosted()
  assert.equal(again.code, 0, again.stderr)
  assert.match(again.stderr, /Everything is installed already/)

  const doctor = (...more: string[]): ReturnType<typeof runProgram> =>
    runProgram('clusteradm', ['doctor', 'h1', ...more], { plane: hub })
  await eventually(async () => {
    const { code, stdout } = await doctor()
    assert.deepEqual([code, stdout.match(/^ *(stuck|\?) .*/gm)], [0, null])
  }, patience)
  const there = await doctor('--managed-kubeconfig', managed.kubeconfig)
  assert.equal(there.code, 0, there.stdout)
  assert.match(there.stdout, /\? +the cluster was told to join: its agent runs on another cluster \(mode Hosted\)/)

  const manifest = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'hosted', namespace: 'default' } }
  const file = join(hub.folder, 'hosted.json')
  writeFileSync(file, JSON.stringify(manifest))
  await onHub('create', 'work', 'w1', '-f', file, '--clusters', 'h1', '--wait')
  const delivered = managed.client().of(ConfigMap, 'default')
  assert.ok(await delivered.find('hosted'))

  const name = klusterlet!.metadata.name!
  const runs = async (namespace: string, of: string): Promise<unknown[]> => {
    const { spec, status } = await hub.client().of(Deployment, namespace).get(of)
    return [spec.template.spec.containers[0]!.image, status?.updatedReplicas, status?.availableReplicas]
  }
  await onHub('upgrade', 'clustermanager', '--image', 'lanyard:next', '--wait')
  assert.deepEqual(await runs(hubNamespace, 'cluster-manager-hub'), ['lanyard:next', 1, 1])
  await onHub('upgrade', 'klusterlet', '--image', 'lanyard:next', '--wait')
  assert.deepEqual(await runs(name, `${name}-agent`), ['lanyard:next', 1, 1])

  const refused = await runProgram('clusteradm', ['unjoin', '--cluster-name', 'h1'], { plane: hub })
  assert.match(refused.stderr, /cluster h1 still carries out 1 works: w1\n/)
  assert.ok(await delivered.find('hosted'))
  await onHub('unjoin', '--cluster-name', 'h1', '--force')
  assert.equal(await delivered.find('hosted'), undefined)
  assert.equal(await hub.client().of(Namespace).find(name), undefined)
})

test('R6.6 a hub with several strategies tells both ways to join, and what has to be filled in', () => {
  const ticket: JoinTicket = { 'hub-token': 'secret', 'hub-apiserver': 'https://hub:6443', 'ca-hash': 'sha256:1' }
  const told = (more: Partial<JoinTicket>): string[] =>
    joinAdvice({ program: 'clusteradm' } as Cli, { ...ticket, ...more })
      .split('\n')
      .map((line) => line.trim())
  const byApi =
    'clusteradm join --hub-token secret --hub-apiserver https://hub:6443 --ca-hash sha256:1 --cluster-name <cluster_name>'
  const byGrpc = (at: string): string =>
    `clusteradm join --hub-token secret --registration-auth=grpc --grpc-server ${at} --grpc-ca-file grpc-ca.crt --cluster-name <cluster_name>`
  const both = told({ 'grpc-server': 'hub:8090' })
  assert.ok(both.includes(byApi) && both.includes(byGrpc('hub:8090')), both.join('\n'))
  const alone = told({ 'grpc-server': '<grpc_server>', 'registration-auth': 'grpc' })
  assert.ok(alone.includes(byGrpc('<grpc_server>')) && !alone.join().includes('hub:6443'), alone.join('\n'))
  assert.ok(alone.some((line) => line.startsWith('Replace <grpc_server>')))
  assert.ok(!told({}).join().includes('grpc'))
})
