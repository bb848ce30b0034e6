import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startAddOnScene } from '../../../testkit/add-on-agent.ts'
import { eventually, startControlPlane, type ControlPlane } from '../../../testkit/index.ts'
import { crds, installCrds } from '../../api/index.ts'
import { Secret, ServiceAccount } from '../../kube/index.ts'
import { readToken } from '../drivers/token/claims.ts'

let plane: ControlPlane
before(async () => {
  plane = await startControlPlane()
  await installCrds(plane.client(), crds({ conversion: 'none' }))
})
after(() => plane.stop())

test('R2.4 R2.15 R2.16 R2.22 R2.23 R2.46 an add-on declares its token, waits for the account, and ends with a secret that works and metrics that tell its age', async (t) => {
  const scene = await startAddOnScene(t, { plane, cluster: 'c1' })
  await scene.create('metrics')
  const declared = await eventually(async () => {
    const [item] = (await scene.addOn('metrics')).status?.registrations ?? []
    assert.equal(item?.kubeClient?.driver, 'token')
    return item
  })
  assert.deepEqual(declared.kubeClient, {
    driver: 'token',
    subject: { user: 'system:serviceaccount:c1:c1-metrics-agent' },
  })
  assert.equal(await scene.tokenRequests(), 0, 'nothing is requested before the hub is ready')

  const uid = await scene.tokenInfrastructure('metrics')
  assert.equal(await scene.works('metrics'), 'system:serviceaccount:c1:c1-metrics-agent')
  const data = (await scene.secret('metrics-hub-kubeconfig'))!
  assert.deepEqual(Object.keys(data).toSorted(), ['cluster-name', 'expiration', 'kubeconfig', 'token', 'uid'])
  assert.equal(data['uid'], uid)
  assert.equal(data['cluster-name'], 'c1')
  const { expiresAt, issuedAt } = readToken(data['token'])!
  assert.equal(Date.parse(data['expiration']!), expiresAt)
  assert.equal((expiresAt - issuedAt) / 1000, 31_536_000, 'one year unless told')
  await scene.says('metrics', 'AddonTokenRefreshed', 'True', new RegExp(`expires at ${data['expiration']}`))

  const { writes, byResource } = await plane.requestsBy(scene.userAgent)
  assert.equal(writes, 3, `declare, request, report: ${JSON.stringify(byResource)}`)
  assert.equal((await plane.requestsBy(`local-${scene.userAgent}`)).writes, 1, 'one secret')

  const told = (name: string, text: string): number =>
    Number(new RegExp(`^lanyard_addon_${name}_seconds\\{addon="metrics",[^}]*\\} (\\S+)$`, 'm').exec(text)?.[1])
  const before = scene.metrics.text()
  scene.clock.jump(1_000_000)
  const later = scene.metrics.text()
  for (const text of [before, later])
    assert.equal(Math.round(told('token_age', text) + told('credential_expiry', text)), 31_536_000)
  assert.ok(told('token_age', later) - told('token_age', before) >= 1000, 'it grows older by the clock')
})

test('R2.25 R2.26 R2.27 the secret deleted, its token replaced, the account recreated: one new token each, and what is only decoration costs none', async (t) => {
  const scene = await startAddOnScene(t, { plane, cluster: 'c2' })
  scene.serveTokens()
  await scene.create('one')
  await scene.create('two')
  await scene.works('one')
  await scene.works('two')
  await scene.says('one', 'AddonTokenRefreshed', 'True')
  const secrets = scene.hub.of(Secret, scene.namespace)
  const name = 'one-hub-kubeconfig'
  let requests = await scene.tokenRequests()
  assert.equal(requests, 2)

  const replaced = async (harm: () => Promise<unknown>, what: string): Promise<void> => {
    const old = (await scene.secret(name))?.['token']
    await harm()
    await eventually(async () => {
      const data = await scene.secret(name)
      assert.ok(data?.['token'] !== old && readToken(data?.['token'])?.account === 'c2-one-agent', what)
    })
    assert.equal(await scene.works('one'), 'system:serviceaccount:c2:c2-one-agent', what)
    assert.equal(await scene.tokenRequests(), ++requests, what)
  }
  const put = (token: string) => () =>
    secrets.patch(name, { merge: { data: { token: Buffer.from(token).toString('base64') } } })
  const of = (await scene.secret(name))!['token']!
  const other = (await scene.secret('two-hub-kubeconfig'))!['token']!

  await replaced(() => secrets.delete(name), 'deleted')
  await replaced(put('rubbish'), 'rubbish')
  await replaced(put(other), "another add-on's token")
  await replaced(put(`${of.slice(0, -8)}AAAAAAAA`), 'a forged signature')
  await replaced(() => secrets.patch(name, { merge: { data: { token: null } } }), 'taken out')
  await replaced(async () => {
    await scene.hub.of(ServiceAccount, 'c2').delete('c2-one-agent')
    await scene.tokenInfrastructure('one')
  }, 'the account recreated')

  await secrets.patch(name, {
    merge: { data: { kubeconfig: null, uid: 'eA==', expiration: null }, metadata: { labels: null } },
  })
  await eventually(async () => {
    const data = (await scene.secret(name))!
    assert.equal(data['uid'], readToken(data['token'])!.uid)
    assert.ok(data['kubeconfig'] && data['expiration'])
  })
  assert.equal(await scene.works('one'), 'system:serviceaccount:c2:c2-one-agent')
  assert.equal(await scene.tokenRequests(), requests, 'repairs around a good token need no request')
})

test('R2.26 R2.27 when the hub has another address, token and certificate are replaced at once, and the kubeconfig leads there', async (t) => {
  const scene = await startAddOnScene(t, { plane, cluster: 'c3' })
  scene.serveTokens()
  scene.approveCertificates()
  const signerName = 'kubernetes.io/kube-apiserver-client'
  await scene.create('a', [{ type: 'kubeClient' }, { type: 'customSigner', customSigner: { signerName } }])
  const certificate = `a-${signerName.replace('/', '-')}-client-cert`
  await scene.works('a')
  await scene.says('a', 'ClusterCertificateRotated', 'True')
  const before = { token: await scene.secret('a-hub-kubeconfig'), certificate: await scene.secret(certificate) }
  await scene.stop()
  const server = plane.server.replace('127.0.0.1', 'localhost')
  scene.start({ address: { source: 'the test', server, ca: plane.ca, clusterEntry: 'hub' } })
  await eventually(async () => {
    const token = await scene.secret('a-hub-kubeconfig')
    assert.notEqual(token?.['token'], before.token?.['token'])
    assert.match(token?.['kubeconfig'] ?? '', new RegExp(`server: ${server}`))
    assert.notEqual((await scene.secret(certificate))?.['tls.crt'], before.certificate?.['tls.crt'])
  })
  assert.equal(await scene.works('a'), 'system:serviceaccount:c3:c3-a-agent')
  assert.equal(await scene.tokenRequests(), 2)
  await scene.stop()
  scene.start({ address: { source: 'the test', server, ca: plane.ca, clusterEntry: 'renamed' } })
  await eventually(async () => assert.match((await scene.secret('a-hub-kubeconfig'))?.['kubeconfig'] ?? '', /renamed/))
  assert.equal(await scene.tokenRequests(), 2, 'another name is no other hub')
})
