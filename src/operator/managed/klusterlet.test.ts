import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import {
  accept,
  allowBootstrap,
  eventually,
  sendTo,
  startControlPlane,
  startHub,
  type ControlPlane,
  type LanyardProcess,
} from '../../../testkit/index.ts'
import { inventory } from '../../../testkit/inventory.ts'
import { applyManifests } from '../../../testkit/operator.ts'
import { startRunner, type Runner } from '../../../testkit/runner/index.ts'
import { Klusterlet, ManagedCluster, ManifestWork } from '../../api/index.ts'
import {
  ClusterRole,
  ClusterRoleBinding,
  CustomResourceDefinition,
  kubeconfigText,
  mayAccess,
  Namespace,
  RoleBinding,
  Secret,
  ServiceAccount,
  type KubeObject,
  type Resource,
} from '../../kube/index.ts'
import { findCondition, isTrue } from '../../runtime/index.ts'
import { createdBy } from '../contract.ts'
import { managedInstall } from '../install/index.ts'
import { Deployment } from '../objects.ts'

let hubPlane: ControlPlane
let plane: ControlPlane
let hub: LanyardProcess
let runner: Runner
before(async () => {
  ;[hubPlane, plane] = await Promise.all([startControlPlane({ audit: false }), startControlPlane()])
  const starting = startHub(hubPlane)
  await applyManifests(plane, managedInstall())
  runner = await startRunner(plane)
  hub = await starting
  await eventually(async () => {
    const { status } = await plane.client().of(Deployment, 'open-cluster-management').get('klusterlet')
    assert.equal(status?.availableReplicas, 1)
  }, patience)
})
after(async () => {
  await runner?.stop()
  await Promise.all([hubPlane?.stop(), plane?.stop()])
})

const patience = { timeoutMs: 120_000 }
const agentNamespace = 'open-cluster-management-agent'
const klusterlets = () => plane.client().of(Klusterlet)
const deployments = (namespace = agentNamespace) => plane.client().of(Deployment, namespace)
const clusters = () => hubPlane.client().of(ManagedCluster)

const create = (spec: Klusterlet['spec'], name = 'klusterlet'): Promise<Klusterlet> =>
  klusterlets().create({ metadata: { name }, spec })

const stateOf = async (type: string, name = 'klusterlet') => findCondition(await klusterlets().get(name), type)

const applied = (name = 'klusterlet'): Promise<Klusterlet> =>
  eventually(async () => {
    const klusterlet = await klusterlets().get(name)
    const state = findCondition(klusterlet, 'Applied')
    assert.equal(state?.status, 'True', JSON.stringify(klusterlet.status?.conditions))
    assert.equal(state?.observedGeneration, klusterlet.metadata.generation)
    return klusterlet
  }, patience)

const gone = async (name = 'klusterlet'): Promise<void> => {
  await klusterlets().delete(name)
  await eventually(async () => {
    const left = await klusterlets().find(name)
    assert.equal(left, undefined, JSON.stringify(left?.status?.conditions))
  }, patience)
}

const joined = (cluster: string): Promise<void> =>
  eventually(async () => {
    const seen = await clusters().get(cluster)
    for (const type of ['ManagedClusterJoined', 'ManagedClusterConditionAvailable'])
      assert.ok(isTrue(seen, type), JSON.stringify(seen.status))
  }, patience)

const deliver = async (cluster: string, role: string, on: ControlPlane): Promise<void> => {
  const manifest = {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name: role },
    rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }],
  }
  await hubPlane
    .client()
    .of(ManifestWork, cluster)
    .create({ metadata: { name: 'w', namespace: cluster }, spec: { workload: { manifests: [manifest] } } })
  await eventually(async () => assert.ok(await on.client().of(ClusterRole).find(role)), patience)
}

const refusals = async (user: string): Promise<string[]> => {
  const { entries } = await plane.requestsBy({ user: `system:serviceaccount:${user}` })
  assert.ok(entries.length > 0, `${user} asked for nothing`)
  return entries.filter(({ code }) => code === 403).map(({ verb, uri }) => `${verb} ${uri}`)
}

/** What is on the managed cluster, without what every pod leaves in passing. */
const objects = async (): Promise<string[]> =>
  (await inventory(plane)).filter((one) => !/^(pods|replicasets)/.test(one))

