import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually, startControlPlane } from '../../../testkit/index.ts'
import { createCluster, plainDriver } from '../../../testkit/registration-hub.ts'
import { crds, installCrds, ManagedCluster } from '../../api/index.ts'
import { Lease } from '../../kube/index.ts'
import { isTrue, Manager } from '../../runtime/index.ts'
import { Accepted } from '../contract.ts'
import { startRegistration } from './index.ts'

test('R1.7 R1.45 with everything that a hub runs, clusters are accepted and then nothing more is written', async (t) => {
  const plane = await startControlPlane({ controllerManager: false })
  t.after(() => plane.stop())
  const client = plane.client()
  await installCrds(client, crds({ conversion: 'none' }))
  const hubs = plane.client({ user: 'hub', groups: ['system:masters'], userAgent: 'whole-hub' })
  const manager = new Manager({ client: hubs, gracePeriodMs: 0 })
  const started: Manager[] = []
  startRegistration(manager, {
    client: hubs,
    settings: {
      gates: { managedClusterAutoApproval: false, defaultClusterSet: true, resourceCleanup: true },
      drivers: [plainDriver({ start: (with_) => void started.push(with_) })],
      labels: {},
      farewellMs: 60_000,
    },
  })
  assert.deepEqual(started, [manager])
  const end = new AbortController()
  const running = manager.run(end.signal)
  t.after(async () => {
    end.abort()
    await running
  })

  const names = Array.from({ length: 10 }, (_, i) => `c${i}`)
  await Promise.all(names.map((name) => createCluster(client, name)))
  await eventually(async () => {
    const { items } = await client.of(ManagedCluster).list()
    assert.equal(items.filter((c) => isTrue(c, Accepted.type)).length, names.length)
    assert.equal(
      (await client.of(Lease).list({ labelSelector: 'open-cluster-management.io/cluster-name' })).items.length,
      names.length,
    )
  })
  const writes = async (): Promise<number> => (await plane.requestsBy('whole-hub')).writes
  await eventually(async () => {
    const before = await writes()
    for (let i = 0; i < 20; i++) await client.of(ManagedCluster).list()
    return (await writes()) === before
  })
})
