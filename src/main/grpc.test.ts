import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { whoAmI } from '../../testkit/add-on-agent.ts'
import { sendOverGrpc, startHubWithGrpc, type GrpcHubProcess } from '../../testkit/grpc-agent.ts'
import {
  accept,
  eventually,
  startAgent,
  startControlPlane,
  type ControlPlane,
  type LanyardProcess,
} from '../../testkit/index.ts'
import { ownNetwork, portOf, type OwnNetwork } from '../../testkit/own-network.ts'
import { programPath } from '../../testkit/program.ts'
import { approve, following } from '../../testkit/stand-in-hub.ts'
import { label, ManagedCluster, ManagedClusterAddOn, ManifestWork, signer } from '../api/index.ts'
import {
  CertificateSigningRequest,
  clientFor,
  ConfigMap,
  decoded,
  Lease,
  Namespace,
  Secret,
  type Credential,
  type SecretData,
} from '../kube/index.ts'
import { findCondition, isTrue } from '../runtime/index.ts'

let hubPlane: ControlPlane
let managed: ControlPlane
let hub: GrpcHubProcess
let network: OwnNetwork
let agent: LanyardProcess
let firstCertificate: string
const over = new AbortController()
before(async () => {
  ;[hubPlane, managed] = await Promise.all([startControlPlane(), startControlPlane({ controllerManager: false })])
  // They are valid from five minutes before on: three quarters are over, and they are renewed, after about half a minute.
  hub = await startHubWithGrpc(hubPlane, { args: ['--grpc-signing-seconds=140'] })
  network = ownNetwork(managed, { open: [portOf(hub.endpoint), portOf(managed.server)] })
})
after(() => {
  over.abort()
  return Promise.all([hubPlane?.stop(), managed?.stop()])
})

const cluster = 'c1'
const agentNamespace = 'open-cluster-management-agent'
const addOnNamespace = 'open-cluster-management-agent-addon'
const patience = { timeoutMs: 120_000 }

/** An agent in a network from which only the endpoint and its own API server can be reached. */
const startFarAgent = (...more: string[]): Promise<LanyardProcess> =>
  startAgent(managed, cluster, { args: ['--registration-auth=grpc', ...more], program: network.lanyard })

const work = (value: string): ManifestWork => ({
  metadata: { name: 'first', namespace: cluster },
  spec: {
    workload: {
      manifests: [
        { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'it', namespace: 'delivered' }, data: { value } },
        { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'more', namespace: 'delivered' } },
      ],
    },
  },
})

const secretOf = async (name: string, namespace = agentNamespace): Promise<SecretData | undefined> =>
  decoded(await managed.client().of(Secret, namespace).find(name))

const clusterOnHub = (): Promise<ManagedCluster> => hubPlane.client().of(ManagedCluster).get(cluster)

const delivered = async (): Promise<unknown> =>
  (await managed.client().of(ConfigMap, 'delivered').find('it'))?.data?.['value']

const reported = async (generation: number): Promise<void> => {
  const now = await hubPlane.client().of(ManifestWork, cluster).get('first')
  for (const type of ['Applied', 'Available']) {
    const condition = findCondition(now, type)
    assert.deepEqual(
      [condition?.status, condition?.observedGeneration],
      ['True', generation],
      JSON.stringify(now.status),
    )
  }
  assert.equal(now.status?.resourceStatus?.manifests?.length, 2)
}

test('R6.6 where the agent runs, the endpoint and its own API server can be reached, and the API server of the hub cannot', async () => {
  const answers = await Promise.all(
    [hub.endpoint, managed.server, hubPlane.server].map((at) => network.reaches(portOf(at))),
  )
  assert.deepEqual(answers, ['open', 'open', 'ECONNREFUSED'])
})

