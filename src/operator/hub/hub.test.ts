import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Component } from '../../../testkit/component.ts'
import { eventually, startControlPlane, type ControlPlane } from '../../../testkit/index.ts'
import { inventory } from '../../../testkit/inventory.ts'
import { applyManifests, startOperator } from '../../../testkit/operator.ts'
import { ClusterManager, ManagedCluster } from '../../api/index.ts'
import {
  ClusterRoleBinding,
  CustomResourceDefinition,
  keyOf,
  RoleBinding,
  ServiceAccount,
  type KubeObject,
  type Resource,
} from '../../kube/index.ts'
import { findCondition, isTrue } from '../../runtime/index.ts'
import { createdBy, namespace } from '../contract.ts'
import { hubCrds, hubInstall } from '../install/index.ts'
import { CronJob, Deployment, Service } from '../objects.ts'

let plane: ControlPlane
let operator: Component
before(async () => {
  plane = await startControlPlane()
  await applyManifests(plane, hubInstall({ image: 'lanyard:test' }))
  operator = await startOperator(plane, 'ClusterManager', { args: ['--image=lanyard:test'] })
})
after(() => plane.stop())

// Sixteen kinds that are deleted at once take their time on a busy machine.
const patience = { timeoutMs: 240_000 }
const managers = () => plane.client().of(ClusterManager)
const deployments = () => plane.client().of(Deployment, namespace.hub)
const here = `${createdBy.clusterManager}=cluster-manager`

const create = (spec: ClusterManager['spec'] = {}): Promise<ClusterManager> =>
  managers().create({ metadata: { name: 'cluster-manager' }, spec })

const conditionOf = async (type: string, name = 'cluster-manager') =>
  findCondition(await managers().get(name), type) as { status: string; reason: string; message: string } | undefined

const applied = (): Promise<ClusterManager> =>
  eventually(async () => {
    const manager = await managers().get('cluster-manager')
    const state = findCondition(manager, 'Applied')
    assert.equal(state?.status, 'True', JSON.stringify(manager.status?.conditions))
    assert.equal(state?.observedGeneration, manager.metadata.generation)
    assert.equal(manager.status?.observedGeneration, manager.metadata.generation)
    return manager
  }, patience)

const deleted = async (): Promise<void> => {
  await managers().delete('cluster-manager')
  await eventually(async () => assert.equal(await managers().find('cluster-manager'), undefined), patience)
}

const argsOf = async (): Promise<string[]> => {
  const { spec } = await deployments().get('cluster-manager-hub')
  return spec.template.spec.containers[0]!.args!
}

test('R1.66 a ClusterManager becomes a hub: kinds, accounts, bindings, Service, Deployment and the job that cleans up; deleted, it leaves every object as it was', async () => {
  const before = await inventory(plane)
  await create()
  const manager = await applied()

  const { spec } = await deployments().get('cluster-manager-hub')
  const [container] = spec.template.spec.containers
  assert.deepEqual(container!.command, ['lanyard'])
  assert.equal(container!.image, 'lanyard:test')
  assert.ok(
    container!.args!.includes('--registration-drivers=csr') && container!.args!.includes('--health-host=$(POD_IP)'),
  )
  assert.equal(spec.template.spec.serviceAccountName, 'registration-controller-sa')
  const names = (await plane.client().of(CustomResourceDefinition).list({ labelSelector: here })).items.map(keyOf)
  assert.deepEqual(names.toSorted(), hubCrds().map(keyOf).toSorted())
  assert.ok(await plane.client().of(CronJob, namespace.hub).find('cluster-manager-cleanup-unjoined'))
  const kinds = new Set(manager.status?.relatedResources?.map(({ resource }) => resource))
  assert.deepEqual([...kinds].toSorted(), [
    'clusterrolebindings',
    'cronjobs',
    'customresourcedefinitions',
    'deployments',
    'rolebindings',
    'serviceaccounts',
    'services',
  ])
  // No kubelet runs here: no pod can be available, and that is said.
  assert.equal((await conditionOf('HubRegistrationDegraded'))?.reason, 'UnavailableRegistrationPod')
  assert.match((await conditionOf('HubRegistrationDegraded'))!.message, /0 of 1 pods available; look at: kubectl/)

  await deleted()
  await eventually(async () => assert.deepEqual(await inventory(plane), before), patience)
})

