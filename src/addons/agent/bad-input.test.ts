import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { saying, startAddOnScene } from '../../../testkit/add-on-agent.ts'
import { eventually, startControlPlane, type ControlPlane } from '../../../testkit/index.ts'
import { crds, installCrds } from '../../api/index.ts'
import { Namespace, Secret } from '../../kube/index.ts'
import { TokenInfrastructureReady, type Registration } from '../contract.ts'

let plane: ControlPlane
before(async () => {
  plane = await startControlPlane()
  await installCrds(plane.client(), crds({ conversion: 'none' }))
})
after(() => plane.stop())

const kubeClient: Registration = { type: 'kubeClient' }
const signed = (signerName: string): Registration => ({ type: 'customSigner', customSigner: { signerName } })

test('R2.1 R2.9 R2.38 bad add-ons get a condition that names the fix, and the good one beside them is served', async (t) => {
  const scene = await startAddOnScene(t, { plane, cluster: 'c1' })
  scene.serveTokens()
  const long = 'a'.repeat(63)
  await scene.create('twice', [kubeClient, kubeClient])
  await scene.create('with.dots')
  await scene.create(long)
  await scene.create('homeless')
  await scene.say('homeless', (status) => ({ ...status, namespace: 'nowhere' }))
  await scene.create('good')

  assert.equal(await scene.works('good'), 'system:serviceaccount:c1:c1-good-agent')
  assert.equal(await scene.works(long), `system:serviceaccount:c1:c1-${long}-agent`)
  assert.equal(await scene.works('twice'), 'system:serviceaccount:c1:c1-twice-agent', 'the first item is served')
  await scene.says('twice', 'RegistrationServed', 'False', /second kubeClient item.*remove/)
  await scene.says('with.dots', 'RegistrationServed', 'False', /cannot be called with\.dots.*create it again/)
  await scene.says('homeless', 'AddonTokenRefreshed', 'False', /namespace nowhere.*does not exist/)
  const requests = await scene.tokenRequests()

  await scene.hub.of(Namespace).create({ metadata: { name: 'nowhere' } })
  assert.equal(await scene.works('homeless', 'nowhere'), 'system:serviceaccount:c1:c1-homeless-agent')
  await scene.says('homeless', 'AddonTokenRefreshed', 'True')
  assert.equal(await scene.tokenRequests(), requests + 1, 'nothing was requested that had no place to go')

  await scene.say('twice', (status) => ({ ...status, registrations: status.registrations!.slice(0, 1) }))
  await eventually(async () => assert.equal(await scene.condition('twice', 'RegistrationServed'), undefined))
  const text = JSON.stringify(await Promise.all(['good', 'twice', 'homeless'].map((name) => scene.addOn(name))))
  assert.ok(!/eyJ[\w-]{20}/.test(text + scene.lines.join('')), 'no token in a condition or a log')
})

test('R2.11 a driver that nobody knows is said on each add-on with those that there are; other items are served', async (t) => {
  const scene = await startAddOnScene(t, { plane, cluster: 'c2', driver: 'magic' })
  scene.approveCertificates()
  await scene.create('a', [kubeClient, signed('kubernetes.io/kube-apiserver-client')])
  await scene.says('a', 'RegistrationServed', 'False', /--addon-kubeclient-registration-auth=magic.*csr, token/)
  await scene.says('a', 'ClusterCertificateRotated', 'True')
  assert.equal(await scene.secret('a-hub-kubeconfig'), undefined)
  assert.ok(scene.lines.some((line) => line.includes('--addon-kubeclient-registration-auth')))

  await scene.stop()
  scene.start({ driver: 'token' })
  scene.serveTokens()
  await scene.works('a')
  await eventually(async () => assert.equal(await scene.condition('a', 'RegistrationServed'), undefined))
})

test('R2.8 R2.9 lifetimes that no server takes are named in the condition, and a short one in a warning', async (t) => {
  const scene = await startAddOnScene(t, { plane, cluster: 'c3', tokenExpirationSeconds: 60 })
  scene.serveTokens()
  await scene.create('a')
  await scene.says(
    'a',
    'AddonTokenRefreshed',
    'False',
    /--addon-token-expiration-seconds.*is 60: .*600 seconds or more/,
  )
  await scene.stop()
  scene.start({ tokenExpirationSeconds: 2 ** 33 })
  await scene.says('a', 'AddonTokenRefreshed', 'False', /is 8589934592: Kubernetes takes at most 4294967296/)
  assert.equal(await scene.tokenRequests(), 0)
  await scene.stop()
  scene.start({ tokenExpirationSeconds: 600 })
  await scene.works('a')
  await scene.says('a', 'AddonTokenRefreshed', 'True')
  assert.ok(scene.lines.some((line) => line.includes('"warn"') && line.includes('for tests only')))
})