test('R1.45 R1.50 R1.51 R6.6 over gRPC a cluster joins with nothing but the address of the endpoint, is accepted and available', async () => {
  await managed
    .client()
    .of(Namespace)
    .create({ metadata: { name: 'delivered' } })
  await sendOverGrpc(managed, hubPlane, hub.endpoint)
  agent = await startFarAgent()
  await accept(hubPlane, cluster)
  await agent.process.ready()
  await eventually(async () => {
    const now = await clusterOnHub()
    for (const type of ['HubAcceptedManagedCluster', 'ManagedClusterJoined', 'ManagedClusterConditionAvailable'])
      assert.ok(isTrue(now, type), `${type} of ${JSON.stringify(now.status?.conditions)}`)
    assert.equal(now.status?.version?.kubernetes, 'v1.36.3')
    assert.ok((await hubPlane.client().of(Lease, cluster).get('managed-cluster-lease')).spec.renewTime)
  }, patience)
  const own = (await secretOf('hub-kubeconfig-secret'))!
  const keys = ['agent-name', 'cluster-name', 'config.yaml', 'kubeconfig', 'tls.crt', 'tls.key']
  assert.deepEqual(Object.keys(own).toSorted(), keys)
  firstCertificate = own['tls.crt']!
  const everything = JSON.stringify([own, await secretOf('bootstrap-hub-kubeconfig')])
  assert.ok(everything.includes(hub.endpoint) && !everything.includes(new URL(hubPlane.server).host))
})

test('R1.52 R6.6 over gRPC a work is applied and reported, changed, and removed with what it brought', async () => {
  const works = hubPlane.client().of(ManifestWork, cluster)
  await works.create(work('one'))
  await eventually(async () => {
    assert.equal(await delivered(), 'one')
    await reported(1)
  }, patience)
  await works.patch('first', { merge: { spec: work('two').spec } })
  await eventually(async () => {
    assert.equal(await delivered(), 'two')
    await reported(2)
  }, patience)
  await works.delete('first')
  await eventually(async () => {
    assert.equal(await works.find('first'), undefined)
    assert.equal(await delivered(), undefined)
  }, patience)
})

/** Who the hub's API server takes the holder of an add-on's credential for. */
const whoHolds = async (data: SecretData): Promise<string> => {
  const proof = data['token'] ? { token: data['token'] } : { cert: data['tls.crt'], key: data['tls.key'] }
  const credential: Credential = { ca: hubPlane.ca, ...proof }
  const client = clientFor({ source: 'add-on', server: hubPlane.server, credentials: async () => credential })
  return whoAmI(client).finally(() => client.close())
}

const createAddOn = async (name: string, more: object[] = []): Promise<void> => {
  const addOns = hubPlane.client().of(ManagedClusterAddOn, cluster)
  const made = await addOns.create({ metadata: { name, namespace: cluster } })
  const registrations = [{ type: 'kubeClient' }, ...more] as NonNullable<ManagedClusterAddOn['status']>['registrations']
  await eventually(async () => {
    const now = await addOns.get(made.metadata.name!)
    await addOns.updateStatus({ ...now, status: { ...now.status, registrations } })
  }, patience)
}

const custom = { type: 'customSigner', customSigner: { signerName: 'example.com/it', subject: { user: 'it-client' } } }

test('R2.33 R2.35 R6.6 over gRPC an add-on gets its certificate, and the request of a signer of its own reaches the hub', async () => {
  await managed
    .client()
    .of(Namespace)
    .create({ metadata: { name: addOnNamespace } })
  const csrs = hubPlane.client().of(CertificateSigningRequest)
  void following(csrs, over.signal, async (csr) => {
    const isFor = csr.metadata.labels?.[label.addOnName] && csr.spec.signerName === signer.kubeApiServerClient
    if (isFor && !csr.status?.conditions?.length) await approve(hubPlane.client(), csr)
  })
  await createAddOn('with-certificate', [custom])
  await eventually(async () => {
    const data = await secretOf('with-certificate-hub-kubeconfig', addOnNamespace)
    assert.ok(
      data?.['tls.crt'],
      JSON.stringify((await hubPlane.client().of(ManagedClusterAddOn, cluster).get('with-certificate')).status),
    )
    assert.match(await whoHolds(data), /^system:open-cluster-management:cluster:c1:addon:with-certificate:agent:/)
    const { items } = await csrs.list({ labelSelector: `${label.addOnName}=with-certificate` })
    assert.ok(
      items.some(({ spec }) => spec.signerName === 'example.com/it'),
      JSON.stringify(items.map((i) => i.spec.signerName)),
    )
    const { status } = await hubPlane.client().of(ManagedClusterAddOn, cluster).get('with-certificate')
    const [first] = status!.registrations!
    assert.equal(first!.type === 'kubeClient' && first!.kubeClient?.driver, 'csr')
  }, patience)
})

