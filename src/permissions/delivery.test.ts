import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { rbacKinds, slow, startDeliveryScene, type DeliveryScene } from '../../testkit/delivery-scene.ts'
import { eventually, startControlPlane, type ControlPlane } from '../../testkit/index.ts'
import {
  ClusterPermission,
  ManagedClusterAddOn,
  ManagedServiceAccount,
  ManifestWork,
  type PermissionSpec,
} from '../api/index.ts'
import {
  ClusterRole,
  ClusterRoleBinding,
  mayAccess,
  Namespace,
  Role,
  RoleBinding,
  type Client,
  type Resource,
} from '../kube/index.ts'
import { findCondition, inParallel, isTrue } from '../runtime/index.ts'
import { workNameOf } from './contract.ts'

let hubPlane: ControlPlane
let managed: ControlPlane
let scene: DeliveryScene
let hub: Client
let there: Client
const cluster = 'cluster1'

before(async () => {
  ;[hubPlane, managed] = await Promise.all([startControlPlane(), startControlPlane()])
  scene = await startDeliveryScene(hubPlane, managed, cluster)
  hub = scene.hub
  there = scene.there
})
after(() => Promise.all([hubPlane.stop(), managed.stop()]))

/** Who, on the managed cluster. */
interface Who {
  username: string
  groups?: string[]
}
const account = (namespace: string, name: string): Who => ({
  username: `system:serviceaccount:${namespace}:${name}`,
  groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
})
const alice: Who = { username: 'alice@example.com', groups: ['system:authenticated'] }
const rights = [
  { verb: 'update', group: 'apps', resource: 'deployments' },
  { verb: 'delete', group: 'apps', resource: 'deployments' },
  { verb: 'update', group: 'apps', resource: 'statefulsets' },
  { verb: 'update', group: '', resource: 'configmaps' },
  { verb: 'get', group: '', resource: 'configmaps' },
  { verb: 'get', group: '', resource: 'secrets' },
  { verb: 'list', group: '', resource: 'pods' },
]
const places = ['default', 'kube-system', 'kube-public', 'chosen', 'not-chosen', '']
/** All that somebody may do of the above, asked on the managed cluster: `verb resource namespace`. */
const may = async (who: Who): Promise<string[]> => {
  const asked = places.flatMap((namespace) => rights.map((right) => ({ ...right, namespace })))
  const answers = await Promise.all(asked.map((what) => mayAccess(there, who, what)))
  return asked
    .filter((_, i) => answers[i])
    .map(({ verb, resource, namespace }) => `${verb} ${resource} ${namespace || '*'}`)
}
const everywhere = (right: string): string[] => places.map((namespace) => `${right} ${namespace || '*'}`)

test('R4.1 R4.4 R4.5 R4.6 R4.7 R4.8 R4.9 R4.14 R4.15 R4.28 the first sample of the specification, verbatim: each subject may do exactly what it grants, and nothing after it is deleted', async () => {
  const name = 'my-managed-rbac'
  await scene.namespaceThere('chosen', { 'foo.com/managed-state': 'managed' })
  await scene.namespaceThere('not-chosen', { 'foo.com/managed-state': 'unmanaged' })
  await hub.of(ManagedServiceAccount, cluster).create({ metadata: { name: 'managed-sa-sample', namespace: cluster } })
  await hubPlane.kubectl(['apply', '-f', 'src/api/fixtures/4-cluster-permission.yaml'])
  const permission = await scene.applied(name)
  for (const type of ['RBACManifestWorkCreated', 'SubjectPresent', 'Validation', 'Authorized'])
    assert.ok(isTrue(permission, type), `${type}: ${JSON.stringify(permission.status?.conditions)}`)

  const everything = [
    'ClusterRole -',
    'ClusterRoleBinding -',
    'Role chosen',
    'Role default',
    'RoleBinding chosen',
    'RoleBinding default',
    'RoleBinding kube-system',
  ]
  assert.deepEqual(await scene.delivered(name), everything)
  const { resourceStatus } = permission.status!
  const reported = Object.values(resourceStatus!)
    .flat()
    .map((one) => one?.condition?.[0]?.status)
  assert.deepEqual(
    reported,
    everything.map(() => 'True'),
  )

  const sample = account('open-cluster-management-agent-addon', 'managed-sa-sample')
  const plain = account('other', 'plain')
  const everybody = ['update deployments default'] // every service account, by the second binding
  assert.deepEqual(await may(account('qa', 'tester')), everywhere('update deployments'))
  assert.deepEqual(await may(sample), [...everybody, 'update deployments kube-system'])
  assert.deepEqual(await may(plain), everybody)
  assert.deepEqual(await may(alice), ['update configmaps chosen'])
  assert.deepEqual(await may({ username: 'mallory', groups: ['system:authenticated'] }), [])

  await scene.permissions().delete(name)
  await eventually(async () => assert.deepEqual(await scene.delivered(name), []), slow)
  for (const who of [account('qa', 'tester'), sample, plain, alice]) assert.deepEqual(await may(who), [])
})

