import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eventually, manualClock, startControlPlane, type ControlPlane } from '../../../testkit/index.ts'
import { bootstrapFor, csrsOf, joined, startAgent } from '../../../testkit/running-agent.ts'
import { standInHub, type StandInHub } from '../../../testkit/stand-in-hub.ts'
import { ClusterClaim, crds, installCrds, ManagedCluster } from '../../api/index.ts'
import { kubeconfigText, Lease, Namespace, Node, parseKubeconfig, Secret, type Client } from '../../kube/index.ts'
import { findCondition, isTrue, Metrics, silentLogger } from '../../runtime/index.ts'
import { Available, CertificateRotated, idClaim, leaseName, secretName } from '../contract.ts'
import { heartbeat } from './heartbeat.ts'
import type { Joined } from './index.ts'

let managed: ControlPlane
let hubPlane: ControlPlane
let hub: StandInHub
let local: Client
let clusterId: string

before(async () => {
  ;[hubPlane, managed] = await Promise.all([startControlPlane(), startControlPlane({ controllerManager: false })])
  local = managed.client({ user: 'agent', groups: ['system:masters'], userAgent: 'agent-local' })
  const claims = crds({ conversion: 'none' }).filter(({ spec }) => spec.names.kind === 'ClusterClaim')
  ;[hub] = await Promise.all([standInHub(hubPlane), installCrds(local, claims)])
  clusterId = (await local.of(Namespace).get('kube-system')).metadata.uid!
  await node('n1', { cpu: '4', memory: '16374452Ki' }, { cpu: '3920m', memory: '15000000Ki' })
  await node('n2', { cpu: '2', memory: '8Gi', 'acme.io/gpu': '1' }, { cpu: '2', memory: '8Gi', 'acme.io/gpu': '1' })
})
after(async () => Promise.all([hubPlane?.stop(), managed?.stop()]))

type Amounts = Record<string, string>

const node = async (name: string, capacity: Amounts, allocatable: Amounts): Promise<void> => {
  await local.of(Node).create({ metadata: { name } })
  await local.of(Node).patch(name, { merge: { status: { capacity, allocatable } } }, { subresource: 'status' })
}

/** What a hub administrator does for a cluster. */
const letIn = async (cluster: string): Promise<void> => {
  await eventually(async () => (await hub.cluster(cluster)) !== undefined)
  await hub.accept(cluster)
  await approve(cluster)
}

const approve = async (cluster: string): Promise<unknown> => eventually(async () => (await hub.approve(cluster)) === 1)

test('R1.51 a cluster joins with nothing but a bootstrap kubeconfig, and reports what it is', async (t) => {
  await bootstrapFor(local, 'c1', hub)
  await local.of(ClusterClaim).create({ metadata: { name: 'region' }, spec: { value: 'eu' } })
  const running = startAgent(t, local, 'c1', {
    clusterAnnotations: { 'agent.open-cluster-management.io/site': 'north', 'other.io/x': 'dropped' },
    clientConfigs: [{ url: 'https://c1.example.com' }],
  })

  const asked = await eventually(async () => (await hub.cluster('c1')) ?? false)
  assert.equal(asked.metadata.annotations?.['agent.open-cluster-management.io/site'], 'north')
  assert.equal(asked.metadata.annotations?.['other.io/x'], undefined)
  assert.deepEqual(asked.spec.managedClusterClientConfigs, [{ url: 'https://c1.example.com' }])
  assert.equal(asked.spec.hubAcceptsClient, false)
  await running.waitsFor(/run clusteradm accept --clusters c1/)

  await letIn('c1')
  const { status = {}, ...cluster } = await joined(hub, 'c1')
  assert.ok(isTrue({ ...cluster, status }, Available.type))
  const rotated = findCondition({ ...cluster, status }, CertificateRotated.type)
  assert.match(rotated!.message, /^client certificate rotated starting from/)
  assert.match(status.version!.kubernetes!, /^v1\.\d+/)
  assert.deepEqual(status.capacity, { cpu: '6', memory: '24763060Ki', 'acme.io/gpu': '1' })
  assert.deepEqual(status.allocatable, { cpu: '5920m', memory: '23388608Ki', 'acme.io/gpu': '1' })
  assert.deepEqual(status.clusterClaims, [
    { name: idClaim, value: clusterId },
    { name: 'region', value: 'eu' },
  ])
  await running.ready()

  await local.of(Node).patch('n2', { merge: { spec: { unschedulable: true } } })
  await local.of(ClusterClaim).delete('region')
  await eventually(async () => {
    const { allocatable, capacity, clusterClaims } = (await hub.cluster('c1'))!.status!
    assert.deepEqual(allocatable, { cpu: '3920m', memory: '15000000Ki' })
    assert.deepEqual(capacity, { cpu: '6', memory: '24763060Ki', 'acme.io/gpu': '1' })
    assert.deepEqual(clusterClaims, [{ name: idClaim, value: clusterId }])
  })
})

