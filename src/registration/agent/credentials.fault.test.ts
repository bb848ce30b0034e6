import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eventually, startControlPlane, type ControlPlane } from '../../../testkit/index.ts'
import { bootstrapFor, csrsOf, startAgent } from '../../../testkit/running-agent.ts'
import { standInHub, type StandInHub } from '../../../testkit/stand-in-hub.ts'
import { ManagedCluster } from '../../api/index.ts'
import { kubeconfigText, Lease, Secret, type Client } from '../../kube/index.ts'
import { Informer, isTrue } from '../../runtime/index.ts'
import { CertificateRotated, secretName } from '../contract.ts'
import { csrAgentDriver } from '../drivers/csr/agent.ts'
import type { AgentDriver } from '../drivers/driver.ts'
import { asHolder } from '../drivers/kubeconfig-hub.ts'

/** `one` is the hub; the other control plane is the managed cluster. */
let planes: ControlPlane[] = []
let one: StandInHub
let local: Client
const everybody = new AbortController()

before(async () => {
  planes = await Promise.all([startControlPlane(), startControlPlane({ controllerManager: false, audit: false })])
  local = planes[1]!.client({ user: 'agent', groups: ['system:masters'] })
  one = await standInHub(planes[0]!)
  one.letEverybodyIn(everybody.signal)
})
after(async () => {
  everybody.abort()
  await Promise.all(planes.map((plane) => plane.stop()))
})

/** Tokens of an account on the hub, which can be taken back. `lifetimeMs` is by the agent's own clock. */
const tokenDriver = (hub: StandInHub, lifetimeMs = Infinity): AgentDriver => ({
  ...csrAgentDriver(),
  name: 'token',
  unusable: ({ token, ends }, { now }) =>
    (!token && { reason: 'TokenMissing', message: 'no token' }) ||
    (now >= Number(ends) && { reason: 'TokenExpired', message: 'the token has ended' }) ||
    undefined,
  renewAt: () => Infinity,
  expiresAt: ({ ends }) => Number(ends),
  obtain: async ({ identity, clock }) => ({
    token: await hub.tokenFor(identity.cluster),
    ends: String(clock.now() + lifetimeMs),
  }),
  asCluster: (secret, address, options) => asHolder(() => ({ token: secret()['token'] }), address, options),
  kubeconfigUser: () => ({ tokenFile: 'token' }),
})

test('R1.50 a credential that has ended is replaced through the bootstrap kubeconfig', async (t) => {
  await bootstrapFor(local, 'm2', one)
  const running = startAgent(t, local, 'm2', { driver: tokenDriver(one, 3_600_000) })
  await running.ready()
  const before = await running.secret()

  running.clock.jump(3_600_001)
  await eventually(async () => assert.notEqual((await running.secret())['ends'], before['ends']))
  await running.ready()
  assert.equal((await running.secret())['agent-name'], before['agent-name'])
})

test('R1.56 a credential that was taken back is replaced once it is clear that this was no mistake', async (t) => {
  await bootstrapFor(local, 'm3', one)
  const running = startAgent(t, local, 'm3', { driver: tokenDriver(one) })
  await running.ready()
  const before = await running.secret()

  await one.revokeToken('m3')
  await one.client.of(ManagedCluster).patch('m3', { merge: { spec: { leaseDurationSeconds: 1 } } })
  await running.waitsFor(/to take the credential again/)
  assert.equal((await running.secret())['token'], before['token'])
  running.clock.jump(31_000)
  await eventually(async () => assert.notEqual((await running.secret())['token'], before['token']))
  await running.ready()
})

