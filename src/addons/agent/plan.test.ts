import assert from 'node:assert/strict'
import { test } from 'node:test'
import { annotation, type ManagedClusterAddOn } from '../../api/index.ts'
import { TokenInfrastructureReady, tokenReadyMessage, type Registration } from '../contract.ts'
import { planOf, possibleName } from './plan.ts'
import { conditionsFrom, statusPatch } from './report.ts'

const addOnOf = (
  registrations: Registration[],
  {
    name = 'a',
    status = {},
    annotations = {},
  }: { name?: string; status?: object; annotations?: Record<string, string> } = {},
): ManagedClusterAddOn => ({
  metadata: { name, namespace: 'c1', uid: 'u', annotations },
  status: { registrations, ...status },
})

const ready = (account: string, status: 'True' | 'False' = 'True') => ({
  conditions: [
    { ...TokenInfrastructureReady.ready(tokenReadyMessage('c1', account, 'uid-1')), status, lastTransitionTime: '' },
  ],
})
const kubeClient: Registration = { type: 'kubeClient' }
const signed = (signerName: string, subject = {}): Registration => ({
  type: 'customSigner',
  customSigner: { signerName, subject },
})
const csr = { cluster: 'c1', driver: 'csr' }
const token = { cluster: 'c1', driver: 'token' }

test('R2.2 R2.3 R2.4 the flag chooses the driver of kubeClient items; customSigner items always use csr', () => {
  const items = [kubeClient, signed('example.com/s', { user: 'me', groups: ['g'], organizationUnits: ['u'] })]
  const byToken = planOf(addOnOf(items), token)
  assert.deepEqual(byToken.registrations[0]?.kubeClient, {
    driver: 'token',
    subject: { user: 'system:serviceaccount:c1:c1-a-agent' },
  })
  assert.deepEqual(
    byToken.items.map(({ driver, secret }) => [driver, secret]),
    [
      ['token', 'a-hub-kubeconfig'],
      ['csr', 'a-example.com-s-client-cert'],
    ],
  )
  assert.deepEqual(byToken.items[1]?.organizationalUnits, ['u'])
  const byCsr = planOf(addOnOf(items), csr)
  assert.deepEqual(byCsr.registrations[0]?.kubeClient, {
    driver: 'csr',
    subject: {
      user: 'system:open-cluster-management:cluster:c1:addon:a:agent:a',
      groups: ['system:open-cluster-management:cluster:c1:addon:a', 'system:open-cluster-management:addon:a'],
    },
  })
  assert.deepEqual(byCsr.registrations[1], items[1], 'what the controller said stays')
  assert.deepEqual(planOf(addOnOf([...byCsr.registrations]), csr).registrations, byCsr.registrations, 'and is stable')
})

test('R2.14 a subject that the controller wrote is kept with csr, and one of the other driver never is', () => {
  const subject = { user: 'system:open-cluster-management:cluster:c1:addon:a:agent:x', groups: ['g'] }
  const said: Registration = { type: 'kubeClient', kubeClient: { subject } }
  assert.deepEqual(planOf(addOnOf([said]), csr).registrations[0]?.kubeClient?.subject, subject)
  const asToken = planOf(addOnOf([said]), token)
  assert.deepEqual(asToken.registrations[0]?.kubeClient?.subject, { user: 'system:serviceaccount:c1:c1-a-agent' })
  const back = planOf(addOnOf([...asToken.registrations]), csr).registrations[0]?.kubeClient?.subject
  assert.equal(back?.user, 'system:open-cluster-management:cluster:c1:addon:a:agent:a')
})

test('R2.19 the agent follows the account that the hub has made, if it is one of this add-on', () => {
  const userOf = (status: object, declared?: string): string =>
    planOf(
      addOnOf([{ type: 'kubeClient', kubeClient: declared ? { subject: { user: declared } } : {} }], { status }),
      token,
    ).items[0]!.user
  assert.equal(userOf(ready('a-agent')), 'system:serviceaccount:c1:a-agent')
  assert.equal(userOf(ready('c1-a-agent'), 'system:serviceaccount:c1:a-agent'), 'system:serviceaccount:c1:c1-a-agent')
  assert.equal(
    userOf({}, 'system:serviceaccount:c1:a-agent'),
    'system:serviceaccount:c1:a-agent',
    'as another agent declared',
  )
  assert.equal(
    userOf(ready('c1-b-agent')),
    'system:serviceaccount:c1:c1-a-agent',
    "another add-on's account is none of ours",
  )
  assert.equal(userOf(ready('a-agent', 'False')), 'system:serviceaccount:c1:c1-a-agent')
  assert.equal(userOf({}, 'system:serviceaccount:kube-system:admin'), 'system:serviceaccount:c1:c1-a-agent')
})