test('R2.5 R2.31 a signer that nobody serves, whether somebody approves its requests or not, and a hub that signs nothing, are named after a while, with the way out', async (t) => {
  const scene = await startAddOnScene(t, { plane, cluster: 'c4', driver: 'csr' })
  await scene.create('unapproved', [signed('example.com/unknown')])
  await eventually(async () => {
    scene.clock.jump(10_000)
    assert.match(
      (await scene.condition('unapproved', 'ClusterCertificateRotated'))?.message ?? '',
      /approver for add-on unapproved and signer example\.com\/unknown.*install what does.*correct signerName/,
    )
  })
  scene.approveCertificates()
  await scene.create('good')
  await scene.create('a', [signed('example.com/nobody')])
  await scene.works('good')
  await eventually(async () => {
    scene.clock.jump(10_000)
    assert.match(
      (await scene.condition('a', 'ClusterCertificateRotated'))?.message ?? '',
      /signer example\.com\/nobody.*install what does/,
    )
  })
  await plane.controllerManager.stop()
  t.after(() => plane.controllerManager.start())
  await scene.create('unsigned')
  await eventually(async () => {
    scene.clock.jump(10_000)
    const said = await scene.condition('unsigned', 'ClusterCertificateRotated')
    assert.match(said?.message ?? '', /never does.*--addon-kubeclient-registration-auth=token/)
  })
  const [item] = (await scene.addOn('unsigned')).status?.registrations ?? []
  assert.equal(item?.kubeClient?.driver, 'csr', 'who waits is declared along with what it waits for')
  await scene.says('good', 'ClusterCertificateRotated', 'True')
})

test('R2.16 R2.19 R2.43 while the hub does not make the account, a condition says what is missing; a foreign account is never asked for', async (t) => {
  const scene = await startAddOnScene(t, { plane, cluster: 'c5' })
  await scene.create('a')
  await eventually(async () => assert.ok((await scene.addOn('a')).status?.registrations?.[0]?.kubeClient?.driver))
  assert.equal(await scene.condition('a', 'AddonTokenRefreshed'), undefined, 'not at once')
  await eventually(async () => {
    scene.clock.jump(10_000)
    assert.match((await scene.condition('a', 'AddonTokenRefreshed'))?.message ?? '', /add-on manager.*upgrade.*csr/)
  })
  await scene.say('a', saying(TokenInfrastructureReady.failed('etcd is full')))
  await scene.says('a', 'AddonTokenRefreshed', 'False', /etcd is full/)
  await scene.say('a', saying(TokenInfrastructureReady.ready('ServiceAccount kube-system/admin (UID: 1) is ready')))
  await scene.says('a', 'AddonTokenRefreshed', 'False', /none of this add-on's/)
  await scene.say('a', saying(TokenInfrastructureReady.ready('all is well')))
  await scene.says('a', 'AddonTokenRefreshed', 'False', /all is well/)
  assert.equal(await scene.tokenRequests(), 0)
  await scene.tokenInfrastructure('a')
  await scene.works('a')
  await scene.says('a', 'AddonTokenRefreshed', 'True')
})

test('R2.4 R2.14 R2.19 what others write over driver and subject is put back; an account of the other name is followed', async (t) => {
  const scene = await startAddOnScene(t, { plane, cluster: 'c6' })
  await scene.create('a')
  await scene.tokenInfrastructure('a', 'a-agent')
  assert.equal(await scene.works('a'), 'system:serviceaccount:c6:a-agent')
  const declared = { driver: 'token', subject: { user: 'system:serviceaccount:c6:a-agent' } }
  const stands = () =>
    eventually(async () =>
      assert.deepEqual((await scene.addOn('a')).status?.registrations, [{ ...kubeClient, kubeClient: declared }]),
    )
  await stands()
  const before = (await scene.secret('a-hub-kubeconfig'))!['token']
  for (const written of [
    {},
    { driver: 'csr' },
    { driver: 'token', subject: { user: 'system:serviceaccount:kube-system:x', groups: ['g'] } },
  ]) {
    await scene.say('a', (status) => ({
      ...status,
      registrations: [{ ...kubeClient, kubeClient: written } as Registration],
    }))
    await stands()
  }
  assert.equal((await scene.secret('a-hub-kubeconfig'))!['token'], before)
})

test('R2.36 two agents of one cluster never write the same secret: the second one says whose it is', async (t) => {
  const scene = await startAddOnScene(t, { plane, cluster: 'c7' })
  scene.serveTokens()
  await scene.create('a')
  await scene.works('a')
  const other = await startAddOnScene(t, { plane, cluster: 'c8' })
  other.serveTokens()
  await other.create('a')
  await other.say('a', (status) => ({ ...status, namespace: scene.namespace }))
  await other.says(
    'a',
    'AddonTokenRefreshed',
    'False',
    /agent in namespace agent-of-c7 keeps secret.*another namespace/,
  )
  assert.equal(await scene.works('a'), 'system:serviceaccount:c7:c7-a-agent')
  await scene.stop()
  await scene.hub.of(Secret, scene.namespace).delete('a-hub-kubeconfig')
  other.clock.jump(60_000)
  await eventually(async () =>
    assert.equal(await other.works('a', scene.namespace), 'system:serviceaccount:c8:c8-a-agent'),
  )
})
