import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { asAddOn, whoAmI } from '../../testkit/add-on-agent.ts'
import { enable, requestToken } from '../../testkit/add-on-hub.ts'
import { eksCluster, startLocalEks, startManagedPlane, type LocalEks } from '../../testkit/eks/index.ts'
import {
  eventually,
  sendTo,
  startAgent,
  startHub,
  type ControlPlane,
  type LanyardProcess,
} from '../../testkit/index.ts'
import { AddOnTemplate, annotation, ManagedCluster, ManagedClusterAddOn } from '../api/index.ts'
import { defaultSubject, type AddOnDriver } from '../addons/contract.ts'
import {
  ApiError,
  CertificateSigningRequest,
  ClusterRole,
  ConfigMap,
  decoded,
  Namespace,
  Secret,
  type Client,
} from '../kube/index.ts'
import { isTrue } from '../runtime/index.ts'

const account = '222222222222'
const generous = { timeoutMs: 180_000 }
const addOns = ['one', 'two'] as const

/** Two clusters of one hub, the first with certificates for its add-ons, the second with tokens. */
const clusters: readonly { name: string; driver: AddOnDriver }[] = [
  { name: 'c1', driver: 'csr' },
  { name: 'c2', driver: 'token' },
]
const installNamespace = (cluster: string): string => `addons-of-${cluster}`

/** An agent on the one managed plane, which stands for two EKS clusters; each has a role of its own in AWS. */
const join = async (
  eks: LocalEks,
  plane: ControlPlane,
  { name, driver }: (typeof clusters)[number],
): Promise<LanyardProcess> => {
  const namespace = `agent-of-${name}`
  const managed = await eks.managed(`m-${name}`, { account, plane, issuer: 'm1' })
  await sendTo(plane, eks.hub, { namespace })
  await plane
    .client()
    .of(Namespace)
    .create({ metadata: { name: installNamespace(name) } })
  const auth = `--addon-kubeclient-registration-auth=${driver}`
  const agent = await startAgent(plane, name, {
    namespace,
    args: [...managed.args, auth],
    env: await managed.environment(),
  })
  const hubClusters = eks.hub.client().of(ManagedCluster)
  await eventually.watching(hubClusters, (all) => all.some(({ metadata }) => metadata.name === name), generous)
  await hubClusters.patch(name, { merge: { spec: { hubAcceptsClient: true } } })
  return agent
}