test('R2.1 R2.11 what cannot be served is named with its remedy, and does not keep the other items from being served', () => {
  const problems = (registrations: Registration[], more: Parameters<typeof addOnOf>[1] = {}, options = token) => {
    const plan = planOf(addOnOf(registrations, more), options)
    return [plan.items.map(({ secret }) => secret), plan.problems.map(({ reason }) => reason)]
  }
  assert.deepEqual(problems([kubeClient, kubeClient, signed('example.com/s')]), [
    ['a-hub-kubeconfig', 'a-example.com-s-client-cert'],
    ['DuplicateItem'],
  ])
  assert.deepEqual(problems([signed('example.com/s'), signed('example.com/s'), signed('example.com/t')]), [
    ['a-example.com-s-client-cert', 'a-example.com-t-client-cert'],
    ['DuplicateItem'],
  ])
  assert.deepEqual(problems([kubeClient, signed('example.com/s')], {}, { cluster: 'c1', driver: 'magic' }), [
    ['a-example.com-s-client-cert'],
    ['UnknownDriver'],
  ])
  assert.match(planOf(addOnOf([kubeClient]), { cluster: 'c1', driver: 'magic' }).problems[0]!.message, /csr, token/)
  assert.deepEqual(problems([{ type: 'future' } as unknown as Registration, kubeClient]), [
    ['a-hub-kubeconfig'],
    ['UnknownType'],
  ])
  assert.deepEqual(problems([kubeClient], { name: 'a'.repeat(64) }), [[], ['InvalidName']])
  assert.deepEqual(problems([kubeClient], { name: 'a'.repeat(63) }), [[`${'a'.repeat(63)}-hub-kubeconfig`], []])
  assert.deepEqual(problems([], { name: 'a'.repeat(64) }), [[], []], 'without items there is nothing to say')
})

test('R2.5 every signer leads to a name that a secret can have, and two signers never to the same', () => {
  const names = [
    'example.com/s',
    'example.com/s:t',
    'example.com/s-t',
    `example.com/${'x'.repeat(500)}`,
    'example.com/s.-t',
    'example.com/s.',
  ]
  const secrets = names.map((signerName) => planOf(addOnOf([signed(signerName)]), csr).items[0]!.secret)
  assert.equal(new Set(secrets).size, names.length)
  for (const secret of secrets) {
    assert.match(secret, /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/)
    assert.ok(secret.length <= 253)
  }
  assert.equal(possibleName('a-example.com-s-client-cert'), 'a-example.com-s-client-cert')
})

test('R2.23 the install namespace: what the status says, else the annotation, else the usual one', () => {
  const where = (status: object, annotations = {}): string =>
    planOf(addOnOf([kubeClient], { status, annotations }), token).items[0]!.namespace
  assert.equal(where({}), 'open-cluster-management-agent-addon')
  assert.equal(where({}, { [annotation.installNamespace]: 'old' }), 'old')
  assert.equal(where({ namespace: 'now' }, { [annotation.installNamespace]: 'old' }), 'now')
})

test('R2.1 R2.41 conditions: one of a type for several items, False while one fails, gone when their driver is', () => {
  const at = (status: 'True' | 'False', message: string) => ({
    type: 'ClusterCertificateRotated',
    status,
    reason: 'R',
    message,
  })
  const good = { secret: 's1', condition: at('True', 'fine') }
  const bad = { secret: 's2', condition: at('False', 'broken') }
  const silent = { secret: 's3', condition: undefined }
  assert.deepEqual(conditionsFrom([good], []), [at('True', 'fine')])
  assert.deepEqual(conditionsFrom([good, bad, silent], []), [at('False', 's2: broken')])
  assert.deepEqual(conditionsFrom([silent], [{ reason: 'DuplicateItem', message: 'two' }]), [
    { type: 'RegistrationServed', status: 'False', reason: 'DuplicateItem', message: 'two' },
  ])

  const of = (type: string) => ({
    type,
    status: 'True' as const,
    reason: 'R',
    message: 'm',
    lastTransitionTime: '2030-01-01T00:00:00Z',
  })
  const addOn = addOnOf([], {
    status: { conditions: ['Available', 'AddonTokenRefreshed', 'TokenRefreshed', 'ClusterCertificateRotated'].map(of) },
  })
  const removed = (states: Parameters<typeof statusPatch>[1]['states'], silentTypes: string[] = []) =>
    statusPatch(addOn, { registrations: [], states, silent: new Set(silentTypes) }, 0)
      ?.filter(({ op }) => op === 'remove')
      .map(({ path }) => path)
  assert.deepEqual(removed([of('AddonTokenRefreshed')]), ['/status/conditions/3', '/status/conditions/2'])
  assert.deepEqual(removed([], ['ClusterCertificateRotated']), ['/status/conditions/2', '/status/conditions/1'])
  const settled = { ...addOn, status: { registrations: [], conditions: [of('Available'), of('AddonTokenRefreshed')] } }
  assert.equal(
    statusPatch(settled, { registrations: [], states: [of('AddonTokenRefreshed')], silent: new Set() }, 0),
    undefined,
  )
  assert.equal(statusPatch({ metadata: {} }, { registrations: [], states: [], silent: new Set() }, 0), undefined)
})
