import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import tls from 'node:tls'
import { after, before, test } from 'node:test'
import {
  acceptAndWait,
  agentIdentity,
  agentRequest,
  createWork,
  hubNamespace,
  joinCluster,
  listening,
  prepareGrpcHub,
  toldCondition,
  said,
  saidObject,
  startGrpcHub,
  type GrpcHub,
} from '../../../../../testkit/grpc-hub.ts'
import { eventually, startControlPlane, type ControlPlane } from '../../../../../testkit/index.ts'
import { label, ManagedCluster, ManagedClusterAddOn, signer } from '../../../../api/index.ts'
import { code, dataType, GrpcError, readEvent, type EventClient } from '../../../../events/index.ts'
import {
  ApiError,
  CertificateSigningRequest,
  ConfigMap,
  Event,
  isConflict,
  isForbidden,
  Lease,
  Secret,
  ServiceAccount,
  type Client,
} from '../../../../kube/index.ts'
import { jsonLogger } from '../../../../runtime/index.ts'
import { createAuthority, issue } from '../../../../runtime/pki/index.ts'
import { grpcCaConfigMap } from '../contract.ts'

let plane: ControlPlane
let admin: Client
let hub: GrpcHub
/** What the hub has logged. */
const lines: string[] = []
before(async () => {
  plane = await startControlPlane({ controllerManager: false })
  admin = plane.client()
  await prepareGrpcHub(plane)
  hub = await startGrpcHub(plane, { log: jsonLogger((line) => lines.push(line)) })
})
after(async () => {
  await hub.stop()
  await plane.stop()
})

const create = { side: 'spec', action: 'create_request' } as const
const report = { side: 'status', action: 'update_request' } as const
const clusters = { dataType: dataType.managedClusters }
const csrs = { dataType: dataType.certificateSigningRequests }
const patient = { timeoutMs: 60_000 }

/** A token of a service account that may ask to join: what a bootstrap secret holds. */
const bootstrapToken = async (): Promise<string> => {
  const accounts = admin.of(ServiceAccount, hubNamespace)
  await accounts.apply({ metadata: { name: 'joiner', namespace: hubNamespace } }, { fieldManager: 'test' })
  await plane
    .kubectl([
      'create',
      'clusterrolebinding',
      'joiner',
      '--clusterrole=open-cluster-management:bootstrap',
      `--serviceaccount=${hubNamespace}:joiner`,
    ])
    .catch(() => '')
  const request = { method: 'POST' as const, body: { spec: {} } }
  const { status } = await accounts.subresource<{ status: { token: string } }>('joiner', 'token', request)
  return status.token
}

/** The agent of a cluster that was accepted. */
const joined = async (cluster: string): Promise<EventClient> => {
  await joinCluster(admin, cluster)
  return hub.asCluster(cluster)
}

