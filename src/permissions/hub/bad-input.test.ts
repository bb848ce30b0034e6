import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eventually, startControlPlane, type ControlPlane } from '../../../testkit/index.ts'
import { rule } from '../../../testkit/people.ts'
import { ClusterPermission, crds, installCrds, ManagedCluster, type PermissionSpec } from '../../api/index.ts'
import { ApiError, isInvalid, Namespace, type Client } from '../../kube/index.ts'
import { Manager } from '../../runtime/index.ts'
import {
  MutatingWebhookConfiguration,
  ValidatingWebhookConfiguration,
  webhookServer,
  type WebhookServer,
} from '../../runtime/webhook/index.ts'
import { permissionWebhookConfigurations, startPermissions } from './index.ts'

let plane: ControlPlane
let admin: Client
let server: WebhookServer
let running: Promise<void>
const end = new AbortController()
before(async () => {
  plane = await startControlPlane({ controllerManager: false, audit: false })
  admin = plane.client()
  await installCrds(admin, crds({ conversion: 'none' }))
  await admin.of(Namespace).create({ metadata: { name: 'c1' } })
  await admin.of(ManagedCluster).create({ metadata: { name: 'c1' }, spec: { hubAcceptsClient: true } })
  const client = plane.client()
  const manager = new Manager({ client, gracePeriodMs: 0 })
  const { webhooks } = startPermissions(manager, { client, admission: true })
  running = manager.run(end.signal)
  const pair = plane.serverCertificate()
  server = webhookServer({ host: '127.0.0.1', port: 0, certificate: () => pair, routes: webhooks })
  await server.start()
  const where = { url: `https://127.0.0.1:${server.port}`, caBundle: Buffer.from(plane.ca).toString('base64') }
  const [mutation, validation] = permissionWebhookConfigurations(where)
  await admin.of(MutatingWebhookConfiguration).create(mutation!)
  await admin.of(ValidatingWebhookConfiguration).create(validation!)
  await eventually(() => assert.rejects(write({}), isInvalid))
})
after(async () => {
  end.abort()
  await running
  await server.stop()
  await plane.stop()
})

const write = (spec: unknown, name = 'bad') =>
  admin
    .of(ClusterPermission, 'c1')
    .create({ metadata: { name, namespace: 'c1' }, spec: spec as PermissionSpec }, { dryRun: true })
const rules = [rule('get', 'pods')]
const ada = { kind: 'User', name: 'ada' }
const good: PermissionSpec = { clusterRole: { rules }, clusterRoleBinding: { subject: ada } }
const at = (namespace: string) => ({ namespace, rules })
const bind = (more: object) => ({ subject: ada, roleRef: { kind: 'Role' }, ...more })
const to = (subject: object): unknown => ({ ...good, clusterRoleBinding: { subject } })
const chosen = (namespaceSelector: object): unknown => ({
  roles: [{ namespaceSelector, rules }],
  roleBindings: [bind({ namespaceSelector })],
})