test('R1.51 R1.54 R4.24 a Klusterlet becomes an agent that joins and gets works; deleted, the cluster leaves its hub, the works go, and every object is as it was', async () => {
  const before = await objects()
  await create({ clusterName: 'c1' })
  const { status } = await applied()
  await eventually(async () => {
    const state = await stateOf('HubConnectionDegraded')
    assert.equal(state?.reason, 'BootstrapSecretMissing,HubKubeConfigSecretMissing')
    assert.match(state.message, /bootstrap-hub-kubeconfig does not exist; on the hub run: clusteradm get token/)
    assert.equal((await stateOf('Available'))?.status, 'True', 'an agent that waits for its hub runs well')
    assert.equal((await stateOf('RegistrationDesiredDegraded'))?.status, 'False')
    assert.equal((await stateOf('WorkDesiredDegraded'))?.status, 'False')
  }, patience)
  assert.deepEqual(
    new Set(status!.relatedResources!.map(({ resource }) => resource)),
    new Set([
      'clusterrolebindings',
      'customresourcedefinitions',
      'deployments',
      'namespaces',
      'rolebindings',
      'serviceaccounts',
    ]),
  )

  await sendTo(plane, hubPlane)
  await eventually(async () => {
    const state = await stateOf('HubConnectionDegraded')
    assert.equal(state?.reason, 'BootstrapSecretFunctional,HubKubeConfigMissing')
    assert.match(state.message, /on the hub run: clusteradm accept --clusters c1/)
  }, patience)
  await accept(hubPlane, 'c1')
  await joined('c1')
  await eventually(async () => assert.equal((await stateOf('HubConnectionDegraded'))?.status, 'False'), patience)
  await deliver('c1', 'delivered', plane)
  assert.deepEqual(await refusals('open-cluster-management-agent:klusterlet-work-sa'), [])
  // Roles of a ClusterPermission may hold more than the agent does.
  for (const verb of ['escalate', 'bind']) {
    const resourceAttributes = { verb, group: 'rbac.authorization.k8s.io', resource: 'clusterroles' }
    const username = 'system:serviceaccount:open-cluster-management-agent:klusterlet-work-sa'
    assert.ok(await mayAccess(plane.client(), { username }, resourceAttributes), verb)
  }

  await gone()
  await eventually(async () => assert.deepEqual(await objects(), before), patience)
  const cluster = await clusters().get('c1')
  assert.equal(cluster.spec.hubAcceptsClient, false)
  assert.equal(findCondition(cluster, 'ManagedClusterJoined')?.reason, 'ManagedClusterLeft')
  assert.deepEqual(await refusals('open-cluster-management:klusterlet'), [])
  await clusters().delete('c1')
})

test('R1.66 each object of an agent that somebody deletes or changes comes back as it was, and a steady state writes nothing', async () => {
  await create({ clusterName: 'c2' })
  const { status } = await applied()
  const kinds: Resource<KubeObject>[] = [
    Deployment,
    ServiceAccount,
    RoleBinding,
    ClusterRoleBinding,
    CustomResourceDefinition,
    Namespace,
  ]
  const admin = plane.client()
  // The namespace last: it takes the others with it.
  const related = status!.relatedResources!.toSorted(
    (a, b) => Number(a.resource === 'namespaces') - Number(b.resource === 'namespaces'),
  )
  for (const { resource, namespace, name } of related) {
    const client = admin.of(
      kinds.find(({ plural }) => plural === resource)!,
      namespace,
    )
    const { uid } = (await client.get(name)).metadata
    await client.delete(name, { propagationPolicy: 'Background' })
    await eventually(async () => {
      const now = await client.get(name)
      assert.ok(now.metadata.uid !== uid && now.metadata.labels?.[createdBy.klusterlet], `${resource} ${name}`)
    }, patience)
  }
  const agents = await eventually(async () => {
    assert.equal((await stateOf('Available'))?.status, 'True')
    return deployments()
  }, patience)
  await agents.patch('klusterlet-agent', { strategic: { spec: { template: { spec: { hostNetwork: true } } } } })
  await eventually(async () => {
    const { spec } = await agents.get('klusterlet-agent')
    assert.notEqual(spec.template.spec['hostNetwork'], true)
  }, patience)
  const bindings = admin.of(ClusterRoleBinding)
  const subjects = [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: 'mallory' }]
  await bindings.patch('open-cluster-management:klusterlet:work', { merge: { subjects } })
  await eventually(async () => {
    const [only, ...more] = (await bindings.get('open-cluster-management:klusterlet:work')).subjects!
    assert.deepEqual([only!.name, more], ['klusterlet-work-sa', []])
  }, patience)

  const since = await quiet()
  const { entries } = await plane.requestsBy('lanyard-operator', { since })
  const writes = entries.filter(
    ({ verb, resource }) => !['get', 'list', 'watch'].includes(verb) && resource !== 'leases',
  )
  assert.deepEqual(
    writes.map(({ verb, uri }) => `${verb} ${uri}`),
    [],
  )
  await gone()
})