test('R2.34 R2.35 R6.6 over gRPC an add-on gets a token, and another one when its secret is lost', async () => {
  await agent.process.stop()
  agent = await startFarAgent('--addon-kubeclient-registration-auth=token')
  await createAddOn('with-token')
  const token = async (): Promise<string> => {
    const data = await secretOf('with-token-hub-kubeconfig', addOnNamespace)
    assert.ok(
      data?.['token'],
      JSON.stringify((await hubPlane.client().of(ManagedClusterAddOn, cluster).get('with-token')).status),
    )
    assert.equal(await whoHolds(data), 'system:serviceaccount:c1:c1-with-token-agent')
    return data['token']
  }
  const first = await eventually(token, patience)
  await eventually(async () => {
    assert.ok(isTrue(await hubPlane.client().of(ManagedClusterAddOn, cluster).get('with-token'), 'AddonTokenRefreshed'))
  }, patience)
  await managed.client().of(Secret, addOnNamespace).delete('with-token-hub-kubeconfig')
  await eventually(async () => assert.notEqual(await token(), first), patience)
})

test('R1.51 R6.6 over gRPC the certificate is renewed while all goes on, and works and reports go on with the new one', async () => {
  await eventually(
    async () => assert.notEqual((await secretOf('hub-kubeconfig-secret'))!['tls.crt'], firstCertificate),
    {
      timeoutMs: 240_000,
    },
  )
  await hubPlane.client().of(ManifestWork, cluster).create(work('three'))
  await eventually(async () => {
    assert.equal(await delivered(), 'three')
    await reported(1)
    assert.equal(await agent.unready(), '')
  }, patience)
})

test('R1.56 R1.57 R6.6 over gRPC a denied cluster can still remove its works and nothing more, and is at work again once it is accepted again', async () => {
  const clusters = hubPlane.client().of(ManagedCluster)
  const works = hubPlane.client().of(ManifestWork, cluster)
  await clusters.patch(cluster, { merge: { spec: { hubAcceptsClient: false } } })
  await eventually(async () => assert.match(await agent.unready(), /has denied cluster c1/), patience)
  await works.delete('first')
  await eventually(async () => {
    assert.equal(await works.find('first'), undefined)
    assert.equal(await delivered(), undefined)
  }, patience)
  await clusters.patch(cluster, { merge: { spec: { hubAcceptsClient: true } } })
  await eventually(async () => assert.equal(await agent.unready(), ''), patience)
  await works.create(work('four'))
  await eventually(async () => {
    assert.equal(await delivered(), 'four')
    await reported(1)
  }, patience)
})

test('R1.54 R1.55 R6.6 over gRPC an agent that leaves tells the hub and removes what it brought', async () => {
  await agent.process.stop()
  const args = [
    'leave',
    `--kubeconfig=${managed.kubeconfig}`,
    `--namespace=${agentNamespace}`,
    '--registration-auth=grpc',
  ]
  const { code, stderr } = await network.run(programPath('lanyard'), args)
  assert.equal(code, 0, stderr)
  assert.equal(await delivered(), undefined)
  const left = await clusterOnHub()
  assert.deepEqual([left.spec.hubAcceptsClient, findCondition(left, 'ManagedClusterJoined')?.status], [false, 'False'])
})

test('R2.35 R6.6 in all that the agent has asked nothing of the API server of the hub', async () => {
  const { entries } = await hubPlane.requestsBy('lanyard-agent')
  assert.deepEqual(entries, [])
  const asked = await hubPlane.requestsBy('')
  const byCluster = asked.entries.filter(({ user }) => user.startsWith('system:open-cluster-management:c1:'))
  assert.deepEqual(byCluster, [])
  assert.ok(asked.entries.some(({ userAgent }) => userAgent.startsWith('lanyard-hub')))
})
