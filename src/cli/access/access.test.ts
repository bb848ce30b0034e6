/** Seeing access, and approving it, on a hub that runs: what each command prints, and what it refuses. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { parse } from 'yaml'
import { eventually, runCli, startControlPlane, type CliResult, type ControlPlane } from '../../../testkit/index.ts'
import { allow, rule } from '../../../testkit/people.ts'
import {
  clusterRole,
  permissionsOf,
  requested,
  startPermissionScene,
  toHer,
  type PermissionScene,
} from '../../../testkit/permission-scene.ts'
import { ClusterPermission, ClusterSetPermission, label, ManagedCluster, ManifestWork } from '../../api/index.ts'
import { CustomResourceDefinition } from '../../kube/index.ts'
import { isTrue } from '../../runtime/index.ts'
import type { FleetGrant } from './fleet.ts'

let plane: ControlPlane
let scene: PermissionScene
const slow = { timeoutMs: 90_000 }

before(async () => {
  plane = await startControlPlane()
  scene = await startPermissionScene(plane)
  const { admin, write, delivered } = scene
  await admin.of(ManagedCluster).patch('c1', { merge: { metadata: { labels: { [label.clusterSet]: 'payments' } } } })
  const as = admin
  await write(
    {
      clusterRole: { rules: [rule('get,list', 'pods')] },
      clusterRoleBinding: { subject: { kind: 'Group', name: 'ops' } },
      roles: [{ namespace: 'shop', rules: [rule('get', 'secrets', ['db'])] }],
      roleBindings: [
        {
          namespace: 'shop',
          subject: { kind: 'ServiceAccount', namespace: 'shop', name: 'web' },
          roleRef: { kind: 'Role' },
        },
      ],
    },
    { as, name: 'readers' },
  )
  await write(
    { clusterRoleBinding: { subject: { kind: 'User', name: 'bob' }, roleRef: clusterRole('view') } },
    { as, name: 'theirs' },
  )
  await write(
    {
      roleRefs: [{ kind: 'ClusterRole', name: 'team' }],
      roleBindings: [
        {
          namespaceSelector: { matchLabels: { team: 'a' } },
          subject: { kind: 'User', name: 'ada' },
          roleRef: { kind: 'ClusterRole', name: 'team' },
        },
      ],
    },
    { as, name: 'copies', namespace: 'c2' },
  )
  await admin.of(ClusterSetPermission).create({
    metadata: { name: 'auditors' },
    spec: {
      clusterSet: 'payments',
      permission: {
        clusterRole: { rules: [rule('list', 'secrets')] },
        clusterRoleBinding: { subject: { kind: 'User', name: 'carol' } },
      },
    },
  })
  await write(toHer([rule('*', 'secrets')]), { name: 'wish', annotations: requested })
  const work = await delivered('readers')
  const now = '2026-01-01T00:00:00Z'
  const { generation, name } = work.metadata
  const applied = { type: 'Applied', status: 'True' as const, reason: 'Done', message: 'done', lastTransitionTime: now }
  await admin
    .of(ManifestWork, 'c1')
    .patch(
      name!,
      { merge: { status: { conditions: [{ ...applied, observedGeneration: generation }] } } },
      { subresource: 'status' },
    )
  await eventually(async () => {
    assert.ok(isTrue(await admin.of(ClusterPermission, 'c1').get('readers'), 'AppliedRBACManifestWork'))
    const sets = await admin.of(ClusterSetPermission).get('auditors')
    assert.ok(isTrue(sets, 'Authorized'))
    assert.equal(sets.status?.clusters?.selected, 1)
    for (const [namespace, one] of ['c1/theirs', 'c2/copies'].map((key) => key.split('/') as [string, string]))
      assert.ok(isTrue(await admin.of(ClusterPermission, namespace).get(one), 'Authorized'))
  }, slow)
})
after(() => plane.stop())

const lanyard = (line: string, options: Parameters<typeof runCli>[1] = {}): Promise<CliResult> =>
  runCli([...line.split(' '), '--kubeconfig', plane.kubeconfig], { program: 'lanyard', ...options })

const prints = async (line: string): Promise<string> => {
  const { code, out, err } = await lanyard(line)
  assert.equal(code, 0, `${line}\n${err}`)
  return out
}

/** The table without its padding: a row is its cells with | between. */
const rows = async (line: string): Promise<string[]> =>
  (await prints(line))
    .trimEnd()
    .split('\n')
    .map((row) => row.split(/ {3,}/).join(' | '))