/** The begin of a time in which the operator looked at the Klusterlet again, and after which nothing has moved. */
const quiet = async (): Promise<Date> => {
  const stable = () =>
    eventually(async () => {
      const version = async () => [
        (await klusterlets().get('klusterlet')).metadata.resourceVersion,
        (await deployments().get('klusterlet-agent')).metadata.resourceVersion,
      ]
      const before = await version()
      assert.equal((await stateOf('Available'))?.status, 'True')
      await new Promise((done) => setTimeout(done, 2000))
      assert.deepEqual(await version(), before)
    }, patience)
  await stable()
  const since = new Date()
  await klusterlets().patch('klusterlet', { merge: { metadata: { annotations: { touched: since.toISOString() } } } })
  await stable()
  return since
}

test('R2.7 R2.10 the spec becomes flags, placement and sizing of the agent; what cannot be done is refused or named in a condition', async () => {
  await create({
    clusterName: 'c3',
    imagePullSpec: 'lanyard:other',
    workImagePullSpec: 'work:1',
    namespace: 'open-cluster-management-three',
    externalServerURLs: [{ url: 'https://c3.example.com:6443' }],
    nodePlacement: { nodeSelector: { role: 'infra' } },
    priorityClassName: 'system-cluster-critical',
    hubApiServerHostAlias: { ip: '10.0.0.9', hostname: 'hub.example.com' },
    resourceRequirement: { type: 'BestEffort' },
    registrationConfiguration: {
      clientCertExpirationSeconds: 7200,
      clusterAnnotations: { 'agent.open-cluster-management.io/team': 'a', other: 'b' },
      clusterLabels: { env: 'prod' },
      featureGates: [{ feature: 'ClusterClaim', mode: 'Disable' }],
      addOnKubeClientRegistrationDriver: { authType: 'token', token: { expirationSeconds: 86_400 } },
      clusterClaimConfiguration: { maxCustomClusterClaims: 5, reservedClusterClaimSuffixes: ['x.io'] },
    },
    workConfiguration: { appliedManifestWorkEvictionGracePeriod: '1h30m', statusSyncInterval: '10s' },
  })
  await applied()
  const { spec } = await deployments('open-cluster-management-three').get('klusterlet-agent')
  assert.deepEqual(spec.strategy, { type: 'Recreate' })
  const pod = spec.template.spec
  assert.deepEqual(pod.containers[0]!.args, [
    'agent',
    '--namespace=open-cluster-management-three',
    '--cluster-name=c3',
    '--registration-auth=csr',
    '--addon-kubeclient-registration-auth=token',
    '--addon-token-expiration-seconds=86400',
    '--client-cert-expiration-seconds=7200',
    '--spoke-external-server-urls=https://c3.example.com:6443',
    '--cluster-annotations=agent.open-cluster-management.io/team=a',
    '--max-custom-cluster-claims=5',
    '--reserved-cluster-claim-suffixes=x.io',
    '--appliedmanifestwork-eviction-grace-seconds=5400',
    '--health-host=$(POD_IP)',
    '--health-port=8000',
  ])
  assert.equal(pod.containers[0]!.image, 'lanyard:other')
  assert.deepEqual(pod.containers[0]!.resources ?? {}, {})
  assert.deepEqual(pod.nodeSelector, { role: 'infra' })
  assert.equal(pod.priorityClassName, 'system-cluster-critical')
  assert.deepEqual(pod.hostAliases, [{ ip: '10.0.0.9', hostnames: ['hub.example.com'] }])
  const { message } = (await stateOf('SpecHonored'))!
  for (const field of ['workImagePullSpec', 'clusterAnnotations other', 'clusterLabels', 'statusSyncInterval'])
    assert.match(message, new RegExp(field))
  assert.match((await stateOf('ValidFeatureGates'))!.message, /ClusterClaim is always on here/)

  // Back to the defaults, in the default namespace: no flag for add-ons is given.
  await klusterlets().update({ ...(await klusterlets().get('klusterlet')), spec: { clusterName: 'c3' } })
  await eventually(async () => {
    const { args } = (await deployments().get('klusterlet-agent')).spec.template.spec.containers[0]!
    assert.ok(!args!.some((one) => one.startsWith('--addon')), args!.join(' '))
    assert.equal(await deployments('open-cluster-management-three').find('klusterlet-agent'), undefined)
    assert.equal((await stateOf('SpecHonored'))?.status, 'True')
    assert.equal((await stateOf('ValidFeatureGates'))?.status, 'True')
  }, patience)

  await klusterlets().patch('klusterlet', { merge: { spec: { namespace: 'open-cluster-management-hub' } } })
  await eventually(async () => {
    const state = await stateOf('Applied')
    assert.equal(state?.reason, 'SpecRefused')
    assert.match(state.message, /open-cluster-management-hub is used for something else; choose another one/)
  }, patience)
  await klusterlets().patch('klusterlet', { merge: { spec: { namespace: agentNamespace } } })
  await applied()

  await create({}, 'other')
  await eventually(async () => {
    assert.match((await stateOf('Applied', 'other'))!.message, /Klusterlet klusterlet runs its agent in namespace/)
  }, patience)
  await klusterlets().delete('other')
  await gone()
})

