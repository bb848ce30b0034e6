/** From nothing to a cluster that has joined, by what doctor says alone, with every mistake on the way. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ManagedCluster } from '../../api/index.ts'
import { ClusterRoleBinding, kubeconfigText, Secret } from '../../kube/index.ts'
import { freePort } from '../../../testkit/index.ts'
import { startDoctorScene, type DoctorScene } from '../../../testkit/doctor-scene.ts'

let scene: DoctorScene
before(async () => {
  scene = await startDoctorScene({ joined: false })
})
after(() => scene?.stop())

const place = 'open-cluster-management-agent'
const secrets = () => scene.managed.client().of(Secret, place)

/** Another kubeconfig in the bootstrap secret. */
const bootstrapWith = async (kubeconfig: string): Promise<void> => {
  const data = { kubeconfig: Buffer.from(kubeconfig).toString('base64') }
  await secrets().patch('bootstrap-hub-kubeconfig', { merge: { data } })
}
const token = 'not.a.token'
const kubeconfigFor = (parts: { server?: string; ca?: string; user?: object }): Promise<string> =>
  kubeconfigText({ cluster: 'hub', server: scene.hub.server, ca: scene.hub.ca, user: { token }, ...parts } as never)

test('R1.64 a hub without clusters is well, and a cluster that is nothing to us is told so', async () => {
  assert.deepEqual(await scene.stuck('--kubeconfig', scene.hub.kubeconfig), [])
  const { code, err } = await scene.doctor('--kubeconfig', scene.managed.kubeconfig)
  assert.equal(code, 1)
  assert.match(err, /is neither a hub nor a managed cluster\n {2}.*--hub-kubeconfig FILE\n/)
})

test('R1.64 klusterlet-missing: a cluster that was never told to join joins by the printed command', async () => {
  const { on, command } = await scene.heals('klusterlet-missing')
  assert.equal(on, 'managed')
  assert.match(command, /clusteradm get token .* \| clusteradm join .* --cluster-name c1$/)
  await scene.finds('not-accepted')
})

test('R1.64 no-bootstrap-secret: it is written anew by the printed command', async () => {
  await secrets().delete('bootstrap-hub-kubeconfig')
  await scene.heals('no-bootstrap-secret')
})

test('R1.64 bootstrap-secret-broken: one that cannot be read, and one without a credential, are replaced', async () => {
  await bootstrapWith('{ this is: no kubeconfig')
  assert.match((await scene.heals('bootstrap-secret-broken')).why, /not one YAML document/)
  await bootstrapWith((await kubeconfigFor({})).replace(/token: .*/, '{}'))
  await scene.heals('bootstrap-secret-broken')
})

test('R1.64 hub-unreachable: the secret leads to the hub again', async () => {
  await bootstrapWith(await kubeconfigFor({ server: `https://127.0.0.1:${await freePort()}` }))
  await scene.heals('hub-unreachable')
})

test('R1.64 wrong-ca: the secret holds the CA of the hub again', async () => {
  await bootstrapWith(await kubeconfigFor({ ca: scene.managed.ca }))
  await scene.heals('wrong-ca')
})

test('R1.64 bootstrap-token-expired: the secret holds a new token, which no output shows', async () => {
  await bootstrapWith(await kubeconfigFor({}))
  const { out } = await scene.doctor()
  assert.doesNotMatch(out, /not\.a\.token/)
  await scene.heals('bootstrap-token-expired')
})

test('R1.64 bootstrap-forbidden: the hub lets new clusters ask again', async () => {
  await scene.hub.client().of(ClusterRoleBinding).delete('open-cluster-management:bootstrap:agent-registration')
  assert.equal((await scene.heals('bootstrap-forbidden')).on, 'hub')
})

test('R1.64 cluster-name-taken: the ManagedCluster of another cluster makes room', async () => {
  const annotations = { 'agent.open-cluster-management.io/cluster-id': 'another' }
  await scene.hub
    .client()
    .of(ManagedCluster)
    .patch('c1', { merge: { metadata: { annotations } } })
  await scene.heals('cluster-name-taken')
  await scene.finds('not-accepted')
})

test('R1.64 not-accepted: with the printed command the cluster joins, and nothing is stuck any more', async () => {
  const { command, on } = await scene.heals('not-accepted')
  assert.equal(on, 'hub')
  assert.match(command, /^clusteradm accept --clusters c1 /)
  await scene.healthy()
})

test('R1.64 doctor sees what it can with one kubeconfig, from either side, and says what it could not look at', async () => {
  const fromHub = await scene.doctor('--kubeconfig', scene.hub.kubeconfig)
  const fromManaged = await scene.doctor('--kubeconfig', scene.managed.kubeconfig)
  assert.deepEqual([fromHub.code, fromManaged.code], [0, 0], fromHub.out + fromManaged.out)
  assert.match(fromHub.out, /no kubeconfig for the managed cluster/)
  assert.match(fromManaged.out, /no kubeconfig for the hub/)
  assert.match(fromManaged.out, /"name": "c1"/)
})

test('R1.64 a name that is not the one of the managed cluster is refused, and one that the hub does not know has to join', async () => {
  const sides = ['--kubeconfig', scene.hub.kubeconfig]
  const wrong = await scene.doctor('c2', ...sides, '--managed-kubeconfig', scene.managed.kubeconfig)
  assert.equal(wrong.code, 1)
  assert.match(wrong.err, /has joined as c1, not as c2\n/)
  const [unknown] = await scene.stuck('c2', ...sides)
  assert.deepEqual(
    [unknown?.fault, unknown?.command],
    ['cluster-not-created', `clusteradm get token --kubeconfig ${scene.hub.kubeconfig}`],
  )
  assert.equal((await scene.doctor('Not A Name', ...sides)).code, 2)
})

test('R1.64 who may not look is told so, and nothing is called stuck for it', async () => {
  const [hub, managed] = [scene.hub, scene.managed].map((plane) => plane.kubeconfigFor({ user: 'nobody' }))
  const { code, out } = await scene.doctor('c1', '--kubeconfig', hub!, '--managed-kubeconfig', managed!)
  assert.equal(code, 0, out)
  assert.match(out, /you may not look there: managedclusters/)
  assert.doesNotMatch(out, /"stuck"/)
})
