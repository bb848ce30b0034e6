import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { eventually, startControlPlane, type ControlPlane } from '../../../testkit/index.ts'
import { agentOf, clusterOf, createCluster, createWork, runHub, setAccepts } from '../../../testkit/registration-hub.ts'
import {
  allKinds,
  crds,
  group,
  installCrds,
  ManagedCluster,
  ManagedClusterAddOn,
  ManifestWork,
} from '../../api/index.ts'
import {
  CertificateSigningRequest,
  ClusterRole,
  ConfigMap,
  isForbidden,
  Lease,
  mayAccess,
  Namespace,
  resource,
  RoleBinding,
  Secret,
  ServiceAccount,
  type Client,
  type KubeObject,
  type PolicyRule,
} from '../../kube/index.ts'
import { findCondition, inParallel, isTrue } from '../../runtime/index.ts'
import { Accepted, Deleting } from '../contract.ts'

let plane: ControlPlane
let client: Client
before(async () => {
  plane = await startControlPlane({ controllerManager: false, audit: false })
  client = plane.client()
  await installCrds(client, crds({ conversion: 'none' }))
})
after(() => plane.stop())

const clusters = ['m1', 'm2', 'm3', 'm4', 'm5']
const verbs = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection']

interface Target {
  group: string
  /** With its subresource, if any. */
  resource: string
  namespaced: boolean
  verbs: readonly string[]
}
const target = (of: string, resource: string, namespaced: boolean, asked = verbs): Target => ({
  group: of,
  resource,
  namespaced,
  verbs: asked,
})
const rbacGroup = 'rbac.authorization.k8s.io'
const register = 'register.open-cluster-management.io'
const targets: Target[] = [
  ...allKinds.flatMap((kind) => [
    target(kind.group, kind.plural, kind.namespaced),
    target(kind.group, `${kind.plural}/status`, kind.namespaced, ['get', 'update', 'patch']),
  ]),
  ...['secrets', 'configmaps', 'events', 'serviceaccounts', 'pods'].map((plural) => target('', plural, true)),
  target('', 'serviceaccounts/token', true, ['create', 'subscribe']),
  target('', 'namespaces', false),
  target('events.k8s.io', 'events', true),
  target('coordination.k8s.io', 'leases', true),
  target('certificates.k8s.io', 'certificatesigningrequests', false),
  target('certificates.k8s.io', 'certificatesigningrequests/approval', false, ['update', 'patch']),
  target('certificates.k8s.io', 'certificatesigningrequests/status', false, ['update', 'patch']),
  target('certificates.k8s.io', 'signers', false, ['approve', 'sign', 'attest']),
  ...['roles', 'rolebindings'].map((plural) => target(rbacGroup, plural, true, [...verbs, 'bind', 'escalate'])),
  ...['clusterroles', 'clusterrolebindings'].map((p) => target(rbacGroup, p, false, [...verbs, 'bind', 'escalate'])),
  // What exists only in RBAC.
  target(register, 'managedclusters/clientcertificates', false, ['renew']),
  target(register, 'managedclusters/accept', false, ['update']),
  target(group.cluster, 'managedclustersets/join', false, ['create']),
  target(group.cluster, 'managedclustersets/bind', false, ['create']),
  target(group.work, 'manifestworks', true, ['execute-as']),
  ...['users', 'groups', 'serviceaccounts'].map((plural) => target('', plural, false, ['impersonate'])),
]

/** Where something is asked for, in the words of the table. */
const columns = [
  'own namespace',
  'other clusters’ namespaces',
  'hub namespaces',
  'everywhere',
  'its own',
  'another cluster’s',
]
type Column = (typeof columns)[number]
const hubNamespaces = ['open-cluster-management-hub', 'open-cluster-management-agent', 'kube-system']

/** Everything that one cluster can ask for, in the namespaces of these others. */
const questions = (cluster: string, others: readonly string[]) =>
  targets.flatMap((one) => {
    const [resource, subresource] = one.resource.split('/') as [string, string?]
    const places: { column: Column; namespace?: string; name?: string }[] = one.namespaced
      ? [
          { column: 'own namespace', namespace: cluster },
          ...others.map((namespace) => ({ column: 'other clusters’ namespaces', namespace })),
          { column: 'hub namespaces', namespace: hubNamespaces[0]! },
          { column: 'everywhere' },
        ]
      : [
          { column: 'everywhere' },
          ...(resource === 'managedclusters'
            ? [{ column: 'its own', name: cluster }, ...others.map((name) => ({ column: 'another cluster’s', name }))]
            : []),
        ]
    return places.flatMap(({ column, ...at }) =>
      one.verbs.map((verb) => ({
        row: `${one.resource}${one.group ? `.${one.group}` : ''}`,
        column,
        verb,
        attributes: { group: one.group, resource, ...(subresource ? { subresource } : {}), verb, ...at },
      })),
    )
  })

