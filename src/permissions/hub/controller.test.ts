import assert from 'node:assert/strict'
import { after, before, test, type TestContext } from 'node:test'
import { eventually, startControlPlane, type ControlPlane } from '../../../testkit/index.ts'
import { allow, rule } from '../../../testkit/people.ts'
import { quiet } from '../../../testkit/work-agent.ts'
import {
  ClusterPermission,
  crds,
  installCrds,
  ManagedCluster,
  ManagedServiceAccount,
  ManifestWork,
  type PermissionSpec,
} from '../../api/index.ts'
import { Namespace, type Client } from '../../kube/index.ts'
import { findCondition, Manager } from '../../runtime/index.ts'
import {
  webhookServer,
  MutatingWebhookConfiguration,
  ValidatingWebhookConfiguration,
} from '../../runtime/webhook/index.ts'
import { controllerRules, workNameOf } from '../contract.ts'
import { permissionWebhookConfigurations, startPermissions } from './index.ts'

let plane: ControlPlane
let admin: Client
before(async () => {
  plane = await startControlPlane()
  admin = plane.client()
  await installCrds(admin, crds({ conversion: 'none' }))
  for (const name of ['c1', 'c2', 'leaving']) {
    await admin.of(Namespace).create({ metadata: { name } })
    await admin.of(ManagedCluster).create({ metadata: { name }, spec: { hubAcceptsClient: true } })
  }
  await allow(admin, 'controller', [...controllerRules])
})
after(() => plane.stop())

/** The controller in this process, with exactly the rights that it says it needs. */
const run = (t: TestContext, { admission = false, userAgent = 'permissions' } = {}) => {
  const client = plane.client({ user: 'controller', userAgent })
  const manager = new Manager({ client, gracePeriodMs: 0 })
  const { webhooks } = startPermissions(manager, { client, admission })
  const end = new AbortController()
  const running = manager.run(end.signal)
  const stop = async (): Promise<void> => {
    end.abort()
    await running
    client.close()
  }
  t.after(stop)
  return { webhooks, stop }
}

const spec: PermissionSpec = {
  clusterRole: { rules: [rule('get', 'pods')] },
  clusterRoleBinding: { subject: { kind: 'User', name: 'ada' } },
}
const permissions = (namespace = 'c1') => admin.of(ClusterPermission, namespace)
const create = (name: string, of: PermissionSpec = spec, namespace = 'c1') =>
  permissions(namespace).create({ metadata: { name, namespace }, spec: of })
const conditionOf = (name: string, type: string, status: string, namespace = 'c1') =>
  eventually(async () => {
    const permission = await permissions(namespace).get(name)
    const condition = findCondition(permission, type)
    assert.equal(condition?.status, status, JSON.stringify(permission.status?.conditions))
    return condition
  })
const workOf = async ({ metadata }: ClusterPermission) =>
  admin.of(ManifestWork, metadata.namespace).find(workNameOf(metadata.name!, metadata.uid!))

test('R4.22 R4.25 the controller does its work with the rights that it names, and writes nothing when nothing differs', async (t) => {
  const { stop } = run(t)
  const permission = await create('plain')
  const account = { kind: 'ManagedServiceAccount', apiGroup: 'authentication.open-cluster-management.io', name: 'bot' }
  await create('waiting-for-bot', {
    ...spec,
    clusterRoleBinding: { subjects: [account, { kind: 'User', name: 'ada' }] },
  })
  await conditionOf('plain', 'RBACManifestWorkCreated', 'True')
  assert.equal((await conditionOf('waiting-for-bot', 'SubjectPresent', 'False')).reason, 'ManagedServiceAccountMissing')
  assert.match(
    (await conditionOf('plain', 'AppliedRBACManifestWork', 'False')).message,
    /the agent of cluster c1 has not reported yet/,
  )
  assert.ok(await workOf(permission))
  await admin.of(ManagedServiceAccount, 'c1').create({ metadata: { name: 'bot', namespace: 'c1' } })
  await conditionOf('waiting-for-bot', 'SubjectPresent', 'True')

  await quiet(plane, 'permissions')
  const { writes } = await plane.requestsBy('permissions')
  // A restart looks at everything again.
  await stop()
  run(t)
  await create('last')
  await conditionOf('last', 'RBACManifestWorkCreated', 'True')
  await quiet(plane, 'permissions')
  const { writes: after } = await plane.requestsBy('permissions')
  assert.ok(after - writes <= 3, `${after - writes} writes for one new permission after a restart`)
})

