import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rule } from '../../../testkit/people.ts'
import type { PolicyRule } from '../../kube/index.ts'
import { UsageError } from '../../main/flags.ts'
import { dotText, mermaidText } from '../picture.ts'
import { differenceOf } from './difference.ts'
import type { FleetGrant } from './fleet.ts'
import { answerOf, questionFrom } from './question.ts'
import { identityFrom, isFor } from './subject.ts'

const served = [
  { group: '', plural: 'pods', kind: 'Pod', namespaced: true },
  { group: '', plural: 'nodes', kind: 'Node', namespaced: false },
  { group: '', plural: 'namespaces', kind: 'Namespace', namespaced: false },
  { group: '', plural: 'events', kind: 'Event', namespaced: true },
  { group: 'events.k8s.io', plural: 'events', kind: 'Event', namespaced: true },
  { group: 'apps', plural: 'deployments', kind: 'Deployment', namespaced: true },
  { group: 'a.io', plural: 'things', kind: 'Thing', namespaced: true },
  { group: 'b.io', plural: 'things', kind: 'Thing', namespaced: true },
]

const grant = (rules: PolicyRule[] | undefined, more: Partial<FleetGrant> = {}): FleetGrant => ({
  cluster: 'c1',
  subject: { kind: 'User', name: 'ada' },
  place: 'cluster',
  role: { kind: 'ClusterRole', name: 'r' },
  rules,
  through: { kind: 'ClusterPermission', namespace: 'c1', name: 'p' },
  field: 'clusterRoleBinding',
  state: 'applied',
  ...more,
})

test('R4.31 what is asked for is read as people write it, with the group that the hub knows', () => {
  const deed = (verb: string, word: string) => questionFrom([verb, word], { served }).deed
  assert.deepEqual(deed('get', 'pods'), { verb: 'get', group: '', resource: 'pods' })
  assert.deepEqual(deed('get', 'Deployment'), { verb: 'get', group: 'apps', resource: 'deployments' })
  assert.deepEqual(deed('list', 'events'), { verb: 'list', group: '', resource: 'events' })
  assert.deepEqual(deed('get', 'pods/log'), { verb: 'get', group: '', resource: 'pods/log' })
  const scale = { verb: 'update', group: 'apps', resource: 'deployments/scale' }
  assert.deepEqual(deed('update', 'deployments.apps/scale'), scale)
  assert.deepEqual(deed('update', 'deployments/scale.apps'), scale)
  assert.deepEqual(deed('update', 'deployments/scale'), scale)
  assert.deepEqual(deed('*', '*'), { verb: '*', group: '*', resource: '*' })
  assert.deepEqual(deed('get', '/metrics'), { verb: 'get', path: '/metrics' })
  assert.deepEqual(deed('get', 'widgets.example.com'), { verb: 'get', group: 'example.com', resource: 'widgets' })
  assert.match(questionFrom(['get', 'pots'], { served }).warning!, /no pots: .* did you mean pods\?/)
  assert.match(questionFrom(['gett', 'pods'], { served }).warning!, /did you mean get\?/)
  assert.throws(() => deed('get', 'things'), /several API groups; write things.a.io or things.b.io/)
  for (const [verb, word] of [
    ['GET', 'pods'],
    ['get', 'pods/log/more'],
    ['get', ''],
  ] as const)
    assert.throws(() => deed(verb, word), UsageError)
})

test('R4.31 a grant answers yes, for some objects, perhaps, or not at all', () => {
  const can = (of: FleetGrant, verb: string, word: string, more: { name?: string; namespace?: string } = {}) =>
    answerOf(of, questionFrom([verb, word], { served, ...more }))
  const shop = { place: { namespace: 'shop' } }
  const team = { place: { namespaceSelector: { matchLabels: { team: 'a' } } } }
  assert.deepEqual(can(grant([rule('get', 'pods')]), 'get', 'pods', { namespace: 'shop' }), { can: 'yes' })
  assert.equal(can(grant([rule('get', 'pods')]), 'list', 'pods'), undefined)
  assert.deepEqual(can(grant([rule('get', 'pods')], shop), 'get', 'pods', { namespace: 'shop' }), { can: 'yes' })
  assert.equal(can(grant([rule('get', 'pods')], shop), 'get', 'pods', { namespace: 'other' }), undefined)
  assert.deepEqual(can(grant([rule('get', 'pods')], team), 'get', 'pods', { namespace: 'shop' }), {
    can: 'some',
    because: 'if namespace shop has team=a',
  })
  const named = grant([rule('get', 'pods', ['one', 'two'])])
  assert.deepEqual(can(named, 'get', 'pods'), { can: 'some', because: 'only one, two' })
  assert.deepEqual(can(named, 'get', 'pods', { name: 'two' }), { can: 'yes' })
  assert.equal(can(named, 'get', 'pods', { name: 'three' }), undefined)
  // Rights in a namespace say nothing about what is in none, except the namespace itself.
  assert.equal(can(grant([rule('get', 'nodes')], shop), 'get', 'nodes'), undefined)
  assert.deepEqual(can(grant([rule('get', 'namespaces')], shop), 'get', 'namespaces'), { can: 'yes' })
  assert.match(can(grant(undefined), 'get', 'pods')!.because!, /only cluster c1 knows what ClusterRole r says/)
  for (const state of ['waits', 'invalid'] as const)
    assert.equal(can(grant([rule('get', 'pods')], { state }), 'get', 'pods'), undefined)
})

