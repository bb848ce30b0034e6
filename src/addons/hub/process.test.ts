import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { hello } from '../../../examples/hello.ts'
import { asCluster, conditionOf, declare, enable, requestToken } from '../../../testkit/add-on-hub.ts'
import {
  eventually,
  startControlPlane,
  startHub,
  type ControlPlane,
  type LanyardProcess,
} from '../../../testkit/index.ts'
import { quiet } from '../../../testkit/work-agent.ts'
import { conditionType, ManagedCluster, ManagedClusterAddOn } from '../../api/index.ts'
import type { Client } from '../../kube/index.ts'
import { isTrue } from '../../runtime/index.ts'
import { runAddOns } from '../index.ts'
import { defaultSubject } from '../contract.ts'

let plane: ControlPlane
let admin: Client
let hub: LanyardProcess
before(async () => {
  plane = await startControlPlane()
  admin = plane.client()
  hub = await startHub(plane)
  await admin.of(ManagedCluster).create({ metadata: { name: 'p1' }, spec: { hubAcceptsClient: true } })
  await eventually(async () => isTrue(await admin.of(ManagedCluster).get('p1'), 'HubAcceptedManagedCluster'), {
    timeoutMs: 120_000,
  })
})
after(async () => {
  await hub.process.kill()
  await plane.stop()
})

const { registrationApplied, tokenInfrastructureReady } = conditionType.addOn

test('R2.12 an add-on that is written in v1alpha1 is read in v1beta1 and back, through the webhook of the hub', async () => {
  const old = ManagedClusterAddOn.versions.v1alpha1
  await admin
    .of(old, 'p1')
    .create({ metadata: { name: 'old', namespace: 'p1' }, spec: { installNamespace: 'somewhere' } })
  const agent = asCluster(plane, 'p1')
  const user = 'system:serviceaccount:p1:old-agent'
  const registrations = [{ signerName: 'kubernetes.io/kube-apiserver-client', subject: { user } }]
  const merge = { status: { registrations, kubeClientDriver: 'token' } }
  await agent.of(old, 'p1').patch('old', { merge }, { subresource: 'status' })

  const ready = await conditionOf(admin, 'p1', 'old', tokenInfrastructureReady, (one) => one?.status === 'True')
  assert.match(ready!.message, /^ServiceAccount p1\/old-agent \(UID: [-0-9a-f]{36}\) is ready$/)
  const now = await admin.of(ManagedClusterAddOn, 'p1').get('old')
  assert.deepEqual(now.status?.registrations, [
    { type: 'kubeClient', kubeClient: { driver: 'token', subject: { user } } },
  ])
  const before = await admin.of(old, 'p1').get('old')
  assert.equal(before.spec?.installNamespace, 'somewhere')
  assert.equal(before.status?.kubeClientDriver, 'token')
  assert.ok(before.status?.conditions?.some(({ type }) => type === tokenInfrastructureReady))
  assert.match(await requestToken(agent, 'p1', 'old-agent'), /^ey/)
})

test('R2.39 an author runs the example beside the hub: each does its part, and neither undoes the other’s', async (t) => {
  const stop = new AbortController()
  const client = plane.client({ user: 'author', groups: ['system:masters'], userAgent: 'author' })
  const running = runAddOns([hello], { client }, stop.signal)
  t.after(async () => {
    stop.abort()
    await running
  })
  await enable(admin, 'p1', 'hello')
  const agent = asCluster(plane, 'p1')
  await eventually(
    async () => {
      const { status } = await admin.of(ManagedClusterAddOn, 'p1').get('hello')
      assert.deepEqual(status?.registrations, [{ type: 'kubeClient' }])
    },
    { timeoutMs: 60_000 },
  )
  await declare(agent, 'p1', 'hello', 'token', { user: defaultSubject('token', 'p1', 'hello').user })
  await conditionOf(admin, 'p1', 'hello', tokenInfrastructureReady, (one) => one?.status === 'True')
  await conditionOf(admin, 'p1', 'hello', registrationApplied, (one) => one?.status === 'True')

  // Two writers that undo each other's work would never be quiet.
  await quiet(plane, 'author')
})

test('R2.46 the hub counts add-ons by state and driver, and certificate requests by outcome', async () => {
  await eventually(async () => {
    const text = await hub.metrics()
    assert.match(text, /lanyard_hub_addons\{state="[a-z]+"\} [0-9]/)
    assert.match(text, /lanyard_hub_addon_drivers\{driver="token"\} [12]/)
  })
})