interface Who {
  username: string
  groups: string[]
}

/** `row | column` and the verbs that are allowed there; a column of several places has what any of them allows. */
type Matrix = Map<string, Set<string>>

const matrixOf = async (cluster: string, who: Who, others = clusters.slice(0, 1)): Promise<Matrix> => {
  const allowed: Matrix = new Map()
  await inParallel(
    32,
    questions(cluster, others).map(({ row, column, verb, attributes }) => async () => {
      if (!(await mayAccess(client, who, attributes))) return
      const cell = `${row} | ${column}`
      allowed.set(cell, (allowed.get(cell) ?? new Set()).add(verb))
    }),
  )
  return allowed
}

const spelled = (matrix: Matrix): Record<string, string> => {
  const inOrder = (of: Set<string>): string => [...of].toSorted((a, b) => verbs.indexOf(a) - verbs.indexOf(b)).join(' ')
  return Object.fromEntries([...matrix].map(([cell, of]) => [cell, inOrder(of)]))
}

const itself = `managedclusters.${group.cluster}`
/** What the specification grants, by hand: nothing here is computed from the code under test. */
const granted = {
  accepted: {
    'certificatesigningrequests.certificates.k8s.io | everywhere': 'get list watch create',
    'events | own namespace': 'create update patch',
    'events.events.k8s.io | own namespace': 'create update patch',
    'leases.coordination.k8s.io | own namespace': 'get list watch update',
    [`managedclusteraddons.${group.addon} | own namespace`]: 'get list watch',
    [`managedclusteraddons/status.${group.addon} | own namespace`]: 'update patch',
    [`${itself} | its own`]: 'get list watch update',
    [`managedclusters/clientcertificates.${register} | everywhere`]: 'renew',
    [`managedclusters/clientcertificates.${register} | its own`]: 'renew',
    [`managedclusters/clientcertificates.${register} | another cluster’s`]: 'renew',
    [`managedclusters/status.${group.cluster} | its own`]: 'update patch',
    [`manifestworks.${group.work} | own namespace`]: 'get list watch update patch',
    [`manifestworks/status.${group.work} | own namespace`]: 'update patch',
  },
  leaving: {
    [`${itself} | its own`]: 'get list watch',
    [`manifestworks.${group.work} | own namespace`]: 'get list watch update patch',
    [`manifestworks/status.${group.work} | own namespace`]: 'update patch',
  },
  denied: { [`${itself} | its own`]: 'get list watch' },
  deleted: {},
}
type Standing = keyof typeof granted

const titles: Record<Standing, string> = {
  accepted: 'Accepted (`spec.hubAcceptsClient: true`)',
  leaving: 'Leaving: denied or deleted, works remain, and its time is not up',
  denied: 'Denied: no works remain, or its time is up',
  deleted: 'Deleted: the ManagedCluster is gone',
}

const rows = [...new Set(targets.map((t) => `${t.resource}${t.group ? `.${t.group}` : ''}`))].toSorted()

const table = (standing: Standing, cells: Record<string, string>): string => {
  const cell = (row: string, column: Column): string => cells[`${row} | ${column}`] ?? '–'
  const some = rows.filter((row) => columns.some((column) => cells[`${row} | ${column}`]))
  const lines = some.map((row) => `| ${row} | ${columns.map((column) => cell(row, column)).join(' | ')} |`)
  const head = [`| | ${columns.join(' | ')} |`, `|${'---|'.repeat(columns.length + 1)}`]
  return [
    `## ${titles[standing]}`,
    '',
    ...(lines.length ? [...head, ...lines, ''] : []),
    lines.length ? 'Nothing on any other kind.' : 'Nothing on any kind.',
    '',
  ].join('\n')
}

const page = (matrices: Record<Standing, Record<string, string>>): string => {
  const standings = Object.keys(titles) as Standing[]
  return [
    '# What a managed cluster can do on the hub',
    '',
    'Written by `UPDATE=1 node --test src/registration/hub/isolation.test.ts`, and compared at every test run. Five clusters join a hub, and',
    'the API server is asked what each of them may do, with the groups of a certificate and with the group of an EKS access entry: all rules',
    'that it finds in every namespace, then each verb on each kind below in the cluster’s own namespace, in those of the other clusters, in',
    'the hub’s, and everywhere at once, and on each ManagedCluster by name; and a sample of requests is really sent.',
    '`renew` is a right that only the hub’s approval of certificates looks at; it also checks that a cluster renews its own.',
    '',
    ...standings.map((standing) => table(standing, matrices[standing])),
    '## What was asked about',
    '',
    ...rows.map((row) => `- ${row}`),
    '',
  ].join('\n')
}

