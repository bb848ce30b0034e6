import assert from 'node:assert/strict'
import { once } from 'node:events'
import http2 from 'node:http2'
import { after, before, test } from 'node:test'
import { attacksOn, type Attack, type Attacker } from '../../../../../testkit/grpc-attacks.ts'
import { grpcAuthority } from '../../../../../testkit/grpc-authority.ts'
import {
  agentIdentity,
  agentRequest,
  hubNamespace,
  joinCluster,
  listening,
  prepareGrpcHub,
  saidObject,
  startGrpcHub,
  type GrpcHub,
} from '../../../../../testkit/grpc-hub.ts'
import { allowedTo } from '../../../../../testkit/grpc-matrix.ts'
import { hostile, ofC1, user } from '../../../../../testkit/hostile-requests.ts'
import { eventually, startControlPlane, type ControlPlane } from '../../../../../testkit/index.ts'
import {
  annotation,
  label,
  ManagedCluster,
  ManagedClusterAddOn,
  ManagedClusterSet,
  ManifestWork,
  signer,
} from '../../../../api/index.ts'
import { code, dataType, errorIn, GrpcError, type EventClient } from '../../../../events/index.ts'
import {
  ApiError,
  CertificateSigningRequest,
  Lease,
  ServiceAccount,
  type Client,
  type Credential,
  type KubeObject,
} from '../../../../kube/index.ts'
import { createRequest } from '../../../../runtime/pki/index.ts'
import { findCondition, inParallel } from '../../../../runtime/index.ts'

let plane: ControlPlane
let admin: Client
let hub: GrpcHub
const patient = { timeoutMs: 60_000 }
before(async () => {
  plane = await startControlPlane({ controllerManager: false })
  admin = plane.client()
  await prepareGrpcHub(plane)
  const limits = { publishesPerSecond: 1000, publishBurst: 3000, publishesUnderWay: 8, subscriptions: 12 }
  hub = await startGrpcHub(plane, { grpc: { limits, stalledMs: 3000, heartbeatMs: 1000 } })
  await inParallel(
    4,
    ['h1', 'h2', 'h3'].map((name) => () => join(name)),
  )
  // The hub tells of it in its own time; after that it has nothing more to write by itself.
  await eventually(async () => {
    const told = findCondition(await admin.of(ManagedClusterSet).get('global'), 'ClusterSetEmpty')
    assert.match(told?.message ?? '', /^3 /)
  }, patient)
})
after(async () => {
  await hub.stop()
  await plane.stop()
})

const join = async (cluster: string): Promise<void> => {
  await joinCluster(admin, cluster)
  await eventually(() => admin.of(Lease, cluster).get('managed-cluster-lease'), patient)
  await admin.of(ManagedClusterAddOn, cluster).create({ metadata: { name: 'metrics', namespace: cluster }, spec: {} })
  await admin
    .of(ManifestWork, cluster)
    .create({ metadata: { name: 'w', namespace: cluster }, spec: { workload: { manifests: [] } } })
}

const accountToken = async (name: string): Promise<string> => {
  const accounts = admin.of(ServiceAccount, hubNamespace)
  await accounts.apply({ metadata: { name, namespace: hubNamespace } }, { fieldManager: 'test' })
  const request = { method: 'POST' as const, body: { spec: {} } }
  return (await accounts.subresource<{ status: { token: string } }>(name, 'token', request)).status.token
}

const credentialOf = (who: Attacker): Promise<Omit<Credential, 'ca'>> => {
  const h1 = agentIdentity('h1')
  const past = { notBefore: Date.now() - 7_200_000, notAfter: Date.now() - 3_600_000 }
  const made: Record<Attacker, () => Promise<Omit<Credential, 'ca'>>> = {
    h1: async () => hub.certificateFor(h1),
    bootstrap: async () => hub.certificateFor({ user: 'bootstrap' }),
    nobody: async () => ({}),
    'a stranger’s token': async () => ({ token: await accountToken('stranger') }),
    'a bad token': async () => ({ token: 'eyJhbGciOiJub25lIn0.eyJzdWIiOiJyb290In0.' }),
    expired: async () => hub.certificateFor(h1, past),
    foreign: async () => grpcAuthority().client(h1),
    'two clusters': async () =>
      hub.certificateFor({ user: h1.user, groups: [...h1.groups, ...agentIdentity('h2').groups] }),
  }
  return made[who]()
}

