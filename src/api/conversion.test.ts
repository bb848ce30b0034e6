import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import type { Unstructured } from '../kube/index.ts'
import {
  annotation,
  type ClusterManagementAddOn,
  type ClusterManagementAddOnV1alpha1,
  conversions,
  group,
  type ManagedClusterAddOn,
  type ManagedClusterAddOnV1alpha1,
} from './index.ts'

const addOn = conversions[`${group.addon}/ManagedClusterAddOn`]!
const management = conversions[`${group.addon}/ClusterManagementAddOn`]!
const v1alpha1 = `${group.addon}/v1alpha1`
const v1beta1 = `${group.addon}/v1beta1`

const kubeSigner = 'kubernetes.io/kube-apiserver-client'
const name = fc.constantFrom('a', 'b', 'default', '__reserved_no_default__')
const names = fc.array(name, { maxLength: 2 })
const some = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined })
const record = <T>(model: { [K in keyof T]: fc.Arbitrary<T[K]> }) => fc.record(model, { requiredKeys: [] })
const driver = fc.constantFrom('csr' as const, 'token' as const)
const config = record({ namespace: name, name, specHash: name })
const reference = record({ group: name, resource: name, desiredConfig: config, lastAppliedConfig: config })
const annotations = some(fc.dictionary(fc.constantFrom('mine', 'yours'), name, { minKeys: 1 }))
const signerName = fc.constantFrom(kubeSigner, 'example.com/signer')
const configured = { crdName: name, crName: name, lastObservedGeneration: fc.nat() }

const addOnsAlpha = record({
  annotations,
  spec: record({ installNamespace: name, configs: fc.array(config, { maxLength: 2 }) }),
  status: record({
    namespace: name,
    kubeClientDriver: driver,
    addOnConfiguration: record(configured),
    configReferences: fc.array(
      fc.tuple(reference, record({ namespace: name, name })).map(([wanted, given]) => ({ ...wanted, ...given })),
      { maxLength: 2 },
    ),
    registrations: fc.array(
      record({ signerName, subject: record({ user: name, groups: names, organizationUnit: names }) }),
      { maxLength: 3 },
    ),
  }),
})

const addOnsBeta = record({
  annotations: fc
    .tuple(annotations, some(name))
    .map(([given, installed]) => (installed ? { ...given, [annotation.installNamespace]: installed } : given)),
  spec: record({ configs: fc.array(config, { maxLength: 2 }) }),
  status: record({
    namespace: name,
    configReferences: fc.array(reference, { maxLength: 2 }),
    registrations: fc.array(
      fc.oneof(
        record({
          type: fc.constant('kubeClient'),
          kubeClient: record({ driver, subject: record({ user: name, groups: names }) }),
        }),
        record({
          type: fc.constant('customSigner'),
          customSigner: record({ signerName, subject: record({ user: name, organizationUnits: names }) }),
        }),
      ),
      { maxLength: 3 },
    ),
  }),
})

const managementAlpha = record({
  annotations,
  spec: record({
    addOnMeta: record({ displayName: name }),
    addOnConfiguration: record(configured),
    supportedConfigs: fc.array(
      record({ group: name, resource: name, defaultConfig: record({ namespace: name, name }) }),
    ),
  }),
})

const managementBeta = record({
  annotations,
  spec: record({ defaultConfigs: fc.array(record({ group: name, resource: name, namespace: name, name })) }),
})

/** As JSON: what is undefined is absent, and annotations are under metadata. */
const objectOf = (apiVersion: string, { annotations, ...fields }: { annotations?: unknown }): Unstructured =>
  JSON.parse(JSON.stringify({ apiVersion, kind: 'Any', metadata: { name: 'x', annotations }, ...fields }))

const returns = (convert: typeof addOn, from: string, to: string) => (fields: { annotations?: unknown }) => {
  const object = objectOf(from, fields)
  const before = structuredClone(object)
  const there = convert(object, to)
  assert.equal(there.apiVersion, to)
  assert.deepEqual(convert(there, from), before)
  assert.deepEqual(object, before, 'the object that was given is not changed')
}

test('R0.35 a ManagedClusterAddOn loses nothing from v1alpha1 to v1beta1 and back', () =>
  fc.assert(fc.property(addOnsAlpha, returns(addOn, v1alpha1, v1beta1)), { numRuns: 1000 }))

test('R0.35 a ManagedClusterAddOn loses nothing from v1beta1 to v1alpha1 and back', () =>
  fc.assert(fc.property(addOnsBeta, returns(addOn, v1beta1, v1alpha1)), { numRuns: 1000 }))

test('R0.35 a ClusterManagementAddOn loses nothing in either direction', () => {
  fc.assert(fc.property(managementAlpha, returns(management, v1alpha1, v1beta1)), { numRuns: 500 })
  fc.assert(fc.property(managementBeta, returns(management, v1beta1, v1alpha1)), { numRuns: 500 })
})