const certificate = (cluster: string) => agentOf(cluster)
const accessEntry = (cluster: string) => ({
  username: cluster,
  groups: [`open-cluster-management:${cluster}`, 'system:authenticated'],
})

test('R1.59 a cluster’s credentials reach its own namespace and its own ManagedCluster, and nothing else', async (t) => {
  const hub = await runHub(t, plane)
  await Promise.all(clusters.map((name) => createCluster(client, name)))
  await eventually.watching(
    client.of(ManagedCluster),
    (all) => all.filter((c) => isTrue(c, Accepted.type)).length === 5,
  )
  // The authorizer has caches of its own.
  await eventually(() => Promise.all(clusters.map(canReadWorks)).then((may) => may.every(Boolean)))

  const matrices = {} as Record<Standing, Record<string, string>>
  matrices.accepted = spelled(await matrixOf('m5', certificate('m5'), ['m1', 'm2', 'm3', 'm4']))
  assert.deepEqual(matrices.accepted, granted.accepted, 'm5 by certificate')
  assert.deepEqual(spelled(await matrixOf('m2', accessEntry('m2'))), granted.accepted, 'm2 by access entry')
  for (const cluster of clusters) await hasOnlyTheRulesOf('accepted', cluster)
  await realRequests()

  await createWork(client, 'm4', 'w')
  await createWork(client, 'm5', 'w')
  await Promise.all([
    setAccepts(client, 'm2', false),
    client.of(ManagedCluster).delete('m3'),
    setAccepts(client, 'm4', false),
    client.of(ManagedCluster).delete('m5'),
  ])
  await eventually(async () => {
    const [m2, m3, m4, m5] = await Promise.all(['m2', 'm3', 'm4', 'm5'].map((name) => clusterOf(client, name)))
    assert.equal(findCondition(m2!, Accepted.type)?.message, 'Denied by hub cluster admin')
    assert.equal(m3, undefined)
    assert.match(findCondition(m4!, Accepted.type)!.message, /1 left/)
    assert.equal(findCondition(m5!, Deleting.type)?.reason, 'ResourceRemaining')
  })
  await hub.stop()
  await eventually(
    async () =>
      !(await mayAccess(client, certificate('m3'), {
        group: group.cluster,
        resource: 'managedclusters',
        name: 'm3',
        verb: 'get',
      })),
  )
  const cases: [Standing, string][] = [
    ['denied', 'm2'],
    ['deleted', 'm3'],
    ['leaving', 'm4'],
    ['leaving', 'm5'],
  ]
  for (const [standing, cluster] of cases) await hasOnlyTheRulesOf(standing, cluster)
  for (const [standing, cluster] of cases.slice(0, 3)) {
    matrices[standing] = spelled(await matrixOf(cluster, certificate(cluster)))
    assert.deepEqual(matrices[standing], granted[standing], `${cluster} ${standing}`)
  }

  const file = 'docs/isolation.md'
  const text = page(matrices)
  if (process.env['UPDATE']) writeFileSync(file, text)
  assert.equal(
    existsSync(file) && readFileSync(file, 'utf8'),
    text,
    `${file} differs: look why, then run with UPDATE=1`,
  )
})

/**
 * All rules that the API server finds for a cluster, in each namespace there is, by either of its groups: whatever the kind
 * and the verb, there is no other. What everybody has who is authenticated is left out.
 */
const hasOnlyTheRulesOf = async (standing: Standing, cluster: string): Promise<void> => {
  const nobody = { username: 'nobody', groups: ['system:authenticated'] }
  const { items } = await client.of(Namespace).list()
  const namespaces = new Set([...clusters, ...hubNamespaces, ...items.map(({ metadata }) => metadata.name!)])
  await inParallel(
    8,
    [certificate(cluster), accessEntry(cluster)].flatMap((who) =>
      [...namespaces].map((namespace) => async () => {
        const everybodys = await rulesOf(nobody, namespace)
        const present = (await rulesOf(who, namespace)).filter((rule) => !everybodys.includes(rule))
        const ofItself = rulesOfItself[standing].map((rule) => rule.replace('<cluster>', cluster))
        const inNamespace = namespace === cluster ? rulesInNamespace[standing] : []
        const message = `${standing} ${cluster} as ${who.username} in ${namespace}`
        assert.deepEqual(present.toSorted(), [...new Set([...ofItself, ...inNamespace])].toSorted(), message)
      }),
    ),
  )
}

interface RulesReview extends KubeObject {
  spec: { namespace: string }
  status?: { incomplete: boolean; resourceRules: PolicyRule[] }
}
const RulesReview = resource<RulesReview>({
  group: 'authorization.k8s.io',
  version: 'v1',
  kind: 'SelfSubjectRulesReview',
  plural: 'selfsubjectrulesreviews',
  namespaced: false,
})

