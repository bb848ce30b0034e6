import assert from 'node:assert/strict'
import { after, before, test, type TestContext } from 'node:test'
import {
  asCluster,
  conditionOf,
  createClusters,
  declare,
  enable,
  installHubCrds,
  requestToken,
  runAddOnHub,
  startAddOnWork,
  writeRegistrations,
} from '../../../testkit/add-on-hub.ts'
import { eventually, startControlPlane, type ControlPlane } from '../../../testkit/index.ts'
import { annotation, conditionType, ManagedCluster, ManagedClusterAddOn, ManifestWork } from '../../api/index.ts'
import { isInvalid, type Client } from '../../kube/index.ts'
import { accountName, defaultSubject } from '../contract.ts'
import { defineAddOn } from './definition.ts'

let plane: ControlPlane
let admin: Client
before(async () => {
  plane = await startControlPlane({ audit: false })
  admin = plane.client()
  await installHubCrds(admin)
})
after(() => plane.stop())

const { configured, degraded, manifestApplied, tokenInfrastructureReady } = conditionType.addOn

const configMap = defineAddOn({
  name: 'picky',
  manifests: ({ installNamespace }) => [
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'picky', namespace: installNamespace } },
  ],
  health: 'work',
})
const broken = defineAddOn({
  name: 'broken',
  manifests: () => {
    throw new Error('the author divided by zero')
  },
})
const nameless = defineAddOn({ name: 'nameless', manifests: () => [{ kind: 'ConfigMap', metadata: {} }] })

/** A cluster with a healthy add-on beside the one that is tried: whatever happens, it goes on. */
const scene = async (t: TestContext, cluster: string): Promise<Client> => {
  await runAddOnHub(t, plane, { addOns: [configMap, broken, nameless] })
  await createClusters(admin, [cluster])
  await startAddOnWork(t, plane, cluster)
  return asCluster(plane, cluster)
}

const neighbourIsWell = async (agent: Client, cluster: string, name: string): Promise<void> => {
  await enable(admin, cluster, name)
  await declare(agent, cluster, name, 'token', { user: defaultSubject('token', cluster, name).user })
  await conditionOf(admin, cluster, name, tokenInfrastructureReady, (one) => one?.status === 'True')
  assert.match(await requestToken(agent, cluster, accountName(cluster, name)), /^ey/)
}

test('R2.12 an unknown driver is refused by the API server', async (t) => {
  const agent = await scene(t, 'b1')
  await enable(admin, 'b1', 'hello')
  await assert.rejects(declare(agent, 'b1', 'hello', 'kerberos' as 'csr'), isInvalid)
  await neighbourIsWell(agent, 'b1', 'beside')
})

test('R2.19 an add-on name of 63 characters works, and a longer or dotted one is told in a condition', async (t) => {
  const agent = await scene(t, 'b2')
  const longest = 'a'.repeat(63)
  await neighbourIsWell(agent, 'b2', longest)
  for (const name of ['a'.repeat(64), 'a.b', 'a'.repeat(200)]) {
    await enable(admin, 'b2', name)
    await declare(agent, 'b2', name, 'token', { user: defaultSubject('token', 'b2', name).user })
    const said = await conditionOf(admin, 'b2', name, degraded, (one) => one?.reason === 'InvalidName')
    assert.match(said!.message, /at most 63 small letters, digits and dashes/)
    const refused = await conditionOf(admin, 'b2', name, tokenInfrastructureReady, (one) => one?.status === 'False')
    assert.match(refused!.message, /delete it and create it/)
  }
  // The label that tells how an add-on is has no room for it; the cluster is labelled with the others all the same.
  await neighbourIsWell(agent, 'b2', 'short')
  await eventually(async () => {
    const { labels = {} } = (await admin.of(ManagedCluster).get('b2')).metadata
    const features = Object.keys(labels).filter((key) => key.startsWith('feature.'))
    assert.ok(features.includes('feature.open-cluster-management.io/addon-short'), features.join())
  })
})

test('R2.1 two kubeClient items, or two of one signer, are told in a condition, which is cleared when they are mended', async (t) => {
  const agent = await scene(t, 'b3')
  const signer = { type: 'customSigner' as const, customSigner: { signerName: 'example.com/x' } }
  for (const items of [
    [{ type: 'kubeClient' as const }, { type: 'kubeClient' as const }],
    [signer, signer],
  ]) {
    const name = items[0]!.type.toLowerCase()
    await enable(admin, 'b3', name)
    await writeRegistrations(agent, 'b3', name, items)
    const said = await conditionOf(admin, 'b3', name, degraded, (one) => one?.reason === 'InvalidRegistrations')
    assert.match(said!.message, /must ask for one/)
    await writeRegistrations(agent, 'b3', name, [items[0]!])
    await conditionOf(admin, 'b3', name, degraded, (one) => one?.status === 'False')
  }
  await neighbourIsWell(agent, 'b3', 'beside')
})

test('R2.1 an install namespace that does not exist is named in the condition, with what to do', async (t) => {
  const agent = await scene(t, 'b4')
  await enable(admin, 'b4', 'picky', { metadata: { annotations: { [annotation.installNamespace]: 'nowhere' } } })
  const said = await conditionOf(
    admin,
    'b4',
    'picky',
    manifestApplied,
    (one) => one?.reason === 'AddonManifestAppliedFailed',
  )
  assert.match(said!.message, /ConfigMap nowhere\/picky: .*nowhere.*; create the namespace there/)
  await conditionOf(admin, 'b4', 'picky', degraded, (one) => one?.reason === 'ManifestsFailing')
  await neighbourIsWell(agent, 'b4', 'beside')

  await plane.kubectl(['create', 'namespace', 'nowhere'])
  await conditionOf(admin, 'b4', 'picky', manifestApplied, (one) => one?.status === 'True')
  await conditionOf(admin, 'b4', 'picky', degraded, (one) => one?.status === 'False')
})