test('R0.35 conversion never throws, whatever an object holds', () => {
  const anything = fc.jsonValue({ maxDepth: 3 })
  const part = fc.constantFrom('installNamespace', 'registrations', 'configReferences', 'supportedConfigs')
  const field = fc.constantFrom('spec', 'annotation', 'registrations', 'driver', 'references', 'configs')
  const kept = fc
    .dictionary(part, fc.oneof(anything, fc.dictionary(field, anything)))
    .map((parts) => JSON.stringify(parts))
  const reserved = fc.constantFrom(annotation.v1alpha1Fields, annotation.v1beta1Fields, annotation.installNamespace)
  const odd = record({
    annotations: fc.dictionary(reserved, fc.oneof(kept, fc.string()), { minKeys: 1 }),
    spec: fc.oneof(anything, record({ supportedConfigs: anything, defaultConfigs: anything })),
    status: fc.oneof(anything, record({ registrations: anything, configReferences: anything })),
  })
  const survives = (fields: { annotations?: unknown }) => {
    for (const convert of [addOn, management]) {
      convert(objectOf(v1alpha1, fields), v1beta1)
      convert(objectOf(v1beta1, fields), v1alpha1)
    }
  }
  fc.assert(fc.property(odd, survives), { numRuns: 200 })
})

const metadata = { name: 'addon1', namespace: 'cluster1' }

test('R0.35 R2.12 the driver and the install namespace have their place in each version', () => {
  const older: ManagedClusterAddOnV1alpha1 = {
    apiVersion: v1alpha1,
    kind: 'ManagedClusterAddOn',
    metadata,
    spec: { installNamespace: 'addons' },
    status: {
      kubeClientDriver: 'token',
      registrations: [
        { signerName: kubeSigner, subject: { user: 'system:serviceaccount:cluster1:addon1-agent' } },
        { signerName: 'example.com/signer', subject: { user: 'client', organizationUnit: ['team'] } },
      ],
    },
  }
  const newer: ManagedClusterAddOn = {
    apiVersion: v1beta1,
    kind: 'ManagedClusterAddOn',
    metadata: { ...metadata, annotations: { [annotation.installNamespace]: 'addons' } },
    spec: {},
    status: {
      registrations: [
        {
          type: 'kubeClient',
          kubeClient: { driver: 'token', subject: { user: 'system:serviceaccount:cluster1:addon1-agent' } },
        },
        {
          type: 'customSigner',
          customSigner: { signerName: 'example.com/signer', subject: { user: 'client', organizationUnits: ['team'] } },
        },
      ],
    },
  }
  assert.deepEqual(addOn({ ...older }, v1beta1), newer)
  assert.deepEqual(addOn({ ...newer }, v1alpha1), older)
})

test('R0.35 a kind of configuration without a default has a reserved name in v1beta1', () => {
  const older: ClusterManagementAddOnV1alpha1 = {
    apiVersion: v1alpha1,
    kind: 'ClusterManagementAddOn',
    metadata: { name: 'addon1' },
    spec: {
      supportedConfigs: [
        { group: group.addon, resource: 'addondeploymentconfigs' },
        { group: 'example.com', resource: 'settings', defaultConfig: { namespace: 'ns', name: 'x' } },
      ],
    },
  }
  const newer: ClusterManagementAddOn = {
    apiVersion: v1beta1,
    kind: 'ClusterManagementAddOn',
    metadata: { name: 'addon1' },
    spec: {
      defaultConfigs: [
        { group: group.addon, resource: 'addondeploymentconfigs', name: '__reserved_no_default__' },
        { group: 'example.com', resource: 'settings', namespace: 'ns', name: 'x' },
      ],
    },
  }
  assert.deepEqual(management({ ...older }, v1beta1), newer)
  assert.deepEqual(management({ ...newer }, v1alpha1), older)
})

test('R0.35 what was kept in an annotation does not undo a later change', () => {
  const older: Unstructured = {
    apiVersion: v1alpha1,
    metadata,
    status: {
      kubeClientDriver: 'token',
      registrations: [{ signerName: kubeSigner, subject: { organizationUnit: ['team'] } }],
    },
  }
  const newer = addOn(older, v1beta1)
  assert.match(newer.metadata.annotations![annotation.v1alpha1Fields]!, /team/)

  const changed = { ...newer, status: { registrations: [{ type: 'kubeClient', kubeClient: { driver: 'csr' } }] } }

  const back = addOn(changed, v1alpha1)
  assert.deepEqual(back.status, { kubeClientDriver: 'csr', registrations: [{ signerName: kubeSigner }] })
  assert.equal(back.metadata.annotations, undefined)
})