test('R4.11 R4.12 R4.13 the second sample, verbatim: roles of the hub are copied with their rules, follow them, and aggregated ones are resolved', async () => {
  const name = 'my-managed-rbac-with-refs'
  const rule = (resource: string, ...verbs: string[]) => ({ apiGroups: [''], resources: [resource], verbs })
  await hub
    .of(Role, 'default')
    .create({ metadata: { name: 'pod-reader', namespace: 'default' }, rules: [rule('pods', 'get')] })
  await hubPlane.kubectl(['apply', '-f', 'src/api/fixtures/4-cluster-permission-role-refs.yaml'])
  await scene.saying(
    name,
    'Validation',
    'False',
    /the hub has no ClusterRole secret-reader: .* create it, or correct roleRefs/,
  )
  await hub.of(ClusterRole).create({ metadata: { name: 'secret-reader' }, rules: [rule('secrets', 'get')] })
  await scene.saying(name, 'Validation', 'True')
  await scene.applied(name)
  assert.deepEqual((await there.of(Role, 'default').get('pod-reader')).rules, [rule('pods', 'get')])
  assert.deepEqual((await there.of(ClusterRole).get('secret-reader')).rules, [rule('secrets', 'get')])

  await hub.of(ClusterRole).patch('secret-reader', { merge: { rules: [rule('secrets', 'get', 'list')] } })
  await eventually(
    async () =>
      assert.deepEqual((await there.of(ClusterRole).get('secret-reader')).rules, [rule('secrets', 'get', 'list')]),
    slow,
  )

  const part = (partName: string, resource: string): ClusterRole => ({
    metadata: { name: partName, labels: { 'sample/part': 'yes' } },
    rules: [rule(resource, 'get')],
  })
  await hub.of(ClusterRole).create({
    metadata: { name: 'gathering' },
    aggregationRule: { clusterRoleSelectors: [{ matchLabels: { 'sample/part': 'yes' } }] },
    rules: [],
  })
  await hub.of(ClusterRole).create(part('part-a', 'endpoints'))
  const subject = { kind: 'User', name: 'alice@example.com' }
  await scene.change(name, (spec) => ({
    roleRefs: [...spec.roleRefs!, { kind: 'ClusterRole', name: 'gathering' }],
    clusterRoleBinding: {
      subject,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'gathering' },
    },
    roleBindings: [{ namespace: 'default', subject, roleRef: { kind: 'Role', name: 'pod-reader' } }],
  }))
  const endpoints = (resource: string) => mayAccess(there, alice, { verb: 'get', group: '', resource, namespace: 'x' })
  await eventually(() => endpoints('endpoints'), slow)
  await hub.of(ClusterRole).create(part('part-b', 'limitranges'))
  await eventually(() => endpoints('limitranges'), slow)
  assert.equal((await there.of(ClusterRole).get('gathering')).aggregationRule, undefined)
  await hub.of(ClusterRole).delete('part-a')
  await eventually(async () => !(await endpoints('endpoints')), slow)

  await hub.of(ClusterRole).delete('gathering')
  await scene.saying(name, 'Validation', 'False', /no ClusterRole gathering/)
  await eventually(async () => assert.deepEqual(await scene.delivered(name), ['RoleBinding default']), slow)
  await scene.remove(name)
})

