import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eventually, startControlPlane, type ControlPlane } from '../../../testkit/index.ts'
import { crds, installCrds, label, ManagedCluster, ManagedClusterSetBinding, subject } from '../../api/index.ts'
import {
  ApiError,
  ClusterRole,
  ClusterRoleBinding,
  isForbidden,
  isInvalid,
  Namespace,
  type Client,
  type CustomResourceDefinition,
  type PolicyRule,
} from '../../kube/index.ts'
import { silentLogger } from '../../runtime/index.ts'
import {
  MutatingWebhookConfiguration,
  ValidatingWebhookConfiguration,
  webhookServer,
  type WebhookServer,
} from '../../runtime/webhook/index.ts'
import { validateCluster } from './cluster-admission.ts'
import { registrationWebhookConfigurations, registrationWebhooks } from './webhooks.ts'

let plane: ControlPlane
let admin: Client
let server: WebhookServer
const gates = { defaultClusterSet: true }

before(async () => {
  // Without controllers: a namespace that is deleted stays in that state.
  plane = await startControlPlane({ controllerManager: false })
  admin = plane.client()
  // The schema has the rule about names too. Here it is the webhook's turn, as on a hub whose CRDs are older.
  const definitions = crds({ conversion: 'none' }).map((crd) => withoutRules(crd))
  await installCrds(admin, definitions)
  const pair = plane.serverCertificate()
  const routes = registrationWebhooks({ client: admin, gates })
  server = webhookServer({ host: '127.0.0.1', port: 0, certificate: () => pair, routes })
  await server.start()
  const caBundle = Buffer.from(plane.ca).toString('base64')
  const where = { url: `https://127.0.0.1:${server.port}`, caBundle }
  const [mutation, validation] = registrationWebhookConfigurations(where)
  await admin.of(MutatingWebhookConfiguration).create(mutation!)
  await admin.of(ValidatingWebhookConfiguration).create(validation!)
  await Promise.all([
    grant('everybody', ['ada', 'bob', 'carol'], [all('managedclusters'), all('managedclustersetbindings')]),
    grant('accepts', ['ada'], [virtual('register.open-cluster-management.io', 'managedclusters/accept', 'update')]),
    grant(
      'joins',
      ['carol'],
      [virtual('cluster.open-cluster-management.io', 'managedclustersets/join', 'create', 'red', 'blue')],
    ),
    grant(
      'binds',
      ['carol'],
      [virtual('cluster.open-cluster-management.io', 'managedclustersets/bind', 'create', 'red')],
    ),
    grant(
      'agents',
      [subject.clusterGroup('mine'), subject.accessEntryGroup('mine')],
      [all('managedclusters')],
      'Group',
    ),
  ])
  // Configurations and roles take a moment to arrive.
  const probe = (name: string, url: string) => cluster(name, { managedClusterClientConfigs: [{ url }] })
  await eventually(() =>
    assert.rejects(admin.of(ManagedCluster).create(probe('probe', 'http://x'), { dryRun: true }), isInvalid),
  )
  await eventually(async () => {
    const stored = await as('carol').of(ManagedCluster).create(probe('probe', 'https://x'), { dryRun: true })
    return stored.metadata.labels?.[label.clusterSet] === 'default'
  })
  await eventually(() => as('carol').of(ManagedClusterSetBinding).create(binding('red'), { dryRun: true }))
})
after(async () => {
  await server.stop()
  await plane.stop()
})

const withoutRules = (crd: CustomResourceDefinition): CustomResourceDefinition =>
  JSON.parse(
    JSON.stringify(crd, (key, value: unknown) => (key === 'x-kubernetes-validations' ? undefined : value)),
  ) as CustomResourceDefinition

const all = (plural: string): PolicyRule => ({
  apiGroups: ['cluster.open-cluster-management.io'],
  resources: [plural],
  verbs: ['*'],
})
const virtual = (apiGroup: string, path: string, verb: string, ...resourceNames: string[]): PolicyRule => ({
  apiGroups: [apiGroup],
  resources: [path],
  verbs: [verb],
  ...(resourceNames.length ? { resourceNames } : {}),
})
const grant = async (name: string, to: string[], rules: PolicyRule[], kind = 'User'): Promise<void> => {
  const apiGroup = 'rbac.authorization.k8s.io'
  await admin.of(ClusterRole).create({ metadata: { name }, rules })
  await admin.of(ClusterRoleBinding).create({
    metadata: { name },
    roleRef: { apiGroup, kind: 'ClusterRole', name },
    subjects: to.map((who) => ({ apiGroup, kind, name: who })),
  })
}

