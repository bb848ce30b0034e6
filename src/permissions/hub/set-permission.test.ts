import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eventually, startControlPlane, startHub, type ControlPlane } from '../../../testkit/index.ts'
import { rule } from '../../../testkit/people.ts'
import {
  ClusterSetPermission,
  label,
  ManagedCluster,
  ManagedClusterSet,
  ManagedServiceAccount,
  ManifestWork,
  type PermissionSpec,
} from '../../api/index.ts'
import { ClusterRole, Namespace, type Client } from '../../kube/index.ts'
import { findCondition } from '../../runtime/index.ts'
import { WorkApplied } from '../../work/contract.ts'
import { setConditions } from '../../runtime/conditions.ts'

let plane: ControlPlane
let admin: Client
const slow = { timeoutMs: 60_000 }
const clusters = ['c1', 'c2', 'c3', 'c4']
before(async () => {
  plane = await startControlPlane()
  admin = plane.client()
  await startHub(plane)
  await admin.of(ManagedClusterSet).create({ metadata: { name: 'shops' } })
  await admin.of(ManagedClusterSet).create({
    metadata: { name: 'europe' },
    spec: { clusterSelector: { selectorType: 'LabelSelector', labelSelector: { matchLabels: { region: 'eu' } } } },
  })
  for (const name of clusters)
    await admin.of(ManagedCluster).create({ metadata: { name }, spec: { hubAcceptsClient: true } })
  for (const name of clusters) await eventually(async () => Boolean(await admin.of(Namespace).find(name)), slow)
})
after(() => plane.stop())

const spec: PermissionSpec = {
  clusterRole: { rules: [rule('get', 'pods')] },
  clusterRoleBinding: { subject: { kind: 'User', name: 'ada' } },
}
const put = (cluster: string, labels: Record<string, string | null>) =>
  admin.of(ManagedCluster).patch(cluster, { merge: { metadata: { labels } } })
const into = (cluster: string, set: string) => put(cluster, { [label.clusterSet]: set })
const create = (name: string, clusterSet: string, permission = spec) =>
  admin.of(ClusterSetPermission).create({ metadata: { name }, spec: { clusterSet, permission } })
const worksOf = async (name: string): Promise<ManifestWork[]> =>
  (await admin.of(ManifestWork).list()).items.filter(({ metadata }) =>
    metadata.ownerReferences?.some((owner) => owner.name === name && owner.kind === 'ClusterSetPermission'),
  )
/** Waits until exactly these clusters have a work of it. */
const isOn = (name: string, ...expected: string[]) =>
  eventually(
    async () => assert.deepEqual((await worksOf(name)).map(({ metadata }) => metadata.namespace!).toSorted(), expected),
    slow,
  )
/** What an agent says when it has applied a work. */
const applyAll = async (name: string) => {
  for (const { metadata } of await worksOf(name)) {
    const works = admin.of(ManifestWork, metadata.namespace)
    const conditions = setConditions([], [WorkApplied.complete()], { now: Date.now(), generation: metadata.generation })
    await works.patch(metadata.name!, { merge: { status: { conditions } } }, { subresource: 'status' })
  }
}
const status = (name: string, check: (permission: ClusterSetPermission) => void) =>
  eventually(async () => check(await admin.of(ClusterSetPermission).get(name)), slow)

