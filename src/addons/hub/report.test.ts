import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { enable, installHubCrds } from '../../../testkit/add-on-hub.ts'
import { manualClock, startControlPlane, type ControlPlane } from '../../../testkit/index.ts'
import { ManagedClusterAddOn } from '../../api/index.ts'
import { isInvalid, Namespace, type Client } from '../../kube/index.ts'
import { Freshest } from '../../runtime/index.ts'
import { Configured, Degraded, Progressing } from '../contract.ts'
import type { AddOnHub } from './hub.ts'
import { writeReport, type Report } from './report.ts'

let plane: ControlPlane
let client: Client
before(async () => {
  plane = await startControlPlane({ controllerManager: false })
  client = plane.client({ user: 'hub', groups: ['system:masters'], userAgent: 'reporter' })
  await installHubCrds(plane.client())
  await client.of(Namespace).create({ metadata: { name: 'c1' } })
})
after(() => plane.stop())

const addOns = () => client.of(ManagedClusterAddOn, 'c1')
const write = (addOn: ManagedClusterAddOn, ...reports: Report[]): Promise<void> => {
  const hub = { client, clock: manualClock(1_767_225_600_000), written: new Freshest<ManagedClusterAddOn>() }
  return writeReport(hub as unknown as AddOnHub, addOn, reports, new AbortController().signal)
}
const typesOf = async (name: string): Promise<string[]> =>
  ((await addOns().get(name)).status?.conditions ?? []).map(({ type, status }) => `${type} ${status}`)

test('R2.14 what an agent writes between a look and a write of the hub is never lost', async () => {
  const seen = await enable(client, 'c1', 'between')
  const kubeClient = { driver: 'token' as const, subject: { user: 'system:serviceaccount:c1:c1-between-agent' } }
  const declared = [{ type: 'kubeClient' as const, kubeClient }]
  const asked = { status: { registrations: [{ type: 'kubeClient' as const }] } }

  const agents = { merge: { status: { registrations: declared } } }
  await addOns().patch('between', agents, { subresource: 'status' })
  await assert.rejects(write(seen, asked), isInvalid)
  assert.deepEqual((await addOns().get('between')).status?.registrations, declared)

  // The same when there was a status already.
  await addOns().patch(
    'between',
    { merge: { status: { registrations: asked.status.registrations } } },
    { subresource: 'status' },
  )
  const later = await addOns().get('between')
  await addOns().patch('between', agents, { subresource: 'status' })
  await assert.rejects(write(later, { status: { registrations: [] } }), isInvalid)
  assert.deepEqual((await addOns().get('between')).status?.registrations, declared)
})

test('R2.14 conditions of others stay, ours are set and cleared in one write, and the same again is no write', async () => {
  let addOn = await enable(client, 'c1', 'beside')
  await write(addOn, { conditions: [Configured.configured('x')] }, { conditions: [Degraded.no()] })
  addOn = await addOns().get('beside')
  const condition = {
    type: 'AddonTokenRefreshed',
    status: 'True',
    reason: 'A',
    message: '',
    lastTransitionTime: '2026-01-01T00:00:00Z',
  }
  const json = [{ op: 'add', path: '/status/conditions/-', value: condition }]
  // The agent adds its own, of which the hub has not heard yet.
  await addOns().patch('beside', { json }, { subresource: 'status' })
  await write(addOn, {
    conditions: [Degraded.invalid('y'), Progressing.progressing('z')],
    cleared: [Configured.type, 'TokenInfrastructureReady'],
    status: { namespace: 'somewhere' },
  })
  assert.deepEqual(await typesOf('beside'), ['Degraded True', 'AddonTokenRefreshed True', 'Progressing True'])

  addOn = await addOns().get('beside')
  const { writes } = await plane.requestsBy('reporter')
  await write(addOn, {
    conditions: [Degraded.invalid('y')],
    cleared: [Configured.type],
    status: { namespace: 'somewhere' },
  })
  assert.equal((await plane.requestsBy('reporter')).writes, writes)
})