test('R1.66 each object that somebody deletes or changes comes back as it was, and a steady state writes nothing', async () => {
  await create()
  const { status } = await applied()
  const admin = plane.client()
  const kinds: Resource<KubeObject>[] = [
    Deployment,
    CronJob,
    Service,
    ServiceAccount,
    RoleBinding,
    ClusterRoleBinding,
    CustomResourceDefinition,
  ]
  const resourceOf = (plural: string): Resource<KubeObject> => kinds.find((kind) => kind.plural === plural)!
  // Of the kinds one is enough: a CRD takes its time to go.
  const objects = status!.relatedResources!.filter(
    ({ resource, name }) => resource !== 'customresourcedefinitions' || name.startsWith('managedclustersetbindings'),
  )
  for (const { resource, namespace: where, name } of objects) {
    const client = admin.of(resourceOf(resource), where)
    const { uid } = (await client.get(name)).metadata
    await client.delete(name, { propagationPolicy: 'Background' })
    await eventually(async () => {
      const now = await client.get(name)
      const { deletionTimestamp, labels } = now.metadata
      const said = JSON.stringify([deletionTimestamp, labels, (now as { status?: object }).status])
      assert.ok(now.metadata.uid !== uid && labels?.[createdBy.clusterManager], `${resource} ${name}: ${said}`)
    }, patience)
  }
  const hub = deployments()
  const edits: Record<string, object> = {
    image: { spec: { template: { spec: { containers: [{ name: 'clustermanager-hub', image: 'evil' }] } } } },
    // Nothing that we ask for is touched: only the generation tells.
    added: { spec: { template: { spec: { hostNetwork: true } } } },
    replicas: { spec: { replicas: 0 } },
  }
  for (const [what, strategic] of Object.entries(edits)) {
    await hub.patch('cluster-manager-hub', { strategic })
    await eventually(async () => {
      const { spec } = await hub.get('cluster-manager-hub')
      assert.equal(spec.template.spec.containers[0]!.image, 'lanyard:test', what)
      assert.notEqual(spec.template.spec['hostNetwork'], true, what)
      assert.equal(spec.replicas, 1, what)
    }, patience)
  }
  const bindings = admin.of(ClusterRoleBinding)
  const widened = { subjects: [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: 'mallory' }] }
  await bindings.patch('open-cluster-management:cluster-manager:hub', { merge: widened })
  await eventually(async () => {
    const { subjects } = await bindings.get('open-cluster-management:cluster-manager:hub')
    assert.deepEqual(
      subjects!.map(({ name }) => name),
      ['registration-controller-sa'],
    )
  }, patience)

  // Whatever was still on its way has arrived when a marker has gone through the operator.
  await managers().patch('cluster-manager', { merge: { spec: { resourceRequirement: { type: 'BestEffort' } } } })
  await applied()
  await settled()
  const since = new Date()
  await operator.restart()
  await eventually(async () => {
    const { entries } = await plane.requestsBy('lanyard-operator', { since })
    assert.ok(entries.some(({ verb, resource }) => verb === 'watch' && resource === 'cronjobs'))
  }, patience)
  await managers().patch('cluster-manager', { merge: { metadata: { annotations: { touched: 'yes' } } } })
  await settled()
  const { entries } = await plane.requestsBy('lanyard-operator', { since })
  const writes = entries.filter(
    ({ verb, resource }) => !['get', 'list', 'watch'].includes(verb) && resource !== 'leases',
  )
  assert.deepEqual(
    writes.map(({ verb, uri }) => `${verb} ${uri}`),
    [],
  )
  await deleted()
})

