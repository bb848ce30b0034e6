import assert from 'node:assert/strict'
import { test } from 'node:test'
import { finalizer, label } from '../../api/index.ts'
import type { ClusterRole, KubeObject, RoleBinding } from '../../kube/index.ts'
import { rbac, revokedOnAnnotation } from '../contract.ts'
import {
  everyPermissionOf,
  isReduced,
  leavesByAnnotation,
  leavingBinding,
  permissionsOf,
  sharedLabel,
  sharedRoles,
} from './permissions.ts'

const labels = { team: 'fleet', [label.clusterName]: 'somebody-else' }
const named = (objects: KubeObject[]): string[] => objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`)
const roleOf = (objects: KubeObject[]): ClusterRole => objects[0] as ClusterRole

test('R1.42 R1.43 R1.44 each standing has its objects', () => {
  const itself = [`ClusterRole ${rbac.cluster('c1')}`, `ClusterRoleBinding ${rbac.cluster('c1')}`]
  assert.deepEqual(named(permissionsOf('c1', 'accepted', { labels })), [
    ...itself,
    `RoleBinding ${rbac.registrationBinding('c1')}`,
    `RoleBinding ${rbac.workBinding('c1')}`,
  ])
  assert.deepEqual(named(permissionsOf('c1', 'leaving', { labels })), [
    ...itself,
    `RoleBinding ${leavingBinding('c1')}`,
  ])
  assert.deepEqual(named(permissionsOf('c1', 'denied', { labels })), itself)
  assert.equal(everyPermissionOf('c1').length, 5)
})

test('R1.42 every object is labelled for its own cluster, whatever the labels of the hub say, and binds both groups', () => {
  const all = (['accepted', 'leaving', 'denied'] as const).flatMap((s) => permissionsOf('c1', s, { labels }))
  for (const { metadata } of all) assert.deepEqual(metadata.labels, { team: 'fleet', [label.clusterName]: 'c1' })
  for (const binding of all.filter(({ kind }) => kind?.endsWith('Binding')) as RoleBinding[])
    assert.deepEqual(
      binding.subjects?.map((s) => s.name),
      ['system:open-cluster-management:c1', 'open-cluster-management:c1'],
    )
})

test('R1.44 only the work binding outlives its own deletion', () => {
  const held = permissionsOf('c1', 'accepted', { labels }).filter(({ metadata }) => metadata.finalizers)
  assert.deepEqual(named(held), [`RoleBinding ${rbac.workBinding('c1')}`])
  assert.deepEqual(held[0]!.metadata.finalizers, [finalizer.manifestWork])
})

test('R1.57 a reduced role is known by its rules, and remembers the farewell', () => {
  const memory = { leavesBy: '2026-01-01T00:00:00.000Z', revokedOn: '2026-01-01T00:00:01.000Z' }
  const reduced = roleOf(permissionsOf('c1', 'denied', { labels, memory }))
  assert.deepEqual(reduced.metadata.annotations, {
    [leavesByAnnotation]: memory.leavesBy,
    [revokedOnAnnotation]: memory.revokedOn,
  })
  assert.equal(isReduced('c1', reduced), true)
  assert.equal(isReduced('c2', reduced), false)
  assert.equal(isReduced('c1', { ...reduced, rules: null }), false)
  assert.equal(isReduced('c1', roleOf(permissionsOf('c1', 'accepted', { labels }))), false)
})

test('the shared roles carry a label that no cluster can have as its name', () => {
  assert.notEqual(sharedLabel, sharedLabel.toLowerCase())
  for (const { metadata } of sharedRoles) assert.equal(metadata.labels?.[label.clusterName], sharedLabel)
})
