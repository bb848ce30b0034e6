import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startAddOnScene } from '../../../testkit/add-on-agent.ts'
import { eventually, startControlPlane } from '../../../testkit/index.ts'
import { crds, installCrds } from '../../api/index.ts'
import type { CustomResourceDefinition } from '../../kube/index.ts'
import { readToken } from '../drivers/token/claims.ts'

/** The CRDs as a hub has them that has never heard of drivers. */
const oldCrds = (): CustomResourceDefinition[] =>
  crds({ conversion: 'none' }).map((crd) => {
    if (crd.metadata.name !== 'managedclusteraddons.addon.open-cluster-management.io') return crd
    return JSON.parse(JSON.stringify(crd), (key, value: unknown) =>
      key === 'driver' ? undefined : value,
    ) as CustomResourceDefinition
  })

test('R2.8 R2.24 a hub that grants less than was asked for: what it grants is what counts', async (t) => {
  const plane = await startControlPlane({ apiServerFlags: { 'service-account-max-token-expiration': '2h' } })
  t.after(() => plane.stop())
  await installCrds(plane.client(), crds({ conversion: 'none' }))
  const scene = await startAddOnScene(t, { plane, cluster: 'c1' })
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

test('R2.43 a hub that drops the driver: the condition says so, certificates go on working, and after an upgrade tokens do', async (t) => {
  const plane = await startControlPlane()
  t.after(() => plane.stop())
  await installCrds(plane.client(), oldCrds())
  const scene = await startAddOnScene(t, { plane, cluster: 'c1' })
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
      assert.equal(await scene.works('a'), 'system:serviceaccount:c1:c1-a-agent')
    },
    { timeoutMs: 90_000 },
  )
  await scene.says('a', 'AddonTokenRefreshed', 'True')
})