const guarded: PermissionSpec = {
  clusterRole: { rules: [{ apiGroups: ['apps'], resources: ['deployments'], verbs: ['get'] }] },
  clusterRoleBinding: { subject: { kind: 'Group', name: 'guards' } },
  roles: [{ namespace: 'default', rules: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get'] }] }],
  roleBindings: [{ namespace: 'default', roleRef: { kind: 'Role' }, subjects: [{ kind: 'Group', name: 'guards' }] }],
}

test('R4.18 R4.19 R4.20 R4.21 every delivered object, and the ManifestWork, edited and deleted in turn is restored; with the ClusterPermission all goes', async () => {
  const name = 'guarded'
  const { metadata } = await scene.create(name, guarded)
  await scene.applied(name)
  const kinds: [Resource, string | undefined][] = rbacKinds.map((kind) => [
    kind,
    kind.namespaced ? 'default' : undefined,
  ])
  for (const [kind, namespace] of kinds) {
    const objects = there.of(kind, namespace)
    const { metadata: was, ...right } = await objects.get(name)
    const isRight = () =>
      eventually(async () => {
        const { metadata: now, ...content } = await objects.get(name)
        assert.deepEqual(content, right)
        assert.ok(!now.deletionTimestamp)
        return now
      }, slow)
    const wrong =
      'rules' in right
        ? { rules: [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }] }
        : { subjects: [{ kind: 'User', name: 'mallory' }] }
    await objects.patch(name, { merge: { ...wrong, metadata: { ownerReferences: [] } } })
    await isRight()
    await objects.delete(name)
    assert.notEqual((await isRight()).uid, was.uid)
  }

  const works = hub.of(ManifestWork, cluster)
  const workName = workNameOf(name, metadata.uid!)
  const work = await works.get(workName)
  assert.equal(work.metadata.ownerReferences?.[0]?.uid, metadata.uid)
  const isRestored = () =>
    eventually(async () => {
      const now = await works.get(workName)
      assert.deepEqual(now.spec, work.spec)
      assert.deepEqual(now.metadata.labels, work.metadata.labels)
      assert.deepEqual(now.metadata.ownerReferences, work.metadata.ownerReferences)
      assert.ok(!now.metadata.deletionTimestamp)
    }, slow)
  for (const merge of [
    { spec: { workload: { manifests: [work.spec.workload!.manifests![0]] } } },
    { spec: { deleteOption: { propagationPolicy: 'Orphan' } } },
    {
      spec: {
        manifestConfigs: [
          {
            resourceIdentifier: { group: 'rbac.authorization.k8s.io', resource: 'clusterroles', name },
            updateStrategy: { type: 'ReadOnly' },
          },
        ],
      },
    },
    { metadata: { ownerReferences: [] } },
    { metadata: { labels: null } },
  ]) {
    await works.patch(workName, { merge })
    await isRestored()
  }
  await works.delete(workName)
  await isRestored()
  await scene.applied(name)
  assert.equal((await scene.delivered(name)).length, 4)

  await scene.permissions().delete(name)
  await eventually(async () => assert.deepEqual(await scene.delivered(name), []), slow)
})

test('R4.10 what leaves the permission leaves the cluster, a changed reference replaces its binding, and the rest stays', async () => {
  const name = 'shrinking'
  await scene.create(name, guarded)
  await scene.applied(name)
  const before = await there.of(ClusterRole).get(name)
  await scene.change(name, (spec) => ({
    ...spec,
    roles: [],
    roleBindings: [
      { namespace: 'default', roleRef: { kind: 'ClusterRole', name: 'view' }, subject: { kind: 'User', name: 'bob' } },
    ],
  }))
  const permission = await scene.applied(name)
  assert.deepEqual(await scene.delivered(name), ['ClusterRole -', 'ClusterRoleBinding -', 'RoleBinding default'])
  const binding = await there.of(RoleBinding, 'default').get(name)
  assert.equal(binding.roleRef.name, 'view')
  assert.equal((await there.of(ClusterRole).get(name)).metadata.uid, before.metadata.uid)
  assert.equal(permission.status?.resourceStatus?.roles, undefined)
  await scene.remove(name)
})

test('R4.9 namespaces that are labelled, unlabelled, made and deleted on the managed cluster have their roles follow', async () => {
  const name = 'following'
  const namespaceSelector = { matchLabels: { 'shop/tier': 'web' } }
  const rules = [{ apiGroups: [''], resources: ['pods'], verbs: ['list'] }]
  const subject = { kind: 'User', name: 'dora' }
  await scene.namespaceThere('web-1', { 'shop/tier': 'web' })
  await scene.namespaceThere('web-2', { 'shop/tier': 'db' })
  // On the hub the name means nothing.
  await hub.of(Namespace).create({ metadata: { name: 'web-hub', labels: { 'shop/tier': 'web' } } })
  await scene.create(name, {
    roles: [{ namespaceSelector, rules }],
    roleBindings: [{ namespaceSelector, subject, roleRef: { kind: 'Role' } }],
  })
  await scene.saying(name, 'AppliedRBACManifestWork', 'True', /1 namespace matches/)
  const listsPods = async (): Promise<string[]> => {
    const { items } = await there.of(Namespace).list()
    const answers = await Promise.all(
      items.map(({ metadata }) =>
        mayAccess(there, { username: 'dora' }, { verb: 'list', group: '', resource: 'pods', namespace: metadata.name }),
      ),
    )
    return items.filter((_, i) => answers[i]).map(({ metadata }) => metadata.name!)
  }
  const follows = (...expected: string[]) => eventually(async () => assert.deepEqual(await listsPods(), expected), slow)
  await follows('web-1')
  const label = (of: string, value: string | null) =>
    there.of(Namespace).patch(of, { merge: { metadata: { labels: { 'shop/tier': value } } } })
  await label('web-2', 'web')
  await follows('web-1', 'web-2')
  await label('web-1', null)
  await follows('web-2')
  await scene.namespaceThere('web-3', { 'shop/tier': 'web' })
  await follows('web-2', 'web-3')
  await there.of(Namespace).delete('web-2')
  await follows('web-3')
  const permission = await scene.saying(name, 'AppliedRBACManifestWork', 'True', /1 namespace matches/)
  assert.deepEqual(
    permission.status?.resourceStatus?.roles?.map(({ namespace }) => namespace),
    ['web-3'],
  )
  await scene.remove(name)
  await follows()
})

test('R4.15 R4.16 R4.17 a ManagedServiceAccount that is deleted takes its bindings with it at once, and they come back with it, wherever it lives', async () => {
  const name = 'for-account'
  const subject = {
    apiGroup: 'authentication.open-cluster-management.io',
    kind: 'ManagedServiceAccount',
    name: 'robot',
  }
  const accounts = hub.of(ManagedServiceAccount, cluster)
  await scene.create(name, { ...guarded, clusterRoleBinding: { subjects: [subject, { kind: 'User', name: 'carol' }] } })
  await scene.saying(name, 'SubjectPresent', 'False', /no ManagedServiceAccount robot in namespace cluster1/)
  const subjects = () => eventually(async () => (await there.of(ClusterRoleBinding).get(name)).subjects ?? [], slow)
  const becomes = (expected: unknown[]) => eventually(async () => assert.deepEqual(await subjects(), expected), slow)
  const carol = { kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: 'carol' }
  const robot = (namespace: string) => ({ kind: 'ServiceAccount', name: 'robot', namespace })
  await becomes([carol])
  await accounts.create({ metadata: { name: 'robot', namespace: cluster } })
  await scene.saying(name, 'SubjectPresent', 'True')
  await becomes([robot('open-cluster-management-agent-addon'), carol])

  const addOns = hub.of(ManagedClusterAddOn, cluster)
  const annotations = { 'addon.open-cluster-management.io/v1alpha1-install-namespace': 'elsewhere' }
  await addOns.create({ metadata: { name: 'managed-serviceaccount', namespace: cluster, annotations } })
  await becomes([robot('elsewhere'), carol])
  await accounts.delete('robot')
  await scene.saying(name, 'SubjectPresent', 'False', /robot/)
  await becomes([carol])
  await addOns.delete('managed-serviceaccount')
  await scene.remove(name)
})

test('R4.13 R4.26 roles of the managed cluster: with validate it is said whether they exist, and no longer when validate is off', async () => {
  const name = 'validated'
  const subject = { kind: 'User', name: 'erin' }
  const to = (kind: 'Role' | 'ClusterRole', roleName: string) => ({
    namespace: 'default',
    name: roleName,
    subject,
    roleRef: { kind, name: roleName },
  })
  await scene.create(name, { validate: true, roleBindings: [to('ClusterRole', 'view'), to('Role', 'local-role')] })
  await scene.saying(name, 'ValidateClusterRolesExist', 'True')
  await scene.saying(name, 'ValidateRolesExist', 'False', /default\/local-role/)
  // The bindings are delivered all the same: the role may come later.
  await eventually(async () => (await there.of(RoleBinding, 'default').find('local-role')) !== undefined, slow)
  assert.equal(await there.of(Role, 'default').find('local-role'), undefined)
  await there.of(Role, 'default').create({ metadata: { name: 'local-role', namespace: 'default' }, rules: [] })
  await scene.saying(name, 'ValidateRolesExist', 'True')
  await scene.change(name, (spec) => ({ ...spec, validate: false }))
  await eventually(async () => {
    const permission = await scene.permissions().get(name)
    assert.equal(findCondition(permission, 'ValidateRolesExist'), undefined)
    assert.equal(findCondition(permission, 'ValidateClusterRolesExist'), undefined)
  }, slow)
  await scene.remove(name)
  assert.ok(await there.of(Role, 'default').find('local-role'), 'what was only looked at stays')
})

test('R4.21 a permission with the name of a role that the cluster has leaves that alone and says so', async () => {
  for (const name of ['view', 'cluster-admin']) {
    const before = await there.of(ClusterRole).get(name)
    await scene.create(name, {
      clusterRole: guarded.clusterRole,
      clusterRoleBinding: { name: `${name}-for-us`, subject: { kind: 'User', name: 'frank' } },
    })
    await scene.saying(name, 'AppliedRBACManifestWork', 'False', /already one of this name on the managed cluster/)
    assert.deepEqual((await there.of(ClusterRole).get(name)).rules, before.rules)
    assert.equal(await there.of(ClusterRoleBinding).find(`${name}-for-us`), undefined)
    await scene.remove(name)
    assert.ok(await there.of(ClusterRole).find(name))
  }
})

test('R4.2 a ClusterPermission in a namespace that is no cluster is shown as invalid, and delivers nothing', async () => {
  const admin = hub.of(ClusterPermission, 'default')
  await admin.create({ metadata: { name: 'lost', namespace: 'default' }, spec: guarded })
  await eventually(async () => {
    const condition = findCondition(await admin.get('lost'), 'Validation')
    assert.equal(condition?.reason, 'FailedValidationNotInManagedClusterNamespace')
    assert.match(
      condition.message,
      /default belongs to none; move it to the namespace that has the name of its cluster/,
    )
  }, slow)
  assert.deepEqual((await hub.of(ManifestWork, 'default').list()).items, [])
  await admin.delete('lost')
})

test('R4.18 R4.27 a thousand rules and five hundred namespaces work; more than a ManifestWork holds is refused with the limit', async () => {
  const name = 'large'
  const rules = Array.from({ length: 1000 }, (_, i) => ({
    apiGroups: [`group-${i}.example.com`],
    resources: ['things'],
    verbs: ['get'],
  }))
  await inParallel(
    16,
    Array.from(
      { length: 500 },
      (_, i) => async () => void (await scene.namespaceThere(`large-${i}`, { size: 'large' })),
    ),
  )
  const namespaceSelector = { matchLabels: { size: 'large' } }
  const subject = { kind: 'User', name: 'grace' }
  const [first] = rules
  await scene.create(name, {
    clusterRole: { rules },
    clusterRoleBinding: { subject },
    roles: [{ namespaceSelector, rules: [first!] }],
    roleBindings: [{ namespaceSelector, subject, roleRef: { kind: 'Role' } }],
  })
  await scene.saying(name, 'AppliedRBACManifestWork', 'True', /500 namespaces match/, 240_000)
  assert.equal((await there.of(ClusterRole).get(name)).rules?.length, 1000)
  const { items } = await there.of(RoleBinding).list({ fieldSelector: `metadata.name=${name}` })
  assert.equal(items.length, 500)
  const { status } = await scene.permissions().get(name)
  assert.equal(status?.resourceStatus?.roleBindings?.length, 500)
  await scene.permissions().delete(name)
  await eventually(async () => assert.equal((await scene.delivered(name)).length, 0), { timeoutMs: 240_000 })

  const long = rules.map((rule) => ({ ...rule, resourceNames: ['x'.repeat(600)] }))
  await assert.rejects(
    scene.create('too-large', { ...guarded, clusterRole: { rules: long } }),
    /take \d+ bytes, and 512000 are allowed in the one ManifestWork .* split it/,
  )
})