test('R6.1 a cluster joins over the endpoint alone: registers, gets its certificate, renews its lease and reports', async () => {
  const asBootstrap = hub.clientWith({ token: await bootstrapToken() })
  await asBootstrap.publish(
    saidObject('j1', { ...clusters, ...create }, { metadata: { name: 'j1' }, spec: {} } as ManagedCluster),
  )
  await assert.rejects(
    asBootstrap.publish(
      saidObject('j1', { ...clusters, ...create }, { metadata: { name: 'j1' }, spec: {} } as ManagedCluster),
    ),
    (e) => e instanceof ApiError && e.reason === 'AlreadyExists',
  )
  const seen = await listening(asBootstrap, 'j1', dataType.certificateSigningRequests)
  assert.deepEqual(seen.listed, [])
  const { object, key } = agentRequest('j1', 'j1-abcde')
  await asBootstrap.publish(saidObject('j1', { ...csrs, ...create }, object))
  await acceptAndWait(admin, 'j1')
  const open = (await seen.until(({ resourceId }) => resourceId === 'j1-abcde')).data() as CertificateSigningRequest
  assert.equal(open.spec.username, 'hub')
  assert.equal(
    open.metadata.annotations!['open-cluster-management.io/csr-user'],
    `system:serviceaccount:${hubNamespace}:joiner`,
  )
  await admin.of(CertificateSigningRequest).subresource('j1-abcde', 'approval', {
    method: 'PUT',
    body: { ...open, status: { conditions: [{ type: 'Approved', status: 'True', reason: 'Person', message: '' }] } },
  })
  const isIssued = (csr: CertificateSigningRequest): boolean => Boolean(csr.status?.certificate)
  const issued = (await seen.until((event) => isIssued(event.data() as CertificateSigningRequest))).data()
  const cert = Buffer.from((issued as CertificateSigningRequest).status!.certificate!, 'base64').toString('utf8')
  asBootstrap.close()

  const agent = hub.clientWith({ cert, key })
  const own = await listening(agent, 'j1', dataType.managedClusters)
  const cluster = own.listed[0]!.data() as ManagedCluster
  assert.equal(cluster.spec.hubAcceptsClient, true)
  const lease = await listening(agent, 'j1', dataType.leases)
  const present = lease.listed[0]?.data() ?? (await lease.next()).data()
  const renewTime = '2026-02-01T00:00:00.000000Z'
  await agent.publish(
    saidObject('j1', { dataType: dataType.leases, side: 'spec', action: 'update_request' }, {
      ...(present as Lease),
      spec: { renewTime },
    } as Lease),
  )
  const renewed = await admin.of(Lease, 'j1').get('managed-cluster-lease')
  assert.deepEqual([renewed.spec.renewTime, renewed.metadata.labels?.[label.clusterName]], [renewTime, 'j1'])

  const latest = async () => admin.of(ManagedCluster).get('j1')
  const status = { ...(await latest()).status, version: { kubernetes: 'v1.36.3' } }
  await eventually(async () => {
    await agent.publish(saidObject('j1', { ...clusters, ...report }, { ...(await latest()), status } as ManagedCluster))
  }, patient)
  assert.equal((await latest()).status?.version?.kubernetes, 'v1.36.3')
  await assert.rejects(agent.publish(saidObject('j1', { ...clusters, ...report }, cluster)), (e) => isConflict(e))

  // Its next certificate needs nobody: it asks with the present one.
  const renewal = agentRequest('j1', 'j1-renew')
  await agent.publish(saidObject('j1', { ...csrs, ...create }, renewal.object))
  await eventually.watching(
    admin.of(CertificateSigningRequest),
    (all) => all.some((csr) => csr.metadata.name === 'j1-renew' && isIssued(csr)),
    patient,
  )
  await agent.publish(
    saidObject('j1', { dataType: dataType.events, ...create }, {
      metadata: { name: 'e1', namespace: 'j1' },
      eventTime: '2026-01-01T00:00:00.000000Z',
      reportingController: 'agent',
      reportingInstance: 'a1',
      action: 'Test',
      reason: 'Test',
      regarding: { kind: 'Namespace', name: 'j1', namespace: 'j1' },
      note: '',
      type: 'Normal',
    } as unknown as Event),
  )
  assert.equal((await admin.of(Event, 'j1').get('e1')).reportingController, 'agent')
})