const sendBytes = async ({ path, body }: NonNullable<Attack['bytes']>): Promise<unknown> => {
  const session = http2.connect(hub.server, { ca: hub.ca, ...hub.certificateFor(agentIdentity('h1')) })
  try {
    const stream = session.request({
      ':method': 'POST',
      ':path': path,
      'content-type': 'application/grpc',
      te: 'trailers',
    })
    stream.on('error', () => {}) // it is cut while we still send
    stream.end(body)
    const [headers] = (await once(stream, 'response')) as [Record<string, unknown>]
    return errorIn(headers, path)
  } finally {
    session.destroy()
  }
}

/** Nothing that a client could have caused, besides questions about it. */
const writesSince = async (since: Date): Promise<string[]> => {
  const { entries } = await plane.requestsBy('grpc-hub', { since })
  return entries
    .filter(({ verb }) => ['create', 'update', 'patch', 'delete'].includes(verb))
    .filter(({ resource }) => !resource?.endsWith('reviews'))
    .map(({ verb, uri }) => `${verb} ${uri}`)
}

const renewal = (cluster: string) =>
  saidObject(cluster, { dataType: dataType.leases, side: 'spec', action: 'update_request' }, {
    metadata: { name: 'managed-cluster-lease', namespace: cluster },
    spec: { renewTime: '2026-01-01T00:00:00.000000Z' },
  } as KubeObject)

test('R6.5 every hostile call is refused with a reason, nothing is written, and the victim is undisturbed', async (t) => {
  const victim = hub.asCluster('h2')
  const works = await listening(victim, 'h2', dataType.manifestBundles)
  const attacks = attacksOn({
    cluster: await admin.of(ManagedCluster).get('h2'),
    own: await admin.of(ManagedCluster).get('h1'),
    addOn: await admin.of(ManagedClusterAddOn, 'h2').get('metrics'),
    workUid: (await admin.of(ManifestWork, 'h2').get('w')).metadata.uid!,
  })
  assert.ok(attacks.length >= 40)
  const clients = new Map<Attacker, EventClient>()
  for (const by of new Set(attacks.map((one) => one.by))) clients.set(by, hub.clientWith(await credentialOf(by)))
  const since = new Date()
  const answers: Record<string, string> = {}
  for (const { title, by, event, subscribe, bytes } of attacks) {
    const client = clients.get(by)!
    const answer = bytes
      ? await sendBytes(bytes)
      : await (event ? client.publish(event) : client.subscribe({ source: 'x', ...subscribe! })).then(
          () => undefined,
          (error: unknown) => error,
        )
    const refused =
      answer instanceof GrpcError ? answer.code !== code.internal : answer instanceof ApiError && answer.status < 500
    assert.ok(refused, `${title}, by ${by}: ${String(answer)}`)
    answers[title] = (answer as Error).message
  }
  t.diagnostic(`${attacks.length} hostile calls were refused`)
  assert.deepEqual(await writesSince(since), [])
  assert.equal(({} as { admin?: boolean }).admin, undefined)
  const secrets = Object.values(answers).filter((text) => text.includes(plane.server) || text.includes('BEGIN'))
  assert.deepEqual(secrets, [])
  await victim.publish(renewal('h2'))
  await admin.of(ManifestWork, 'h2').patch('w', { merge: { metadata: { labels: { a: 'b' } } } })
  await works.next()
})

test('R6.5 a flood, readers that read nothing and half-open calls cost a bounded amount, and others are served', async () => {
  const attacker = hub.asCluster('h1')
  const victim = hub.asCluster('h2')
  const flood = Array.from({ length: 1000 }, () => attacker.publish(renewal('h2')).catch((error: unknown) => error))
  for (let n = 0; n < 20; n++) await victim.publish(renewal('h2'))
  const outcomes = await Promise.all(flood)
  const exhausted = outcomes.filter((one) => one instanceof GrpcError && one.code === code.resourceExhausted)
  assert.ok(exhausted.length > 500, `${exhausted.length} of 1,000 were told to wait`)
  assert.ok(outcomes.every((one) => one instanceof Error))

  const sloths = hub.asCluster('h3')
  const request = { source: 'h3', clusterName: 'h3', dataType: dataType.manifestBundles }
  const open = () =>
    sloths.subscribe(request).then(
      () => true,
      (error: unknown) => error,
    )
  const subscriptions = await Promise.all(Array.from({ length: 20 }, open))
  assert.equal(subscriptions.filter((one) => one === true).length, 12)
  const held = (): number => process.memoryUsage().arrayBuffers
  const start = held()
  const data = { text: 'x'.repeat(200_000) }
  const manifests = [{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'big', namespace: 'default' }, data }]
  await admin
    .of(ManifestWork, 'h3')
    .create({ metadata: { name: 'big', namespace: 'h3' }, spec: { workload: { manifests } } })
  for (let n = 0; n < 60; n++)
    await admin.of(ManifestWork, 'h3').patch('big', { merge: { metadata: { annotations: { n: String(n) } } } })
  // Twelve readers of 60 changes of 200 KB: 144 MB if they were kept.
  assert.ok(held() - start < 60_000_000, `${Math.round((held() - start) / 1e6)} MB are held`)
  const calls = Array.from({ length: 50 }, () => {
    const session = http2.connect(hub.server, { ca: hub.ca, ...hub.certificateFor(agentIdentity('h1')) })
    session.on('error', () => {})
    const path = '/io.cloudevents.v1.CloudEventService/Publish'
    session
      .request({ ':method': 'POST', ':path': path, 'content-type': 'application/grpc' })
      .on('error', () => {})
      .write('\0')
    return session
  })
  await victim.publish(renewal('h2'))
  for (const session of calls) session.destroy()
  sloths.close()
  // They are taken off the list whether they hang up or not.
  await eventually(() => hub.endpoint.subscribers < 12, patient)
  await victim.publish(renewal('h2'))
})

