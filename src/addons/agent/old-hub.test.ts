import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startAddOnScene } from '../../../testkit/add-on-agent.ts'
import { eventually, startControlPlane, type ControlPlane } from '../../../testkit/index.ts'
import { crds, installCrds, ManagedClusterAddOn } from '../../api/index.ts'
import type { CustomResourceDefinition } from '../../kube/index.ts'
import { readToken } from '../drivers/token/claims.ts'

let plane: ControlPlane
before(async () => {
  plane = await startControlPlane({ apiServerFlags: { 'service-account-max-token-expiration': '2h' } })
})
after(() => plane.stop())

/** The CRDs as a hub has them that has never heard of drivers. */
const oldCrds = (): CustomResourceDefinition[] =>
  crds({ conversion: 'none' }).map((crd) => {
    if (crd.metadata.name !== 'managedclusteraddons.addon.open-cluster-management.io') return crd
    return JSON.parse(JSON.stringify(crd), (key, value: unknown) =>
      key === 'driver' ? undefined : value,
    ) as CustomResourceDefinition
  })

/** The CRDs as a hub has them that serves the first version of add-ons alone. */
const firstCrds = (): CustomResourceDefinition[] =>
  crds({ conversion: 'none' }).map((crd) => {
    if (crd.metadata.name !== 'managedclusteraddons.addon.open-cluster-management.io') return crd
    const versions = crd.spec.versions.map((one) => {
      const isFirst = one.name === 'v1alpha1'
      return { ...one, served: isFirst, storage: isFirst }
    })
    return { ...crd, spec: { ...crd.spec, versions } }
  })

test('R2.43 a hub that serves v1alpha1 alone: each add-on says so, and is served as soon as the hub is upgraded', async (t) => {
  await installCrds(plane.client(), firstCrds())
  const scene = await startAddOnScene(t, { plane, cluster: 'c1' })
  const first = scene.hub.of(ManagedClusterAddOn.versions.v1alpha1, 'c1')
  await first.create({ metadata: { name: 'early', namespace: 'c1' }, spec: {} })
  await eventually(
    async () => {
      scene.clock.jump(60_000)
      const [said] = (await first.get('early')).status?.conditions ?? []
      assert.equal(said?.reason, 'HubTooOld')
      assert.match(said.message, /v1alpha1 only.*upgrade the hub/)
    },
    { timeoutMs: 60_000 },
  )
  await installCrds(plane.client(), crds({ conversion: 'none' }))
  scene.serveTokens()
  await scene.say('early', (status) => ({
    ...status,
    namespace: scene.namespace,
    registrations: [{ type: 'kubeClient' }],
  }))
  await eventually(
    async () => {
      scene.clock.jump(60_000)
      assert.equal(await scene.works('early'), 'system:serviceaccount:c1:c1-early-agent')
    },
    { timeoutMs: 90_000 },
  )
  await eventually(async () => assert.equal(await scene.condition('early', 'RegistrationServed'), undefined))
})

test('R2.43 a hub that drops the driver: the condition says so, certificates go on working, and after an upgrade tokens do', async (t) => {
  await installCrds(plane.client(), oldCrds())
  const scene = await startAddOnScene(t, { plane, cluster: 'c2' })
  await scene.create('a')
  await scene.says('a', 'AddonTokenRefreshed', 'False', /does not know the driver "token".*upgrade the hub.*csr/)
  const { writes } = await plane.requestsBy(scene.userAgent)
  await scene.say('a', (status) => ({ ...status, addOnMeta: { displayName: 'x' } }))
  await scene.create('b')
  await scene.says('b', 'AddonTokenRefreshed', 'False', /does not know/)
  assert.equal((await plane.requestsBy(scene.userAgent)).writes, writes + 2, 'b alone was written')

  await scene.stop()
  scene.approveCertificates()
  scene.start({ driver: 'csr' })
  await scene.works('a')
  await scene.says('a', 'ClusterCertificateRotated', 'True')
  assert.equal(await scene.condition('a', 'AddonTokenRefreshed'), undefined)

  await scene.stop()
  scene.start({ driver: 'token' })
  await scene.says('a', 'AddonTokenRefreshed', 'False', /does not know/)
  await installCrds(plane.client(), crds({ conversion: 'none' }))
  scene.serveTokens()
  await eventually(
    async () => {
      scene.clock.jump(601_000)
      assert.equal(await scene.works('a'), 'system:serviceaccount:c2:c2-a-agent')
    },
    { timeoutMs: 90_000 },
  )
  await scene.says('a', 'AddonTokenRefreshed', 'True')
})

test('R2.8 R2.24 a hub that grants less than was asked for: what it grants is what counts', async (t) => {
  await installCrds(plane.client(), crds({ conversion: 'none' }))
  const scene = await startAddOnScene(t, { plane, cluster: 'c3' })
  scene.serveTokens()
  await scene.create('a')
  await scene.works('a')
  const { token, expiration } = (await scene.secret('a-hub-kubeconfig'))!
  const { issuedAt, expiresAt } = readToken(token)!
  assert.equal(expiresAt - issuedAt, 7_200_000)
  await scene.says('a', 'AddonTokenRefreshed', 'True', new RegExp(expiration!))
  scene.clock.jump(0.85 * 7_200_000)
  await eventually(async () => assert.notEqual((await scene.secret('a-hub-kubeconfig'))?.['token'], token))
  assert.equal(await scene.tokenRequests(), 2)
})