test('R1.50 the secret is laid out as other agents and operators read it', async (t) => {
  await bootstrapFor(local, 'c2', hub)
  const running = startAgent(t, local, 'c2')
  await letIn('c2')
  await running.ready()

  const secret = await running.secret()
  assert.deepEqual(Object.keys(secret).toSorted(), ['agent-name', 'cluster-name', 'kubeconfig', 'tls.crt', 'tls.key'])
  const { currentContext, contexts, users, clusters } = await parseKubeconfig(secret['kubeconfig']!, { source: 'it' })
  assert.equal(currentContext, 'default-context')
  const context = { cluster: 'hub', user: 'default-auth', namespace: 'configuration' }
  assert.deepEqual(contexts.get('default-context')!.value, context)
  const user = { 'client-certificate': 'tls.crt', 'client-key': 'tls.key' }
  assert.deepEqual(users.get('default-auth')!.value, user)
  assert.equal(clusters.get('hub')!.value.server, hubPlane.server)
})

test('R1.50 an agent that starts again, or lost its secret, keeps both its names and stays one cluster', async (t) => {
  await bootstrapFor(local, 'c3', hub)
  const first = startAgent(t, local, 'c3')
  await letIn('c3')
  await first.ready()
  const before = await first.secret()
  const { uid } = (await hub.cluster('c3'))!.metadata
  await first.stop()

  const second = startAgent(t, local, 'c3', { clusterName: undefined })
  await second.ready()
  assert.deepEqual(await second.secret(), before)
  assert.equal((await csrsOf(hub, 'c3')).length, 1)

  await local.of(Secret, 'agent-c3').delete(secretName.hub)
  await approve('c3')
  await second.ready()
  const after = await second.secret()
  assert.deepEqual([after['cluster-name'], after['agent-name']], ['c3', before['agent-name']])
  assert.notEqual(after['tls.crt'], before['tls.crt'])
  assert.equal((await hub.cluster('c3'))!.metadata.uid, uid)
})

test('R1.50 a cluster without a chosen name is called by its own id, whatever becomes of its secret', async (t) => {
  await bootstrapFor(local, 'c4', hub)
  const first = startAgent(t, local, 'c4', { clusterName: undefined })
  await eventually(async () => (await hub.cluster(clusterId)) !== undefined)
  await first.stop()
  await local.of(Secret, 'agent-c4').delete(secretName.hub)
  const second = startAgent(t, local, 'c4', { clusterName: undefined })
  await hub.accept(clusterId)
  // The first agent's request is still there; only the second's leads to anything.
  await eventually(async () => {
    await hub.approve(clusterId)
    assert.deepEqual([second.agent.phase, ...second.agent.unready()], ['joined'])
  })
})

test('R1.50 what somebody breaks in the secret is repaired, and a broken credential is replaced', async (t) => {
  await bootstrapFor(local, 'c5', hub)
  const running = startAgent(t, local, 'c5')
  await letIn('c5')
  await running.ready()
  const good = await running.secret()
  const secrets = local.of(Secret, 'agent-c5')

  const damage = { kubeconfig: 'eA==', 'cluster-name': null, 'agent-name': 'eA==' }
  await secrets.patch(secretName.hub, { merge: { data: damage } })
  await eventually(async () => assert.deepEqual(await running.secret(), good))
  assert.equal((await csrsOf(hub, 'c5')).length, 1)

  await secrets.patch(secretName.hub, { merge: { data: { 'tls.crt': 'eA==' } } })
  await approve('c5')
  await eventually(async () => assert.match((await running.secret())['tls.crt']!, /BEGIN CERTIFICATE/))
  await running.ready()
})

test('R1.50 a bootstrap secret that is gone after the join is not missed', async (t) => {
  await bootstrapFor(local, 'c6', hub)
  const first = startAgent(t, local, 'c6')
  await letIn('c6')
  await first.ready()
  await local.of(Secret, 'agent-c6').delete(secretName.bootstrap)
  await first.stop()
  const second = startAgent(t, local, 'c6')
  await second.ready()
})

test('R1.16 a name that belongs to another cluster is not taken, and the agent says whose it is', async (t) => {
  const annotations = { 'agent.open-cluster-management.io/cluster-id': 'somebody-else' }
  await hub.client.of(ManagedCluster).create({ metadata: { name: 'c7', annotations }, spec: {} })
  await bootstrapFor(local, 'c7', hub)
  const running = startAgent(t, local, 'c7')
  await running.waitsFor(/the name c7 is taken .* the cluster with id somebody-else.*choose another cluster name/)
  assert.deepEqual(await csrsOf(hub, 'c7'), [])

  await hub.client.of(ManagedCluster).delete('c7')
  await letIn('c7')
  await running.ready()
})