test('R6.5 a reader that takes nothing is cut off, and told so when it reads again', async () => {
  const agent = hub.asCluster('h3', { silenceMs: 0 })
  const subscription = await agent.subscribe({ source: 'h3', clusterName: 'h3', dataType: dataType.manifestBundles })
  const before = hub.endpoint.subscribers
  const data = { text: 'x'.repeat(200_000) }
  const manifests = [{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'big', namespace: 'default' }, data }]
  for (let n = 0; n < 12; n++)
    await admin
      .of(ManifestWork, 'h3')
      .create({ metadata: { name: `more-${n}`, namespace: 'h3' }, spec: { workload: { manifests } } })
  await eventually(() => hub.endpoint.subscribers < before, patient)
  await assert.rejects(async () => {
    for await (const _ of subscription);
  })
})

test('R6.4 R1.16 no hostile certificate request gets a certificate over gRPC, whoever publishes it', async () => {
  await inParallel(
    4,
    ['c1', 'c2'].map((name) => () => join(name)),
  )
  const clientOf = new Map<string, EventClient>()
  const as = (who: string): EventClient => {
    if (!clientOf.has(who)) {
      const [cluster = '', agent] = who.split(':')
      const identity = agent
        ? { ...agentIdentity(cluster), user: user(who) }
        : { user: who === 'mallory' || who === 'listed' ? 'bootstrap' : who }
      clientOf.set(who, hub.clientWith(hub.certificateFor(identity)))
    }
    return clientOf.get(who)!
  }
  const outcome: Record<string, number> = {}
  for (const [index, one] of hostile.entries()) {
    const object = {
      metadata: {
        name: `c1-hostile-${index}`,
        labels: one.labels ?? { [label.clusterName]: 'c1' },
        annotations: { [annotation.csrUser]: ofC1.commonName },
      },
      spec: {
        request: Buffer.from(one.pem).toString('base64'),
        signerName: one.signerName ?? signer.grpc,
        usages: one.usages ?? ['digital signature', 'key encipherment', 'client auth'],
        ...one.forged,
      },
    }
    const event = saidObject(
      'c1',
      { dataType: dataType.certificateSigningRequests, side: 'spec', action: 'create_request' },
      object,
    )
    const error = await as(one.by)
      .publish(event)
      .then(
        () => undefined,
        (e: unknown) => e as Error,
      )
    const result = error?.name ?? 'created'
    outcome[result] = (outcome[result] ?? 0) + 1
    const csrs = admin.of(CertificateSigningRequest)
    const made = await csrs.find(object.metadata.name)
    if (!made) continue
    assert.notEqual(
      made.metadata.annotations![annotation.csrUser],
      one.by.startsWith('c1') ? '' : ofC1.commonName,
      one.title,
    )
    // What waits for a person is taken away, so that the limit on open requests does not speak for the checks.
    await eventually(async () => {
      const { status } = await csrs.get(object.metadata.name)
      return status?.conditions?.[0]?.type === 'Denied' || clusterKnows(object.metadata.name)
    }, patient)
    assert.ok(!(await csrs.get(object.metadata.name)).status?.certificate, one.title)
    await csrs.delete(object.metadata.name)
  }
  assert.ok(Object.keys(outcome).length > 1, JSON.stringify(outcome))
})