test('R1.50 ten minutes without the hub change nothing: the same cluster, the same credential, no request too many', async (t) => {
  const { apiServer } = planes[0]!
  await bootstrapFor(local, 'm7', one)
  const running = startAgent(t, local, 'm7')
  await running.ready()
  const [cluster, secret] = [await one.cluster('m7'), await running.secret()]

  await apiServer.kill()
  await running.waitsFor(/hub https:.* to answer/)
  for (let minute = 0; minute < 10; minute++) running.clock.jump(60_000)
  assert.equal(running.agent.phase, 'joined')
  await apiServer.start()
  const back = running.clock.now()
  await eventually(async () => {
    running.clock.jump(10_000)
    const { spec } = await one.client.of(Lease, 'm7').get('managed-cluster-lease')
    assert.ok(Date.parse(spec.renewTime!) >= back)
  })
  await running.ready()
  assert.equal((await one.cluster('m7'))!.metadata.uid, cluster!.metadata.uid)
  assert.deepEqual(await running.secret(), secret)
  assert.equal((await csrsOf(one, 'm7')).length, 1)
})

test('R1.50 the certificate is renewed again and again, by one request at a time, and never missing', async (t) => {
  await bootstrapFor(local, 'm8', one)
  const csr = csrAgentDriver()
  // The hub's signer lives in real time: when to renew follows the agent's clock instead.
  const driver: AgentDriver = {
    ...csr,
    renewAt: ({ due }) => Number(due),
    obtain: async (context) => ({ ...(await csr.obtain(context)), due: String(context.clock.now() + 600_000) }),
  }
  const running = startAgent(t, local, 'm8', { driver })
  await running.ready()
  // Every state that the secret ever had from now on.
  const gaps: unknown[] = []
  const secrets = new Informer({ client: local, resource: Secret, namespace: 'agent-m8' })
  const good = ({ metadata, data = {} }: Secret): void => {
    if (metadata.name !== secretName.hub) return
    const text = Object.fromEntries(
      Object.entries(data).map(([key, value]) => [key, Buffer.from(value, 'base64').toString()]),
    )
    const identity = { cluster: 'm8', agent: text['agent-name']! }
    const why = csr.unusable(text, { identity, now: Date.now() })
    if (why) gaps.push(why)
  }
  secrets.on({ added: good, updated: good, deleted: () => gaps.push('deleted') })
  const watching = new AbortController()
  t.after(() => watching.abort())
  void secrets.run(watching.signal)
  await secrets.synced
  const certificates = new Set<string>()
  for (let round = 0; round < 5; round++) {
    const before = await running.secret()
    certificates.add(before['tls.crt']!)
    running.clock.jump(600_001)
    await eventually(async () => {
      const now = await running.secret()
      assert.ok(now['tls.crt'] && now['tls.key'])
      assert.notEqual(now['tls.crt'], before['tls.crt'])
    })
    assert.equal(running.agent.phase, 'joined')
  }
  assert.equal(certificates.size, 5)
  assert.deepEqual(gaps, [])
  const csrs = await csrsOf(one, 'm8')
  assert.equal(csrs.length, 6)
  const user = `system:open-cluster-management:m8:${(await running.secret())['agent-name']}`
  assert.equal(csrs.filter(({ spec }) => spec.username === user).length, 5)
  await eventually(async () => assert.ok(isTrue((await one.cluster('m8'))!, CertificateRotated.type)))
})

test('R1.50 a bootstrap credential that is refused or may not ask is named with what to do', async (t) => {
  const kubeconfig = await one.bootstrapKubeconfig()
  await bootstrapFor(local, 'm9', kubeconfig.replace(/token: .*/, 'token: nonsense'))
  const running = startAgent(t, local, 'm9')
  await running.waitsFor(
    /does not know the credential of .*secret agent-m9\/bootstrap-hub-kubeconfig: it is expired, revoked/,
  )
  assert.ok(!running.lines.join('').includes('nonsense'))

  const token = await one.tokenFor('nobody-special')
  const { server, ca } = planes[0]!
  await bootstrapFor(local, 'm9', await kubeconfigText({ cluster: 'hub', server, ca, user: { token } }))
  await running.waitsFor(/may not ask hub .* to let cluster m9 in \(.*cannot get resource "managedclusters"/)

  await bootstrapFor(local, 'm9', kubeconfig)
  await running.ready()
})
