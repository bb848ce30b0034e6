import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { after, before, test } from 'node:test'
import { startAddOnScene, type AddOnScene } from '../../../testkit/add-on-agent.ts'
import { eventually, startControlPlane, type ControlPlane } from '../../../testkit/index.ts'
import { crds, installCrds, label, ManagedClusterAddOn } from '../../api/index.ts'
import { CertificateSigningRequest, Namespace, Secret, ServiceAccount } from '../../kube/index.ts'

let plane: ControlPlane
before(async () => {
  plane = await startControlPlane()
  await installCrds(plane.client(), crds({ conversion: 'none' }))
})
after(() => plane.stop())

const csrsOf = async (scene: AddOnScene): Promise<CertificateSigningRequest[]> =>
  (await scene.hub.of(CertificateSigningRequest).list({ labelSelector: `${label.clusterName}=${scene.cluster}` })).items

const custom = { type: 'customSigner' as const, customSigner: { signerName: 'kubernetes.io/kube-apiserver-client' } }
const keysOf = async (scene: AddOnScene, name: string): Promise<string[]> =>
  Object.keys((await scene.secret(name)) ?? {}).toSorted()

test('R2.1 R2.2 R2.4 R2.5 R2.29 certificates: one for the hub and one for each signer, each in its own secret with its own subject', async (t) => {
  const scene = await startAddOnScene(t, { plane, cluster: 'c1', driver: 'csr' })
  scene.approveCertificates()
  const subject = { user: 'someone', groups: ['team'] }
  await scene.create('a', [{ type: 'kubeClient' }, { ...custom, customSigner: { ...custom.customSigner, subject } }])
  assert.equal(await scene.works('a'), 'system:open-cluster-management:cluster:c1:addon:a:agent:a')
  await scene.says('a', 'ClusterCertificateRotated', 'True')
  const [item] = (await scene.addOn('a')).status?.registrations ?? []
  assert.equal(item?.kubeClient?.driver, 'csr')
  assert.equal(item?.kubeClient?.subject?.groups?.length, 2)
  assert.deepEqual(await keysOf(scene, 'a-hub-kubeconfig'), ['cluster-name', 'kubeconfig', 'tls.crt', 'tls.key'])

  const other = 'a-kubernetes.io-kube-apiserver-client-client-cert'
  await eventually(async () => assert.deepEqual(await keysOf(scene, other), ['cluster-name', 'tls.crt', 'tls.key']))
  const certificate = new X509Certificate((await scene.secret(other))!['tls.crt']!)
  assert.match(certificate.subject, /O=team\nCN=someone/)
  await scene.says('a', 'ClusterCertificateRotated', 'True', /a-hub-kubeconfig: .*expires at.*client-cert: /)
  assert.equal((await csrsOf(scene)).length, 2)
  for (const { metadata, spec } of await csrsOf(scene)) {
    assert.match(metadata.name!, /^addon-c1-a-/)
    assert.equal(spec.username, 'system:open-cluster-management:c1:agent1', 'asked for as the cluster')
  }
  assert.equal(await scene.condition('a', 'AddonTokenRefreshed'), undefined)
})

test('R2.5 a certificate costs four writes, is renewed at three quarters of its life, and one that is deleted or damaged is replaced', async (t) => {
  const scene = await startAddOnScene(t, { plane, cluster: 'c2', driver: 'csr' })
  scene.approveCertificates()
  await scene.create('a')
  await scene.works('a')
  await scene.says('a', 'ClusterCertificateRotated', 'True')
  assert.equal((await plane.requestsBy(scene.userAgent)).writes, 2, 'the request, and one word with driver and expiry')
  assert.equal((await plane.requestsBy(`local-${scene.userAgent}`)).writes, 2, 'the key, and its certificate')
  const secrets = scene.hub.of(Secret, scene.namespace)
  const replaced = async (act: () => unknown): Promise<void> => {
    const old = (await scene.secret('a-hub-kubeconfig'))?.['tls.crt']
    await act()
    await eventually(
      async () => {
        const now = (await scene.secret('a-hub-kubeconfig'))?.['tls.crt']
        assert.ok(now && now !== old)
      },
      { timeoutMs: 60_000 },
    )
    await scene.works('a')
  }
  await replaced(() => secrets.delete('a-hub-kubeconfig'))
  await replaced(() => secrets.patch('a-hub-kubeconfig', { merge: { data: { 'tls.crt': 'eA==' } } }))
  const { validFromDate, validToDate } = new X509Certificate((await scene.secret('a-hub-kubeconfig'))!['tls.crt']!)
  await replaced(() => scene.clock.jump(0.81 * (validToDate.getTime() - validFromDate.getTime())))
})