test('R6.1 an add-on is reported in both versions, and its token comes to whoever asked for it and to nobody else', async () => {
  const agent = await joined('a1')
  const other = hub.clientWith(
    hub.certificateFor({ ...agentIdentity('a1'), user: 'system:open-cluster-management:a1:agent2' }),
  )
  await admin.of(ManagedClusterAddOn, 'a1').create({ metadata: { name: 'metrics', namespace: 'a1' }, spec: {} })
  const beta = await listening(agent, 'a1', dataType.addOns)
  const addOn = (beta.listed[0] ?? (await beta.next())).data() as ManagedClusterAddOn
  assert.equal(addOn.apiVersion, 'addon.open-cluster-management.io/v1beta1')
  const alpha = await listening(agent, 'a1', dataType.addOnsAlpha)
  assert.equal((alpha.listed[0]!.data() as ManagedClusterAddOn).apiVersion, 'addon.open-cluster-management.io/v1alpha1')

  const user = 'system:serviceaccount:a1:a1-metrics-agent'
  const registrations = [{ type: 'kubeClient', kubeClient: { driver: 'token', subject: { user } } }]
  const now = () => admin.of(ManagedClusterAddOn, 'a1').get('metrics')
  await eventually(async () => {
    const changed = { ...(await now()), status: { registrations } } as ManagedClusterAddOn
    await agent.publish(saidObject('a1', { dataType: dataType.addOns, ...report }, changed))
  }, patient)
  await eventually.watching(
    admin.of(ManagedClusterAddOn, 'a1'),
    (all) =>
      all[0]!.status?.conditions?.some(
        ({ type, status }) => type === 'TokenInfrastructureReady' && status === 'True',
      ) ?? false,
    patient,
  )
  const inAlpha = await alpha.until((event) => JSON.stringify(event.data()).includes('TokenInfrastructureReady'))
  const said1 = inAlpha.data() as { status: { kubeClientDriver: string } } & ManagedClusterAddOn
  assert.equal(said1.status.kubeClientDriver, 'token')
  const degraded = {
    ...said1,
    status: { ...said1.status, conditions: [...said1.status.conditions!, toldCondition('Degraded', 'False')] },
  }
  await eventually(async () => {
    const { resourceVersion } = (await now()).metadata
    const object = { ...degraded, metadata: { ...degraded.metadata, resourceVersion } }
    await agent.publish(saidObject('a1', { dataType: dataType.addOnsAlpha, ...report }, object))
  }, patient)
  const stored = await now()
  assert.ok(stored.status!.conditions!.some(({ type }) => type === 'Degraded'))
  assert.equal(stored.status!.registrations![0]!.kubeClient!.driver, 'token')

  const ask = (uid: string) =>
    said('a1', {
      dataType: dataType.tokenRequests,
      ...create,
      resourceId: uid,
      data: { metadata: { name: 'a1-metrics-agent', namespace: 'a1', uid }, spec: { expirationSeconds: 3600 } },
    })
  await assert.rejects(agent.publish(ask('u0')), (e) => e instanceof GrpcError && e.code === code.failedPrecondition)
  const request = { source: 'a1', clusterName: 'a1', dataType: dataType.tokenRequests }
  const heard: unknown[] = []
  const others = await other.subscribe(request)
  void (async () => {
    for await (const event of others)
      heard.push((readEvent(event)?.data() as { metadata?: object } | undefined)?.metadata)
  })().catch(() => {})
  const answers = await agent.subscribe(request)
  await agent.publish(ask('u1'))
  for await (const event of answers) {
    const answer = readEvent(event)
    if (!answer) continue
    const data = answer.data() as { metadata: { uid: string }; status: { token: string } }
    assert.equal(data.metadata.uid, 'u1')
    const [, claims] = data.status.token.split('.')
    assert.match(Buffer.from(claims!, 'base64url').toString('utf8'), /system:serviceaccount:a1:a1-metrics-agent/)
    break
  }
  // The other agent of the cluster gets its own answer, and has heard of no other by then.
  await other.publish(ask('u2'))
  const uids = () => heard.flatMap((one) => (one as { uid?: string } | undefined)?.uid ?? [])
  await eventually(() => uids().length > 0, patient)
  assert.deepEqual(uids(), ['u2'])

  // Certificates of add-ons: asked for by the hub, judged as asked for by the cluster.
  const { object } = agentRequest('a1', 'addon-a1-metrics-1', {
    user: 'system:open-cluster-management:cluster:a1:addon:metrics:agent:metrics',
    groups: ['system:open-cluster-management:cluster:a1:addon:metrics'],
  })
  object.metadata.labels[label.addOnName] = 'metrics'
  object.spec.signerName = signer.kubeApiServerClient
  await agent.publish(saidObject('a1', { ...csrs, ...create }, object))
  const made = await admin.of(CertificateSigningRequest).get('addon-a1-metrics-1')
  assert.equal(made.metadata.annotations!['open-cluster-management.io/csr-user'], agentIdentity('a1').user)
})