test('R4.31 who-can names everybody, where, and through which permission, across clusters', async () => {
  assert.deepEqual(await rows('access who-can get pods'), [
    'SUBJECT | CLUSTER | WHERE | CAN | THROUGH | STATE',
    'Group ops | c1 | everywhere | yes | ClusterPermission c1/readers | applied',
    'User bob | c1 | everywhere | perhaps: only cluster c1 knows what ClusterRole view says | ClusterPermission c1/theirs | pending',
    'User ada | c2 | namespaces with team=a | yes | ClusterPermission c2/copies | pending',
  ])
  assert.deepEqual((await rows('access who-can list secrets --clusterset payments')).slice(1), [
    'User bob | c1 | everywhere | perhaps: only cluster c1 knows what ClusterRole view says | ClusterPermission c1/theirs | pending',
    'User carol | c1 | everywhere | yes | ClusterSetPermission auditors | pending',
  ])
  assert.deepEqual((await rows('access who-can get secrets --cluster c1 -n shop')).slice(1), [
    'ServiceAccount shop/web | c1 | namespace shop | some: only db | ClusterPermission c1/readers | applied',
    'User bob | c1 | everywhere | perhaps: only cluster c1 knows what ClusterRole view says | ClusterPermission c1/theirs | pending',
  ])
  assert.deepEqual((await rows('access who-can get pods --cluster c2 -n shop')).slice(1), [
    'User ada | c2 | namespaces with team=a | some: if namespace shop has team=a | ClusterPermission c2/copies | pending',
  ])
  assert.deepEqual(await rows('access who-can delete nodes --cluster c2'), [
    'Nobody, by what this hub has granted on cluster c2.',
  ])
})

test('R4.31 as JSON, YAML, Graphviz and Mermaid it says the same', async () => {
  const [found] = JSON.parse(await prints('access who-can get pods --cluster c2 -o json')) as object[]
  const wanted = {
    subject: { kind: 'User', name: 'ada' },
    place: { namespaceSelector: { matchLabels: { team: 'a' } } },
    role: { kind: 'ClusterRole', name: 'team' },
    rules: [rule('get', 'pods')],
    through: { kind: 'ClusterPermission', namespace: 'c2', name: 'copies' },
    field: 'roleBindings[0]',
    state: 'pending',
    cluster: 'c2',
    can: 'yes',
  }
  assert.deepEqual(found, wanted)
  assert.deepEqual(parse(await prints('access who-can get pods --cluster c2 -o yaml')), [wanted])
  const dot = await prints('access who-can get pods --cluster c2 -o dot')
  assert.match(dot, /^digraph lanyard \{\n/)
  assert.match(dot, /n0 \[label="User ada" shape=ellipse\]/)
  assert.match(dot, /label="cluster c2"\n {4}n2 \[label="ClusterRole team, namespaces with team=a\\nget pods"\]/)
  assert.match(dot, /n0 -> n1\n {2}n1 -> n2 \[label="pending" style=dashed\]\n\}\n$/)
  const mermaid = await prints('access of carol -o mermaid')
  assert.match(mermaid, /^flowchart LR\n {2}n0\(\["User carol"\]\)\n {2}n1\["ClusterSetPermission<br\/>auditors"\]\n/)
  assert.match(mermaid, /n1 -\.->\|"pending"\| n2\n$/)
})

