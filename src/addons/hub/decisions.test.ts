import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ManagedClusterAddOn } from '../../api/index.ts'
import {
  installRule,
  defaultSubject,
  installNamespaceOf,
  readTokenReady,
  tokenReadyMessage,
  type Registration,
} from '../contract.ts'
import { asClusterRole, inOwnNamespace, maintains, reads, readsOne, reportsStatus } from '../rules.ts'
import { chosenConfigs, namespaceFor, specHash } from './configuration.ts'
import { customize, imageFrom } from './customize.ts'
import { invalid, subjectRefusal } from './subject.ts'
import { deliveryOf, inWorks } from './works.ts'

const kubeClient = (driver: 'csr' | 'token', user?: string, groups?: string[]): Registration => ({
  type: 'kubeClient',
  kubeClient: { driver, subject: { ...(user === undefined ? {} : { user }), ...(groups ? { groups } : {}) } },
})

test('R2.4 R2.19 subjects: one’s own are taken, and nobody else’s', () => {
  const refused = (item: Registration) => subjectRefusal('c1', 'a', item)?.reason
  const csr = defaultSubject('csr', 'c1', 'a')
  const token = defaultSubject('token', 'c1', 'a')
  assert.deepEqual(token.groups, [])
  const fine = [
    kubeClient('csr', csr.user, [...csr.groups]),
    kubeClient('csr', csr.user, [...csr.groups, 'system:authenticated']),
    kubeClient('token', token.user),
    kubeClient('token', 'system:serviceaccount:c1:a-agent'),
    kubeClient('csr'),
    { type: 'kubeClient' } as const,
  ]
  for (const item of fine) assert.equal(refused(item), undefined, JSON.stringify(item))
  const wrong = [
    kubeClient('token', csr.user),
    kubeClient('csr', token.user),
    kubeClient('token', 'system:serviceaccount:c10:c1-a-agent'),
    kubeClient('token', 'system:serviceaccount:c1:c1-a-agent '),
    kubeClient('csr', `${csr.user}:b`),
    kubeClient('csr', csr.user.slice(0, -1)),
    kubeClient('csr', csr.user, ['system:open-cluster-management:c1']),
    kubeClient('token', token.user, ['system:masters']),
  ]
  for (const item of wrong) assert.equal(refused(item), 'SubjectRefused', JSON.stringify(item))
})

test('R2.1 names and items that cannot work are told apart from those that can', () => {
  const reason = (addOn: string, registrations: Registration[]) =>
    invalid({ cluster: 'c', addOn, registrations })?.reason
  assert.equal(reason('a'.repeat(63), [{ type: 'kubeClient' }]), undefined)
  assert.equal(reason('a'.repeat(64), []), 'InvalidName')
  for (const name of ['a.b', 'A', '-a', 'a-', '']) assert.equal(reason(name, []), 'InvalidName')
  assert.equal(reason('a', [{ type: 'kubeClient' }, { type: 'kubeClient' }]), 'InvalidRegistrations')
})

test('R2.20 the message of the infrastructure names account and UID, and what is none is not read as one', () => {
  const read = readTokenReady(tokenReadyMessage('c1', 'c1-a-agent', 'u-1'))
  assert.deepEqual(read, { namespace: 'c1', account: 'c1-a-agent', uid: 'u-1' })
  for (const text of ['', 'ServiceAccount c1/a is ready', 'UID: x)']) assert.equal(readTokenReady(text), undefined)
})

test('R2.39 templates of permissions name what they are for, and take no wildcard', () => {
  assert.deepEqual(reads({ resource: 'configmaps' }).verbs, ['get', 'list', 'watch'])
  assert.deepEqual(readsOne({ resource: 'secrets', names: ['a'] }), {
    apiGroups: [''],
    resources: ['secrets'],
    verbs: ['get'],
    resourceNames: ['a'],
  })
  assert.deepEqual(reportsStatus({ group: 'g', resource: 'r' }).resources, ['r/status'])
  assert.throws(() => maintains({ resource: '*' }), /"\*" is not taken/)
  assert.throws(() => reads({ group: '*', resource: 'pods' }), /"\*" is not taken/)
  assert.equal(inOwnNamespace(reads({ resource: 'pods' })).in, 'cluster')
  assert.equal(asClusterRole('view').in, 'cluster')
})