test('R2.40 R2.41 R2.42 csr to token and back, running and across a restart: no stale key, secret, account or condition', async (t) => {
  const scene = await startAddOnScene(t, { plane, cluster: 'c3', driver: 'csr' })
  scene.serveTokens()
  scene.approveCertificates()
  await scene.create('a')
  const types = async (): Promise<string[]> =>
    ((await scene.addOn('a')).status?.conditions ?? [])
      .map(({ type }) => type)
      .filter((type) => type !== 'Available')
      .toSorted()
  const byCertificate = async (): Promise<void> => {
    await eventually(async () => assert.match(await scene.works('a'), /^system:open-cluster-management:/), {
      timeoutMs: 60_000,
    })
    await eventually(async () => {
      assert.deepEqual(await keysOf(scene, 'a-hub-kubeconfig'), ['cluster-name', 'kubeconfig', 'tls.crt', 'tls.key'])
      assert.deepEqual(await types(), ['ClusterCertificateRotated'])
      assert.equal(await scene.hub.of(ServiceAccount, 'c3').find('c3-a-agent'), undefined)
    })
    assert.equal((await scene.addOn('a')).status?.registrations?.[0]?.kubeClient?.driver, 'csr')
  }
  const byToken = async (): Promise<void> => {
    await eventually(async () => assert.equal(await scene.works('a'), 'system:serviceaccount:c3:c3-a-agent'), {
      timeoutMs: 60_000,
    })
    await eventually(async () => {
      assert.deepEqual(await keysOf(scene, 'a-hub-kubeconfig'), [
        'cluster-name',
        'expiration',
        'kubeconfig',
        'token',
        'uid',
      ])
      assert.deepEqual(await types(), ['AddonTokenRefreshed', 'TokenInfrastructureReady'])
    })
    assert.deepEqual((await scene.addOn('a')).status?.registrations?.[0]?.kubeClient, {
      driver: 'token',
      subject: { user: 'system:serviceaccount:c3:c3-a-agent' },
    })
  }
  await byCertificate()
  for (const driver of ['token', 'csr', 'token', 'csr']) {
    await scene.stop()
    scene.start({ driver })
    await (driver === 'token' ? byToken() : byCertificate())
  }
  const { data, metadata } = await scene.hub.of(Secret, scene.namespace).get('a-hub-kubeconfig')
  await scene.stop()
  scene.start({ driver: 'csr' })
  await scene.create('later')
  await scene.works('later')
  const now = await scene.hub.of(Secret, scene.namespace).get('a-hub-kubeconfig')
  assert.deepEqual(
    [now.data, now.metadata.resourceVersion],
    [data, metadata.resourceVersion],
    'a restart changes nothing',
  )
})

test('R2.40 a certificate that another agent left is taken over, not asked for again', async (t) => {
  const scene = await startAddOnScene(t, { plane, cluster: 'c4', driver: 'csr' })
  scene.approveCertificates()
  await scene.create('a')
  await scene.works('a')
  await scene.says('a', 'ClusterCertificateRotated', 'True')
  await scene.stop()
  const secrets = scene.hub.of(Secret, scene.namespace)
  const { data } = await secrets.patch('a-hub-kubeconfig', { merge: { metadata: { labels: null, annotations: null } } })
  scene.start({ driver: 'csr' })
  await eventually(async () => assert.ok((await secrets.get('a-hub-kubeconfig')).metadata.labels?.[label.addOnName]))
  assert.deepEqual((await secrets.get('a-hub-kubeconfig')).data, data)
  assert.equal((await csrsOf(scene)).length, 1)
})

test('R2.23 R2.26 an add-on that moves takes its credential along, one that is deleted leaves nothing, also when the agent was away', async (t) => {
  const scene = await startAddOnScene(t, { plane, cluster: 'c5' })
  scene.serveTokens()
  await scene.create('a')
  await scene.create('b')
  await scene.works('a')
  await scene.works('b')
  await scene.say('a', (status) => ({ ...status, namespace: 'elsewhere' }))
  await scene.says('a', 'AddonTokenRefreshed', 'False', /namespace elsewhere.*does not exist/)
  assert.ok(await scene.secret('a-hub-kubeconfig'), 'the old one stays until there is a new one')
  await scene.hub.of(Namespace).create({ metadata: { name: 'elsewhere' } })
  assert.equal(await scene.works('a', 'elsewhere'), 'system:serviceaccount:c5:c5-a-agent')
  await eventually(async () => assert.equal(await scene.secret('a-hub-kubeconfig'), undefined))
  await scene.says('a', 'AddonTokenRefreshed', 'True')
  assert.equal(await scene.tokenRequests(), 2, 'moving needs no new token')

  await scene.hub.of(ManagedClusterAddOn, 'c5').delete('a')
  await eventually(async () => assert.equal(await scene.secret('a-hub-kubeconfig', 'elsewhere'), undefined))
  await scene.stop()
  await scene.hub.of(ManagedClusterAddOn, 'c5').delete('b')
  assert.ok(await scene.secret('b-hub-kubeconfig'))
  scene.start()
  await eventually(async () => assert.equal(await scene.secret('b-hub-kubeconfig'), undefined))
})