test('R4.31 of says what somebody may, directly and through groups, and with --all what waits', async () => {
  assert.deepEqual((await rows('access of user:eve --groups ops')).slice(1), [
    'c1 | everywhere | ClusterRole readers | get,list pods | ClusterPermission c1/readers | applied | member of ops',
  ])
  assert.deepEqual((await rows('access of system:serviceaccount:shop:web')).slice(1), [
    'c1 | namespace shop | Role readers | get secrets named db | ClusterPermission c1/readers | applied',
  ])
  assert.deepEqual((await rows('access of bob')).slice(1), [
    'c1 | everywhere | ClusterRole view | only the cluster knows | ClusterPermission c1/theirs | pending',
  ])
  assert.deepEqual(await rows('access of mallory'), ['This hub has granted nothing to mallory.'])
  assert.deepEqual((await rows('access of mallory --all')).slice(1), [
    'c1 | everywhere | ClusterRole wish | * secrets | ClusterPermission c1/wish | waits',
  ])
  assert.deepEqual(await rows('access of carol --cluster c2'), ['This hub has granted nothing to carol.'])
})

test('R4.31 diff compares two clusters, and one with what was saved of it', async () => {
  assert.deepEqual(await rows('access diff c1 c2'), [
    'ONLY | SUBJECT | WHERE | RIGHT | THROUGH',
    'c1 | Group ops | everywhere | get pods | ClusterPermission c1/readers',
    'c1 | Group ops | everywhere | list pods | ClusterPermission c1/readers',
    'c1 | ServiceAccount shop/web | namespace shop | get secrets "db" | ClusterPermission c1/readers',
    'c1 | User bob | everywhere | whatever ClusterRole view of the cluster says | ClusterPermission c1/theirs',
    'c1 | User carol | everywhere | list secrets | ClusterSetPermission auditors',
    'c2 | User ada | namespaces with team=a | get pods | ClusterPermission c2/copies',
  ])
  const file = join(plane.folder, 'before.json')
  const saved = await prints('access list -o json')
  writeFileSync(file, saved)
  assert.deepEqual(await rows(`access diff c1 --from ${file} --exit-code`), [
    'No difference between c1 before and c1 now.',
  ])
  const grants = JSON.parse(saved) as FleetGrant[]
  writeFileSync(file, JSON.stringify(grants.filter(({ subject }) => subject.name !== 'carol')))
  const differs = await lanyard(`access diff c1 --from ${file} --exit-code -o json`)
  assert.equal(differs.code, 1)
  assert.deepEqual(JSON.parse(differs.out), [
    {
      change: 'only-second',
      subject: { kind: 'User', name: 'carol' },
      place: 'cluster',
      right: 'list secrets',
      through: [{ kind: 'ClusterSetPermission', name: 'auditors' }],
    },
  ])
  assert.match(await prints(`access diff c1 --from ${file} -o dot`), /label="only c1 now"[^]*color="#1e8449"/)
})

test('R4.31 who may read one cluster’s permissions only sees those, and is told what is missing', async () => {
  const user = 'of-c2'
  await allow(scene.admin, user, [rule('list', `clusterpermissions.${permissionsOf}`)], { namespace: 'c2' })
  await allow(scene.admin, user, [rule('list', 'managedclusters.cluster.open-cluster-management.io')])
  const kubeconfig = plane.kubeconfigFor({ user })
  const args = ['access', 'list', '--cluster', 'c2', '--kubeconfig', kubeconfig]
  const { code, out, err } = await eventually(async () => {
    const result = await runCli(args)
    assert.equal(result.code, 0, result.err)
    return result
  })
  assert.equal(code, 0)
  assert.match(out, /User ada .* only the cluster knows {3,}ClusterPermission c2\/copies/)
  assert.match(err, /you may not list clustersetpermissions on the hub: what comes from them is missing here/)
  assert.match(err, /you may not list clusterroles on the hub: what permissions copy from them is not known here/)
})

