import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eventually, startControlPlane, type ControlPlane } from '../../../testkit/index.ts'
import { crds, finalizer, installCrds, ManifestWork, subject } from '../../api/index.ts'
import {
  ApiError,
  isForbidden,
  isInvalid,
  Namespace,
  Role,
  RoleBinding,
  type Client,
  type PolicyRule,
  type Unstructured,
} from '../../kube/index.ts'
import {
  MutatingWebhookConfiguration,
  ValidatingWebhookConfiguration,
  webhookServer,
  type WebhookServer,
} from '../../runtime/webhook/index.ts'
import { executorUser, workAgentExecutor } from '../contract.ts'
import { workWebhookConfigurations, workWebhooks } from './webhooks.ts'

let plane: ControlPlane
let admin: Client
let server: WebhookServer
const gates = { nilExecutorValidating: false }
const namespace = 'c1'

before(async () => {
  plane = await startControlPlane({ controllerManager: false })
  admin = plane.client()
  await installCrds(admin, crds({ conversion: 'none' }))
  const pair = plane.serverCertificate()
  const routes = workWebhooks({ client: admin, gates })
  server = webhookServer({ host: '127.0.0.1', port: 0, certificate: () => pair, routes })
  await server.start()
  const where = { url: `https://127.0.0.1:${server.port}`, caBundle: Buffer.from(plane.ca).toString('base64') }
  const [mutation, validation] = workWebhookConfigurations(where)
  await admin.of(MutatingWebhookConfiguration).create(mutation!)
  await admin.of(ValidatingWebhookConfiguration).create(validation!)
  await admin.of(Namespace).create({ metadata: { name: namespace } })
  await Promise.all([
    grant('works', [user('ada'), user('bob'), agents], [{ ...works, verbs: ['create', 'get', 'update', 'patch'] }]),
    grant('deployer', [user('ada')], [executeAs('system:serviceaccount:apps:deployer')]),
    grant(
      'agent',
      [user('carol')],
      [executeAs('system:serviceaccount::klusterlet-work-sa'), { ...works, verbs: ['create', 'get', 'patch'] }],
    ),
  ])
  await eventually(() => assert.rejects(admin.of(ManifestWork).create(work('probe', []), { dryRun: true }), isInvalid))
  await eventually(() => as('carol').of(ManifestWork).create(work('probe'), { dryRun: true }))
  await eventually(() =>
    as('ada')
      .of(ManifestWork)
      .create(work('probe', [config('a')], deployer), { dryRun: true }),
  )
})
after(async () => {
  await server.stop()
  await plane.stop()
})

const rbacGroup = 'rbac.authorization.k8s.io'
const works = { apiGroups: ['work.open-cluster-management.io'], resources: ['manifestworks'] }
const user = (name: string) => ({ apiGroup: rbacGroup, kind: 'User', name })
const agents = { apiGroup: rbacGroup, kind: 'Group', name: subject.clusterGroup(namespace) }
// Exactly as the fourth specification writes it.
const executeAs = (account: string): PolicyRule => ({ ...works, verbs: ['execute-as'], resourceNames: [account] })
const grant = async (
  name: string,
  subjects: { apiGroup: string; kind: string; name: string }[],
  rules: PolicyRule[],
) => {
  await admin.of(Role).create({ metadata: { name, namespace }, rules })
  await admin.of(RoleBinding).create({
    metadata: { name, namespace },
    roleRef: { apiGroup: rbacGroup, kind: 'Role', name },
    subjects,
  })
}
const clients = new Map<string, Client>()
const as = (name: string, ...groups: string[]): Client => {
  const known = clients.get(name) ?? plane.client({ user: name, groups })
  clients.set(name, known)
  return known
}

const deployer: ManifestWork['spec']['executor'] = {
  subject: { type: 'ServiceAccount', serviceAccount: { namespace: 'apps', name: 'deployer' } },
}
const config = (name: string, more: object = {}): Unstructured => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'default' },
  ...more,
})
const work = (name: string, manifests = [config('a')], executor?: ManifestWork['spec']['executor']): ManifestWork => ({
  metadata: { name, namespace },
  spec: { workload: { manifests }, ...(executor ? { executor } : {}) },
})

const refused = async (asking: Promise<unknown>, isIt: (error: unknown) => boolean): Promise<string> => {
  const error = await asking.then(
    () => assert.fail('it was admitted'),
    (caught: unknown) => caught,
  )
  assert.ok(error instanceof ApiError && isIt(error), String(error))
  return error.serverMessage
}
const make = (who: Client, ...of: Parameters<typeof work>) => who.of(ManifestWork).create(work(...of))
const change = (who: Client, name: string, merge: unknown) => who.of(ManifestWork, namespace).patch(name, { merge })