test('R1.66 a definition that the API server was to delete and has forgotten: it is reminded, and the definition comes back', async () => {
  await create()
  await applied()
  const definitions = plane.client().of(CustomResourceDefinition)
  const name = 'managedclustersetbindings.cluster.open-cluster-management.io'
  const { metadata } = await definitions.get(name)
  const hold = 'test.lanyard.io/hold'
  await definitions.patch(name, { merge: { metadata: { finalizers: [hold] } } })
  await definitions.delete(name)
  // It is done with it, and all that keeps it is ours: what it says now is what it says when it has forgotten.
  const conditions = await eventually(async () => {
    const now = await definitions.get(name)
    assert.deepEqual(now.metadata.finalizers, [hold])
    return now.status!.conditions!.filter(({ type }) => type !== 'Terminating')
  }, patience)
  const forgotten = { type: 'Terminating', status: 'True', reason: 'InstanceDeletionFailed', message: 'as seen' }
  const at = { lastTransitionTime: metadata.creationTimestamp! }
  const status = { conditions: [...conditions, { ...forgotten, ...at }] }
  await definitions.patch(name, { merge: { status } }, { subresource: 'status' })
  const reminder = 'lanyard.io/reminder-of-deletion'
  const reminded = async (): Promise<string> => {
    const { annotations } = (await definitions.get(name)).metadata
    assert.ok(annotations?.[reminder])
    return annotations[reminder]
  }
  const first = await eventually(reminded, patience)
  await eventually(async () => assert.notEqual(await reminded(), first), patience)

  await definitions.patch(name, { merge: { metadata: { finalizers: null } } })
  await eventually(async () => assert.notEqual((await definitions.get(name)).metadata.uid, metadata.uid), patience)
  await deleted()
})

/** When the operator has nothing to do: status is as the Deployment is, and stays. */
const settled = (): Promise<void> =>
  eventually(async () => {
    const before = await managers().get('cluster-manager')
    const deployment = await deployments().get('cluster-manager-hub')
    assert.equal(deployment.status?.observedGeneration, deployment.metadata.generation)
    await new Promise((done) => setTimeout(done, 1500))
    assert.equal((await managers().get('cluster-manager')).metadata.resourceVersion, before.metadata.resourceVersion)
    const after = await deployments().get('cluster-manager-hub')
    assert.equal(after.metadata.resourceVersion, deployment.metadata.resourceVersion)
  }, patience)

test('R1.66 the spec becomes flags, placement and sizing; what cannot be done is refused or named in a condition', async () => {
  await create({
    registrationImagePullSpec: 'lanyard:other',
    workImagePullSpec: 'work:1',
    nodePlacement: { nodeSelector: { role: 'infra' }, tolerations: [{ key: 'infra', operator: 'Exists' }] },
    resourceRequirement: { type: 'ResourceRequirement', resourceRequirements: { requests: { memory: '1Gi' } } },
    registrationConfiguration: {
      autoApproveUsers: ['a'],
      featureGates: [{ feature: 'ManagedClusterAutoApproval', mode: 'Enable' }],
      registrationDrivers: [{ authType: 'csr', csr: { autoApprovedIdentities: ['b'] } }],
    },
    workConfiguration: { featureGates: [{ feature: 'NilExecutorValidating', mode: 'Enable' }], workDriver: 'mqtt' },
  })
  await applied()
  const args = await argsOf()
  assert.ok(args.includes('--auto-approved-csr-users=a,b'), args.join(' '))
  assert.ok(args.includes('--feature-gates=ManagedClusterAutoApproval=true,NilExecutorValidating=true'), args.join(' '))
  const { template } = (await deployments().get('cluster-manager-hub')).spec
  assert.deepEqual(template.spec.nodeSelector, { role: 'infra' })
  assert.deepEqual(template.spec.containers[0]!.resources, { requests: { memory: '1Gi' } })
  assert.equal(template.spec.containers[0]!.image, 'lanyard:other')
  const honored = await conditionOf('SpecHonored')
  assert.equal(honored?.status, 'False')
  assert.match(honored.message, /workImagePullSpec: the hub is one process.*; workConfiguration.workDriver mqtt/)
  assert.equal((await conditionOf('ValidFeatureGates'))?.status, 'True')

  const gates = [
    { feature: 'Nope', mode: 'Enable' as const },
    { feature: 'ClusterImporter', mode: 'Enable' as const },
  ]
  await managers().patch('cluster-manager', {
    merge: {
      spec: { workImagePullSpec: null, workConfiguration: null, registrationConfiguration: { featureGates: gates } },
    },
  })
  await eventually(async () => {
    assert.match(
      (await conditionOf('ValidFeatureGates'))!.message,
      /^Nope does not exist; .*; ClusterImporter is always off here$/,
    )
    assert.match((await conditionOf('SpecHonored'))!.message, /^autoApproveUsers: they count once the gate/)
  }, patience)

  await managers().patch('cluster-manager', { merge: { spec: { deployOption: { mode: 'Hosted' } } } })
  await eventually(async () => assert.equal((await conditionOf('Applied'))?.reason, 'SpecRefused'), patience)
  await managers().patch('cluster-manager', { merge: { spec: { deployOption: { mode: 'Default' } } } })
  await applied()
  assert.ok(isTrue(await managers().get('cluster-manager'), 'Applied'))
  await deleted()
})