const clients = new Map<string, Client>()
const as = (user: string, ...groups: string[]): Client => {
  const known = clients.get(user) ?? plane.client({ user, groups })
  clients.set(user, known)
  return known
}
const agent = () => as('system:open-cluster-management:mine:a1', subject.clusterGroup('mine'))

const cluster = (name: string, spec: ManagedCluster['spec'] = {}, labels?: Record<string, string>): ManagedCluster => ({
  metadata: { name, ...(labels ? { labels } : {}) },
  spec,
})
const binding = (set: string): ManagedClusterSetBinding => ({
  metadata: { name: set, namespace: 'default' },
  spec: { clusterSet: set },
})
const inSet = (set: string) => ({ [label.clusterSet]: set })

/** The message of the refusal that must come. */
const refused = async (asking: Promise<unknown>, isIt: (error: unknown) => boolean): Promise<ApiError> => {
  const error = await asking.then(
    () => assert.fail('it was admitted'),
    (caught: unknown) => caught,
  )
  assert.ok(error instanceof ApiError && isIt(error), String(error))
  return error
}
const make = (who: Client, ...of: Parameters<typeof cluster>) => who.of(ManagedCluster).create(cluster(...of))
const change = (who: Client, name: string, merge: unknown) => who.of(ManagedCluster).patch(name, { merge })

test('a cluster without a set is put into default, and taints get the time at which they came', async () => {
  const taints = [{ key: 'gpu', value: 'broken', effect: 'NoSelect' as const }]
  const made = await make(as('bob'), 'defaults', { taints })
  assert.equal(made.metadata.labels?.[label.clusterSet], 'default')
  const [first] = made.spec.taints!
  assert.ok(Math.abs(Date.parse(first!.timeAdded!) - Date.now()) < 60_000)

  const past = '2025-01-01T00:00:00Z'
  await change(as('bob'), 'defaults', { spec: { taints: [{ ...taints[0], timeAdded: past }] } })
  const kept = await change(as('bob'), 'defaults', {
    spec: { taints: [taints[0], { key: 'new', effect: 'NoSelect' }] },
  })
  assert.equal(kept.spec.taints?.[0]?.timeAdded, past, 'a client that forgets the time does not make the taint younger')
  assert.notEqual(kept.spec.taints?.[1]?.timeAdded, past)
  const other = await change(as('bob'), 'defaults', { spec: { taints: [{ ...taints[0], effect: 'PreferNoSelect' }] } })
  assert.notEqual(other.spec.taints?.[0]?.timeAdded, past, 'with another effect it is another taint')
})

test('R1.16 a name that is no DNS label, or that belongs to somebody else, is refused with the reason', async () => {
  for (const name of ['a.b', 'x'.repeat(64)]) {
    const error = await refused(make(admin, name), isInvalid)
    assert.match(error.serverMessage, /metadata\.name: "[ax.b]+" is not a DNS label, .*: use at most 63 of a-z/)
    assert.equal(error.details.causes?.[0]?.field, 'metadata.name')
  }
  for (const name of ['kube-system', 'default', 'managed-clusters', 'open-cluster-management-hub'])
    assert.match(
      (await refused(make(admin, name), isInvalid)).serverMessage,
      new RegExp(`metadata\\.name: ${name} is reserved: .*; use another name`),
    )
})