/** What is written, and the field and the fix that the answer names. */
const bad: [title: string, spec: unknown, message: RegExp][] = [
  [
    'nothing at all',
    {},
    /spec: is empty: give clusterRole and clusterRoleBinding, roles and roleBindings, or roleRefs/,
  ],
  [
    'no bindings',
    { clusterRole: { rules } },
    /spec: no bindings defined: nobody would get these roles; add clusterRoleBinding/,
  ],
  [
    'both namespace and selector',
    { ...good, roles: [{ ...at('a'), namespaceSelector: {} }] },
    /spec\.roles\[0\]: .*set either namespace or namespaceSelector/,
  ],
  [
    'neither of them',
    { ...good, roleBindings: [bind({})] },
    /spec\.roleBindings\[0\]: .*set either namespace or namespaceSelector/,
  ],
  ['no subject', { ...good, clusterRoleBinding: {} }, /set subject or subjects/],
  [
    'an empty list of subjects',
    { ...good, clusterRoleBinding: { subjects: [] } },
    /spec\.clusterRoleBinding\.subjects: is empty: say whom it is for/,
  ],
  [
    'an unknown kind of subject',
    to({ kind: 'Robot', name: 'x' }),
    /subject\.kind: Robot is unknown: use User, Group, ServiceAccount or ManagedServiceAccount/,
  ],
  [
    'an unknown kind of role',
    { ...good, roleBindings: [bind({ namespace: 'a', roleRef: { kind: 'Deployment' } })] },
    /Unsupported value: "Deployment"/,
  ],
  [
    'a group that does not fit',
    to({ kind: 'User', apiGroup: 'apps', name: 'x' }),
    /subject\.apiGroup: must be "rbac\.authorization\.k8s\.io" for a User/,
  ],
  [
    'a ManagedServiceAccount without its group',
    to({ kind: 'ManagedServiceAccount', name: 'x' }),
    /must be "authentication\.open-cluster-management\.io"/,
  ],
  [
    'a ServiceAccount without a namespace',
    to({ kind: 'ServiceAccount', name: 'x' }),
    /subject\.namespace: a ServiceAccount needs its namespace on the managed cluster/,
  ],
  ['a User with one', to({ kind: 'User', name: 'x', namespace: 'a' }), /a User has no namespace: leave it out/],
  [
    'two roles for one namespace',
    { roles: [at('a'), at('a')], roleBindings: [bind({ namespace: 'a' })] },
    /spec\.roles\[1\]: is Role bad in namespace a like roles\[0\]: put their rules together/,
  ],
  [
    'two bindings of one name',
    { roles: [at('a')], roleBindings: [bind({ namespace: 'a' }), bind({ namespace: 'a' })] },
    /spec\.roleBindings\[1\]: is RoleBinding bad in namespace a like roleBindings\[0\]: give one of them another name/,
  ],
  [
    'two roles for one selector',
    {
      roles: [
        { namespaceSelector: {}, rules },
        { namespaceSelector: {}, rules },
      ],
      roleBindings: [bind({ namespaceSelector: {} })],
    },
    /is Role bad for the same namespaces like roles\[0\]/,
  ],
  [
    'a copy that is also written',
    { ...good, roleRefs: [{ kind: 'ClusterRole', name: 'bad' }] },
    /spec\.roleRefs\[0\]: is ClusterRole bad like clusterRole/,
  ],
  [
    'a label key that is none',
    chosen({ matchLabels: { 'not a key': 'x' } }),
    /namespaceSelector\.matchLabels: "not a key" is not a label key/,
  ],
  [
    'a label value that is none',
    chosen({ matchLabels: { key: 'a b' } }),
    /matchLabels\[key\]: "a b" is not a value that a label can have/,
  ],
  [
    'In without values',
    chosen({ matchExpressions: [{ key: 'a', operator: 'In' }] }),
    /matchExpressions\[0\]\.values: In needs values/,
  ],
  [
    'Exists with values',
    chosen({ matchExpressions: [{ key: 'a', operator: 'Exists', values: ['b'] }] }),
    /matchExpressions\[0\]\.values: Exists takes no values/,
  ],
  [
    'an operator that there is not',
    chosen({ matchExpressions: [{ key: 'a', operator: 'Near' }] }),
    /Unsupported value: "Near"/,
  ],
  [
    'a namespace that cannot be',
    { roles: [at('Not_One')], roleBindings: [bind({ namespace: 'Not_One' })] },
    /roles\[0\]\.namespace: "Not_One" is not a name of a namespace/,
  ],
  [
    'a role for nobody knows where',
    { ...good, roleBindings: [bind({ namespace: 'a' })] },
    /roleBindings\[0\]\.roleRef: names no Role, and there are no roles: add one with namespace a/,
  ],
  [
    'a path in a Role',
    {
      roles: [{ namespace: 'a', rules: [{ verbs: ['get'], nonResourceURLs: ['/x'] }] }],
      roleBindings: [bind({ namespace: 'a' })],
    },
    /roles\[0\]\.rules\[0\]\.nonResourceURLs: cannot be in a Role/,
  ],
  [
    'a rule without verbs',
    { ...good, clusterRole: { rules: [{ verbs: [], apiGroups: [''], resources: ['pods'] }] } },
    /clusterRole\.rules\[0\]\.verbs: is empty/,
  ],
  [
    'a rule without groups',
    { ...good, clusterRole: { rules: [{ verbs: ['get'], resources: ['pods'] }] } },
    /clusterRole\.rules\[0\]\.apiGroups: is empty: "" is the core group/,
  ],
  [
    'a name that leads elsewhere',
    { ...good, clusterRoleBinding: { subject: ada, name: 'a/b' } },
    /clusterRoleBinding\.name: "a\/b" cannot be a name/,
  ],
  [
    'a roleRef of another group',
    { ...good, roleRefs: [{ kind: 'ClusterRole', name: 'x', apiGroup: 'apps' }] },
    /roleRefs\[0\]\.apiGroup: must be rbac\.authorization\.k8s\.io/,
  ],
]

test('R4.27 bad input is refused at admission, with the field and what to do', async (t) => {
  for (const [title, spec, message] of bad) {
    const error = await write(spec).then(
      () => assert.fail(`${title}: it was let through`),
      (caught: unknown) => caught,
    )
    assert.ok(error instanceof ApiError && isInvalid(error), `${title}: ${String(error)}`)
    assert.match(error.serverMessage, message, title)
    t.diagnostic(
      `${title}: ${error.serverMessage.replace(/^admission webhook "[^"]+" denied the request: /, '').slice(0, 160)}`,
    )
  }
})

test('R4.27 what is right is let through, and what only time can tell is a warning', async () => {
  await write(good)
  await write({ ...good, roleRefs: [{ kind: 'ClusterRole', name: 'not-there' }] })
  await write({ roleRefs: [{ kind: 'ClusterRole', name: 'view' }] })
  await write(chosen({ matchExpressions: [{ key: 'foo.com/state', operator: 'NotIn', values: ['', 'a_b.c'] }] }))
  await write(to({ kind: 'ServiceAccount', name: 'x', namespace: 'a' }))
  // kubectl tells warnings only on its way out with an error.
  const warned = async (spec: object, message: RegExp, namespace = 'c1') => {
    const metadata = { name: 'warned', namespace }
    const input = JSON.stringify({
      apiVersion: 'rbac.open-cluster-management.io/v1alpha1',
      kind: 'ClusterPermission',
      metadata,
      spec,
    })
    await assert.rejects(
      plane.kubectl(['create', '--dry-run=server', '--warnings-as-errors', '-f', '-'], { input }),
      message,
    )
  }
  await warned(
    { roleRefs: [{ kind: 'ClusterRole', name: 'not-there' }] },
    /Warning: the hub has no ClusterRole not-there/,
  )
  await warned(good, /Warning: namespace default belongs to no managed cluster/, 'default')
  const everybody = { subject: { kind: 'Group', name: 'system:authenticated' } }
  await warned(
    { ...good, clusterRoleBinding: everybody },
    /Warning: clusterRoleBinding: system:authenticated is everybody of its sort/,
  )
})
