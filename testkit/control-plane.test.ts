import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { createServer } from 'node:https'
import type { Server } from 'node:net'
import { text } from 'node:stream/consumers'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { ConfigMap, isForbidden, isNotFound, Namespace, Role, RoleBinding } from '../src/kube/index.ts'
import { createRequest } from '../src/runtime/pki/index.ts'
import { eventually, startControlPlane, type ControlPlane } from './index.ts'

const portOf = (server: Server): number => {
  const address = server.address()
  return typeof address === 'object' ? (address?.port ?? 0) : 0
}

const refusalOf = async (request: IncomingMessage) => {
  const { apiVersion, kind, ...review } = JSON.parse(await text(request))
  return { apiVersion, kind, response: { uid: review.request.uid, allowed: false, status: { message: 'not today' } } }
}

// two side by side, shared by the tests below; each test uses names of its own
let plane: ControlPlane
let other: ControlPlane
before(async () => {
  ;[plane, other] = await Promise.all([startControlPlane(), startControlPlane({ controllerManager: false })])
})
after(() => Promise.all([plane, other].map((one) => one?.stop())))

test('R0.1 two control planes run side by side and know nothing of each other', async () => {
  await plane.kubectl(['create', 'namespace', 'only-here'])

  assert.equal((await plane.client().of(Namespace).get('only-here')).metadata.name, 'only-here')
  await assert.rejects(other.client().of(Namespace).get('only-here'), isNotFound)
  await assert.rejects(
    other.kubectl(['get', 'ns'], { kubeconfig: plane.kubeconfigFor({ user: 'x', server: other.server }) }),
  )
  assert.notEqual(plane.folder, other.folder)
  const ids = await Promise.all([plane, other].map((one) => one.client().of(Namespace).get('kube-system')))
  assert.notEqual(ids[0]!.metadata.uid, ids[1]!.metadata.uid)
})

test('R0.1 a minted user may do what RBAC says, through a kubeconfig and through a client', async () => {
  const admin = plane.client()
  const metadata = { name: 'readers', namespace: 'default' }
  await admin.of(Role).create({ metadata, rules: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['list'] }] })
  await admin.of(RoleBinding).create({
    metadata,
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'readers' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'readers' }],
  })
  const ada = { user: 'ada', groups: ['readers', 'others'] }
  const kubeconfig = plane.kubeconfigFor(ada)

  await eventually(() => plane.client(ada).of(ConfigMap, 'default').list())
  await assert.rejects(plane.client(ada).of(ConfigMap, 'kube-system').list(), isForbidden)
  await assert.rejects(plane.client({ user: 'eve' }).of(ConfigMap, 'default').list(), isForbidden)
  const expired = plane.kubeconfigFor({ ...ada, ttlMs: -1000 })
  await assert.rejects(plane.kubectl(['get', 'configmaps'], { kubeconfig: expired }), /logged in|Unauthorized/)
  assert.match(await plane.kubectl(['auth', 'can-i', 'list', 'configmaps'], { kubeconfig }), /^yes/)
  await assert.rejects(plane.kubectl(['get', 'secrets'], { kubeconfig }), /User "ada" cannot list resource "secrets"/)
})

test('R0.1 the controllers are there: service accounts get tokens, certificate requests are signed', async () => {
  const token = (await plane.kubectl(['create', 'token', 'default', '--duration', '10m'])).trim()
  const claims = JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString())
  assert.equal(claims.sub, 'system:serviceaccount:default:default')

  const { csr } = createRequest({ commonName: 'ada', organizations: ['readers'] })
  const spec = {
    request: Buffer.from(csr).toString('base64'),
    signerName: 'kubernetes.io/kube-apiserver-client',
    usages: ['client auth'],
  }
  const object = {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name: 'ada' },
    spec,
  }
  await plane.kubectl(['create', '-f', '-'], { input: JSON.stringify(object) })
  await plane.kubectl(['certificate', 'approve', 'ada'])
  await plane.kubectl(['wait', '--for=jsonpath={.status.certificate}', '--timeout=60s', 'csr/ada'])
})

test('R0.1 the API server reaches webhooks that the test itself serves', async (t) => {
  const webhook = createServer(plane.serverCertificate(), (request, response) => {
    void refusalOf(request).then((review) => response.end(JSON.stringify(review)))
  })
  webhook.listen(0, '127.0.0.1')
  await once(webhook, 'listening')
  t.after(() => {
    webhook.closeAllConnections()
    webhook.close()
  })
  const url = `https://127.0.0.1:${portOf(webhook)}/`
  const hook = {
    name: 'no.lanyard.test',
    clientConfig: { url, caBundle: Buffer.from(plane.ca).toString('base64') },
    rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'], operations: ['CREATE'] }],
    matchConditions: [{ name: 'ours', expression: 'object.metadata.name == "refused"' }],
    sideEffects: 'None',
    admissionReviewVersions: ['v1'],
  }
  const kind = { apiVersion: 'admissionregistration.k8s.io/v1', kind: 'ValidatingWebhookConfiguration' }
  await plane.kubectl(['create', '-f', '-'], {
    input: JSON.stringify({ ...kind, metadata: { name: 'no' }, webhooks: [hook] }),
  })
  const configMaps = plane.client().of(ConfigMap, 'default')
  const refused = { metadata: { name: 'refused' } }
  await eventually(() => assert.rejects(configMaps.create(refused, { dryRun: true }), /not today/))
})