test('R4.2 R4.27 conditions are cleared when their cause is gone, and one that is wrong hinders no other', async (t) => {
  // What admission would refuse, stored before there was any.
  const empty = await create('empty', { clusterRole: spec.clusterRole! })
  await create('broken', {
    ...spec,
    roleBindings: [{ namespace: 'default', subject: { kind: 'Robot', name: 'x' }, roleRef: { kind: 'ClusterRole' } }],
  })
  run(t)
  const invalid = await conditionOf('empty', 'Validation', 'False')
  assert.equal(invalid.reason, 'FailedValidationNoBindingsDefined')
  assert.match(
    (await conditionOf('broken', 'Validation', 'False')).message,
    /spec\.roleBindings\[0\]\.subject\.kind: Robot is unknown/,
  )
  assert.equal((await conditionOf('broken', 'RBACManifestWorkCreated', 'False')).reason, 'Withheld')
  await create('sound')
  await conditionOf('sound', 'RBACManifestWorkCreated', 'True')

  await permissions().patch('empty', { merge: { spec } })
  await conditionOf('empty', 'Validation', 'True')
  await conditionOf('empty', 'RBACManifestWorkCreated', 'True')
  assert.ok(await workOf(empty))
  // And the other way: what is no longer valid is taken back.
  await permissions().patch('empty', { merge: { spec: { clusterRoleBinding: null } } })
  await conditionOf('empty', 'RBACManifestWorkCreated', 'False')
  assert.equal(await workOf(empty), undefined)

  await admin.of(Namespace).create({ metadata: { name: 'later' } })
  await create('early', spec, 'later')
  await conditionOf('early', 'Validation', 'False', 'later')
  await admin.of(ManagedCluster).create({ metadata: { name: 'later' }, spec: { hubAcceptsClient: false } })
  await conditionOf('early', 'Validation', 'True', 'later')
  assert.equal((await conditionOf('early', 'RBACManifestWorkCreated', 'False', 'later')).reason, 'ClusterNotAccepted')
  await admin.of(ManagedCluster).patch('later', { merge: { spec: { hubAcceptsClient: true } } })
  await conditionOf('early', 'RBACManifestWorkCreated', 'True', 'later')
})

test('R4.20 a cluster that leaves gets no work anew while its works are removed', async (t) => {
  run(t)
  const permission = await create('last-one', spec, 'leaving')
  await conditionOf('last-one', 'RBACManifestWorkCreated', 'True', 'leaving')
  await admin.of(ManagedCluster).patch('leaving', { merge: { spec: { hubAcceptsClient: false } } })
  await conditionOf('last-one', 'RBACManifestWorkCreated', 'False', 'leaving')
  const work = (await workOf(permission))!
  await admin.of(ManifestWork, 'leaving').delete(work.metadata.name!)
  // Something after it has been dealt with, and the work is still gone.
  await create('marker', spec, 'c2')
  await conditionOf('marker', 'RBACManifestWorkCreated', 'True', 'c2')
  await permissions('leaving').patch('last-one', { merge: { metadata: { labels: { seen: 'yes' } } } })
  await quiet(plane, 'permissions')
  assert.equal(await workOf(permission), undefined)
})

test('R4.3 what was written before this hub had admission is left as it is, and waits for somebody to approve it', async (t) => {
  const old = await create('elder')
  const work: ManifestWork = {
    metadata: {
      name: workNameOf('elder', old.metadata.uid!),
      namespace: 'c1',
      ownerReferences: [
        {
          apiVersion: 'rbac.open-cluster-management.io/v1alpha1',
          kind: 'ClusterPermission',
          name: 'elder',
          uid: old.metadata.uid!,
          controller: true,
        },
      ],
    },
    spec: {
      workload: { manifests: [{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a', namespace: 'default' } }] },
    },
  }
  await admin.of(ManifestWork, 'c1').create(work)
  const { webhooks } = run(t, { admission: true })
  const pair = plane.serverCertificate()
  const server = webhookServer({ host: '127.0.0.1', port: 0, certificate: () => pair, routes: webhooks })
  await server.start()
  const where = { url: `https://127.0.0.1:${server.port}`, caBundle: Buffer.from(plane.ca).toString('base64') }
  const [mutation, validation] = permissionWebhookConfigurations(where)
  await admin.of(MutatingWebhookConfiguration).create(mutation!)
  await admin.of(ValidatingWebhookConfiguration).create(validation!)
  t.after(async () => {
    await admin.of(MutatingWebhookConfiguration).delete('lanyard-permissions')
    await admin.of(ValidatingWebhookConfiguration).delete('lanyard-permissions')
    await server.stop()
  })
  const waits = await conditionOf('elder', 'Authorized', 'False')
  assert.match(
    waits.message,
    /older than the admission of this hub; to approve it: kubectl -n c1 annotate --overwrite clusterpermissions\.rbac\.open-cluster-management\.io elder /,
  )
  assert.deepEqual((await workOf(old))?.spec, work.spec)

  // Exactly what the message says.
  const command = waits.message.slice(waits.message.indexOf('kubectl ') + 'kubectl '.length).split(' ')
  await eventually(() => plane.kubectl(command))
  await conditionOf('elder', 'Authorized', 'True')
  await eventually(async () => assert.match(JSON.stringify((await workOf(old))?.spec), /ClusterRoleBinding/))
})
