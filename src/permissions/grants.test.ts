import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { parse } from 'yaml'
import { rule } from '../../testkit/people.ts'
import type { ClusterPermission, ClusterSetPermission, PermissionSpec } from '../api/index.ts'
import { bindingsOf } from './bindings.ts'
import { grantsOf, workNameOf } from './contract.ts'
import { fingerprint } from './hub/authority.ts'
import { payloadOf } from './hub/payload.ts'

const sample = parse(
  (await readFile('src/api/fixtures/4-cluster-permission.yaml', 'utf8')).replace(/^status:[^]*/m, ''),
) as ClusterPermission

test('R4.7 R4.13 the role of a binding is its own, a copy, the managed cluster’s, or there is none', () => {
  const subject = { kind: 'User', name: 'ada' }
  const at = (namespace: string, roleRef: object) => ({ namespace, subject, roleRef: roleRef as { kind: 'Role' } })
  const spec: PermissionSpec = {
    clusterRole: { rules: [] },
    roles: [{ namespace: 'a', rules: [] }],
    roleRefs: [
      { kind: 'Role', namespace: 'b', name: 'copied' },
      { kind: 'ClusterRole', name: 'everywhere' },
    ],
    roleBindings: [
      at('a', { kind: 'Role' }),
      at('a', { kind: 'Role', name: 'p' }),
      at('b', { kind: 'Role' }),
      at('b', { kind: 'Role', name: 'p' }),
      at('b', { kind: 'Role', name: 'copied' }),
      at('a', { kind: 'Role', name: 'copied' }),
      at('x', { kind: 'ClusterRole' }),
      at('x', { kind: 'ClusterRole', name: 'everywhere' }),
      at('x', { kind: 'ClusterRole', name: 'view' }),
    ],
  }
  assert.deepEqual(
    bindingsOf('p', spec).map(({ source }) => source),
    ['own', 'own', 'nowhere', 'nowhere', 'copy', 'managed', 'own', 'copy', 'managed'],
  )
})

test('R4.28 what a permission grants, to whom, where and through what, is told from the object alone', () => {
  const grants = grantsOf(sample)
  assert.deepEqual(
    grants.map(({ subject, place, role, rules, state }) => [subject.name, place, role.kind, rules?.length, state]),
    [
      ['system:serviceaccounts:qa', 'cluster', 'ClusterRole', 1, 'pending'],
      ['managed-sa-sample', { namespace: 'kube-system' }, 'ClusterRole', 1, 'pending'],
      ['system:serviceaccounts', { namespace: 'default' }, 'Role', 1, 'pending'],
      ['alice@example.com', { namespaceSelector: sample.spec!.roles![1]!.namespaceSelector }, 'Role', 1, 'pending'],
    ],
  )
  assert.deepEqual(grants[0]!.through, { kind: 'ClusterPermission', namespace: 'cluster1', name: 'my-managed-rbac' })
  const set: ClusterSetPermission = {
    metadata: { name: 's' },
    spec: {
      clusterSet: 'shops',
      permission: {
        roleRefs: [{ kind: 'ClusterRole', name: 'reader' }],
        clusterRoleBindings: [
          { subject: { kind: 'User', name: 'a' }, roleRef: { apiGroup: '', kind: 'ClusterRole', name: 'reader' } },
          { subject: { kind: 'User', name: 'b' }, roleRef: { apiGroup: '', kind: 'ClusterRole', name: 'view' } },
        ],
      },
    },
  }
  const rules = [rule('get', 'pods')]
  assert.deepEqual(
    grantsOf(set, ({ name }) => (name === 'reader' ? rules : undefined)).map((grant) => [
      grant.through.kind,
      grant.rules,
    ]),
    [
      ['ClusterSetPermission', rules],
      ['ClusterSetPermission', undefined],
    ],
  )
})

test('R4.18 the work of a permission is the same for the same permission, and its name fits whatever the permission is called', () => {
  const recipe = {
    kind: 'ClusterPermission' as const,
    metadata: { ...sample.metadata, uid: '11111111-2222' },
    spec: sample.spec!,
    copies: [],
    accountNamespace: () => 'addon',
  }
  assert.deepEqual(payloadOf(recipe), payloadOf({ ...recipe, spec: structuredClone(recipe.spec) }))
  const manifests = payloadOf(recipe).spec.workload!.manifests!
  assert.deepEqual(
    manifests.map(({ kind }) => kind),
    ['ClusterRole', 'Role', 'ClusterRoleBinding', 'RoleBinding', 'RoleBinding', 'PerNamespace'],
  )
  assert.equal(workNameOf('readers', 'abcdef12-3456'), 'readers-abcde')
  const long = ['x'.repeat(253), `${'y'.repeat(160)}.${'z'.repeat(80)}`].map((name) => workNameOf(name, 'abcdef12'))
  for (const name of long) assert.ok(name.length <= 180 && /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(name), name)
  assert.notEqual(workNameOf(`${'x'.repeat(252)}a`, 'abcdef12'), workNameOf(`${'x'.repeat(252)}b`, 'abcdef12'))
})

test('R4.3 the fingerprint changes with everything that a permission gives, and not with the order of keys', () => {
  const spec = sample.spec!
  const copies = [{ ref: { kind: 'ClusterRole' as const, name: 'r' }, rules: [rule('get', 'pods')] }]
  const print = fingerprint(spec, copies)
  const turned = JSON.parse(
    JSON.stringify({ ...spec }, Object.keys(flatKeys(spec)).toSorted().toReversed()),
  ) as PermissionSpec
  assert.equal(fingerprint(turned, copies), print)
  const others = [
    fingerprint({ ...spec, validate: true }, copies),
    fingerprint({ ...spec, roles: [...spec.roles!].toReversed() }, copies),
    fingerprint(spec, [{ ...copies[0]!, rules: [rule('get,list', 'pods')] }]),
    fingerprint(spec, []),
    fingerprint(spec, copies, { clusterSet: 'shops' }),
    fingerprint(spec, copies, { clusterSet: 'other' }),
  ]
  assert.equal(new Set([print, ...others]).size, others.length + 1)
})

const flatKeys = (value: unknown): Record<string, true> =>
  typeof value === 'object' && value !== null
    ? Object.assign({}, ...Object.entries(value).map(([key, inner]) => ({ [key]: true, ...flatKeys(inner) })))
    : {}
