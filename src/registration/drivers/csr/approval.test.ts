import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eventually, startControlPlane, type ControlPlane } from '../../../../testkit/index.ts'
import { installCrds, label, ManagedCluster, signer, subject } from '../../../api/index.ts'
import { CertificateSigningRequest, Event, Namespace, type Client } from '../../../kube/index.ts'
import { EventRecorder, Manager, silentLogger, systemClock } from '../../../runtime/index.ts'
import { createRequest } from '../../../runtime/pki/index.ts'
import type { HubDriver } from '../driver.ts'
import { holderAnnotation } from './holder.ts'
import { csrHubDriver } from './hub.ts'

let plane: ControlPlane
let admin: Client
let hub: HubDriver
let manager: Manager
const woken: string[] = []
const stop = new AbortController()
let running: Promise<void>
const { signal } = stop

before(async () => {
  plane = await startControlPlane()
  admin = plane.client()
  await installCrds(admin, [ManagedCluster.crd({ conversion: 'none' })])
  const client = plane.client({ user: 'hub', groups: ['system:masters'], userAgent: 'the-hub' })
  hub = csrHubDriver({
    client,
    gates: { managedClusterAutoApproval: true },
    autoApproveUsers: ['listed'],
    events: new EventRecorder({ client, controller: 'lanyard.io/csr', instance: 'test' }),
    clock: systemClock,
    log: silentLogger,
  })
  manager = new Manager({ client })
  hub.start!(manager)
  hub.wakes!((cluster) => woken.push(cluster))
  running = manager.run(signal)
})
after(async () => {
  stop.abort()
  await running
  await plane.stop()
})

const csrs = () => admin.of(CertificateSigningRequest)
const clusters = () => admin.of(ManagedCluster)
const nameOf = (cluster: string, agent: string): string => `${cluster}-${agent}`
/** A first request as an honest agent makes it. `system:masters` lets these users create it without RBAC of their own. */
const ask = async (cluster: string, agent: string, by = 'listed', name = nameOf(cluster, agent)): Promise<void> => {
  const { csr } = createRequest({
    commonName: subject.agentUser(cluster, agent),
    organizations: [subject.clusterGroup(cluster), subject.managedClusters],
  })
  await plane
    .client({ user: by, groups: ['system:masters'] })
    .of(CertificateSigningRequest)
    .create({
      metadata: { name, labels: { [label.clusterName]: cluster } },
      spec: {
        request: Buffer.from(csr).toString('base64'),
        signerName: signer.kubeApiServerClient,
        usages: ['digital signature', 'key encipherment', 'client auth'],
      },
    })
}
const accepted = async (name: string): Promise<ManagedCluster> => {
  await admin.of(Namespace).create({ metadata: { name } })
  return clusters().create({ metadata: { name }, spec: { hubAcceptsClient: true } })
}
const issued = (name: string) => eventually(async () => (await csrs().get(name)).status?.certificate !== undefined)
const holder = async (cluster: string) =>
  (await admin.of(Namespace).get(cluster)).metadata.annotations?.[holderAnnotation]
const told = (name: string) =>
  eventually(async () => {
    const { items } = await admin.of(Event, 'default').list()
    return items.find(({ regarding }) => regarding.name === name) ?? false
  })

test('a cluster needs no person when a listed user has asked for its certificate, whatever else asked for it', async () => {
  const cluster = await clusters().create({ metadata: { name: 'new' }, spec: { hubAcceptsClient: false } })
  assert.match(hub.waitsForPerson(cluster)?.message ?? '', /clusteradm accept --clusters new/)
  await ask('new', 'a1', 'somebody')
  await eventually(() => woken.includes('new'))
  assert.equal(hub.waitsForPerson(cluster)?.reason, 'NoTrustedRequest')
  woken.length = 0
  await ask('new', 'a2')
  await eventually(() => woken.includes('new'))
  assert.equal(hub.waitsForPerson(cluster), undefined)
})

test('the first agent of an accepted cluster is approved and remembered; another one waits for a person, with an event', async () => {
  await accepted('c1')
  await ask('c1', 'a1')
  await issued('c1-a1')
  assert.equal((await csrs().get('c1-a1')).status?.conditions?.[0]?.reason, 'AutoApprovedByHubCSRApprovingController')
  assert.equal(await holder('c1'), 'a1')
  assert.equal((await told('c1-a1')).reason, 'ManagedClusterAutoApproved')
  await ask('c1', 'a2')
  const { reason, type, note } = await told('c1-a2')
  assert.deepEqual([type, reason], ['Warning', 'HeldByAnotherAgent'])
  assert.match(note, /belongs to agent a1, and agent a2 asks for it/)
  assert.equal((await csrs().get('c1-a2')).status?.conditions, undefined)
  assert.match(manager.metrics.text(), /registration_csr_total\{[^}]*outcome="approved"\} 1/)
})

