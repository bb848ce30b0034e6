import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { ManagedCluster, ManifestWork } from '../src/api/index.ts'
import { ClusterRole } from '../src/kube/index.ts'
import { isTrue } from '../src/runtime/index.ts'
import { eventually, startControlPlane, type ControlPlane } from './index.ts'
import { inventory } from './inventory.ts'
import { mustRun, runProgram } from './program.ts'
import { startRunner, type Runner } from './runner/index.ts'

let hub: ControlPlane
let managed: ControlPlane
let runners: Runner[] = []
before(async () => {
  ;[hub, managed] = await Promise.all([startControlPlane(), startControlPlane()])
  runners = await Promise.all([startRunner(hub), startRunner(managed)])
})
after(async () => {
  await Promise.all(runners.map((runner) => runner.stop()))
  await Promise.all([hub?.stop(), managed?.stop()])
})

/** What the processes said, for a failure that the objects do not explain. */
const told = (): string => runners.map((runner) => runner.log().slice(-20_000)).join('\n')

const onHub = (...args: string[]): Promise<string> => mustRun('clusteradm', args, { plane: hub })
const onManaged = (args: string[], env: Record<string, string> = {}): Promise<string> =>
  mustRun('clusteradm', args, { plane: managed, env })

const role = {
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'ClusterRole',
  metadata: { name: 'pod-reader' },
  rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }],
}

test('R1.45 R1.51 R1.52 init, get token, join, accept, work, unjoin and clean, through the program, the operators and their pods: all works, and nothing is left on either side', async (t) => {
  t.after(() => t.passed || t.diagnostic(told()))
  const before = { hub: await inventory(hub), managed: await inventory(managed) }

  await onHub('init', '--wait')
  const ticket = JSON.parse(await onHub('get', 'token', '-o', 'json')) as Record<string, string>
  const place = ['--hub-apiserver', ticket['hub-apiserver']!, '--ca-hash', ticket['ca-hash']!]
  await onManaged(['join', ...place, '--cluster-name', 'c1', '--wait'], { LANYARD_HUB_TOKEN: ticket['hub-token']! })
  await onHub('accept', '--clusters', 'c1', '--wait')

  const cluster = await hub.client().of(ManagedCluster).get('c1')
  assert.ok(isTrue(cluster, 'ManagedClusterJoined'), JSON.stringify(cluster.status))
  await eventually.watching(hub.client().of(ManagedCluster), ([one]) =>
    assert.ok(isTrue(one!, 'ManagedClusterConditionAvailable'), JSON.stringify(one!.status)),
  )
  assert.match(await onHub('get', 'clusters'), /^c1\b/m)

  const file = join(hub.folder, 'role.json')
  writeFileSync(file, JSON.stringify(role))
  await onHub('create', 'work', 'rbac', '-f', file, '--clusters', 'c1', '--wait')
  assert.ok(isTrue(await hub.client().of(ManifestWork, 'c1').get('rbac'), 'Applied'))
  assert.deepEqual((await managed.client().of(ClusterRole).get('pod-reader')).rules, role.rules)

  const refused = await runProgram('clusteradm', ['unjoin', '--cluster-name', 'c1'], { plane: managed })
  assert.notEqual(refused.code, 0)
  assert.match(refused.stderr, /still carries out 1 works: rbac/)
  assert.ok(await managed.client().of(ClusterRole).find('pod-reader'))
  await onManaged(['unjoin', '--cluster-name', 'c1', '--force'])
  assert.equal(await managed.client().of(ClusterRole).find('pod-reader'), undefined, 'what was delivered goes too')
  await eventually(async () => assert.deepEqual(changes(before.managed, await inventory(managed)), nothing), patience)

  await onHub('clean')
  await eventually(async () => assert.deepEqual(changes(before.hub, await inventory(hub)), nothing), patience)
  await eventually(async () => assert.deepEqual(changes(before.managed, await inventory(managed)), nothing), patience)
})

const patience = { timeoutMs: 60_000, message: 'something was left' }
const nothing = { left: [], lost: [] }
const changes = (before: readonly string[], now: readonly string[]) => ({
  left: now.filter((one) => !before.includes(one)),
  lost: before.filter((one) => !now.includes(one)),
})
