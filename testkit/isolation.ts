/**
 * What a cluster may do on its hub, however it proves who it is: asked of the API server as a matrix over kinds, verbs and places,
 * read from its rules, and tried with real requests. Every driver's clusters are held against the same table.
 */
import assert from 'node:assert/strict'
import { allKinds, group, ManagedCluster, ManagedClusterAddOn, ManifestWork } from '../src/api/index.ts'
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
} from '../src/kube/index.ts'
import { inParallel } from '../src/runtime/index.ts'
import { createCluster, createWork } from './registration-hub.ts'

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
export const columns = [
  'own namespace',
  'other clusters’ namespaces',
  'hub namespaces',
  'everywhere',
  'its own',
  'another cluster’s',
]
export type Column = (typeof columns)[number]
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

type Attributes = Parameters<typeof mayAccess>[2]

/** Whether one identity may do something. */
export type Ask = (what: Attributes) => Promise<boolean>

/** As an administrator asks about somebody else. */
export const about =
  (admin: Client, who: Parameters<typeof mayAccess>[1]): Ask =>
  (what) =>
    mayAccess(admin, who, what)

interface AccessReview extends KubeObject {
  spec: { resourceAttributes: Attributes }
  status?: { allowed: boolean }
}
const AccessReview = resource<AccessReview>({
  group: 'authorization.k8s.io',
  version: 'v1',
  kind: 'SelfSubjectAccessReview',
  plural: 'selfsubjectaccessreviews',
  namespaced: false,
})

/** As somebody asks about themselves, with the credential that they really have. */
export const asItself =
  (client: Client): Ask =>
  async (resourceAttributes) => {
    const { status } = await client.of(AccessReview).create({ metadata: {}, spec: { resourceAttributes } })
    return status?.allowed === true
  }

/** `row | column` and the verbs that are allowed there; a column of several places has what any of them allows. */
export const matrixOf = async (
  ask: Ask,
  cluster: string,
  others: readonly string[],
): Promise<Record<string, string>> => {
  const allowed = new Map<string, Set<string>>()
  await inParallel(
    32,
    questions(cluster, others).map(({ row, column, verb, attributes }) => async () => {
      if (!(await ask(attributes))) return
      const cell = `${row} | ${column}`
      allowed.set(cell, (allowed.get(cell) ?? new Set()).add(verb))
    }),
  )
  const inOrder = (of: Set<string>): string => [...of].toSorted((a, b) => verbs.indexOf(a) - verbs.indexOf(b)).join(' ')
  return Object.fromEntries([...allowed].map(([cell, of]) => [cell, inOrder(of)]))
}

const itself = `managedclusters.${group.cluster}`
/** What the specification grants, by hand: nothing here is computed from the code under test. */
export const granted = {
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
export type Standing = keyof typeof granted

/** Every kind that is asked about. */
export const rows = [...new Set(targets.map((t) => `${t.resource}${t.group ? `.${t.group}` : ''}`))].toSorted()

/**
 * All rules that the API server finds for a cluster, in each namespace there is: whatever the kind and the verb, there is no
 * other. What everybody has who is authenticated is left out.
 */
export const hasOnlyTheRulesOf = async (
  standing: Standing,
  cluster: string,
  { as, admin }: { as: Client; admin: Client },
): Promise<void> => {
  const nobody = admin.as({ user: 'nobody', groups: ['system:authenticated'] })
  const { items } = await admin.of(Namespace).list()
  const namespaces = new Set([cluster, ...hubNamespaces, ...items.map(({ metadata }) => metadata.name!)])
  await inParallel(
    8,
    [...namespaces].map((namespace) => async () => {
      const everybodys = await rulesOf(nobody, namespace)
      const present = (await rulesOf(as, namespace)).filter((rule) => !everybodys.includes(rule))
      const ofItself = rulesOfItself[standing].map((rule) => rule.replace('<cluster>', cluster))
      const inNamespace = namespace === cluster ? rulesInNamespace[standing] : []
      const expected = [...new Set([...ofItself, ...inNamespace])].toSorted()
      assert.deepEqual(present.toSorted(), expected, `${standing} ${cluster} in ${namespace}`)
    }),
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

const rulesOf = async (client: Pick<Client, 'of'>, namespace: string): Promise<string[]> => {
  const review = await client.of(RulesReview).create({ metadata: {}, spec: { namespace } })
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

/** The same by requests that are really sent: what the authorizer says is what the API server does. */
export const reachesOnlyItsOwn = async (agent: Client, own: string, other: string): Promise<void> => {
  const byName = (name: string) => ({ fieldSelector: `metadata.name=${name}` })
  const itself = await agent.of(ManagedCluster).get(own)
  assert.equal((await agent.of(ManagedCluster).list(byName(own))).items.length, 1)
  await agent.of(ManagedCluster).update(itself)
  await agent.of(ManifestWork, own).list()
  await agent.of(ManagedClusterAddOn, own).list()
  await agent.of(Lease, own).list()
  await agent.of(CertificateSigningRequest).list()

  const binding = { apiGroup: rbacGroup, kind: 'ClusterRole', name: 'cluster-admin' }
  const refused: [string, () => Promise<unknown>][] = [
    ['get another cluster', () => agent.of(ManagedCluster).get(other)],
    ['list all clusters', () => agent.of(ManagedCluster).list()],
    ['list another cluster', () => agent.of(ManagedCluster).list(byName(other))],
    ['update another cluster', () => agent.of(ManagedCluster).update({ ...itself, metadata: { name: other } })],
    ['patch itself', () => agent.of(ManagedCluster).patch(own, { merge: { spec: { leaseDurationSeconds: 1 } } })],
    ['delete itself', () => agent.of(ManagedCluster).delete(own)],
    ['create a cluster', () => createCluster(agent, `${own}-more`)],
    ['works of another cluster', () => agent.of(ManifestWork, other).list()],
    ['works of all clusters', () => agent.of(ManifestWork).list()],
    ['create a work', () => createWork(agent, own, 'mine')],
    ['delete all works', () => agent.of(ManifestWork, own).deleteAll()],
    ['add-ons of another cluster', () => agent.of(ManagedClusterAddOn, other).list()],
    ['leases of the control plane', () => agent.of(Lease, 'kube-system').list()],
    ['lease of another cluster', () => agent.of(Lease, other).list()],
    ['secrets of its own namespace', () => agent.of(Secret, own).list()],
    ['secrets everywhere', () => agent.of(Secret).list()],
    ['configmaps', () => agent.of(ConfigMap, own).list()],
    [
      'a token',
      () => agent.of(ServiceAccount, own).subresource('default', 'token', { method: 'POST', body: { spec: {} } }),
    ],
    ['roles', () => agent.of(ClusterRole).list()],
    [
      'a binding to cluster-admin',
      () => agent.of(RoleBinding, own).create({ metadata: { name: 'x', namespace: own }, roleRef: binding }),
    ],
  ]
  for (const [what, ask] of refused) await assert.rejects(ask, isForbidden, what)
}
