import assert from 'node:assert/strict'
import { after, before, test, type TestContext } from 'node:test'
import { eventually, startControlPlane, type ControlPlane } from '../../testkit/index.ts'
import {
  ClusterRole,
  ClusterRoleBinding,
  ConfigMap,
  isConflict,
  isInvalid,
  type KubeObject,
  type PolicyRule,
} from '../kube/index.ts'
import { applySet, contains, differs, equal, type Change } from './apply-set.ts'
import { Informers } from './informers.ts'

let plane: ControlPlane
before(async () => {
  plane = await startControlPlane({ controllerManager: false })
})
after(() => plane.stop())

const rules: PolicyRule[] = [{ apiGroups: [''], resources: ['secrets'], verbs: ['get'] }]
const role = (name: string): KubeObject & Pick<ClusterRole, 'rules'> => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'ClusterRole',
  metadata: { name, labels: { set: 'test' } },
  rules,
})
const binding = (name: string, to: string): KubeObject =>
  ({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name, labels: { set: 'test' } },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: to },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'ada' }],
  }) as KubeObject
const settings = (data: Record<string, string>): KubeObject =>
  ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'settings', namespace: 'default', labels: { set: 'test' } },
    data,
  }) as KubeObject

/** A set with its caches, under a user agent of its own so that its requests can be counted. */
const set = async (t: TestContext, userAgent: string) => {
  const client = plane.client({ user: 'setter', groups: ['system:masters'], userAgent })
  const informers = new Informers(client)
  const [roles, bindings, maps] = [
    informers.of(ClusterRole, { labelSelector: 'set=test' }),
    informers.of(ClusterRoleBinding, { labelSelector: 'set=test' }),
    informers.of(ConfigMap, { labelSelector: 'set=test' }),
  ]
  const stop = new AbortController()
  t.after(() => stop.abort())
  void informers.run(stop.signal)
  await informers.synced()
  const targets = [
    { resource: ClusterRole, cache: roles },
    { resource: ClusterRoleBinding, cache: bindings },
    { resource: ConfigMap, cache: maps },
  ]
  return {
    client,
    roles,
    bindings,
    maps,
    apply: (desired: KubeObject[], obsolete?: KubeObject[]): Promise<Map<string, Change>> =>
      applySet(desired, { client, targets, fieldManager: 'test', obsolete }),
    writes: async (): Promise<number> => {
      const { byVerb } = await plane.requestsBy(userAgent)
      return ['create', 'update', 'patch', 'delete'].reduce((sum, verb) => sum + (byVerb[verb] ?? 0), 0)
    },
  }
}

test('R0.28 a set is created, then left alone: nothing is sent when nothing differs', async (t) => {
  const { apply, roles, maps, bindings, writes } = await set(t, 'apply-quiet')
  const desired = [role('quiet'), binding('quiet', 'quiet'), settings({ a: '1' })]
  assert.deepEqual(
    [...(await apply(desired))],
    [
      ['ClusterRole quiet', 'created'],
      ['ClusterRoleBinding quiet', 'created'],
      ['ConfigMap default/settings', 'created'],
    ],
  )
  await eventually(() => assert.ok(roles.get('quiet') && bindings.get('quiet') && maps.get('default/settings')))
  const before = await writes()
  for (let i = 0; i < 5; i++) assert.equal((await apply(desired)).size, 0)
  assert.equal(await writes(), before)
})

test('R0.28 drift is repaired: a changed rule, an added key, a removed label; what others added to labels stays', async (t) => {
  const { apply, client, roles, maps } = await set(t, 'apply-drift')
  const desired = [role('drift'), settings({ a: '1' })]
  await apply(desired)
  await client.of(ClusterRole).patch('drift', { merge: { metadata: { labels: { theirs: 'x' } }, rules: [] } })
  await client.of(ConfigMap, 'default').patch('settings', { merge: { data: { a: '2', more: 'y' } } })
  await eventually(() =>
    assert.ok(roles.get('drift')?.metadata.labels?.['theirs'] && maps.get('default/settings')?.data?.['more']),
  )
  assert.deepEqual([...(await apply(desired)).values()], ['updated', 'updated'])
  const repaired = await client.of(ClusterRole).get('drift')
  assert.deepEqual(repaired.rules, rules)
  assert.equal(repaired.metadata.labels?.['theirs'], 'x')
  assert.deepEqual((await client.of(ConfigMap, 'default').get('settings')).data, { a: '1' })
})