test('addresses of a cluster are https and hold no password, and its CA bundle holds certificates and no key', async () => {
  const pair = plane.serverCertificate()
  const base64 = (text: string) => Buffer.from(text).toString('base64')
  const broken = plane.ca.replace(/\n[A-Za-z0-9+/]{10}/, '\nAAAAAAAAAA')
  const cases: [url: string, caBundle: string | undefined, message: RegExp][] = [
    ['', undefined, /\[0\]\.url: "" is not a URL: write the API server's as https:\/\/host:port/],
    ['api.example.com', undefined, /\[0\]\.url: "api\.example\.com" is not a URL/],
    ['http://api:6443', undefined, /\[0\]\.url: begins with http:\/\/ and must begin with https:\/\//],
    ['https://u:hunter2@api', undefined, /\[0\]\.url: must hold no user or password/],
    ['https://api', base64('hello'), /\[0\]\.caBundle: holds no certificate: it must be PEM/],
    ['https://api', base64(plane.ca + broken), /\[0\]\.caBundle: certificate 2 of 2 cannot be read/],
    ['https://api', base64(pair.cert + pair.key), /\[0\]\.caBundle: holds a private key/],
  ]
  for (const [url, caBundle, message] of cases) {
    const configs = [{ url, ...(caBundle ? { caBundle } : {}) }]
    const error = await refused(make(admin, 'addressed', { managedClusterClientConfigs: configs }), isInvalid)
    assert.match(error.serverMessage, message)
    assert.doesNotMatch(error.message, /hunter2/)
  }
  const good = [{ url: 'https://[fd00::1]:6443/path', caBundle: base64(plane.ca) }, { url: 'https://api.example.com' }]
  await make(admin, 'addressed', { managedClusterClientConfigs: good })
})

test('what was stored before the webhook stands in nobody’s way until it is changed', async () => {
  const validation = admin.of(ValidatingWebhookConfiguration)
  const whole = await validation.get('lanyard-registration')
  const old = { managedClusterClientConfigs: [{ url: 'http://old' }] }
  await validation.update({ ...whole, webhooks: [] })
  await eventually(() => make(admin, 'elder', old))
  const { metadata } = await validation.get('lanyard-registration')
  await validation.update({ ...whole, metadata })
  await eventually(() => assert.rejects(admin.of(ManagedCluster).create(cluster('probe', old), { dryRun: true })))

  await change(admin, 'elder', { metadata: { annotations: { note: 'still works' } } })
  const worse = { spec: { managedClusterClientConfigs: [{ url: 'http://other' }] } }
  await refused(change(admin, 'elder', worse), isInvalid)
})

test('only who has the right accepts a cluster, when it is made and later; to let it go needs no such right', async () => {
  const message =
    /user "bob" may not accept cluster (made|later): that needs a role with verb update on managedclusters\/accept of register\.open-cluster-management\.io, for the name \1/
  assert.match((await refused(make(as('bob'), 'made', { hubAcceptsClient: true }), isForbidden)).serverMessage, message)
  await make(as('ada'), 'made', { hubAcceptsClient: true })

  await make(as('bob'), 'later')
  const accept = { spec: { hubAcceptsClient: true } }
  assert.match((await refused(change(as('bob'), 'later', accept), isForbidden)).serverMessage, message)
  await change(as('ada'), 'later', accept)
  await change(as('bob'), 'later', { metadata: { annotations: { note: 'an accepted cluster can be edited' } } })
  await change(as('bob'), 'later', { spec: { hubAcceptsClient: false } })
})

test('a cluster is not accepted while its namespace is being deleted', async () => {
  await admin.of(Namespace).create({ metadata: { name: 'ending', finalizers: ['test.example/hold'] } })
  await admin.of(Namespace).delete('ending')
  const { serverMessage } = await refused(make(as('ada'), 'ending', { hubAcceptsClient: true }), isForbidden)
  assert.match(
    serverMessage,
    /spec\.hubAcceptsClient: namespace ending is being deleted, .*: accept the cluster when it is gone/,
  )
})

test('who accepts a cluster whose namespace is somebody else’s already is warned', async () => {
  await admin.of(Namespace).create({ metadata: { name: 'occupied' } })
  const validate = validateCluster({ client: admin, gates })
  const kind = { group: ManagedCluster.group, version: ManagedCluster.version, kind: ManagedCluster.kind }
  const asked = {
    uid: 'u',
    kind,
    resource: { ...kind, resource: ManagedCluster.plural },
    operation: 'CREATE' as const,
    userInfo: { username: 'ada' },
    object: cluster('occupied', { hubAcceptsClient: true }),
    dryRun: false,
  }
  const verdict = await validate(asked, { signal: new AbortController().signal, log: silentLogger })
  assert.match(verdict?.warnings?.[0] ?? '', /namespace occupied exists already and is not labelled for this cluster/)
})

test('a cluster enters and leaves a set only with the right to both; default is open to all', async () => {
  const intoGreen =
    /user "carol" may not put cluster \w+ into set green: that needs a role with verb create on managedclustersets\/join of cluster\.open-cluster-management\.io, for the name green/
  assert.match((await refused(make(as('carol'), 'mover', {}, inSet('green')), isForbidden)).serverMessage, intoGreen)
  await make(as('carol'), 'mover', {}, inSet('red'))
  const move = (who: string, set: string | null) =>
    change(as(who), 'mover', { metadata: { labels: { [label.clusterSet]: set } } })
  assert.match((await refused(move('carol', 'green'), isForbidden)).serverMessage, intoGreen)
  await move('carol', 'blue')
  assert.match(
    (await refused(move('bob', null), isForbidden)).serverMessage,
    /user "bob" may not take cluster mover out of set blue/,
  )
  const home = await move('carol', null)
  assert.equal(home.metadata.labels?.[label.clusterSet], 'default')
  // carol holds no right on default: what is in it is not hers to take
  assert.match((await refused(move('carol', 'red'), isForbidden)).serverMessage, /out of set default/)
})

test('R1.55 an agent may say how its cluster is reached and that it leaves, and change nothing else', async () => {
  await make(as('ada'), 'mine', {
    hubAcceptsClient: true,
    leaseDurationSeconds: 0,
    taints: [{ key: 'gpu', effect: 'NoSelect' }],
  })
  const forbidden: [unknown, string][] = [
    [{ metadata: { labels: { env: 'prod' } } }, 'metadata.labels'],
    [{ metadata: { labels: { empty: '' } } }, 'metadata.labels'],
    [{ metadata: { labels: inSet('red') } }, 'metadata.labels'],
    [
      { metadata: { annotations: { 'agent.open-cluster-management.io/managed-cluster-arn': 'x' } } },
      'metadata.annotations',
    ],
    [{ metadata: { finalizers: ['example.com/hold'] } }, 'metadata.finalizers'],
    [{ spec: { taints: null } }, 'spec.taints'],
    [{ spec: { leaseDurationSeconds: 86_400, taints: [] } }, 'spec.taints, spec.leaseDurationSeconds'],
  ]
  const byAccessEntry = as('irsa-mine', subject.accessEntryGroup('mine'))
  for (const [merge, fields] of forbidden)
    for (const who of [agent(), byAccessEntry]) {
      const { serverMessage } = await refused(change(who, 'mine', merge), isForbidden)
      assert.ok(
        serverMessage.includes(`the agent of cluster mine may not change ${fields}: it may change spec`),
        serverMessage,
      )
    }

  // As Go's typed clients write a whole object: zero values left out, no time where there is none.
  const { leaseDurationSeconds: _, ...spec } = (await agent().of(ManagedCluster).get('mine')).spec
  const present = await agent().of(ManagedCluster).get('mine')
  const managedClusterClientConfigs = [{ url: 'https://mine.example.com' }]
  await agent()
    .of(ManagedCluster)
    .update({ ...present, spec: { ...spec, managedClusterClientConfigs } })

  await change(agent(), 'mine', { spec: { hubAcceptsClient: false } })
  const { serverMessage } = await refused(change(agent(), 'mine', { spec: { hubAcceptsClient: true } }), isForbidden)
  assert.match(serverMessage, /the agent of cluster mine may not change spec\.hubAcceptsClient/)
})

test('a set is bound to a namespace only with the right to bind it', async () => {
  const bindings = (who: string) => as(who).of(ManagedClusterSetBinding, 'default')
  const { serverMessage } = await refused(bindings('bob').create(binding('red')), isForbidden)
  assert.match(
    serverMessage,
    /user "bob" may not bind set red to namespace default: that needs a role with verb create on managedclustersets\/bind of cluster\.open-cluster-management\.io, for the name red/,
  )
  await bindings('carol').create(binding('red'))
  await refused(bindings('carol').create(binding('blue')), isForbidden)
  await bindings('bob').patch('red', { merge: { metadata: { labels: { a: 'b' } } } })
})

test('while the webhooks are away nothing is let through', async () => {
  await server.stop()
  await assert.rejects(make(admin, 'unchecked'), /failed calling webhook/)
})
