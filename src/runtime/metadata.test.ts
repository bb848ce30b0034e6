import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ConfigMap } from '../kube/index.ts'
import { controllerOf, hasFinalizer, ownerReference, withFinalizer, withoutFinalizer, withOwner } from './metadata.ts'

const object = { metadata: { name: 'a', finalizers: ['x/other'] } }

test('R0.27 a finalizer is added once and removed without touching the others; the original stays as it was', () => {
  const added = withFinalizer(object, 'x/ours')
  assert.deepEqual(added.metadata.finalizers, ['x/other', 'x/ours'])
  assert.equal(withFinalizer(added, 'x/ours'), added)
  assert.deepEqual(withoutFinalizer(added, 'x/ours'), object)
  assert.equal(withoutFinalizer(object, 'x/ours'), object)
  assert.equal(hasFinalizer(object, 'x/ours'), false)
})

test('R0.27 an owner reference names the owner by its uid, and is added once', () => {
  const owner = { metadata: { name: 'boss', uid: 'u1' } }
  const reference = ownerReference(owner, ConfigMap, { controller: true })
  assert.deepEqual(reference, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    name: 'boss',
    uid: 'u1',
    controller: true,
    blockOwnerDeletion: true,
  })
  const other = { apiVersion: 'v1', kind: 'Secret', name: 's', uid: 'u0' }
  const owned = withOwner({ metadata: { name: 'a', ownerReferences: [other] } }, reference)
  assert.deepEqual(owned.metadata.ownerReferences, [other, reference])
  assert.equal(withOwner(owned, reference), owned)
  assert.equal(controllerOf(owned), reference)
  assert.throws(() => ownerReference({ metadata: { name: 'new' } }, ConfigMap), /no uid yet/)
})