test('R4.3 R4.30 a ClusterSetPermission is on each cluster of its set, follows it as clusters join and leave, and goes with all it brought', async () => {
  const name = 'shop-readers'
  await into('c1', 'shops')
  await into('c2', 'shops')
  await create(name, 'shops')
  await isOn(name, 'c1', 'c2')
  await status(name, ({ status: now }) => {
    assert.deepEqual(now?.clusters, { selected: 2, delivered: 2, applied: 0 })
    assert.deepEqual(
      now?.troubles?.map(({ cluster, reason }) => [cluster, reason]),
      [
        ['c1', 'ApplyRBACManifestWorkNotComplete'],
        ['c2', 'ApplyRBACManifestWorkNotComplete'],
      ],
    )
  })
  await applyAll(name)
  await status(name, (permission) => {
    assert.equal(findCondition(permission, 'AppliedRBACManifestWork')?.message, '2 of 2 clusters have applied it')
    assert.deepEqual(permission.status?.troubles, [])
  })
  const [first] = await worksOf(name)
  assert.match(
    JSON.stringify(first!.spec),
    /"kind":"ClusterRole","metadata":\{[^}]*\}?,?"name":"shop-readers"|"name":"shop-readers"/,
  )

  await into('c3', 'shops')
  await isOn(name, 'c1', 'c2', 'c3')
  await into('c1', 'default')
  await isOn(name, 'c2', 'c3')
  await admin.of(ManifestWork, 'c2').delete((await worksOf(name))[0]!.metadata.name!)
  await isOn(name, 'c2', 'c3')
  await admin.of(ManagedCluster).patch('c3', { merge: { spec: { hubAcceptsClient: false } } })
  await status(name, ({ status: now }) => assert.equal(now?.clusters?.selected, 1))
  await admin.of(ManagedCluster).patch('c3', { merge: { spec: { hubAcceptsClient: true } } })
  await isOn(name, 'c2', 'c3')

  await admin.of(ClusterSetPermission).patch(name, { merge: { spec: { clusterSet: 'europe' } } })
  await isOn(name)
  await put('c4', { region: 'eu' })
  await isOn(name, 'c4')
  await put('c4', { region: null })
  await isOn(name)
  await put('c4', { region: 'eu' })
  await isOn(name, 'c4')
  await admin.of(ClusterSetPermission).delete(name)
  await isOn(name)
})

test('R4.12 R4.16 a set permission copies roles of the hub, follows them, and says on which clusters an account is missing', async () => {
  const name = 'copies'
  await put('c4', { region: 'eu' })
  await put('c1', { region: 'eu' })
  await admin.of(ClusterRole).create({ metadata: { name: 'fleet-reader' }, rules: [rule('get', 'services')] })
  const subject = { kind: 'ManagedServiceAccount', apiGroup: 'authentication.open-cluster-management.io', name: 'bot' }
  await create(name, 'europe', {
    roleRefs: [{ kind: 'ClusterRole', name: 'fleet-reader' }],
    clusterRoleBinding: {
      subject,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'fleet-reader' },
    },
  })
  await isOn(name, 'c1', 'c4')
  await admin.of(ManagedServiceAccount, 'c1').create({ metadata: { name: 'bot', namespace: 'c1' } })
  await status(name, (permission) =>
    assert.match(findCondition(permission, 'SubjectPresent')!.message, /ManagedServiceAccount bot is missing on c4: /),
  )
  const bound = async () =>
    (await worksOf(name))
      .filter((work) => JSON.stringify(work.spec).includes('open-cluster-management-agent-addon'))
      .map(({ metadata }) => metadata.namespace!)
  await eventually(async () => assert.deepEqual(await bound(), ['c1']), slow)
  await admin.of(ManagedServiceAccount, 'c4').create({ metadata: { name: 'bot', namespace: 'c4' } })
  await eventually(async () => assert.deepEqual((await bound()).toSorted(), ['c1', 'c4']), slow)
  await admin.of(ClusterRole).patch('fleet-reader', { merge: { rules: [rule('get,list', 'services')] } })
  await eventually(
    async () => assert.ok((await worksOf(name)).every((work) => JSON.stringify(work.spec).includes('["get","list"]'))),
    slow,
  )
  await admin.of(ClusterSetPermission).delete(name)
  await isOn(name)
})

test('R4.27 a set that does not exist is said, and delivered to when it comes; a fault in the permission is refused with its field', async () => {
  const name = 'early'
  await create(name, 'later')
  await status(name, (permission) =>
    assert.equal(findCondition(permission, 'Validation')?.reason, 'ClusterSetNotFound'),
  )
  await admin.of(ManagedClusterSet).create({ metadata: { name: 'later' } })
  await into('c2', 'later')
  await isOn(name, 'c2')
  await assert.rejects(
    create('bad', 'later', {
      ...spec,
      roleBindings: [{ namespace: 'x', subjects: [], roleRef: { kind: 'ClusterRole' } }],
    }),
    /spec\.permission\.roleBindings\[0\]\.subjects: is empty: say whom it is for/,
  )
  await admin.of(ClusterSetPermission).delete(name)
})