test('R6.2 new certificates of the endpoint are used from the next connection on, and a new authority is trusted beside the old one', async () => {
  const said = lines.filter((line) => line.includes('certificates renewed'))
  assert.match(said.join(''), /^\{.*"gRPC endpoint certificates renewed".*\}\n$/)
  const agent = await joined('t1')
  const works = await listening(agent, 't1', dataType.manifestBundles)
  const secrets = admin.of(Secret, hubNamespace)
  const base64 = (text: string): string => Buffer.from(text).toString('base64')
  const { data } = await secrets.get('lanyard-grpc')
  const text = (key: string): string => Buffer.from(data![key]!, 'base64').toString('utf8')
  const life = { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + 86_400_000) }
  const names = { dnsNames: ['localhost'], ipAddresses: ['127.0.0.1'] }
  const serving = issue({ cert: text('ca.crt'), key: text('ca.key') }, { ...names, usages: ['server'], ...life })
  await secrets.patch('lanyard-grpc', {
    merge: { data: { 'tls.crt': base64(serving.cert), 'tls.key': base64(serving.key) } },
  })
  const presented = async (): Promise<string> => {
    const socket = tls.connect({ host: '127.0.0.1', port: hub.endpoint.port, ca: hub.ca, ALPNProtocols: ['h2'] })
    await once(socket, 'secureConnect')
    const { fingerprint256 } = socket.getPeerCertificate()
    socket.destroy()
    return fingerprint256
  }
  await hub.endpoint.certificates.ensure()
  assert.equal(await presented(), new X509Certificate(serving.cert).fingerprint256)

  const authority = createAuthority({
    commonName: 'new',
    now: new Date(Date.now() - 60_000),
    validForMs: 3_600_000_000,
  })
  const both = { 'ca.crt': base64(authority.cert + text('ca.crt')), 'ca.key': base64(authority.key) }
  await secrets.patch('lanyard-grpc', { merge: { data: both } })
  await hub.endpoint.certificates.ensure()
  const { user, groups } = agentIdentity('t1')
  const renewed = issue(authority, { commonName: user, organizations: groups, usages: ['client'], ...life })
  for (const client of [hub.clientWith(renewed), hub.asCluster('t1')])
    (await listening(client, 't1', dataType.leases)).close()
  await createWork(admin, 't1', 'still-delivered')
  await works.until((event) => (event.metadata() as { name: string }).name === 'still-delivered')
  await eventually(async () => {
    const published = await admin.of(ConfigMap, hubNamespace).find(grpcCaConfigMap.name)
    return published?.data?.[grpcCaConfigMap.key]?.includes('BEGIN CERTIFICATE')
  }, patient)
})

test('R6.3 the API server restarts: subscriptions stay, nothing is lost, and what was refused meanwhile can be tried again', async () => {
  const agent = await joined('s1')
  const works = await listening(agent, 's1', dataType.manifestBundles)
  await plane.apiServer.kill()
  const refused = saidObject('s1', { dataType: dataType.leases, side: 'spec', action: 'update_request' }, {
    metadata: { name: 'managed-cluster-lease', namespace: 's1' },
    spec: { renewTime: '2026-02-02T00:00:00.000000Z' },
  } as Lease)
  await assert.rejects(
    agent.publish(refused),
    (e) => e instanceof GrpcError && e.code === code.unavailable && !e.message.includes(plane.server),
  )
  await plane.apiServer.start()
  await createWork(admin, 's1', 'after')
  await works.until((event) => (event.metadata() as { name: string }).name === 'after')
  await eventually(() => agent.publish(refused).then(() => true), patient)
  assert.equal((await admin.of(Lease, 's1').get('managed-cluster-lease')).spec.renewTime, '2026-02-02T00:00:00.000000Z')
})

test('R6.4 a denied cluster loses its subscriptions and its rights at once, and still sees that it was denied', async () => {
  const agent = await joined('d1')
  const addOns = await listening(agent, 'd1', dataType.addOns)
  const ended = addOns.until(() => false).catch((error: unknown) => error)
  await admin.of(ManagedCluster).patch('d1', { merge: { spec: { hubAcceptsClient: false } } })
  assert.ok(isForbidden(await ended))
  const lease = saidObject('d1', { dataType: dataType.leases, side: 'spec', action: 'update_request' }, {
    metadata: { name: 'managed-cluster-lease', namespace: 'd1' },
    spec: { renewTime: '2026-02-02T00:00:00.000000Z' },
  } as Lease)
  await eventually(() => agent.publish(lease).then(() => false, isForbidden), patient)
  const own = await listening(agent, 'd1', dataType.managedClusters)
  assert.equal((own.listed[0]!.data() as ManagedCluster).spec.hubAcceptsClient, false)
})

test('R6.3 further subscribers cost the API server nothing: they are served from what the hub holds already', async () => {
  const agent = await joined('q1')
  await createWork(admin, 'q1', 'w')
  const first = await listening(agent, 'q1', dataType.manifestBundles)
  const since = new Date()
  const more = await Promise.all(
    Array.from({ length: 20 }, () => listening(hub.asCluster('q1'), 'q1', dataType.manifestBundles)),
  )
  await createWork(admin, 'q1', 'w2')
  for (const each of [first, ...more]) await each.until((event) => (event.metadata() as { name: string }).name === 'w2')
  const { entries } = await plane.requestsBy('grpc-hub', { since })
  const about = entries.filter(({ resource }) => resource === 'manifestworks' || resource?.endsWith('reviews'))
  assert.deepEqual(about, [])
})
