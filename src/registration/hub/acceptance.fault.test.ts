import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { after, before, test, type TestContext } from 'node:test'
import { eventually, rounds, seededRandom, startControlPlane, type ControlPlane } from '../../../testkit/index.ts'
import {
  agentOf,
  clusterOf,
  createCluster,
  createWork,
  objectsOf,
  plainDriver,
  runHub,
  setAccepts,
} from '../../../testkit/registration-hub.ts'
import { crds, installCrds, ManagedCluster, ManifestWork } from '../../api/index.ts'
import { Namespace, type Client } from '../../kube/index.ts'
import { findCondition, isTrue } from '../../runtime/index.ts'
import { Accepted } from '../contract.ts'

let plane: ControlPlane
let client: Client
before(async () => {
  plane = await startControlPlane({ audit: false })
  client = plane.client()
  await installCrds(client, crds({ conversion: 'none' }))
})
after(() => plane.stop())

/** Removes works that are deleted, with the agent's own credentials, as long as it may. */
const runAgent = (t: TestContext, cluster: string): void => {
  const { username: user, groups } = agentOf(cluster)
  const agent = plane.client({ user, groups }).of(ManifestWork, cluster)
  const end = new AbortController()
  const release = async (): Promise<void> => {
    const { items } = await agent.list()
    const going = items.filter((work) => work.metadata.deletionTimestamp && work.metadata.finalizers?.length)
    await Promise.all(
      going.map((work) => agent.patch(work.metadata.name!, { merge: { metadata: { finalizers: [] } } })),
    )
  }
  const loop = async (): Promise<void> => {
    while (!end.signal.aborted) {
      await release().catch(() => {})
      await sleep(50)
    }
  }
  const running = loop()
  t.after(async () => {
    end.abort()
    await running
  })
}

test('R1.45 R1.56 R1.57 a hub that is killed at any moment of acceptance, denial and deletion always finishes what it began', async (t) => {
  const random = seededRandom(t)
  const names = Array.from({ length: 6 }, (_, i) => `f${i}`)
  const granted = new Set<string>()
  const driver = plainDriver({
    grant: async ({ metadata }) => void granted.add(metadata.name!),
    revoke: async ({ metadata }) => void granted.delete(metadata.name!),
  })
  /** Hubs that live for a moment each while something happens, and then one that stays. */
  const throughKills = async (
    happens: (name: string) => Promise<unknown>,
    until: () => Promise<void>,
  ): Promise<void> => {
    const happening = Promise.all(names.map(happens))
    for (let i = 0; i < rounds(4); i++) {
      const hub = await runHub(t, plane, { settings: { drivers: [driver] } })
      await sleep(20 + random.below(250))
      await hub.stop()
    }
    await happening
    const hub = await runHub(t, plane, { settings: { drivers: [driver] } })
    await eventually(until)
    await hub.stop()
  }
  const accepts = async (): Promise<void> => {
    for (const name of names) {
      assert.ok(isTrue((await clusterOf(client, name))!, Accepted.type), name)
      assert.equal((await objectsOf(client, name)).length, 5)
    }
    assert.deepEqual([...granted].toSorted(), names)
  }

  for (const name of names) runAgent(t, name)
  await throughKills((name) => createCluster(client, name), accepts)
  await Promise.all(names.map((name) => createWork(client, name, 'w')))
  await throughKills(
    async (name) => {
      await setAccepts(client, name, false)
      await client.of(ManifestWork, name).delete('w')
    },
    async () => {
      for (const name of names) {
        assert.equal(
          findCondition((await clusterOf(client, name))!, Accepted.type)?.message,
          'Denied by hub cluster admin',
        )
        assert.equal((await objectsOf(client, name)).length, 3)
      }
      assert.deepEqual([...granted], [])
    },
  )
  await throughKills((name) => setAccepts(client, name, true), accepts)
  await Promise.all(names.map((name) => createWork(client, name, 'w')))
  await throughKills(
    (name) => client.of(ManagedCluster).delete(name),
    async () => {
      for (const name of names) {
        assert.equal(await clusterOf(client, name), undefined)
        assert.deepEqual(await objectsOf(client, name), [])
        assert.equal(await client.of(Namespace).find(name), undefined)
      }
      assert.deepEqual([...granted], [])
    },
  )
})
