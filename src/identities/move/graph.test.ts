import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { OwnerReference, Resource, Unstructured } from '../../kube/index.ts'
import type { Found } from './bundle.ts'
import { wavesOf } from './bundle.ts'
import { chooseNeeded, identitiesOf, referencesIn } from './graph.ts'
import { lostFields } from './conflicts.ts'
import { asOnTarget, identityDifferences } from './translate.ts'

const groups: Record<string, string> = {
  Secret: '',
  ConfigMap: '',
  AWSCluster: 'infrastructure.cluster.x-k8s.io',
  AWSMachineTemplate: 'infrastructure.cluster.x-k8s.io',
  AWSServiceAccountIdentity: 'infrastructure.cluster.x-k8s.io',
  AWSClusterRoleIdentity: 'infrastructure.cluster.x-k8s.io',
}

const kindOf = (kind: string): Resource => {
  const group = groups[kind] ?? 'cluster.x-k8s.io'
  return { group, version: 'v1beta2', kind, plural: `${kind.toLowerCase()}s`, namespaced: true }
}

const owner = (key: string): OwnerReference => {
  const [kind, name] = key.split('/') as [string, string]
  return { apiVersion: `${groups[kind] ?? 'cluster.x-k8s.io'}/v1beta2`, kind, name, uid: key }
}

/** An object by `Kind/name`, which is its uid too. */
const found = (key: string, owners: string[] = [], spec: object = {}, labels = {}): Found => {
  const [kind, name] = key.split('/') as [string, string]
  const metadata = { namespace: 'ns', name, uid: key, labels, ownerReferences: owners.map(owner) }
  return { resource: kindOf(kind), object: { metadata, spec } }
}

const keys = (items: readonly Found[]): string[] => items.map(({ object }) => object.metadata.uid!).toSorted()

test('R3.56 what clusters own, name or are known to need goes along, owners first; what belongs to nobody stays', () => {
  const all = [
    found('Machine/m', ['MachineSet/s']),
    found('MachineSet/s', ['Cluster/c'], {
      template: { spec: { infrastructureRef: { kind: 'AWSMachineTemplate', name: 't' } } },
    }),
    found('AWSMachineTemplate/t'),
    found('AWSMachineTemplate/other'),
    found('Cluster/c', [], {
      infrastructureRef: { apiVersion: 'infrastructure.cluster.x-k8s.io/v1beta2', kind: 'AWSCluster', name: 'c' },
    }),
    found('AWSCluster/c', ['Cluster/c', 'AWSServiceAccountIdentity/i']),
    found('AWSServiceAccountIdentity/i', [], {}, { 'clusterctl.cluster.x-k8s.io/move-hierarchy': '' }),
    found('AWSServiceAccountIdentity/unused', [], {}, { 'clusterctl.cluster.x-k8s.io/move-hierarchy': '' }),
    found('AWSCluster/alone', [], { identityRef: { kind: 'AWSServiceAccountIdentity', name: 'i' } }),
    found('Secret/c-ca'),
    found('Secret/c-user-kubeconfig'),
    found('Secret/d-ca'),
    found('ConfigMap/asked', [], {}, { 'clusterctl.cluster.x-k8s.io/move': '' }),
  ]
  const { items, left } = chooseNeeded(all)
  assert.deepEqual(keys(left), ['AWSMachineTemplate/other', 'AWSServiceAccountIdentity/unused'])
  assert.deepEqual(wavesOf(items).map(keys), [
    ['AWSCluster/alone', 'AWSMachineTemplate/t', 'AWSServiceAccountIdentity/i', 'Cluster/c', 'ConfigMap/asked'],
    ['AWSCluster/c', 'MachineSet/s', 'Secret/c-ca', 'Secret/c-user-kubeconfig'],
    ['Machine/m'],
  ])
  // Once those who name them are gone, only a mark tells where they belong.
  assert.deepEqual(keys(items.filter(({ loose }) => loose)), [
    'AWSMachineTemplate/t',
    'AWSServiceAccountIdentity/i',
    'ConfigMap/asked',
  ])
})

test('R3.56 owners in a circle end, and nobody is lost', () => {
  const all = [
    found('Cluster/c', ['MachineSet/s']),
    found('MachineSet/s', ['Cluster/c']),
    found('Machine/m', ['MachineSet/s']),
  ]
  assert.deepEqual(keys(chooseNeeded(all).items), ['Cluster/c', 'Machine/m', 'MachineSet/s'])
})

