import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allKinds, borrowedKinds, crds, ManagedCluster, ManagedClusterAddOn } from './index.ts'
import { defineKind } from './kind.ts'
import { object } from './schema.ts'

test('R0.32 a kind is a resource at its stored version, with its other versions beside it', () => {
  const { group, version, kind, plural, namespaced } = ManagedClusterAddOn
  assert.deepEqual(
    { group, version, kind, plural, namespaced },
    {
      group: 'addon.open-cluster-management.io',
      version: 'v1beta1',
      kind: 'ManagedClusterAddOn',
      plural: 'managedclusteraddons',
      namespaced: true,
    },
  )
  assert.equal(ManagedClusterAddOn.versions.v1alpha1.version, 'v1alpha1')
})

test('R0.32 names of a kind cost nothing: schemas are built when the CRD is', () => {
  let built = 0
  const schema = () => {
    built += 1
    return object('Any.', {})
  }
  const kind = defineKind({
    group: 'a.b',
    kind: 'C',
    plural: 'cs',
    scope: 'Cluster',
    stored: 'v1',
    versions: { v1: { schema } },
  })
  assert.equal(kind.versions.v1.plural, 'cs')
  assert.equal(built, 0)
  kind.crd({ conversion: 'none' })
  assert.equal(built, 1)
})

test('R0.32 no two kinds claim one name', () => {
  const names = crds({ conversion: 'none', borrowed: true }).map(({ metadata }) => metadata.name)
  assert.equal(new Set(names).size, allKinds.length + borrowedKinds.length)
})

test('R0.32 a status field turns the status subresource on', () => {
  const [version] = ManagedCluster.crd({ conversion: 'none' }).spec.versions
  assert.deepEqual((version as { subresources?: unknown }).subresources, { status: {} })
})

test('R0.32 versions that differ are served with a webhook, and not at all without', () => {
  const served = (crd: ReturnType<typeof ManagedClusterAddOn.crd>) =>
    crd.spec.versions.filter(({ served }) => served).map(({ name }) => name)

  const without = ManagedClusterAddOn.crd({ conversion: 'none' })
  assert.deepEqual(served(without), ['v1beta1'])
  assert.equal(without.spec.conversion, undefined)

  const url = 'https://127.0.0.1:9443/convert'
  const withWebhook = ManagedClusterAddOn.crd({ conversion: { url, caBundle: 'Q0E=' } })
  assert.deepEqual(served(withWebhook), ['v1alpha1', 'v1beta1'])
  assert.deepEqual(withWebhook.spec.conversion, {
    strategy: 'Webhook',
    webhook: { conversionReviewVersions: ['v1'], clientConfig: { url, caBundle: 'Q0E=' } },
  })
  assert.equal(ManagedCluster.crd({ conversion: { url } }).spec.conversion, undefined)
})
