import assert from 'node:assert/strict'
import { test } from 'node:test'
import { label } from '../../api/index.ts'
import type { ObjectMeta } from '../../kube/index.ts'
import { isPersons, summary } from './left-behind.ts'

const persons = (group: string, kind: string, metadata: ObjectMeta): boolean =>
  isPersons({ resource: { group, kind }, object: { metadata } }, 'c1')

test('R1.56 what the system and the hub make in a namespace is nobody’s; everything else is a person’s', () => {
  const rbac = 'rbac.authorization.k8s.io'
  const ofHub = { labels: { [label.clusterName]: 'c1' } }
  const token = { labels: { [label.tokenInfrastructure]: 'true' } }
  const owned = { ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'x', uid: 'u' }] }
  const systems: [string, string, ObjectMeta][] = [
    ['', 'ServiceAccount', { name: 'default' }],
    ['', 'ConfigMap', { name: 'kube-root-ca.crt' }],
    ['', 'Secret', { name: 't', annotations: { 'kubernetes.io/service-account.name': 'default' } }],
    ['', 'Event', { name: 'e' }],
    ['events.k8s.io', 'Event', { name: 'e' }],
    ['coordination.k8s.io', 'Lease', { name: 'managed-cluster-lease' }],
    [rbac, 'RoleBinding', { name: 'work', ...ofHub }],
    [rbac, 'Role', { name: 'addon-token-role', ...token }],
    ['', 'ServiceAccount', { name: 'addon-agent', ...token }],
    ['apps', 'ReplicaSet', { name: 'r', ...owned }],
    ['', 'ConfigMap', { name: 'going', deletionTimestamp: '2026-01-01T00:00:00Z' }],
  ]
  for (const one of systems) assert.equal(persons(...one), false, JSON.stringify(one))
  const people: [string, string, ObjectMeta][] = [
    ['', 'ServiceAccount', { name: 'builder-2' }],
    ['', 'ConfigMap', { name: 'default' }],
    ['', 'ConfigMap', { name: 'labelled', ...ofHub }],
    ['', 'Secret', { name: 'import-secret', ...ofHub }],
    ['', 'Secret', { name: 't', annotations: { 'kubernetes.io/service-account.name': 'mine' } }],
    ['coordination.k8s.io', 'Lease', { name: 'other' }],
    [rbac, 'RoleBinding', { name: 'mine', labels: { [label.clusterName]: 'c2' } }],
    ['work.open-cluster-management.io', 'ManifestWork', { name: 'w' }],
    ['', 'Secret', { name: 'token', ...token }],
  ]
  for (const one of people) assert.equal(persons(...one), true, JSON.stringify(one))
})

test('a long list is told by its beginning and its length', () => {
  assert.equal(summary(['a', 'b']), 'a, b')
  assert.match(summary(Array.from({ length: 12 }, (_, i) => `n${i}`)), /n9 and 2 more$/)
})