test('R4.31 a subject is matched as RBAC does: by user name, by account, and by the groups that Kubernetes gives', () => {
  const to = (kind: string, name: string, more: Partial<FleetGrant> = {}) =>
    grant([], { subject: { kind, name, ...(kind === 'ServiceAccount' ? { namespace: 'shop' } : {}) }, ...more })
  const place = () => 'addons'
  const is = (of: FleetGrant, word: string, groups: string[] = []) => isFor(of, identityFrom(word, groups), place)
  assert.deepEqual(is(to('User', 'ada'), 'ada'), {})
  assert.deepEqual(is(to('User', 'ada'), 'user:ada'), {})
  assert.equal(is(to('User', 'ada'), 'group:ada'), undefined)
  assert.deepEqual(is(to('Group', 'ops'), 'ada', ['ops']), { group: 'ops' })
  assert.deepEqual(is(to('Group', 'system:authenticated'), 'ada'), { group: 'system:authenticated' })
  assert.deepEqual(is(to('ServiceAccount', 'web'), 'sa:shop/web'), {})
  assert.deepEqual(is(to('ServiceAccount', 'web'), 'system:serviceaccount:shop:web'), {})
  assert.equal(is(to('ServiceAccount', 'web'), 'sa:other/web'), undefined)
  assert.deepEqual(is(to('User', 'system:serviceaccount:shop:web'), 'sa:shop/web'), {})
  assert.deepEqual(is(to('Group', 'system:serviceaccounts:shop'), 'sa:shop/web'), {
    group: 'system:serviceaccounts:shop',
  })
  const account = to('ManagedServiceAccount', 'ci', { serviceAccount: { namespace: 'addons', name: 'ci' } })
  assert.deepEqual(is(account, 'msa:ci'), {})
  assert.deepEqual(is(account, 'sa:addons/ci'), {})
  assert.deepEqual(is(to('Group', 'system:serviceaccounts:addons'), 'msa:ci'), {
    group: 'system:serviceaccounts:addons',
  })
  assert.deepEqual(is(to('User', 'oidc:ada'), 'oidc:ada'), {})
  for (const word of ['user:', 'sa:web', 'sa:a/b/c', '']) assert.throws(() => identityFrom(word), UsageError)
})

test('R4.31 rights are compared, not objects', () => {
  const said = (first: FleetGrant[], second: FleetGrant[]) =>
    differenceOf(first, second).map(({ change, right }) => `${change}: ${right}`)
  const get = grant([rule('get', 'pods')])
  const everything = grant([rule('*', '*')], { through: { kind: 'ClusterSetPermission', name: 's' } })
  assert.deepEqual(said([get], [{ ...get, cluster: 'c2', through: { kind: 'ClusterSetPermission', name: 's' } }]), [])
  assert.deepEqual(said([get], [grant([rule('*', 'pods')])]), ['only-second: * pods'])
  assert.deepEqual(said([grant([rule('get,list', 'pods')])], [get]), ['only-first: list pods'])
  const inShop = grant([rule('get', 'pods')], { place: { namespace: 'shop' } })
  assert.deepEqual(said([inShop], [get]), ['only-second: get pods'])
  assert.deepEqual(said([get], [{ ...get, state: 'waits' }]), ['only-first: get pods'])
  assert.deepEqual(said([get], [{ ...get, subject: { kind: 'Group', name: 'ada' } }]), [
    'only-first: get pods',
    'only-second: get pods',
  ])
  assert.deepEqual(said([grant(undefined)], [everything]), [
    'only-first: whatever ClusterRole r of the cluster says',
    'only-second: * *',
  ])
  assert.deepEqual(said([grant(undefined)], [grant(undefined)]), [])
  const [one] = differenceOf([], [get, { ...get, through: everything.through }])
  assert.deepEqual(one!.through, [get.through, everything.through])
})

test('R4.31 a picture holds whatever names hold', () => {
  const picture = {
    nodes: [
      { id: 'a "b"', label: 'a "b" \\ <i>\nsecond', shape: 'round' as const },
      { id: 'end', label: 'end', frame: 'frame [x]', bad: true },
    ],
    edges: [{ from: 'a "b"', to: 'end', label: 'p|q', faint: true, colour: 'red' as const }],
  }
  assert.equal(
    dotText(picture),
    `digraph lanyard {
  rankdir=LR
  node [shape=box fontname="sans-serif"]
  edge [fontname="sans-serif"]
  n0 [label="a \\"b\\" \\\\ <i>\\nsecond" shape=ellipse]
  subgraph cluster_0 {
    label="frame [x]"
    n1 [label="end" color="#c0392b"]
  }
  n0 -> n1 [label="p|q" style=dashed color="#c0392b"]
}
`,
  )
  assert.equal(
    mermaidText(picture),
    `flowchart LR
  n0(["a #34;b#34; \\ #60;i#62;<br/>second"])
  subgraph f0["frame [x]"]
    n1["end"]
  end
  n0 -.->|"p|q"| n1
  linkStyle 0 stroke:#c0392b
  style n1 stroke:#c0392b
`,
  )
})
