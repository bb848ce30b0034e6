import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { endpointCa } from '../../testkit/grpc-agent.ts'
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
import { Klusterlet, ManagedCluster, ManifestWork } from '../api/index.ts'
import { ConfigMap, decoded, Namespace, parseYaml, Secret, type SecretData } from '../kube/index.ts'
import { isTrue, systemClock } from '../runtime/index.ts'
import type { Cli } from './command.ts'
import { bootstrapWay } from './doctor/way-to-hub.ts'

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

/** What doctor finds out about the way of an agent, good and bad. */
const eachWayIsTold = async (good: SecretData, endpoint: string): Promise<void> => {
  const cli = { env: {}, program: 'doctor', signal: AbortSignal.timeout(60_000), clock: systemClock } as unknown as Cli
  const config = JSON.parse(JSON.stringify((await parseYaml(good['config.yaml']!)).value)) as Record<string, string>
  const changed = (change: object): SecretData => ({ 'config.yaml': JSON.stringify({ ...config, ...change }) })
  const ways: [string, SecretData][] = [
    ['open', good],
    ['unreachable', changed({ url: '127.0.0.1:1' })],
    ['distrusted', changed({ caData: Buffer.from(hub.ca).toString('base64') })],
    ['refused', changed({ token: 'nobody' })],
    ['broken', changed({ url: '' })],
  ]
  for (const [kind, data] of ways)
    assert.equal((await bootstrapWay(cli, { data, source: 'it', name: 'c1' })).kind, kind, `${kind} at ${endpoint}`)
}

const patience = { timeoutMs: 120_000 }
const hubNamespace = 'open-cluster-management-hub'
const onHub = (...args: string[]): Promise<string> => mustRun('clusteradm', args, { plane: hub })

/** What the processes said, for a failure that the objects do not explain. */
const told = (): string => runners.map((runner) => runner.log('open-cluster-management', '').slice(-20_000)).join('\n')

test('R1.45 R1.51 R1.52 R1.54 R1.58 init, join, accept, work and unjoin over gRPC, through the program, the operators and their pods, with no more rights than the hub has', async (t) => {
  t.after(() => t.passed || t.diagnostic(told()))
  await onHub('init', '--wait', '--registration-auth=grpc', '--grpc-server=127.0.0.1:8090')
  const pod = await eventually(async () => {
    const { items } = await hub.client().of(Pod, hubNamespace).list({ labelSelector: 'app=clustermanager-hub' })
    return items.find(({ status }) => status?.podIP) ?? false
  }, patience)
  // Pods have addresses of a cluster, and listen on loopback.
  const wire = await stubRelay(t, `https://${localAddress(pod.status!.podIP!)}:8090`)
  const endpoint = `127.0.0.1:${wire.port}`
  const file = join(hub.folder, 'grpc-ca.crt')
  writeFileSync(file, await endpointCa(hub))
  const ticket = JSON.parse(await onHub('get', 'token', '-o', 'json')) as Record<string, string>

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

  const { code, stderr } = await asked('--grpc-server', endpoint, '--grpc-ca-file', file, '--wait')
  assert.equal(code, 0, stderr)
  const secret = await managed.client().of(Secret, 'open-cluster-management-agent').get('bootstrap-hub-kubeconfig')
  assert.deepEqual(Object.keys(secret.data!), ['config.yaml'])
  const klusterlet = await managed.client().of(Klusterlet).get('klusterlet')
  assert.equal(klusterlet.spec?.registrationConfiguration?.registrationDriver?.authType, 'grpc')

  await eachWayIsTold(decoded(secret)!, endpoint)
  await onHub('accept', '--clusters', 'c1', '--wait')
  await eventually(async () => {
    const cluster = await hub.client().of(ManagedCluster).get('c1')
    for (const type of ['ManagedClusterJoined', 'ManagedClusterConditionAvailable'])
      assert.ok(isTrue(cluster, type), JSON.stringify(cluster.status))
  }, patience)
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