test('R3.56 a class comes before the clusters by it and goes after them, named by either contract; of a chosen kind everything goes, and of identities only those in use', () => {
  const all = [
    found('Cluster/old', [], { topology: { class: 'quick' } }),
    found('Cluster/new', [], { topology: { classRef: { name: 'quick', namespace: 'ns' } } }),
    found('Cluster/other', [], { topology: { classRef: { name: 'quick', namespace: 'elsewhere' } } }),
    found('ClusterClass/quick', [], { infrastructure: { templateRef: { kind: 'AWSMachineTemplate', name: 't' } } }),
    found('AWSMachineTemplate/t', ['ClusterClass/quick']),
    found('ConfigMap/chosen'),
    found('AWSServiceAccountIdentity/unused'),
  ]
  const chosen = new Set(['ConfigMap', 'AWSServiceAccountIdentity'])
  assert.deepEqual(wavesOf(chooseNeeded(all, ({ kind }) => chosen.has(kind)).items).map(keys), [
    ['Cluster/other', 'ClusterClass/quick', 'ConfigMap/chosen'],
    ['AWSMachineTemplate/t', 'Cluster/new', 'Cluster/old'],
  ])
})

test('R3.56 references are found however deep, with group, apiVersion or neither', () => {
  const spec = {
    a: [{ b: { apiGroup: 'g', kind: 'K', name: 'n', more: { kind: 'L', name: 'm', namespace: 'x' } } }],
    kind: 'not one',
  }
  assert.deepEqual(referencesIn(spec), [
    { group: 'g', kind: 'K', name: 'n', namespace: undefined },
    { group: undefined, kind: 'L', name: 'm', namespace: 'x' },
  ])
  const unnamed = { kind: 'AWSClusterControllerIdentity', name: 'default' }
  assert.deepEqual(identitiesOf(found('AWSCluster/c', ['AWSClusterRoleIdentity/r']), unnamed), [
    unnamed,
    { kind: 'AWSClusterRoleIdentity', name: 'r' },
  ])
})

test('R3.58 empty and absent allowedNamespaces are opposites, two spellings of one Secret are one, and an external ID is not shown', () => {
  const identity = (spec: object): Unstructured => ({ metadata: { name: 'i' }, spec })
  const fields = (a: object, b: object) => identityDifferences(identity(a), identity(b), 'hub')
  const secretRef = { namespace: 'hub', name: 's' }
  assert.deepEqual(
    fields({ allowedNamespaces: {}, secretRef: 's' }, { allowedNamespaces: { list: null, selector: {} }, secretRef }),
    [],
  )
  assert.deepEqual(fields({ allowedNamespaces: {} }, {}), [
    { field: 'spec.allowedNamespaces', source: '{}', target: '(absent)' },
  ])
  assert.doesNotMatch(JSON.stringify(fields({ externalID: 'mine' }, { externalID: 'yours' })), /mine|yours/)
})

test('R3.56 an object comes paused, with the owners that it has there, without status and what concerned the source only', () => {
  const bundle = { origin: 'one', namespace: 'ns', labels: {}, controllerNamespace: 'hub', items: [], left: [] }
  const { resource, object } = found('AWSCluster/c', ['Cluster/c', 'Gone/g'], { region: 'eu-west-1' })
  object.metadata.annotations = {
    'clusterctl.cluster.x-k8s.io/block-move': 'x',
    'move.lanyard.io/moving-to': 'two',
    kept: 'yes',
  }
  object['status'] = { ready: true }
  const to = { controllerNamespace: 'other', uidOf: (uid: string) => (uid === 'Cluster/c' ? 'new' : undefined) }
  const there = asOnTarget(bundle, { resource, object, fate: 'move', wave: 0 }, to)
  assert.deepEqual(there.metadata.ownerReferences, [{ ...owner('Cluster/c'), uid: 'new' }])
  assert.deepEqual(there.metadata.annotations, {
    kept: 'yes',
    'move.lanyard.io/copy-of': 'AWSCluster/c',
    'move.lanyard.io/moving-from': 'one',
    'cluster.x-k8s.io/paused': 'true',
  })
  assert.deepEqual([there['status'], there.metadata.uid], [undefined, undefined])
})

test('R3.74 fields that a target would drop are named with their path', () => {
  assert.deepEqual(lostFields({ a: 1, b: { c: [{ d: 2 }] }, e: {} }, { a: 1, b: { c: [{}] } }, 'spec'), [
    'spec.b.c[0].d',
  ])
})