// In the cache of the approver, which decides in the order of arrival: a request that is not denied by then waits.
const clusterKnows = async (name: string): Promise<boolean> => {
  const probe = agentRequest('c2', `c2-probe-${name}`)
  await hub
    .asCluster('c2')
    .publish(
      saidObject(
        'c2',
        { dataType: dataType.certificateSigningRequests, side: 'spec', action: 'create_request' },
        probe.object,
      ),
    )
    .catch(() => {})
  const found = await admin.of(CertificateSigningRequest).find(`c2-probe-${name}`)
  return Boolean(found?.status?.certificate)
}

test('R6.4 who writes the hub’s annotations on a request of their own is still who the API server says', async () => {
  const { csr } = createRequest({ commonName: agentIdentity('h2').user, organizations: agentIdentity('h2').groups })
  const forged = plane.client({ user: 'bootstrap' }).of(CertificateSigningRequest)
  await forged.create({
    metadata: {
      name: 'h2-forged',
      labels: { [label.clusterName]: 'h2' },
      annotations: {
        [annotation.csrUser]: agentIdentity('h2').user,
        'registration.lanyard.io/csr-groups': JSON.stringify(agentIdentity('h2').groups),
      },
    },
    spec: { request: Buffer.from(csr).toString('base64'), signerName: signer.grpc, usages: ['client auth'] },
  })
  // The same request over the endpoint is approved at once: so the forged one was seen before it, and left alone.
  const honest = agentRequest('h2', 'h2-honest')
  const type = { dataType: dataType.certificateSigningRequests, side: 'spec', action: 'create_request' } as const
  await hub.asCluster('h2').publish(saidObject('h2', type, honest.object))
  await eventually.watching(
    admin.of(CertificateSigningRequest),
    (all) => all.some(({ metadata, status }) => metadata.name === 'h2-honest' && status?.certificate !== undefined),
    patient,
  )
  const { status } = await admin.of(CertificateSigningRequest).get('h2-forged')
  assert.deepEqual(status ?? {}, {})
})

const readable = ['spec.resync_request', 'subscribe']
const may = (name: string, ...what: string[]): string[] => what.map((one) => `${name}: ${one}`)
const accepted = [
  ...may('v1.managedclusters', 'spec.update_request', 'status.update_request', ...readable),
  ...may('v1.certificatesigningrequests', 'spec.create_request', ...readable),
  ...may('v1beta1.managedclusteraddons', 'status.update_request', ...readable),
  ...may('v1alpha1.managedclusteraddons', 'status.update_request', ...readable),
  ...may('v1.leases', 'spec.update_request', 'status.update_request', ...readable),
  ...may('v1.events', 'spec.create_request', 'spec.update_request'),
  ...may('v1alpha1.manifestbundles', 'status.update_request', ...readable),
].toSorted()
const bootstrapping = [
  ...may('v1.managedclusters', 'spec.create_request', ...readable),
  ...may('v1.certificatesigningrequests', 'spec.create_request', ...readable),
].toSorted()

test('R6.4 the isolation matrix over gRPC: an accepted cluster reaches its own things, a denied one itself, and nobody another’s', async () => {
  await inParallel(
    4,
    ['m1', 'm2', 'm3'].map((name) => () => join(name)),
  )
  const others = ['m2', 'm3', 'h2', 'none', 'kube-system', hubNamespace, 'default']
  const m1 = hub.asCluster('m1')
  assert.deepEqual(await allowedTo(admin, m1, 'm1'), accepted)
  for (const cluster of others) assert.deepEqual(await allowedTo(admin, m1, cluster), [], cluster)

  const bootstrap = hub.clientWith(hub.certificateFor({ user: 'bootstrap' }))
  assert.deepEqual(await allowedTo(admin, bootstrap, 'm2'), bootstrapping)
  for (const who of [
    hub.clientWith({ token: await accountToken('stranger') }),
    hub.clientWith(hub.certificateFor({ user: 'x', groups: ['system:authenticated'] })),
  ])
    for (const cluster of ['m1', 'm2']) assert.deepEqual(await allowedTo(admin, who, cluster), [])

  await admin.of(ManifestWork, 'm3').delete('w')
  await admin.of(ManagedCluster).patch('m3', { merge: { spec: { hubAcceptsClient: false } } })
  const m3 = hub.asCluster('m3')
  const leaving = new Set([
    ...may('v1.managedclusters', ...readable),
    ...may('v1alpha1.manifestbundles', 'status.update_request', ...readable),
  ])
  await eventually(
    async () => {
      const left = await allowedTo(admin, m3, 'm3')
      assert.ok(
        left.every((one) => leaving.has(one)),
        left.join('\n'),
      )
      assert.ok(left.includes('v1.managedclusters: subscribe'))
    },
    { timeoutMs: 120_000 },
  )
  assert.deepEqual(await allowedTo(admin, m1, 'm1'), accepted)
})
