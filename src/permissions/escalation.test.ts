import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { escalations } from '../../testkit/escalations.ts'
import { eventually, startControlPlane, type ControlPlane } from '../../testkit/index.ts'
import { allow, rule } from '../../testkit/people.ts'
import {
  clusterRole,
  her,
  permissionsOf,
  pods,
  requested,
  startPermissionScene,
  toHer,
  user,
  type PermissionScene,
} from '../../testkit/permission-scene.ts'
import { ManagedServiceAccount, ManifestWork, subject as subjects, type PermissionSpec } from '../api/index.ts'
import { ApiError, ClusterRole, mayAccess, type Client } from '../kube/index.ts'
import { findCondition } from '../runtime/index.ts'

let plane: ControlPlane
let scene: PermissionScene
let admin: Client
before(async () => {
  plane = await startControlPlane()
  scene = await startPermissionScene(plane)
  admin = scene.admin
})
after(() => plane.stop())

test('R4.3 attempts to gain more than one holds are all refused, each with its reason', async (t) => {
  await admin.of(ManagedServiceAccount, 'c1').create({ metadata: { name: 'robot', namespace: 'c1' } })
  // She is let through with what she holds: otherwise the refusals would show nothing.
  await scene.write(
    toHer([...pods, rule('get', 'configmaps', ['open']), { verbs: ['get'], nonResourceURLs: ['/open/door'] }]),
    { name: 'her-own' },
  )
  await scene.delivered('her-own')

  const rows: string[] = []
  for (const [title, attempt, reason] of escalations(scene)) {
    const said = await attempt().then(
      () => assert.fail(`${title}: it was let through`),
      (error: unknown) => (error instanceof ApiError ? `refused: ${error.serverMessage}` : (error as Error).message),
    )
    assert.match(said, reason, title)
    rows.push(
      `${String(rows.length + 1).padStart(2)}  ${title.padEnd(78)}  ${said.replace(/^refused: admission webhook "[^"]+" denied the request: /, 'refused: ').slice(0, 150)}`,
    )
  }
  for (const row of rows) t.diagnostic(row)
  assert.ok(rows.length >= 20)
  // Nothing of it has reached a work, but what she may give.
  const { items } = await admin.of(ManifestWork).list()
  const delivered = items.filter((work) => JSON.stringify(work.spec).includes(user))
  assert.deepEqual(
    delivered.map(({ metadata }) => metadata.ownerReferences?.[0]?.name),
    ['her-own'],
  )
})

test('R4.3 the verbs of this API give exactly what they name: escalate for rules, bind for roles of others, in their namespace and for their names', async () => {
  const permissions = `clusterpermissions.${permissionsOf}`
  const crud = rule('create,get,update,patch', permissions)
  const [escalator, binder, narrow] = ['escalator', 'binder', 'narrow'].map((name) => plane.client({ user: name }))
  await allow(admin, 'escalator', [crud])
  await allow(admin, 'escalator', [rule('escalate', permissions)], { namespace: 'c1' })
  await allow(admin, 'binder', [crud, rule('bind', permissions)])
  await allow(admin, 'narrow', [crud, rule('bind', permissions, ['allowed'])])
  const may = (username: string, verb: string, name?: string) =>
    eventually(() =>
      mayAccess(
        admin,
        { username },
        { verb, group: permissionsOf, resource: 'clusterpermissions', namespace: 'c1', name },
      ),
    )
  await Promise.all([may('escalator', 'escalate'), may('binder', 'bind'), may('narrow', 'bind', 'allowed')])

  const rules = toHer([rule('*', '*')])
  const foreign: PermissionSpec = {
    clusterRoleBinding: { subject: her, roleRef: clusterRole('cluster-admin') },
  }
  const copy: PermissionSpec = { ...foreign, roleRefs: [{ kind: 'ClusterRole', name: 'cluster-admin' }] }
  await scene.write(rules, { as: escalator! })
  await scene.write(copy, { as: escalator! })
  await assert.rejects(scene.write(foreign, { as: escalator! }), /may not bind ClusterRole cluster-admin/)
  await assert.rejects(scene.write(rules, { as: escalator!, namespace: 'c2' }), /may not \* \*/)
  await scene.write(foreign, { as: binder! })
  await scene.write(copy, { as: binder! })
  await assert.rejects(scene.write(rules, { as: binder! }), /may not \* \*/)
  await scene.write(foreign, { as: narrow!, name: 'allowed' })
  await assert.rejects(scene.write(foreign, { as: narrow!, name: 'forbidden' }), /may not bind/)
})

