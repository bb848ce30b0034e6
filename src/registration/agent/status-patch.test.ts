import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ManagedCluster } from '../../api/index.ts'
import { setConditions, type ConditionState } from '../../runtime/index.ts'
import { Accepted, Available, CertificateRotated, ClockSynced, Joined } from '../contract.ts'
import { statusPatch, type ClusterFacts } from './status-patch.ts'

const now = Date.parse('2026-08-01T00:00:00Z')
const well: ClusterFacts = {
  health: { state: 'ok', version: 'v1.36.3' },
  capacity: { cpu: '6', memory: '24Gi' },
  allocatable: { cpu: '5', memory: '20Gi' },
  claims: [{ name: 'id.k8s.io', value: 'uid' }],
  conditions: [],
  alive: true,
}
const cluster = (states: ConditionState[], status: NonNullable<ManagedCluster['status']> = {}): ManagedCluster => ({
  metadata: { name: 'c1', uid: 'u', resourceVersion: '7' },
  spec: { hubAcceptsClient: true },
  status: { ...status, conditions: setConditions([], [Accepted.accepted(), ...states], { now }) },
})
type Patch = {
  metadata: object
  status: { conditions?: { type: string; status: string; message: string }[] } & Record<string, unknown>
}
const patchOf = (of: ManagedCluster, facts: Partial<ClusterFacts> = {}): Patch | undefined =>
  statusPatch(of, { ...well, ...facts }, now + 60_000) as Patch | undefined
const available = (of: ManagedCluster, facts: Partial<ClusterFacts> = {}): string | undefined =>
  patchOf(of, facts)?.status.conditions?.find(({ type }) => type === Available.type)?.status

const reported = cluster([Joined.joined(), Available.available()], {
  version: { kubernetes: 'v1.36.3' },
  capacity: { cpu: '6', memory: '24Gi' },
  allocatable: { cpu: '5', memory: '20Gi' },
  clusterClaims: [{ name: 'id.k8s.io', value: 'uid' }],
})

test('R1.51 nothing is sent when nothing differs, however the amounts are written', () => {
  assert.equal(patchOf(reported), undefined)
  assert.equal(patchOf(reported, { capacity: { cpu: '6000m', memory: `${24 * 1024}Mi` } }), undefined)
})

test('R1.51 a patch names the object that was read, and holds only what differs', () => {
  const patch = patchOf(reported, {
    health: { state: 'ok', version: 'v1.37.0' },
    capacity: { cpu: '7', memory: '24Gi' },
  })
  assert.deepEqual(patch, {
    metadata: { uid: 'u', resourceVersion: '7' },
    status: { version: { kubernetes: 'v1.37.0' }, capacity: { cpu: '7' } },
  })
})

test('R1.51 amounts of others stay, and our own go when no node has them any more', () => {
  const status = {
    ...reported.status,
    capacity: { cpu: '6', memory: '24Gi', 'acme.io/gpu': '1', 'sockets.others.io': '2' },
    allocatable: { cpu: '5', memory: '20Gi', 'acme.io/gpu': '1' },
  }
  assert.deepEqual(patchOf({ ...reported, status })?.status, {
    capacity: { 'acme.io/gpu': null },
    allocatable: { 'acme.io/gpu': null },
  })
})

test('R1.51 what is not known yet changes nothing on the hub', () => {
  const facts = { health: { state: 'unsure' }, capacity: undefined, allocatable: undefined, claims: undefined } as const
  assert.equal(patchOf(reported, facts), undefined)
})

test('R1.51 the conditions of others are kept, and those of the driver are told', () => {
  const { conditions = [] } = patchOf(cluster([]), { conditions: [CertificateRotated.rotated('until then')] })!.status
  assert.deepEqual(
    conditions.map(({ type }) => type),
    [Accepted.type, Joined.type, Available.type, CertificateRotated.type],
  )
})

test('R1.51 an API server that stays down is told as unavailable, with the reason', () => {
  const { conditions = [] } = patchOf(reported, { health: { state: 'failed', why: 'no answer' } })!.status
  const { status, message } = conditions.find(({ type }) => type === Available.type)!
  assert.deepEqual([status, message], ['False', 'The kube-apiserver is not ok: no answer'])
})

test('R1.51 what the hub calls unknown is contradicted only when our lease arrives and the clocks agree', () => {
  const missed = cluster([Joined.joined(), Available.leaseStopped()])
  const skewed = cluster([Joined.joined(), Available.leaseStopped(), ClockSynced.outOfSync('two hours')])
  assert.equal(available(missed), 'True')
  assert.equal(available(missed, { alive: false }), undefined)
  assert.equal(available(skewed), undefined)
  assert.equal(available(cluster([Joined.joined(), ClockSynced.outOfSync('two hours')])), 'True')
})

test('R1.54 R1.58 a goodbye that was said for the agent stands; at its first report it says that it has joined, whatever was said before', () => {
  const left = cluster([Joined.left(), Available.available()], reported.status)
  assert.equal(patchOf({ ...left, status: { ...reported.status, ...left.status } }, { isTakenAway: true }), undefined)
  const joined = patchOf(left)?.status.conditions?.find(({ type }) => type === Joined.type)
  assert.equal(joined?.status, 'True')
})