test('eventually can wait on a watch, across the death of the API server', async () => {
  const configMaps = plane.client().of(ConfigMap, 'default')
  const found = eventually.watching(configMaps, (all) => all.find(({ data }) => data?.['wanted'] === 'yes') ?? false)
  await configMaps.create({ metadata: { name: 'wanted' }, data: { wanted: 'no' } })
  await plane.apiServer.kill()
  await plane.apiServer.restart()
  await configMaps.patch('wanted', { merge: { data: { wanted: 'yes' } } })
  assert.equal((await found).metadata.name, 'wanted')
  await configMaps.delete('wanted')
  await eventually.watching(configMaps, (all) => all.every(({ metadata }) => metadata.name !== 'wanted'))
  await assert.rejects(
    eventually.watching(configMaps, () => assert.fail('still not'), { timeoutMs: 300 }),
    /last seen: still not/,
  )
})

test('R0.2 an API server that was killed comes back with its address and its objects', async () => {
  const configMaps = plane.client().of(ConfigMap, 'default')
  await configMaps.create({ metadata: { name: 'kept' }, data: { a: '1' } })
  const { server, apiServer } = plane
  const before = apiServer.pid

  await apiServer.kill()
  assert.equal(apiServer.pid, undefined)
  await assert.rejects(configMaps.get('kept'))
  await apiServer.restart()

  assert.notEqual(apiServer.pid, before)
  assert.equal(plane.server, server)
  assert.deepEqual((await configMaps.get('kept')).data, { a: '1' })
})

test('R0.2 etcd that was killed comes back with what it held', async () => {
  const configMaps = other.client().of(ConfigMap, 'default')
  await configMaps.create({ metadata: { name: 'kept' } })
  await other.etcd.kill()
  await other.etcd.restart()
  await eventually(() => configMaps.get('kept'))
})

test('R0.2 a controller manager that was left out can be started later, stopped and started again', async () => {
  assert.equal(other.controllerManager.running, false)
  await other.controllerManager.start()
  await other.controllerManager.restart()
  await other.controllerManager.stop()
  assert.equal(other.controllerManager.pid, undefined)
})

test('R0.2 a paused API server answers nothing and goes on when resumed', async () => {
  const state = () => /^State:\s+(\w)/m.exec(readFileSync(`/proc/${plane.apiServer.pid}/status`, 'utf8'))?.[1]
  plane.apiServer.pause()
  await eventually(() => state() === 'T')
  const answer = plane.client().of(Namespace).get('default')
  assert.equal(await Promise.race([answer, sleep(200, 'nothing')]), 'nothing')
  plane.apiServer.resume()
  assert.equal((await answer).metadata.name, 'default')
})

test('R0.4 what a client asked is counted from the audit log, by verb and resource, a watch once', async () => {
  const client = plane.client({ user: 'counted', groups: ['system:masters'], userAgent: 'counted/1.0' })
  const configMaps = client.of(ConfigMap, 'default')
  await configMaps.create({ metadata: { name: 'counted' } })
  await configMaps.get('counted')
  await configMaps.get('counted')
  const stop = new AbortController()
  const watch = await configMaps.watch({ signal: stop.signal })
  for await (const _ of watch) break
  stop.abort()

  const { total, writes, byVerb, byResource, entries } = await plane.requestsBy('counted/')
  assert.deepEqual(
    { total, writes, byVerb, byResource },
    {
      total: 4,
      writes: 1,
      byVerb: { create: 1, get: 2, watch: 1 },
      byResource: { configmaps: 4 },
    },
  )
  assert.equal(entries[0]?.name, 'counted')
  assert.equal((await plane.requestsBy({ user: 'counted' })).total, 4)
  assert.equal((await plane.requestsBy('counted/', { since: new Date() })).total, 0)
})

test('a control plane that cannot start says why', async () => {
  const failure = await startControlPlane({ apiServerFlags: { 'no-such-flag': 'x' } }).catch((error: unknown) => error)
  assert.ok(failure instanceof Error)
  assert.match(
    failure.message,
    /kube-apiserver did not start: exit code 1; the end of its log:[^]*unknown flag: --no-such-flag/,
  )
})

test('R0.3 after stop there is no process, no port and no folder', async () => {
  const pids = [other.etcd.pid, other.apiServer.pid]
  await other.stop()
  for (const pid of pids) assert.equal(existsSync(`/proc/${pid}`), false)
  assert.equal(existsSync(other.folder), false)
  await assert.rejects(fetch(other.server), (error: Error) => /ECONNREFUSED/.test(String(error.cause)))
})