test('R4.3 an agent of a managed cluster may not write permissions, even if somebody gave it a role', async () => {
  const agent = plane.client({ user: subjects.agentUser('c1', 'a'), groups: [subjects.managedClusters] })
  await assert.rejects(
    scene.write({ clusterRole: { rules: pods }, clusterRoleBinding: { subject: her } }, { as: agent }),
    /clusterpermissions.* is forbidden/,
  )
  await allow(admin, subjects.agentUser('c1', 'a'), [
    rule('create,escalate', `clusterpermissions.${permissionsOf}`),
    rule('get', 'pods'),
  ])
  await eventually(() =>
    mayAccess(
      admin,
      { username: subjects.agentUser('c1', 'a') },
      { verb: 'create', group: permissionsOf, resource: 'clusterpermissions' },
    ),
  )
  await assert.rejects(
    scene.write({ clusterRole: { rules: pods }, clusterRoleBinding: { subject: her } }, { as: agent }),
    /agents of managed clusters may not write/,
  )
})

test('R4.3 a permission that waits is delivered once somebody who may approves it, and says who; what its author loses later takes nothing back', async () => {
  const name = 'asked-for'
  const spec = toHer([rule('get', 'endpoints')])
  await assert.rejects(
    scene.write(spec, { name }),
    /set the annotation rbac\.open-cluster-management\.io\/approval=requested, and it waits/,
  )
  await scene.write(spec, { name, annotations: requested })
  const waits = findCondition(await scene.decided(name), 'Authorized')
  assert.equal(waits?.reason, 'WaitsForApproval')
  await allow(admin, 'anna', [rule('get,patch,approve', `clusterpermissions.${permissionsOf}`)])
  await eventually(() =>
    mayAccess(
      admin,
      { username: 'anna' },
      { verb: 'approve', group: permissionsOf, resource: 'clusterpermissions', namespace: 'c1', name },
    ),
  )
  await scene.approve(name, plane.client({ user: 'anna' }))
  const work = await scene.delivered(name)
  await eventually(async () => {
    const permission = await scene.decided(name)
    assert.equal(findCondition(permission, 'Authorized')?.message, 'Approved by anna')
    assert.equal(permission.status?.authorization?.how, 'Approval')
  })

  // Taken back and given again: the approval of then does not come back with it.
  await scene.edit(name, { spec: toHer([rule('get', 'pods')]) })
  await scene.delivered(name)
  await scene.edit(name, { spec })
  await assert.rejects(scene.withheld(name), /waits/)
  assert.equal((await admin.of(ManifestWork, 'c1').find(work.metadata.name!))?.metadata.uid, undefined)

  await allow(admin, 'leaver', [rule('create,get', `clusterpermissions.${permissionsOf}`), rule('get', 'nodes')])
  await eventually(() => mayAccess(admin, { username: 'leaver' }, { verb: 'get', group: '', resource: 'nodes' }))
  await eventually(() =>
    scene.write(toHer([rule('get', 'nodes')]), { as: plane.client({ user: 'leaver' }), name: 'of-leaver' }),
  )
  await scene.delivered('of-leaver')
  const { items } = await admin.of(ClusterRole).list()
  const hers = items.find(({ metadata }) => metadata.name?.startsWith('allow-leaver'))!
  await admin.of(ClusterRole).delete(hers.metadata.name!)
  await eventually(
    async () => !(await mayAccess(admin, { username: 'leaver' }, { verb: 'get', group: '', resource: 'nodes' })),
  )
  await scene.edit('of-leaver', { metadata: { labels: { seen: 'again' } } }, admin)
  await eventually(async () => assert.equal((await scene.decided('of-leaver')).metadata.labels?.['seen'], 'again'))
  await scene.delivered('of-leaver')
})