test('a work with manifests that cannot be applied is refused with their places', async () => {
  assert.match(await refused(make(admin, 'empty', []), isInvalid), /spec\.workload\.manifests is empty/)
  const nameless = { apiVersion: 'v1', kind: 'ConfigMap', metadata: {} }
  assert.match(
    await refused(make(admin, 'bad', [config('a'), nameless, config('a')]), isInvalid),
    /manifests\[1\]\.metadata\.name is missing: .*; spec\.workload\.manifests\[2\] is ConfigMap default\/a of v1 like manifests\[0\]/,
  )
  const generated = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { generateName: 'a-' } }
  assert.match(
    await refused(make(admin, 'bad', [generated]), isInvalid),
    /manifests\[0\]\.metadata\.generateName cannot be/,
  )
  const text = 'x'.repeat(600 * 1024)
  assert.match(
    await refused(make(admin, 'huge', [config('a', { data: { text } })]), isInvalid),
    /512000 are allowed: split the work/,
  )

  await make(admin, 'good')
  assert.match(await refused(change(admin, 'good', { spec: { workload: { manifests: [] } } }), isInvalid), /is empty/)
})

test('manifests that were stored before the webhook are judged when they change, not with the rest of the work', async () => {
  const validation = admin.of(ValidatingWebhookConfiguration)
  const whole = await validation.get('lanyard-work')
  const twins = [config('a'), config('a')]
  await validation.update({ ...whole, webhooks: [] })
  await eventually(() => make(admin, 'elder', twins))
  const { metadata } = await validation.get('lanyard-work')
  await validation.update({ ...whole, metadata })
  await eventually(() =>
    assert.rejects(admin.of(ManifestWork).create(work('probe', twins), { dryRun: true }), isInvalid),
  )

  await change(admin, 'elder', { spec: { deleteOption: { propagationPolicy: 'Orphan' } } })
  await refused(change(admin, 'elder', { spec: { workload: { manifests: [...twins, config('b')] } } }), isInvalid)
})

test('a work is executed as an account only if whoever writes it may do that, and whoever changes it too', async () => {
  const message =
    /spec\.executor: user "bob" may not execute work as system:serviceaccount:apps:deployer on cluster c1: give them a role in namespace c1 with verb execute-as on manifestworks of work\.open-cluster-management\.io, for the name system:serviceaccount:apps:deployer, or name an executor/
  assert.match(await refused(make(as('bob'), 'theirs', [config('a')], deployer), isForbidden), message)
  await make(as('ada'), 'theirs', [config('a')], deployer)
  assert.match(
    await refused(change(as('bob'), 'theirs', { spec: { workload: { manifests: [config('b')] } } }), isForbidden),
    message,
  )
  await change(as('bob'), 'theirs', { metadata: { labels: { note: 'the-same-is-executed' } } })

  const nobody = { subject: { type: 'ServiceAccount' as const } }
  assert.match(
    await refused(make(as('ada'), 'nobody', [config('a')], nobody), isInvalid),
    /spec\.executor: names no account/,
  )
})

test('the agent of a cluster puts its finalizer on a work, and cannot change what it is sent', async () => {
  const agent = as('system:open-cluster-management:c1:a1', subject.clusterGroup(namespace))
  await make(admin, 'sent')
  await change(agent, 'sent', { metadata: { finalizers: [finalizer.manifestWork] } })
  assert.match(
    await refused(change(agent, 'sent', { spec: { workload: { manifests: [config('b')] } } }), isForbidden),
    /spec: the agent of cluster c1 may not change what it is sent/,
  )
})

test('R4.23 with NilExecutorValidating a work without executor is given the work agent, by those who may execute as it', async (t) => {
  await make(as('bob'), 'before')
  gates.nilExecutorValidating = true
  t.after(() => (gates.nilExecutorValidating = false))
  assert.match(
    await refused(make(as('bob'), 'nil'), isForbidden),
    /user "bob" may not execute work as system:serviceaccount::klusterlet-work-sa on cluster c1/,
  )
  const made = await make(as('carol'), 'nil')
  assert.deepEqual(made.spec.executor, workAgentExecutor)
  assert.equal(executorUser(made.spec.executor.subject.serviceAccount!), 'system:serviceaccount::klusterlet-work-sa')

  // A work from before is not touched by who only writes its metadata, such as its agent.
  const agent = as('system:open-cluster-management:c1:a1', subject.clusterGroup(namespace))
  const held = await change(agent, 'before', { metadata: { finalizers: [finalizer.manifestWork] } })
  assert.equal(held.spec.executor, undefined)
  const next = await change(as('carol'), 'before', { spec: { workload: { manifests: [config('b')] } } })
  assert.deepEqual(next.spec.executor, workAgentExecutor)
})