const rulesOf = async ({ username: user, groups }: Who, namespace: string): Promise<string[]> => {
  const review = await client.as({ user, groups }).of(RulesReview).create({ metadata: {}, spec: { namespace } })
  assert.equal(review.status?.incomplete, false)
  return review.status.resourceRules.map(({ verbs: may, apiGroups, resources, resourceNames }) =>
    [may, apiGroups, resources, resourceNames ?? []].map((list) => list?.toSorted().join(',')).join(' | '),
  )
}

const seesItself = `get,list,watch | ${group.cluster} | managedclusters | <cluster>`
const ofWorks = [
  `get,list,patch,update,watch | ${group.work} | manifestworks | `,
  `patch,update | ${group.work} | manifestworks/status | `,
]
const rulesOfItself: Record<Standing, string[]> = {
  accepted: [
    'create,get,list,watch | certificates.k8s.io | certificatesigningrequests | ',
    `renew | ${register} | managedclusters/clientcertificates | `,
    `get,list,update,watch | ${group.cluster} | managedclusters | <cluster>`,
    `patch,update | ${group.cluster} | managedclusters/status | <cluster>`,
  ],
  leaving: [seesItself],
  denied: [seesItself],
  deleted: [],
}
const rulesInNamespace: Record<Standing, string[]> = {
  accepted: [
    'get,list,update,watch | coordination.k8s.io | leases | ',
    `get,list,watch | ${group.addon} | managedclusteraddons | `,
    `patch,update | ${group.addon} | managedclusteraddons/status | `,
    'create | events.k8s.io | events | ',
    'create,patch,update | ,events.k8s.io | events | ',
    ...ofWorks,
  ],
  leaving: ofWorks,
  denied: [],
  deleted: [],
}

const canReadWorks = (cluster: string): Promise<boolean> =>
  mayAccess(client, certificate(cluster), {
    group: group.work,
    resource: 'manifestworks',
    namespace: cluster,
    verb: 'get',
  })

/** The same by requests that are really sent: what the authorizer says is what the API server does. */
const realRequests = async (): Promise<void> => {
  const { username: user, groups } = agentOf('m1')
  const agent = plane.client({ user, groups })
  const byName = (name: string) => ({ fieldSelector: `metadata.name=${name}` })
  const m1 = await agent.of(ManagedCluster).get('m1')
  assert.equal((await agent.of(ManagedCluster).list(byName('m1'))).items.length, 1)
  await agent.of(ManagedCluster).update(m1)
  await agent.of(ManifestWork, 'm1').list()
  await agent.of(ManagedClusterAddOn, 'm1').list()
  await agent.of(Lease, 'm1').list()
  await agent.of(CertificateSigningRequest).list()

  const binding = { apiGroup: rbacGroup, kind: 'ClusterRole', name: 'cluster-admin' }
  const refused: [string, () => Promise<unknown>][] = [
    ['get another cluster', () => agent.of(ManagedCluster).get('m2')],
    ['list all clusters', () => agent.of(ManagedCluster).list()],
    ['list another cluster', () => agent.of(ManagedCluster).list(byName('m2'))],
    ['update another cluster', () => agent.of(ManagedCluster).update({ ...m1, metadata: { name: 'm2' } })],
    ['patch itself', () => agent.of(ManagedCluster).patch('m1', { merge: { spec: { leaseDurationSeconds: 1 } } })],
    ['delete itself', () => agent.of(ManagedCluster).delete('m1')],
    ['create a cluster', () => createCluster(agent, 'm6')],
    ['works of another cluster', () => agent.of(ManifestWork, 'm2').list()],
    ['works of all clusters', () => agent.of(ManifestWork).list()],
    ['create a work', () => createWork(agent, 'm1', 'mine')],
    ['delete all works', () => agent.of(ManifestWork, 'm1').deleteAll()],
    ['add-ons of another cluster', () => agent.of(ManagedClusterAddOn, 'm2').list()],
    ['leases of the control plane', () => agent.of(Lease, 'kube-system').list()],
    ['lease of another cluster', () => agent.of(Lease, 'm2').list()],
    ['secrets of its own namespace', () => agent.of(Secret, 'm1').list()],
    ['secrets everywhere', () => agent.of(Secret).list()],
    ['configmaps', () => agent.of(ConfigMap, 'm1').list()],
    [
      'a token',
      () => agent.of(ServiceAccount, 'm1').subresource('default', 'token', { method: 'POST', body: { spec: {} } }),
    ],
    ['roles', () => agent.of(ClusterRole).list()],
    [
      'a binding to cluster-admin',
      () => agent.of(RoleBinding, 'm1').create({ metadata: { name: 'x', namespace: 'm1' }, roleRef: binding }),
    ],
  ]
  for (const [what, ask] of refused) await assert.rejects(ask, isForbidden, what)
}