test('R1.30 with awsirsa the hub account carries the role that makes IAM objects, and may write aws-auth', async () => {
  await create({
    registrationConfiguration: {
      registrationDrivers: [
        { authType: 'awsirsa', awsirsa: { hubClusterArn: 'arn:aws:eks:us-west-2:123456789012:cluster/hub' } },
      ],
    },
  })
  await applied()
  const admin = plane.client()
  const account = await admin.of(ServiceAccount, namespace.hub).get('registration-controller-sa')
  const role = 'arn:aws:iam::123456789012:role/hub_managed-cluster-identity-creator'
  assert.equal(account.metadata.annotations?.['eks.amazonaws.com/role-arn'], role)
  // The right to write aws-auth is there as long as the driver is on.
  const bindings = admin.of(RoleBinding, 'kube-system')
  const binding = 'open-cluster-management:cluster-manager:aws-auth'
  assert.equal((await bindings.get(binding)).subjects?.[0]?.name, 'registration-controller-sa')
  await managers().patch('cluster-manager', { merge: { spec: { registrationConfiguration: null } } })
  await eventually(async () => assert.equal(await bindings.find(binding), undefined), patience)
  await deleted()
})

test("a ClusterManager stays as long as people's objects do, and says which", async () => {
  await create()
  await applied()
  const clusters = plane.client().of(ManagedCluster)
  await eventually(() => clusters.create({ metadata: { name: 'c1' }, spec: { hubAcceptsClient: false } }), patience)
  await managers().delete('cluster-manager')
  await eventually(async () => {
    const state = await conditionOf('Applied')
    assert.equal(state?.reason, 'ObjectsRemain')
    assert.match(state.message, /the hub stays until these are gone: ManagedCluster c1; delete them/)
  }, patience)
  assert.ok(await deployments().find('cluster-manager-hub'), 'who else would clean up?')
  await clusters.delete('c1')
  await eventually(async () => assert.equal(await managers().find('cluster-manager'), undefined), patience)
})

test('R1.66 of two ClusterManagers the older one counts; the other says so, and takes over when it is gone', async () => {
  await create()
  await applied()
  await managers().create({ metadata: { name: 'second' } })
  await eventually(async () => {
    const state = await conditionOf('Applied', 'second')
    assert.match(state!.message, /ClusterManager cluster-manager is older/)
  }, patience)
  await deleted()
  await eventually(async () => {
    assert.equal((await conditionOf('Applied', 'second'))?.status, 'True')
    assert.ok(await deployments().find('second-hub'))
  }, patience)
  await managers().delete('second')
  await eventually(async () => assert.equal(await managers().find('second'), undefined), patience)
})