test('R4.31 a person approves exactly what they were shown', async () => {
  assert.deepEqual(await rows('access approve'), [
    'NAME | WHY',
    'c1/wish | user "mallory", who wrote it, may not * secrets',
  ])
  const unasked = await lanyard('access approve c1/wish')
  assert.equal(unasked.code, 1)
  assert.match(unasked.err, /User mallory {3,}cluster c1 {3,}everywhere {3,}ClusterRole wish {3,}\* secrets\n/)
  assert.match(unasked.err, /Error: c1\/wish is not approved: nobody can be asked here\n {2}.*--yes/)
  const no = await lanyard('access approve c1/wish', { tty: true, stdin: 'n\n' })
  assert.equal(no.code, 1)
  const stale = await lanyard('access approve c1/wish --fingerprint 00')
  assert.match(stale.err, /no longer what you have seen: its fingerprint is [0-9a-f]{32}/)
  assert.equal((await lanyard('access approve c1/wish --yes --dry-run')).out, 'c1/wish: would be approved\n')
  const mallory = ['access', 'approve', 'c1/wish', '--yes', '--kubeconfig', plane.kubeconfigFor({ user: 'mallory' })]
  const herself = await runCli(mallory, { program: 'lanyard' })
  assert.equal(herself.code, 1)
  assert.match(herself.err, /you may not approve c1\/wish: .*\n {2}ask for the verb approve on clusterpermissions/)
  assert.match((await rows('access approve'))[1]!, /c1\/wish/)

  const yes = await lanyard('access approve c1/wish', { tty: true, stdin: 'y\n' })
  assert.equal(yes.code, 0, yes.err)
  assert.equal(yes.out, 'c1/wish: approved\n')
  assert.deepEqual(await rows('access approve'), ['Nothing waits for approval.'])
  assert.match(await prints('access approve c1/wish'), /^c1\/wish: does not wait: Approved by /)
  await scene.delivered('wish')
})

test('R4.31 bad input: one line that says what to write', async () => {
  const refused = async (code: number, line: string): Promise<string> => {
    const result = await lanyard(line)
    assert.equal(result.code, code, result.err)
    assert.equal(result.out, '')
    return result.err
  }
  assert.match(await refused(2, 'access who-can get'), /RESOURCE is missing: on what/)
  assert.match(await refused(2, 'access who-can GET pods'), /"GET" is not a verb; there are get, list/)
  assert.match(await refused(2, 'access who-can get a.b/c.d'), /is not a resource; write pods, deployments.apps/)
  assert.match(await refused(2, 'access who-can get pods --cluster c1 --clusterset payments'), /say different things/)
  assert.match(await refused(2, 'access who-can get /metrics -n shop'), /outside of namespaces: leave -n out/)
  assert.match(await refused(1, 'access who-can get pods --cluster c3'), /there is no cluster c3\n {2}did you mean c1/)
  assert.match(await refused(1, 'access who-can get pods --clusterset payment'), /did you mean payments\?/)
  assert.match(await refused(2, 'access who-can get pods -o dott'), /--output takes .*; did you mean dot\?/)
  assert.match(await refused(2, 'access of sa:web'), /is not a service account; write sa:NAMESPACE\/NAME/)
  assert.match(await refused(2, 'access diff c1'), /Name a second cluster, or give --from FILE/)
  assert.match(await refused(2, 'access diff c1 c2 --from x'), /name only one/)
  assert.match(
    await refused(1, `access diff c1 --from ${join(plane.folder, 'gone')}`),
    /cannot be read: ENOENT\n {2}save one with/,
  )
  const piped = (stdin: string) => lanyard('access diff c1 --from -', { stdin })
  assert.match((await piped('{')).err, /- is not JSON/)
  assert.match((await piped('{}')).err, /- is not a list of grants/)
  assert.match((await piped('[{"cluster":"c1"}]')).err, /entry 1 is not a grant/)
  assert.match(await refused(2, 'access approve a/b/c'), /write CLUSTER\/NAME, or NAME for that of a set/)
  assert.match(await refused(1, 'access approve c1/nothing'), /there is no ClusterPermission c1\/nothing/)
})

test('R4.31 a hub of another make that has not all our kinds still answers, and one without ClusterPermissions says so', async () => {
  const remove = (kind: { plural: string; group: string }) =>
    scene.admin.of(CustomResourceDefinition).delete(`${kind.plural}.${kind.group}`)
  await remove(ClusterSetPermission)
  await eventually(
    async () => assert.equal(await prints('access of carol'), 'This hub has granted nothing to carol.\n'),
    slow,
  )
  assert.match(await prints('access list --cluster c2'), /User ada/)
  await remove(ClusterPermission)
  await eventually(async () => {
    const { code, err } = await lanyard('access list')
    assert.equal(code, 1)
    assert.match(err, /knows no ClusterPermissions\n {2}the hub must be one that delivers RBAC/)
  }, slow)
})
