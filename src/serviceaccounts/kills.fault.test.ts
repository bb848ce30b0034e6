import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import {
  eventually,
  rounds,
  seededRandom,
  startControlPlane,
  startFaultProxy,
  type ControlPlane,
  type FaultProxy,
} from '../../testkit/index.ts'
import {
  addOnIdentity,
  startServiceAccountScene,
  type ServiceAccountScene,
} from '../../testkit/service-account-scene.ts'
import { isConflict, isNotFound, Secret, ServiceAccount } from '../kube/index.ts'
import { agentAccount, managedSelector } from './contract.ts'

let plane: ControlPlane
let proxy: FaultProxy
let scene: ServiceAccountScene
const c = 'k1'
before(async () => {
  plane = await startControlPlane({ controllerManager: false, audit: false })
  proxy = await startFaultProxy(plane, addOnIdentity(c))
  scene = await startServiceAccountScene(plane)
  await scene.join(c)
})
after(async () => {
  await scene?.stop()
  await proxy?.stop()
  await plane?.stop()
})

const patience = { timeoutMs: 120_000 }
const quietly = (done: Promise<unknown>): Promise<unknown> =>
  done.catch((error: unknown) => {
    if (!isNotFound(error) && !isConflict(error)) throw error
  })

test('R5.19 R5.20 R5.21 R5.22 hub and agent cut off at random moments while objects, accounts and Secrets come, change and go: in the end there is exactly what is asked for, and every token works', async (t) => {
  const random = seededRandom(t)
  const secrets = () => scene.admin.of(Secret, c)
  const locals = () => scene.local(c).of(ServiceAccount, scene.namespaceOf(c))
  /** Names that should be there, and the audience that their tokens should have. */
  const wanted = new Map<string, string>()
  const any = (): string => random.pick([...wanted.keys(), 'nobody'])
  let serial = 0
  const actions: (() => Promise<unknown>)[] = [
    async () => {
      const name = `a${serial++}`
      await scene.create(c, name, { audiences: ['x'] })
      wanted.set(name, 'x')
    },
    async () => {
      const name = any()
      await quietly(scene.accounts(c).delete(name))
      wanted.delete(name)
    },
    async () => {
      const name = any()
      if (!wanted.has(name)) return
      const audience = random.pick(['x', 'y', 'z'])
      await quietly(scene.accounts(c).patch(name, { merge: { spec: { audiences: [audience] } } }))
      wanted.set(name, audience)
    },
    async () => {
      const name = any()
      if (!wanted.has(name)) return
      await scene.accounts(c).delete(name)
      await scene.create(c, name, { audiences: ['x'] })
      wanted.set(name, 'x')
    },
    () => quietly(secrets().delete(any())),
    () => quietly(secrets().patch(any(), { merge: { data: { token: 'bWluZQ==' } } })),
    () => quietly(secrets().patch(any(), { merge: { metadata: { labels: null, ownerReferences: null } } })),
    () => quietly(locals().delete(any())),
    () => quietly(locals().patch(any(), { merge: { metadata: { labels: null } } })),
    async () => scene.clock.jump(random.below(3) * 3_600_000),
  ]
  const cuts = { agent: 0, hub: 0, away: 0 }
  const total = rounds(4, 50)
  for (let round = 0; round < total; round++) {
    for (let i = 0; i < 12; i++) {
      await random.pick(actions)()
      if (random.below(4) > 0) continue
      // Cut where it is: what is under way on the wire may have reached the server or not.
      const who = random.pick(['agent', 'hub', 'away'] as const)
      cuts[who]++
      if (who === 'hub') {
        await scene.stopHub()
        await random.pick(actions)()
        scene.startHub()
        continue
      }
      proxy.cut()
      await scene.stopAgent(c)
      if (who === 'away') for (let j = 0; j < 4; j++) await random.pick(actions)()
      scene.startAgent(c, proxy.server)
    }
    for (const [name, audience] of wanted) await scene.works(c, name, { audiences: [audience] })
    await eventually(async () => {
      const expected = [...wanted.keys()].toSorted()
      const { items } = await secrets().list({ labelSelector: managedSelector })
      assert.deepEqual(items.map(({ metadata }) => metadata.name!).toSorted(), expected)
      const accounts = (await locals().list()).items.map(({ metadata }) => metadata.name!)
      assert.deepEqual(accounts.filter((name) => name !== agentAccount && name !== 'default').toSorted(), expected)
      assert.equal((await scene.accounts(c).list()).items.length, expected.length)
      // Nothing is forgotten because a Secret was changed in the moment of a report: that takes ten seconds.
      scene.clock.jump(11_000)
    }, patience)
  }
  t.diagnostic(`${total} rounds; cut: ${JSON.stringify(cuts)}`)
})
