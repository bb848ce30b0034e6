import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { startAddOnScene } from '../../../testkit/add-on-agent.ts'
import { eventually, rounds, seededRandom, startControlPlane } from '../../../testkit/index.ts'
import { crds, installCrds, label, ManagedClusterAddOn } from '../../api/index.ts'
import { CertificateSigningRequest, isNotFound, Secret, ServiceAccount } from '../../kube/index.ts'

const names = ['one', 'two', 'three']
const patience = { timeoutMs: 90_000 }
const keys = {
  token: ['cluster-name', 'expiration', 'kubeconfig', 'token', 'uid'],
  csr: ['cluster-name', 'kubeconfig', 'tls.crt', 'tls.key'],
}

test('R2.27 R2.40 R2.41 the agent cut off at any moment of registration, refresh and driver switches: the next one goes on, and nothing is orphaned', async (t) => {
  const random = seededRandom(t)
  const plane = await startControlPlane()
  t.after(() => plane.stop())
  await installCrds(plane.client(), crds({ conversion: 'none' }))
  const scene = await startAddOnScene(t, { plane, cluster: 'c1' })
  await scene.stop()
  scene.serveTokens()
  scene.approveCertificates()
  for (const name of names) await scene.create(name)

  let driver: 'csr' | 'token' = 'token'
  const holds = async (name: string): Promise<void> => {
    assert.deepEqual(Object.keys((await scene.secret(`${name}-hub-kubeconfig`)) ?? {}).toSorted(), keys[driver])
  }
  const settled = async (): Promise<boolean> =>
    (await Promise.allSettled(names.map(holds))).every(({ status }) => status === 'fulfilled')
  const harms: (() => Promise<unknown>)[] = [
    () => scene.hub.of(Secret, scene.namespace).delete(`${random.pick(names)}-hub-kubeconfig`),
    async () => (driver = driver === 'token' ? 'csr' : 'token'),
    async () => {
      const name = random.pick(names)
      await scene.hub.of(ServiceAccount, 'c1').delete(`c1-${name}-agent`)
      // As a hub that notices: the stand-in makes it anew, with another UID, if a token is declared.
      await scene.say(name, (status) => ({
        ...status,
        conditions: status.conditions?.filter(({ type }) => type !== 'TokenInfrastructureReady'),
      }))
    },
  ]

  let [cuts, inTheMiddle] = [0, 0]
  for (; cuts < 15 * rounds(1); cuts++) {
    await random.pick(harms)()
    scene.start({ driver })
    await pause(random.below(250))
    // What it had not finished when it was cut is what this test is about.
    if (!(await settled())) inTheMiddle++
    await scene.stop()
  }
  t.diagnostic(`${cuts} cuts, ${inTheMiddle} of them before the work was done`)
  assert.ok(inTheMiddle >= cuts / 10, `only ${inTheMiddle} of ${cuts} cuts came in time to harm anything`)

  for (driver of ['csr', 'token'] as const) {
    scene.start({ driver })
    await eventually(async () => {
      for (const name of names) {
        await holds(name)
        assert.equal((await scene.works(name)).startsWith('system:serviceaccount:'), driver === 'token')
        const { conditions = [] } = (await scene.addOn(name)).status ?? {}
        const own = conditions.filter(({ type }) => ['AddonTokenRefreshed', 'ClusterCertificateRotated'].includes(type))
        const wanted = driver === 'token' ? 'AddonTokenRefreshed True' : 'ClusterCertificateRotated True'
        assert.deepEqual(
          own.map(({ type, status }) => `${type} ${status}`),
          [wanted],
        )
      }
    }, patience)
    await scene.stop()
  }

  const { items } = await scene.hub.of(CertificateSigningRequest).list({ labelSelector: `${label.clusterName}=c1` })
  const open = items.filter(({ status }) => !status?.certificate)
  assert.deepEqual(open, [], 'no request was left behind unanswered')
  scene.start({ driver })
  for (const name of names) await scene.hub.of(ManagedClusterAddOn, 'c1').delete(name)
  await eventually(async () => {
    const { items: left } = await scene.hub
      .of(Secret, scene.namespace)
      .list()
      .catch((error: unknown) => {
        if (isNotFound(error)) return { items: [] }
        throw error
      })
    assert.deepEqual(
      left.map(({ metadata }) => metadata.name),
      [],
    )
  }, patience)
})