test('R1.66 a hub that does not answer holds up the removal of an agent for a while only, and what remains is said', async () => {
  await create({ clusterName: 'c4' })
  await applied()
  await sendTo(plane, hubPlane)
  await accept(hubPlane, 'c4')
  await joined('c4')
  await deliver('c4', 'delivered4', plane)
  // Faster than the five minutes that it is by default.
  const operator = plane.client().of(Deployment, 'open-cluster-management')
  const { args } = (await operator.get('klusterlet')).spec.template.spec.containers[0]!
  const containers = [{ name: 'klusterlet', args: [...args!, '--leave-seconds=60'] }]
  await operator.patch('klusterlet', { strategic: { spec: { template: { spec: { containers } } } } })
  await eventually(async () => {
    const { metadata, status } = await operator.get('klusterlet')
    assert.equal(status?.observedGeneration, metadata.generation)
    assert.deepEqual([status?.replicas, status?.updatedReplicas, status?.availableReplicas], [1, 1, 1])
  }, patience)
  await hubPlane.apiServer.kill()
  try {
    await gone()
  } finally {
    await hubPlane.apiServer.start()
    // It lost the lead while it could not renew it, and ended.
    if (!hub.process.running) await hub.process.start()
  }
  const notes = await plane.kubectl(['get', 'events', '-A', '-o', 'jsonpath={.items[*].message}'])
  assert.match(notes, /ManagedCluster c4 on hub .* could not be told .*; delete it there/)
  assert.equal(await plane.client().of(ClusterRole).find('delivered4'), undefined)
  assert.equal((await clusters().get('c4')).spec.hubAcceptsClient, true)
  await clusters().delete('c4')
})

// SingletonHosted is the same one process; its spec is in spec.test.ts.
test('R1.66 an agent in mode Hosted runs here for another cluster, has its secrets here, and leaves nothing on either', async (t) => {
  const far = await startControlPlane({ audit: false })
  t.after(() => far.stop())
  const name = 'klusterlet-hosted'
  const before = { here: await objects(), far: await inventory(far) }
  await create({ clusterName: name, deployOption: { mode: 'Hosted' } }, name)
  await eventually(async () => {
    const state = await stateOf('ReadyToApply', name)
    assert.match(state!.message, /external-managed-kubeconfig does not exist; create it with the kubeconfig/)
  }, patience)
  const { cert, key } = far.clientCertificate({ user: 'far-admin', groups: ['system:masters'] })
  const kubeconfig = await kubeconfigText({ cluster: 'far', server: far.server, ca: far.ca, user: { cert, key } })
  const admin = plane.client()
  await admin
    .of(Secret, name)
    .create({ metadata: { name: 'external-managed-kubeconfig', namespace: name }, stringData: { kubeconfig } })
  await allowBootstrap(hubPlane, 'bootstrap')
  await sendTo(plane, hubPlane, { namespace: name })
  await accept(hubPlane, name)
  await joined(name)
  await deliver(name, 'delivered-far', far)
  assert.equal((await stateOf('ReadyToApply', name))?.status, 'True')
  assert.ok((await admin.of(Secret, name).get('hub-kubeconfig-secret')).data!['tls.key'])
  const secrets = await far.client().of(Secret).list()
  assert.deepEqual(
    secrets.items.filter(({ metadata }) => metadata.name === 'hub-kubeconfig-secret'),
    [],
  )
  assert.equal(await plane.client().of(ClusterRole).find('delivered-far'), undefined)

  await gone(name)
  await eventually(async () => {
    assert.deepEqual(await objects(), before.here)
    assert.deepEqual(await inventory(far), before.far)
  }, patience)
  assert.equal((await clusters().get(name)).spec.hubAcceptsClient, false)
  await clusters().delete(name)
})
