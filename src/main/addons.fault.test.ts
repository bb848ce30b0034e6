import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { whoIs } from '../../testkit/add-on-agent.ts'
import { approve, following } from '../../testkit/stand-in-hub.ts'
import {
  accept,
  eventually,
  rounds,
  seededRandom,
  sendTo,
  startAgent,
  startControlPlane,
  startHub,
  type ControlPlane,
  type LanyardProcess,
} from '../../testkit/index.ts'
import { Kills } from '../../testkit/kills.ts'
import { label, ManagedClusterAddOn } from '../api/index.ts'
import {
  CertificateSigningRequest,
  decoded,
  Namespace,
  Role,
  RoleBinding,
  Secret,
  ServiceAccount,
  type KubeObject,
  type Resource,
} from '../kube/index.ts'

let hubPlane: ControlPlane
let managed: ControlPlane
before(async () => {
  ;[hubPlane, managed] = await Promise.all([startControlPlane(), startControlPlane({ audit: false })])
})
after(() => Promise.all([hubPlane.stop(), managed.stop()]))

const cluster = 'c1'
const namespace = 'open-cluster-management-agent-addon'
const patience = { timeoutMs: 120_000 }

const create = async (name: string): Promise<void> => {
  const addOns = hubPlane.client().of(ManagedClusterAddOn, cluster)
  await eventually(
    () => addOns.apply({ metadata: { name, namespace: cluster } }, { fieldManager: 'person', force: true }),
    patience,
  )
  await eventually(async () => {
    const { status, ...rest } = await addOns.get(name)
    if (status?.registrations?.length) return
    await addOns.updateStatus({ ...rest, status: { ...status, registrations: [{ type: 'kubeClient' }] } })
  }, patience)
}

/** Waits until the add-on's own credential is of this driver, and the hub knows it. */
const works = (name: string, driver: 'csr' | 'token'): Promise<void> =>
  eventually(async () => {
    const data = decoded(await managed.client().of(Secret, namespace).find(`${name}-hub-kubeconfig`))
    assert.ok(data, `no secret for ${name}`)
    const keys =
      driver === 'token'
        ? ['cluster-name', 'expiration', 'kubeconfig', 'token', 'uid']
        : ['cluster-name', 'kubeconfig', 'tls.crt', 'tls.key']
    assert.deepEqual(Object.keys(data).toSorted(), keys)
    const user = await whoIs(data)
    assert.equal(user.startsWith('system:serviceaccount:'), driver === 'token', user)
    const { status } = await hubPlane.client().of(ManagedClusterAddOn, cluster).get(name)
    const types = new Set(status?.conditions?.filter((c) => c.status === 'True').map(({ type }) => type))
    assert.equal(types.has('AddonTokenRefreshed'), driver === 'token', JSON.stringify(status))
    assert.equal(types.has('ClusterCertificateRotated'), driver === 'csr', JSON.stringify(status))
  }, patience)

/** Deletes what may be gone already. */
const gone = (remove: () => Promise<boolean>): Promise<void> => eventually(async () => void (await remove()), patience)

/** What the hub holds for token add-ons, as `Kind name`. */
const infrastructure = async (): Promise<string[]> => {
  const kinds: Resource<KubeObject>[] = [ServiceAccount, Role, RoleBinding]
  const lists = await Promise.all(
    kinds.map(async (kind) => {
      const { items } = await hubPlane
        .client()
        .of(kind, cluster)
        .list({ labelSelector: `${label.tokenInfrastructure}=true` })
      return items.map(({ metadata }) => `${kind.kind} ${metadata.name}`)
    }),
  )
  return lists.flat().toSorted()
}

test('R2.30 R2.36 R2.41 R2.42 hub and agent as real processes, killed at random moments of registration, loss of secret and account, driver switch and deletion: it converges, and nothing is orphaned', async (t) => {
  const random = seededRandom(t)
  const hub = await startHub(hubPlane, { args: ['--lease-seconds=4'] })
  await sendTo(managed, hubPlane)
  const start = (driver: string): Promise<LanyardProcess> =>
    startAgent(managed, cluster, { args: [`--addon-kubeclient-registration-auth=${driver}`] })
  let driver: 'csr' | 'token' = 'token'
  let agent = await start(driver)
  await accept(hubPlane, cluster)
  await managed
    .client()
    .of(Namespace)
    .create({ metadata: { name: namespace } })

  const names = ['one', 'two', 'three']
  const over = new AbortController()
  t.after(() => over.abort())
  // What the add-ons' own hub controllers do: they have no definition here.
  void following(hubPlane.client().of(CertificateSigningRequest), over.signal, async (csr) => {
    if (csr.metadata.labels?.[label.addOnName] && !csr.status?.conditions?.length) await approve(hubPlane.client(), csr)
  })
  const kills = new Kills(random)
  const harmed = (during: string, act: () => Promise<unknown>): Promise<void> => kills.amid(during, [agent, hub], act)
  const all = (act: (name: string) => Promise<void>): Promise<void[]> => Promise.all(names.map(act))
  const remove = (name: string): Promise<void> =>
    gone(() => hubPlane.client().of(ManagedClusterAddOn, cluster).delete(name))
  const allWork = async (): Promise<void> => {
    await all((name) => works(name, driver))
    const expected = driver === 'token' ? 3 * names.length : 0
    await eventually(async () => assert.equal((await infrastructure()).length, expected), patience)
  }
  for (let round = 0; round < rounds(1); round++) {
    await harmed('registration', () => all(create))
    await allWork()
    await harmed('refresh', async () => {
      await gone(() => managed.client().of(Secret, namespace).delete('one-hub-kubeconfig'))
      await gone(() => hubPlane.client().of(ServiceAccount, cluster).delete('c1-two-agent'))
    })
    await allWork()

    await kills.kill('switch', agent)
    driver = driver === 'token' ? 'csr' : 'token'
    agent = await start(driver)
    await harmed('switch', () => pause(0))
    await allWork()
    // The next round registers it again, while what it leaves is being removed.
    await remove('three')
  }
  await harmed('deletion', () => all(remove))
  await eventually(async () => {
    assert.deepEqual(await infrastructure(), [])
    const { items } = await managed.client().of(Secret, namespace).list()
    assert.deepEqual(
      items.map(({ metadata }) => metadata.name),
      [],
    )
    assert.deepEqual((await hubPlane.client().of(ManagedClusterAddOn, cluster).list()).items, [])
  }, patience)
  t.diagnostic(kills.summary())
})