test('R0.29 a binding whose roleRef differs is replaced', async (t) => {
  const { apply, client, bindings } = await set(t, 'apply-replace')
  await apply([binding('moved', 'one')])
  await eventually(() => assert.ok(bindings.get('moved')))
  const old = bindings.get('moved')!.metadata.uid
  assert.deepEqual([...(await apply([binding('moved', 'two')])).values()], ['replaced'])
  const now = await client.of(ClusterRoleBinding).get('moved')
  assert.equal(now.roleRef.name, 'two')
  assert.notEqual(now.metadata.uid, old)
})

test('R0.28 what is obsolete is deleted, unless it is wanted again', async (t) => {
  const { apply, client, roles } = await set(t, 'apply-obsolete')
  await apply([role('keep'), role('drop')])
  await eventually(() => assert.ok(roles.get('keep') && roles.get('drop')))
  const owned = ['keep', 'drop'].map((name) => ({ ...role(name), metadata: roles.get(name)!.metadata }))
  assert.deepEqual([...(await apply([role('keep')], owned))], [['ClusterRole drop', 'deleted']])
  assert.equal(await client.of(ClusterRole).find('drop'), undefined)
  assert.ok(await client.of(ClusterRole).find('keep'))
})

test('R0.28 a cache that is behind never overwrites: what exists is compared, what changed meanwhile is a conflict', async (t) => {
  const { client } = await set(t, 'apply-behind')
  const empty = { get: () => undefined }
  const options = { client, targets: [{ resource: ConfigMap, cache: empty }], fieldManager: 'test' }
  const desired = { ...settings({ b: '1' }), metadata: { name: 'behind', namespace: 'default' } }
  assert.deepEqual([...(await applySet([desired], options)).values()], ['created'])
  assert.equal((await applySet([desired], options)).size, 0)
  const stale = await client.of(ConfigMap, 'default').get('behind')
  await client.of(ConfigMap, 'default').patch('behind', { merge: { data: { c: '2' } } })
  const behind = { ...options, targets: [{ resource: ConfigMap, cache: { get: () => stale } }] }
  await assert.rejects(applySet([{ ...desired, data: { b: '9' } } as KubeObject], behind), isConflict)
})

test('R0.28 one object that is refused does not keep the others from being applied, and its error is thrown', async (t) => {
  const { apply, client } = await set(t, 'apply-partly')
  const nameless = { ...settings({}), metadata: { name: 'Not A Name', namespace: 'default' } }
  await assert.rejects(apply([nameless, role('fine')]), isInvalid)
  assert.ok(await client.of(ClusterRole).find('fine'))
})

test('R0.28 empty and absent are the same; a spec may hold more than is asked for, a list may not', () => {
  assert.ok(equal({ a: [], b: '', c: { d: 1 } }, { c: { d: 1 } }))
  assert.ok(!equal({ a: 1 }, { a: 1, b: 2 }))
  assert.ok(contains({ a: { x: 1, y: 2 }, list: [{ n: 1, defaulted: true }] }, { a: { x: 1 }, list: [{ n: 1 }] }))
  assert.ok(!contains({ list: [1, 2] }, { list: [1] }))
  assert.ok(
    !differs(settings({ a: '1' }), { ...settings({ a: '1' }), metadata: { labels: { set: 'test', more: 'x' } } }),
  )
  assert.ok(differs(settings({}), settings({ a: '1' })))
})
