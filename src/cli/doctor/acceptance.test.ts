/** A cluster that has joined, and loses what it joined with. Each fault is planted, found by name, and healed by the printed command. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { label, ManagedCluster } from '../../api/index.ts'
import { CertificateSigningRequest, Secret } from '../../kube/index.ts'
import { eventually } from '../../../testkit/index.ts'
import { startDoctorScene, type DoctorScene } from '../../../testkit/doctor-scene.ts'

let scene: DoctorScene
before(async () => {
  scene = await startDoctorScene({ joined: true })
})
after(() => scene?.stop())

const secrets = () => scene.managed.client().of(Secret, 'open-cluster-management-agent')
const clusters = () => scene.hub.client().of(ManagedCluster)
const csrs = () => scene.hub.client().of(CertificateSigningRequest)
const hubSecret = 'hub-kubeconfig-secret'

/** The agent loses its credential and asks for another. */
const askedAnew = async (): Promise<CertificateSigningRequest> => {
  await secrets().delete(hubSecret)
  return eventually(
    async () => {
      const { items } = await csrs().list({ labelSelector: `${label.clusterName}=c1` })
      return items.find(({ status }) => !status?.conditions?.length) ?? assert.fail('it has not asked yet')
    },
    { timeoutMs: 60_000 },
  )
}

test('R1.64 nothing is stuck with a cluster that has joined', () => scene.healthy())

test('R1.64 denied-after-accept: the cluster is let in again', async () => {
  await clusters().patch('c1', { merge: { spec: { hubAcceptsClient: false } } })
  assert.match((await scene.heals('denied-after-accept')).command, /^clusteradm accept --clusters c1 /)
  await scene.healthy()
})

test('R1.64 hub-secret-missing: the request of the agent that lost its credential is approved', async () => {
  await askedAnew()
  assert.match((await scene.heals('hub-secret-missing')).command, /^clusteradm accept --clusters c1 /)
  await scene.healthy()
})

test('R1.64 csr-denied: the denied request goes, and another is made', async () => {
  const csr = await askedAnew()
  await scene.hub.kubectl(['certificate', 'deny', csr.metadata.name!])
  assert.match((await scene.heals('csr-denied')).command, new RegExp(`^kubectl .*delete csr ${csr.metadata.name}$`))
})

test('R1.64 csr-pending: a request that nobody has answered is approved', async () => {
  await scene.heals('csr-pending')
  await scene.healthy()
})

test('R1.64 csr-failed: the request that could not be signed goes, and another is made', async () => {
  const csr = await askedAnew()
  const failed = { type: 'Failed' as const, status: 'True' as const, reason: 'SigningError', message: 'no signing key' }
  const body = { ...csr, status: { conditions: [failed] } }
  await csrs().subresource(csr.metadata.name!, 'status', { method: 'PUT', body })
  assert.match((await scene.heals('csr-failed')).why, /SigningError: no signing key/)
  await scene.heals('csr-pending')
  await scene.healthy()
})

test('R1.64 certificate-expired: an agent whose certificate and token are both over joins again', async () => {
  const { data = {} } = await secrets().get(hubSecret)
  const text = (key: string): string => Buffer.from(data[key] ?? '', 'base64').toString()
  const user = `system:open-cluster-management:c1:${text('agent-name')}`
  const groups = ['system:open-cluster-management:c1', 'system:open-cluster-management:managed-clusters']
  const over = scene.hub.kubeconfigFor({ user, groups, ttlMs: -1000 })
  const { users } = JSON.parse(readFileSync(over, 'utf8')) as { users: { user: Record<string, string> }[] }
  const pair = { 'tls.crt': users[0]!.user['client-certificate-data'], 'tls.key': users[0]!.user['client-key-data'] }
  const { data: bootstrap = {} } = await secrets().get('bootstrap-hub-kubeconfig')
  const stale = Buffer.from(bootstrap['kubeconfig']!, 'base64')
    .toString()
    .replace(/token: .*/, 'token: over')
  const kubeconfig = Buffer.from(stale).toString('base64')
  await secrets().patch('bootstrap-hub-kubeconfig', { merge: { data: { kubeconfig } } })
  await secrets().patch(hubSecret, { merge: { data: pair } })
  await scene.heals('bootstrap-token-expired')
  await scene.heals('certificate-expired')
  await scene.healthy()
})

test('R1.64 finalizer-stuck: a ManagedCluster that somebody else holds goes', async () => {
  await clusters().patch('c1', { json: [{ op: 'add', path: '/metadata/finalizers/-', value: 'example.com/hold' }] })
  await clusters().delete('c1')
  assert.match((await scene.heals('finalizer-stuck')).why, /example\.com\/hold/)
})

test('R1.64 cluster-not-created: an agent whose ManagedCluster was deleted joins again, and is let in', async () => {
  assert.match((await scene.heals('cluster-not-created')).command, /delete secret hub-kubeconfig-secret$/)
  await scene.heals('not-accepted')
  await scene.healthy()
})