test('of two agents that ask at the same moment one is approved', async () => {
  await clusters().create({ metadata: { name: 'race' }, spec: { hubAcceptsClient: false } })
  await admin.of(Namespace).create({ metadata: { name: 'race' } })
  await Promise.all(['a1', 'a2', 'a3'].map((agent) => ask('race', agent)))
  await clusters().patch('race', { merge: { spec: { hubAcceptsClient: true } } })
  const all = await eventually(async () => {
    const { items } = await csrs().list({ labelSelector: `${label.clusterName}=race` })
    return items.some(({ status }) => status?.certificate) && items
  })
  await Promise.all(all.filter(({ status }) => !status?.conditions).map(({ metadata }) => told(metadata.name!)))
  const { items } = await csrs().list({ labelSelector: `${label.clusterName}=race` })
  assert.equal(items.filter(({ status }) => status?.conditions).length, 1)
})

test('a request is approved as soon as acceptance has made the namespace in which its agent is remembered', async () => {
  await clusters().create({ metadata: { name: 'early' }, spec: { hubAcceptsClient: true } })
  await ask('early', 'a1')
  await admin.of(Namespace).create({ metadata: { name: 'early' } })
  await issued('early-a1')
  assert.equal(await holder('early'), 'a1')
})

test('an agent that a person approved holds its cluster too', async () => {
  await accepted('manual')
  await ask('manual', 'a1', 'somebody')
  const csr = await csrs().get('manual-a1')
  const conditions = [{ type: 'Approved' as const, status: 'True' as const, reason: 'ByHand', message: '' }]
  await csrs().update({ ...csr, status: { conditions } }, { subresource: 'approval' })
  await eventually(async () => assert.equal(await holder('manual'), 'a1'))
})

test('an agent that lost its certificate gets another one once its cluster counts as unavailable, and not before', async () => {
  const cluster = await accepted('lost')
  await ask('lost', 'a1')
  await issued('lost-a1')
  const said = (status: 'True' | 'Unknown') => ({
    conditions: ['ManagedClusterJoined', 'ManagedClusterConditionAvailable'].map((type) => ({
      type,
      status: type === 'ManagedClusterJoined' ? 'True' : status,
      reason: 'X',
      message: '',
      lastTransitionTime: '2026-01-01T00:00:00Z',
    })),
  })
  const report = (status: 'True' | 'Unknown') =>
    clusters().patch(cluster.metadata.name!, { merge: { status: said(status) } }, { subresource: 'status' })
  await report('True')
  await eventually(() => manager.informer(ManagedCluster).get('lost')?.status?.conditions !== undefined)
  await ask('lost', 'a1', 'listed', 'lost-again')
  assert.equal((await told('lost-again')).reason, 'StillConnected')
  await report('Unknown')
  await issued('lost-again')
})

test('revoking removes what could still become a certificate, and nothing else', async () => {
  const cluster = await clusters().create({ metadata: { name: 'bad' }, spec: { hubAcceptsClient: false } })
  await ask('bad', 'open')
  await ask('bad', 'denied')
  await ask('bad', 'issued')
  await ask('badder', 'open', 'somebody')
  for (const [agent, type] of [
    ['denied', 'Denied'],
    ['issued', 'Approved'],
  ] as const) {
    const csr = await csrs().get(`bad-${agent}`)
    await csrs().update(
      { ...csr, status: { conditions: [{ type, status: 'True', reason: 'X', message: '' }] } },
      { subresource: 'approval' },
    )
  }
  await issued('bad-issued')
  await hub.revoke(cluster, signal)
  await hub.revoke(cluster, signal)
  const left = (await csrs().list()).items
    .map(({ metadata }) => metadata.name!)
    .filter((name) => name.startsWith('bad'))
  assert.deepEqual(left.toSorted(), ['bad-denied', 'bad-issued', 'badder-open'])
})

test('nothing is written while requests wait, whatever happens to their clusters', async () => {
  await eventually(async () => {
    const since = new Date()
    await clusters().patch('c1', { merge: { metadata: { labels: { touched: String(since.getTime()) } } } })
    await eventually(
      () => manager.informer(ManagedCluster).get('c1')?.metadata.labels?.['touched'] === String(since.getTime()),
    )
    assert.equal((await plane.requestsBy('the-hub', { since })).writes, 0)
  })
})
