import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startAddOnScene } from '../../../testkit/add-on-agent.ts'
import { eventually, startControlPlane, startFaultProxy, type ControlPlane } from '../../../testkit/index.ts'
import { crds, installCrds } from '../../api/index.ts'
import { Secret, ServiceAccount } from '../../kube/index.ts'
import { readToken } from '../drivers/token/claims.ts'

let plane: ControlPlane
before(async () => {
  plane = await startControlPlane()
  await installCrds(plane.client(), crds({ conversion: 'none' }))
})
after(() => plane.stop())

const patience = { timeoutMs: 90_000 }
const lifetimeMs = 600_000
const name = 'one-hub-kubeconfig'

test('R2.24 R2.25 R2.26 R2.27 R2.28 twenty lifetimes with every harm in between: always a credential that works, and not one TokenRequest too many', async (t) => {
  const cluster = 'lives'
  const proxy = await startFaultProxy(plane, { user: 'nobody' })
  t.after(() => proxy.stop())
  const options = { plane, cluster, server: proxy.server, tokenExpirationSeconds: lifetimeMs / 1000 }
  const scene = await startAddOnScene(t, options)
  scene.serveTokens()
  await scene.create('one')
  await scene.create('two')
  const secrets = scene.hub.of(Secret, scene.namespace)
  const tokenNow = async (of = name): Promise<string | undefined> => (await scene.secret(of))?.['token']
  const put = (token: string) =>
    secrets.patch(name, { merge: { data: { token: Buffer.from(token).toString('base64') } } })
  await scene.works('one')
  await scene.works('two')

  /** Does something after which `one` must have another token, and `two` keeps or renews its own. */
  const renewed = async (what: string, act: () => Promise<unknown>): Promise<void> => {
    const old = await tokenNow()
    await act()
    await eventually(async () => {
      const token = await tokenNow()
      assert.ok(token !== old && readToken(token)?.account === `${cluster}-one-agent`, what)
    }, patience)
    assert.equal(await scene.works('one'), `system:serviceaccount:${cluster}:${cluster}-one-agent`, what)
  }
  const harms: Record<number, [string, () => Promise<unknown>]> = {
    3: ['secret deleted', () => secrets.delete(name)],
    6: ['rubbish', () => put('rubbish')],
    9: ["another add-on's", async () => put((await tokenNow('two-hub-kubeconfig'))!)],
    12: [
      'account recreated',
      async () => {
        await scene.hub.of(ServiceAccount, cluster).delete(`${cluster}-one-agent`)
        await scene.tokenInfrastructure('one')
      },
    ],
    15: ['edited', async () => put(`${(await tokenNow())!.slice(0, -6)}AAAAAA`)],
  }
  const token = { path: /\/serviceaccounts\/.*\/token$/ }
  for (let life = 1; life <= 20; life++) {
    if (life === 18) proxy.answer(token, { status: 503, body: { reason: 'ServiceUnavailable' } }, { times: 3 })
    const other = await tokenNow('two-hub-kubeconfig')
    await renewed(`lifetime ${life}`, async () => scene.clock.jump(lifetimeMs * 0.85))
    await eventually(async () => assert.notEqual(await tokenNow('two-hub-kubeconfig'), other), patience)
    const harm = harms[life]
    if (harm) await renewed(...harm)
  }

  await scene.says('one', 'AddonTokenRefreshed', 'True')
  const failed = 3
  const least = 2 + 2 * 20 + Object.keys(harms).length
  assert.equal(await scene.tokenRequests(), least, 'what the API server has seen')
  assert.equal(proxy.count(token), least + failed, 'and what was sent')
  const leaked = scene.lines.filter((line) => /eyJ[\w-]{20}/.test(line))
  assert.deepEqual(leaked, [], 'R2.38 no token in the log')
  const text = scene.metrics.text()
  assert.match(text, /lanyard_addon_tokens_issued_total\{addon="one",reason="NearExpiry"\} 20/)
  assert.match(text, /lanyard_addon_token_failures_total\{addon="(one|two)",reason="HubUnreachable"\}/)
  assert.match(
    text,
    /lanyard_addon_credential_expiry_seconds\{addon="one",secret="one-hub-kubeconfig",driver="token"\}/,
  )
})

test('R2.28 R2.38 while the hub refuses, the old token stays and the condition says why; it recovers by itself', async (t) => {
  const cluster = 'refused'
  const proxy = await startFaultProxy(plane, { user: 'nobody' })
  t.after(() => proxy.stop())
  const scene = await startAddOnScene(t, { plane, cluster, server: proxy.server, tokenExpirationSeconds: 600 })
  scene.serveTokens()
  await scene.create('one')
  const old = await scene.works('one').then(() => scene.secret(name))
  await scene.says('one', 'AddonTokenRefreshed', 'True')
  const answer = { status: 401, body: { kind: 'Status', reason: 'Unauthorized', message: 'Unauthorized' } }
  proxy.answer({ path: /\/token$/ }, answer, { times: 4 })
  scene.clock.jump(lifetimeMs * 0.85)
  const { message } = await scene.says('one', 'AddonTokenRefreshed', 'False', /cluster's own credential/)
  assert.match(message, /the present token lasts until/)
  assert.equal((await scene.secret(name))?.['token'], old?.['token'])
  await scene.says('one', 'AddonTokenRefreshed', 'True')
  assert.notEqual((await scene.secret(name))?.['token'], old?.['token'])
})

test('R2.27 in a steady state nothing is written and nothing is asked', async (t) => {
  const scene = await startAddOnScene(t, { plane, cluster: 'steady' })
  scene.serveTokens()
  await scene.create('one')
  await scene.works('one')
  await scene.says('one', 'AddonTokenRefreshed', 'True')
  const before = await plane.requestsBy(scene.userAgent)
  // A change that concerns nobody wakes the agent; it looks and does nothing.
  await scene.hub.of(Secret, scene.namespace).patch(name, { merge: { data: { theirs: 'eA==' } } })
  await scene.say('one', (status) => ({ ...status, addOnMeta: { displayName: 'x' } }))
  await scene.create('two')
  await scene.works('two')
  await scene.says('two', 'AddonTokenRefreshed', 'True')
  const after = await plane.requestsBy(scene.userAgent)
  const own = (entries: typeof after.entries) =>
    entries.filter(({ name: of, verb }) => verb !== 'watch' && of?.includes('one')).length
  assert.equal(own(after.entries), own(before.entries))
  assert.equal((await scene.secret(name))?.['theirs'], 'x', 'keys of others stay')
})