test('R2.1 an add-on that should run on another cluster is deployed nowhere, and says so until the annotation is gone', async (t) => {
  const agent = await scene(t, 'b7')
  await plane.kubectl(['create', 'namespace', 'b7-install'])
  const annotations = { [annotation.installNamespace]: 'b7-install', [annotation.hostingClusterName]: 'elsewhere' }
  await enable(admin, 'b7', 'picky', { metadata: { annotations } })
  const said = await conditionOf(admin, 'b7', 'picky', 'HostingClusterValidity', (one) => one?.status === 'False')
  assert.match(said!.message, /"elsewhere".*hosting-cluster-name.*remove the annotation/)
  await neighbourIsWell(agent, 'b7', 'beside')
  assert.deepEqual((await admin.of(ManifestWork, 'b7').list()).items, [])

  const none = { metadata: { annotations: { [annotation.hostingClusterName]: null } } }
  await admin.of(ManagedClusterAddOn, 'b7').patch('picky', { merge: none })
  await conditionOf(admin, 'b7', 'picky', manifestApplied, (one) => one?.status === 'True')
  await conditionOf(admin, 'b7', 'picky', 'HostingClusterValidity', (one) => one === undefined)
  await conditionOf(admin, 'b7', 'picky', degraded, (one) => one?.status === 'False')
})

test('R2.1 configurations that are missing or of an unknown kind are named, and what is deployed stays', async (t) => {
  const agent = await scene(t, 'b5')
  await plane.kubectl(['create', 'namespace', 'b5-install'])
  await enable(admin, 'b5', 'picky', { metadata: { annotations: { [annotation.installNamespace]: 'b5-install' } } })
  await conditionOf(admin, 'b5', 'picky', manifestApplied, (one) => one?.status === 'True')
  const group = 'addon.open-cluster-management.io'
  const wrong = [
    [
      { group, resource: 'addondeploymentconfigs', namespace: 'b5', name: 'gone' },
      /AddOnDeploymentConfig b5\/gone does not exist: create it/,
    ],
    [{ group: 'example.com', resource: 'knobs', name: 'all' }, /knobs.example.com is no kind of configuration/],
    [{ group, resource: 'addontemplates', name: 'gone' }, /AddOnTemplate gone does not exist/],
  ] as const
  for (const [config, message] of wrong) {
    await admin.of(ManagedClusterAddOn, 'b5').patch('picky', { merge: { spec: { configs: [config] } } })
    const said = await conditionOf(
      admin,
      'b5',
      'picky',
      configured,
      (one) => one?.status === 'False' && message.test(one.message),
    )
    assert.match(said!.message, message)
    assert.match(await plane.kubectl(['get', 'configmap', '-n', 'b5-install', 'picky']), /picky/)
  }
  await admin.of(ManagedClusterAddOn, 'b5').patch('picky', { merge: { spec: { configs: null } } })
  await conditionOf(admin, 'b5', 'picky', configured, (one) => one?.status === 'True')
  await neighbourIsWell(agent, 'b5', 'beside')
})

test('R2.1 an add-on whose code throws, or whose manifests are no objects, fails alone', async (t) => {
  const agent = await scene(t, 'b6')
  await enable(admin, 'b6', 'broken')
  const said = await conditionOf(admin, 'b6', 'broken', manifestApplied, (one) => one?.status === 'False')
  assert.match(said!.message, /divided by zero/)
  await enable(admin, 'b6', 'nameless')
  const odd = await conditionOf(admin, 'b6', 'nameless', manifestApplied, (one) => one?.status === 'False')
  assert.match(odd!.message, /no apiVersion, kind or metadata.name.*mend the manifests/)
  await neighbourIsWell(agent, 'b6', 'beside')
})

test('R2.18 an add-on in a namespace that is no cluster gets nothing, and says so', async (t) => {
  await runAddOnHub(t, plane)
  await plane.kubectl(['create', 'namespace', 'nobody'])
  await enable(admin, 'nobody', 'hello')
  await declare(admin, 'nobody', 'hello', 'token', { user: defaultSubject('token', 'nobody', 'hello').user })
  const said = await conditionOf(admin, 'nobody', 'hello', tokenInfrastructureReady, (one) => one?.status === 'False')
  assert.match(said!.message, /there is no ManagedCluster nobody/)
})

test('R2.39 a definition that cannot work is refused when it is written', () => {
  const manifests = () => []
  const wrong: [RegExp, () => unknown][] = [
    [/1 to 63 characters/, () => defineAddOn({ name: 'No_Good', manifests })],
    [
      /2 kubeClient/,
      () => defineAddOn({ name: 'x', manifests, registrations: [{ type: 'kubeClient' }, { type: 'kubeClient' }] }),
    ],
    [
      /two certificates of signer/,
      () =>
        defineAddOn({
          name: 'x',
          manifests,
          registrations: [
            { type: 'customSigner', signerName: 'a.b/c' },
            { type: 'customSigner', signerName: 'a.b/c' },
          ],
        }),
    ],
    [
      /no kubeClient credential/,
      () => defineAddOn({ name: 'x', manifests, permissions: [{ in: 'hub', clusterRole: 'view' }] }),
    ],
  ]
  for (const [message, define] of wrong) assert.throws(define, message)
})