test('R2.13 an install namespace is that of the configuration, the object, the definition, or the usual one', () => {
  const addOn = (namespace?: string): ManagedClusterAddOn => ({
    metadata: {
      name: 'a',
      ...(namespace
        ? { annotations: { 'addon.open-cluster-management.io/v1alpha1-install-namespace': namespace } }
        : {}),
    },
  })
  const usual = 'open-cluster-management-agent-addon'
  const from = (agentInstallNamespace?: string) => ({
    config: agentInstallNamespace ? { agentInstallNamespace } : {},
    namesTemplate: false,
    references: [],
    problems: [],
  })
  assert.equal(namespaceFor(addOn(), from()), usual)
  assert.equal(namespaceFor(addOn('mine'), from()), 'mine')
  assert.equal(namespaceFor(addOn('mine'), from('configured')), 'configured')
  assert.equal(namespaceFor(addOn('mine'), from(usual)), 'mine') // the API server wrote the default, nobody chose it
  assert.equal(installNamespaceOf({ ...addOn('mine'), status: { namespace: 'decided' } }), 'decided')
})

test('R2.13 what an add-on names takes the place of the default of the same kind', () => {
  const at = (name: string) => ({ group: 'g', resource: 'r', name })
  const catalogue = {
    metadata: {},
    spec: { defaultConfigs: [at('default'), { resource: 'x', name: '__reserved_no_default__' }] },
  }
  const addOn = { metadata: {}, spec: { configs: [at('own')] } }
  assert.deepEqual([...chosenConfigs({ metadata: {} }, catalogue).values()], [at('default')])
  assert.deepEqual([...chosenConfigs(addOn, catalogue).values()], [at('own')])
  assert.equal(specHash({ a: 1, b: { c: 2, d: 3 } }), specHash({ b: { d: 3, c: 2 }, a: 1 }))
  assert.notEqual(specHash({ a: [1, 2] }), specHash({ a: [2, 1] }))
})

test('R2.13 images come from the mirror whose source fits best, and other manifests stay as they are', () => {
  const registries = [
    { source: 'quay.io', mirror: 'one.local' },
    { source: 'quay.io/x/', mirror: 'two.local/y/' },
  ]
  assert.equal(imageFrom('quay.io/x/agent:1', registries), 'two.local/y/agent:1')
  assert.equal(imageFrom('quay.io/xx/agent:1', registries), 'one.local/xx/agent:1')
  assert.equal(imageFrom('docker.io/agent:1', registries), 'docker.io/agent:1')
  assert.equal(imageFrom('docker.io/a/agent@sha256:1', [{ mirror: 'all.local' }]), 'all.local/agent@sha256:1')
  const service = { apiVersion: 'v1', kind: 'Service', metadata: { name: 's' }, spec: { template: { spec: {} } } }
  assert.equal(customize(service, { nodePlacement: { nodeSelector: { a: 'b' } } }), service)
})

test('R2.13 install rules are lists of labels or a star, and everything else is told', () => {
  assert.equal(installRule(undefined), undefined)
  assert.deepEqual(installRule('*'), { labels: {} })
  assert.deepEqual(installRule('env=prod, region=eu'), { labels: { env: 'prod', region: 'eu' } })
  for (const text of ['', 'prod', 'a=b=c', '=b'])
    assert.match((installRule(text) as { fault: string }).fault, /write key=value,key=value or \*/)
})

test('R2.13 manifests fill as few works as they fit into, in order, and an old answer says nothing of a new work', () => {
  const big = (name: string) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name },
    data: { x: 'x'.repeat(150_000) },
  })
  const works = inWorks(['a', 'b', 'c', 'd'].map(big))
  assert.deepEqual(
    works.map((work) => work.map(({ metadata }) => metadata.name)),
    [
      ['a', 'b'],
      ['c', 'd'],
    ],
  )
  assert.deepEqual(inWorks([]), [])
  const work = (generation: number, observedGeneration: number) => ({
    metadata: { generation },
    spec: {},
    status: {
      conditions: [
        {
          type: 'Applied',
          status: 'True' as const,
          reason: 'x',
          message: '',
          lastTransitionTime: '',
          observedGeneration,
        },
      ],
    },
  })
  assert.equal(deliveryOf([work(2, 2)], 1).state, 'applied')
  assert.equal(deliveryOf([work(2, 1)], 1).state, 'waiting')
  assert.equal(deliveryOf([work(2, 2)], 2).state, 'waiting')
  assert.equal(deliveryOf([], 0).state, 'applied')
})
