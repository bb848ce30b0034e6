import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { after, before, test } from 'node:test'
import { eventually, startControlPlane, startFaultProxy, type ControlPlane } from '../../../testkit/index.ts'
import { bootstrapFor, csrsOf, joined, startAgent } from '../../../testkit/running-agent.ts'
import { standInHub, type StandInHub } from '../../../testkit/stand-in-hub.ts'
import { ManagedCluster } from '../../api/index.ts'
import { Namespace, type Client } from '../../kube/index.ts'
import type { Joined as JoinedContext } from './index.ts'

/** Two control planes: `one` is a hub; `two` is the managed cluster, and a second hub: a cluster may manage itself. */
let planes: ControlPlane[] = []
let one: StandInHub
let two: StandInHub
let local: Client
const everybody = new AbortController()

before(async () => {
  planes = await Promise.all([startControlPlane(), startControlPlane()])
  local = planes[1]!.client({ user: 'agent', groups: ['system:masters'] })
  one = await standInHub(planes[0]!)
  one.letEverybodyIn(everybody.signal)
})
after(async () => {
  everybody.abort()
  await Promise.all(planes.map((plane) => plane.stop()))
})

test('R1.50 a server that is no hub is called so, and the agent joins when it has become one', async (t) => {
  const path = planes[1]!.kubeconfigFor({ user: 'anyone', groups: ['system:masters'] })
  await bootstrapFor(local, 'm0', await readFile(path, 'utf8'))
  const running = startAgent(t, local, 'm0')
  await running.waitsFor(/is no hub: it does not serve managedclusters .* clusteradm init/)

  two = await standInHub(planes[1]!)
  two.letEverybodyIn(everybody.signal)
  await bootstrapFor(local, 'm0', two)
  await joined(two, 'm0')
})

test('R1.50 a bootstrap secret that names another hub moves the cluster there under the same names', async (t) => {
  await bootstrapFor(local, 'm1', one)
  const seen: string[] = []
  const part = {
    name: 'witness',
    run: async ({ hubServer, signal }: JoinedContext) => {
      seen.push(hubServer)
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
    },
  }
  const running = startAgent(t, local, 'm1', { parts: [part] })
  await running.ready()
  const before = await running.secret()

  await bootstrapFor(local, 'm1', two)
  await joined(two, 'm1')
  await running.ready()
  const after = await running.secret()
  assert.equal(after['agent-name'], before['agent-name'])
  assert.ok(after['kubeconfig']!.includes(planes[1]!.server))
  assert.deepEqual(seen, [planes[0]!.server, planes[1]!.server])
})

test('R1.17 of two hubs the second takes over when the first has been gone for ten minutes', async (t) => {
  const proxy = await startFaultProxy(planes[0]!, { user: 'nobody' })
  await bootstrapFor(local, 'm4', await one.bootstrapKubeconfig(proxy.server), 'first')
  await bootstrapFor(local, 'm4', two, 'second')
  const running = startAgent(t, local, 'm4', { bootstrapSecrets: ['first', 'second'] })
  await running.ready()
  assert.equal(await two.cluster('m4'), undefined)

  await proxy.stop()
  await running.waitsFor(/hub https:.* to answer/)
  running.clock.jump(599_000)
  assert.equal(running.agent.phase, 'joined')
  running.clock.jump(2000)
  await joined(two, 'm4')
  await running.ready()
})

test('R1.56 a cluster that is denied goes to its other hub; without one it waits until it is accepted again', async (t) => {
  await bootstrapFor(local, 'm5', one, 'first')
  await bootstrapFor(local, 'm5', two, 'second')
  const several = startAgent(t, local, 'm5', { bootstrapSecrets: ['first', 'second'] })
  await bootstrapFor(local, 'm6', one)
  const alone = startAgent(t, local, 'm6')
  await Promise.all([several.ready(), alone.ready()])

  for (const name of ['m5', 'm6']) {
    await one.client.of(ManagedCluster).patch(name, { merge: { metadata: { annotations: { denied: 'yes' } } } })
    await one.deny(name)
  }
  await joined(two, 'm5')
  await several.ready()

  await alone.waitsFor(/has denied cluster m6, to accept it again: clusteradm accept --clusters m6/)
  await one.accept('m6')
  await alone.ready()
  assert.equal((await csrsOf(one, 'm6')).length, 1)
})

test('R1.17 one cluster joins two hubs side by side under the same id, with an agent for each', async (t) => {
  await bootstrapFor(local, 'm10', one)
  await bootstrapFor(local, 'm11', two)
  const agents = [startAgent(t, local, 'm10'), startAgent(t, local, 'm11')]
  await Promise.all(agents.map((running) => running.ready()))
  const { uid } = (await local.of(Namespace).get('kube-system')).metadata
  const [onOne, onTwo] = await Promise.all([joined(one, 'm10'), joined(two, 'm11')])
  for (const { status } of [onOne, onTwo])
    assert.deepEqual(status!.clusterClaims![0], { name: 'id.k8s.io', value: uid })
})

test('R1.50 a ManagedCluster that is deleted before it was accepted is asked for again', async (t) => {
  const annotations = { denied: 'for now' } // nobody lets it in by itself
  await two.client.of(ManagedCluster).create({ metadata: { name: 'm12', annotations }, spec: {} })
  await bootstrapFor(local, 'm12', two)
  const running = startAgent(t, local, 'm12')
  await eventually(async () => (await csrsOf(two, 'm12')).length === 1)
  await two.client.of(ManagedCluster).delete('m12')
  await running.ready()
  assert.equal((await csrsOf(two, 'm12')).length, 1)
})