/** Add-ons without code, which may read ConfigMaps in the namespace of their cluster. */
const define = async (admin: Client): Promise<void> => {
  const rules = [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get'] }]
  await admin.of(ClusterRole).create({ metadata: { name: 'reader' }, rules })
  const hubPermissions = [{ type: 'CurrentCluster' as const, currentCluster: { clusterRoleName: 'reader' } }]
  for (const addonName of addOns)
    await admin.of(AddOnTemplate).create({
      metadata: { name: addonName },
      spec: { addonName, agentSpec: {}, registration: [{ type: 'KubeClient', kubeClient: { hubPermissions } }] },
    })
}

const outcome = (request: Promise<unknown>): Promise<number> =>
  request.then(
    () => 200,
    (error: unknown) => {
      if (error instanceof ApiError) return error.status
      throw error
    },
  )

interface Holder {
  cluster: string
  addOn: string
  keys: string[]
  client: Client
}

/** The credential of an add-on, once the hub knows it and has bound its permissions. */
const holder = (t: TestContext, plane: ControlPlane, eks: LocalEks, cluster: string, addOn: string): Promise<Holder> =>
  eventually(async () => {
    const managedAddOn = await eks.hub.client().of(ManagedClusterAddOn, cluster).get(addOn)
    const data = decoded(await plane.client().of(Secret, installNamespace(cluster)).find(`${addOn}-hub-kubeconfig`))
    const said = JSON.stringify(managedAddOn.status)
    assert.ok(data?.['kubeconfig'] && isTrue(managedAddOn, 'RegistrationApplied'), said)
    const client = await asAddOn(data)
    t.after(() => client.close())
    await whoAmI(client)
    return { cluster, addOn, keys: Object.keys(data).toSorted(), client }
  }, generous)

test('R2.31 R2.32 R2.36 clusters joined by aws-irsa, one with certificates for its add-ons and one with tokens: each add-on does on the hub what its role allows, and nothing else', async (t) => {
  await using eks = await startLocalEks({ access: 'access-entries' })
  await using plane = await startManagedPlane(eksCluster('m1', account))
  const admin = eks.hub.client()
  await startHub(eks.hub, { args: eks.hubArgs, env: await eks.hubEnvironment() })
  const agents = await Promise.all(clusters.map((cluster) => join(eks, plane, cluster)))
  await define(admin)
  for (const { name: cluster } of clusters) {
    await eventually(() => admin.of(Namespace).get(cluster), generous)
    await admin.of(ConfigMap, cluster).create({ metadata: { name: 'data', namespace: cluster } })
    await admin.of(Secret, cluster).create({ metadata: { name: 'secret', namespace: cluster } })
    for (const name of addOns)
      await enable(admin, cluster, name, {
        metadata: { annotations: { [annotation.installNamespace]: installNamespace(cluster) } },
        spec: { configs: [{ group: AddOnTemplate.group, resource: AddOnTemplate.plural, name }] },
      })
  }
  const pairs = clusters.flatMap(({ name }) => addOns.map((addOn) => [name, addOn] as const))
  const holders = await Promise.all(pairs.map(([cluster, addOn]) => holder(t, plane, eks, cluster, addOn)))

  const keys = {
    csr: ['cluster-name', 'kubeconfig', 'tls.crt', 'tls.key'],
    token: ['cluster-name', 'expiration', 'kubeconfig', 'token', 'uid'],
  }
  for (const { cluster, addOn, keys: present, client } of holders) {
    const { driver } = clusters.find(({ name }) => name === cluster)!
    assert.deepEqual(present, keys[driver])
    assert.equal(await whoAmI(client), defaultSubject(driver, cluster, addOn).user)
    for (const { name: place } of clusters) {
      const asked = {
        data: client.of(ConfigMap, place).get('data'),
        write: client.of(ConfigMap, place).delete('data'),
        secret: client.of(Secret, place).get('secret'),
        token: requestToken(client, place, `${place}-one-agent`),
        addOns: client.of(ManagedClusterAddOn, place).get(addOn),
        clusters: client.of(ManagedCluster).get(place),
      }
      const got = Object.fromEntries(
        await Promise.all(Object.entries(asked).map(async ([what, one]) => [what, await outcome(one)])),
      ) as Record<string, number>
      const expected = { data: 403, write: 403, secret: 403, token: 403, addOns: 403, clusters: 403 }
      assert.deepEqual(
        got,
        place === cluster ? { ...expected, data: 200 } : expected,
        `${cluster}/${addOn} in ${place}`,
      )
    }
  }
  // With tokens there is no certificate anywhere: neither the cluster nor its add-ons have ever asked for one.
  const { items } = await admin.of(CertificateSigningRequest).list()
  const askedBy = new Set(items.map(({ metadata }) => metadata.labels?.['open-cluster-management.io/cluster-name']))
  assert.deepEqual([...askedBy], ['c1'])
  assert.deepEqual(new Set(items.map(({ spec }) => spec.username)), new Set(['open-cluster-management:c1']))
  const [, byToken] = agents
  const metrics = await byToken!.metrics()
  for (const addOn of addOns) {
    assert.match(
      metrics,
      new RegExp(`lanyard_addon_tokens_issued_total\\{addon="${addOn}",reason="SecretMissing"\\} 1`),
    )
    const left = new RegExp(
      `lanyard_addon_credential_expiry_seconds\\{addon="${addOn}",[^}]*driver="token"\\} ([0-9]+)`,
    )
    assert.ok(Number(left.exec(metrics)?.[1]) > 3600, metrics)
  }
})
