import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { enable, installHubCrds } from '../../testkit/add-on-hub.ts'
import { startControlPlane, type ControlPlane } from '../../testkit/index.ts'
import { ManagedClusterAddOn } from '../api/index.ts'
import { Namespace, type Client } from '../kube/index.ts'
import { isTrue } from '../runtime/index.ts'
import { AddOnAvailable, Configured, TokenInfrastructureReady, TokenRefreshed, type Registration } from './contract.ts'
import { isOutdated, statusChanges, type StatusChange } from './status-changes.ts'

let plane: ControlPlane
let client: Client
before(async () => {
  plane = await startControlPlane({ controllerManager: false, audit: false })
  client = plane.client()
  await installHubCrds(client)
  await client.of(Namespace).create({ metadata: { name: 'c1' } })
})
after(() => plane.stop())

/** Writes what somebody wants who has seen the add-on like this. */
const write = async (seen: ManagedClusterAddOn, change: Partial<StatusChange>): Promise<ManagedClusterAddOn> => {
  const json = statusChanges(seen, { fields: {}, states: [], cleared: [], ...change }, { now: Date.now() })
  return client.of(ManagedClusterAddOn, 'c1').patch(seen.metadata.name!, { json }, { subresource: 'status' })
}
const items = (driver: string): Registration[] =>
  [{ type: 'kubeClient', kubeClient: { driver, subject: { user: 'u' } } }] as Registration[]

test('R2.14 R2.17 hub and agent that both write from the same look hinder each other in nothing, and both are kept', async () => {
  const seen = await write(await enable(client, 'c1', 'both'), {
    fields: { registrations: [{ type: 'kubeClient' }] },
    states: [Configured.configured('x')],
  })
  await write(seen, { fields: { registrations: items('token') } })
  await write(seen, { states: [TokenInfrastructureReady.ready('y')], fields: { namespace: 'somewhere' } })
  await write(seen, { states: [TokenRefreshed.refreshed('z')] })

  const { status } = await client.of(ManagedClusterAddOn, 'c1').get('both')
  assert.deepEqual(status?.registrations, items('token'))
  assert.equal(status?.namespace, 'somewhere')
  assert.deepEqual(
    status?.conditions?.map(({ type }) => type),
    [Configured.type, TokenInfrastructureReady.type, TokenRefreshed.type],
  )
})

test('R2.14 what another has changed since the look is never overwritten: items, a condition, an object of the same name', async () => {
  const seen = await write(await enable(client, 'c1', 'raced'), {
    fields: { registrations: [{ type: 'kubeClient' }] },
    states: [AddOnAvailable.leaseUpdated('well')],
  })
  await write(seen, { fields: { registrations: items('csr') }, states: [AddOnAvailable.leaseStopped('not any more')] })

  await assert.rejects(write(seen, { fields: { registrations: items('token') } }), isOutdated)
  await assert.rejects(write(seen, { states: [AddOnAvailable.leaseUpdated('well still')] }), isOutdated)
  await assert.rejects(write(seen, { cleared: [AddOnAvailable.type] }), isOutdated)
  const now = await client.of(ManagedClusterAddOn, 'c1').get('raced')
  assert.deepEqual(now.status?.registrations, items('csr'))
  assert.ok(!isTrue(now, AddOnAvailable.type))

  await client.of(ManagedClusterAddOn, 'c1').delete('raced')
  await enable(client, 'c1', 'raced')
  await assert.rejects(write({ ...now, status: undefined }, { fields: { namespace: 'somewhere' } }), isOutdated)
})

test('R2.43 what the CRD refuses is not taken for a write that came too late', async () => {
  const seen = await enable(client, 'c1', 'refused')
  await assert.rejects(
    write(seen, { fields: { registrations: items('carrier-pigeon') } }),
    (error: Error) => !isOutdated(error) && /carrier-pigeon/.test(error.message),
  )
})