test('R0.36 a malformed bootstrap kubeconfig is named with its field, and a better one is used at once', async (t) => {
  await bootstrapFor(local, 'c8', 'clusters: 7')
  const running = startAgent(t, local, 'c8')
  await running.waitsFor(/secret agent-c8\/bootstrap-hub-kubeconfig.*clusters must be a list/)

  const { server, ca } = hubPlane
  const user = { certFile: '/etc/passwd', keyFile: '/etc/passwd' }
  await bootstrapFor(local, 'c8', await kubeconfigText({ cluster: 'hub', server, ca, user }))
  await running.waitsFor(/secret agent-c8\/bootstrap-hub-kubeconfig.*client-certificate names a file/)

  await bootstrapFor(local, 'c8', hub)
  await letIn('c8')
  await running.ready()
})

test('R1.15 without a bootstrap secret the agent says which one it waits for', async (t) => {
  await local.of(Namespace).create({ metadata: { name: 'agent-c9' } })
  const running = startAgent(t, local, 'c9')
  await running.waitsFor(/secret agent-c9\/bootstrap-hub-kubeconfig .* does not exist/)
})

test('R1.51 a part that fails is started again, and the others go on', async (t) => {
  await bootstrapFor(local, 'c10', hub)
  let starts = 0
  const part = {
    name: 'shaky',
    run: async ({ signal }: Joined) => {
      if (++starts < 3) throw new Error('not yet')
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
    },
  }
  const running = startAgent(t, local, 'c10', { parts: [part] })
  await letIn('c10')
  await running.ready()
  await eventually(() => {
    running.clock.jump(1000)
    return starts === 3
  })
})

test('R1.51 in a steady state an agent writes nothing but its lease, and a beat is one request', async (t) => {
  await bootstrapFor(local, 'c11', hub)
  const running = startAgent(t, local, 'c11')
  await letIn('c11')
  await running.ready()
  const since = new Date()
  const clusters = hub.client.of(ManagedCluster)
  // None of these is news: a node that says the same, a label, a lease that is to be renewed every second.
  await local.of(Node).patch('n1', { merge: { metadata: { annotations: { beat: '1' } } } })
  await clusters.patch('c11', { merge: { metadata: { labels: { a: 'b' } }, spec: { leaseDurationSeconds: 1 } } })
  const beats = await eventually(async () => {
    const { entries } = await hubPlane.requestsBy('agent-of-c11', { since })
    assert.ok(entries.length >= 3, `${entries.length}`)
    return entries
  })
  const asked = new Set(beats.map(({ verb, resource, name }) => `${verb} ${resource} ${name}`))
  assert.deepEqual([...asked], [`update leases ${leaseName}`])
  const { entries } = await managed.requestsBy('agent-local', { since })
  assert.deepEqual(
    entries.filter(({ namespace }) => namespace === 'agent-c11'),
    [],
  )
})

test('R1.51 a lease duration that changes while a beat is under way counts from that beat on', async (t) => {
  const client = hubPlane.client()
  await client.of(Lease, 'default').create({ metadata: { name: leaseName }, spec: {} })
  const clock = manualClock(Date.now())
  const start = clock.now()
  const beats: number[] = []
  let seconds = 60
  const sent = (at: number): void => {
    beats.push(at - start)
    seconds = 10 // nobody listens for changes until the beat is over
  }
  const ending = new AbortController()
  const running = heartbeat(
    {
      hub: client,
      cluster: 'default',
      leaseDurationSeconds: () => seconds,
      onChange: () => () => {},
      sent,
      clock,
      random: () => 0,
      log: silentLogger,
      metrics: new Metrics(),
    },
    ending.signal,
  )
  t.after(() => {
    ending.abort()
    return running
  })
  await eventually(() => assert.deepEqual([...beats, clock.pending], [0, 0, 1]))
  clock.advance(10_000)
  await eventually(() => assert.deepEqual([...beats, clock.pending], [0, 0, 10_000, 1]))
})

test('R1.51 an API server that is down for more than a moment makes the cluster unavailable until it is back', async (t) => {
  await bootstrapFor(local, 'c14', hub)
  const running = startAgent(t, local, 'c14')
  await letIn('c14')
  await running.ready()
  const availability = async (): Promise<string | undefined> =>
    findCondition((await hub.cluster('c14'))!, Available.type)?.status
  const becomes = (status: string): Promise<void> =>
    eventually(async () => {
      running.clock.jump(5000)
      assert.equal(await availability(), status)
    })

  await managed.apiServer.kill()
  await becomes('False')
  await managed.apiServer.start()
  await becomes('True')
  assert.equal(running.agent.phase, 'joined')
})
