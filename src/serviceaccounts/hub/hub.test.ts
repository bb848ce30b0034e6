import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eventually, startControlPlane, type ControlPlane } from '../../../testkit/index.ts'
import {
  addOnIdentity,
  startServiceAccountScene,
  type ServiceAccountScene,
} from '../../../testkit/service-account-scene.ts'
import { accountName, serviceAccountUser } from '../../addons/contract.ts'
import { group, ManagedClusterAddOn, ManagedServiceAccount, ProxyManagedServiceAccount } from '../../api/index.ts'
import { mayAccess, Namespace, RoleBinding, Secret, type Client } from '../../kube/index.ts'
import { addOnName, guard, managedLabels } from '../contract.ts'

let plane: ControlPlane
let scene: ServiceAccountScene
let admin: Client
const slow = { timeoutMs: 60_000 }
before(async () => {
  plane = await startControlPlane({ controllerManager: false, audit: false })
  scene = await startServiceAccountScene(plane)
  admin = scene.admin
  for (const cluster of ['c1', 'c2']) await scene.join(cluster)
  await admin.of(Namespace).create({ metadata: { name: 'team' } })
})
after(async () => {
  await scene?.stop()
  await plane?.stop()
})

/** The agent of a cluster, by certificate, and as the service account that its tokens are of. */
const byCertificate = (cluster: string) => plane.client(addOnIdentity(cluster))
const tokenUser = (cluster: string) => serviceAccountUser(cluster, accountName(cluster, addOnName))
const byToken = (cluster: string) =>
  plane.client({
    user: tokenUser(cluster),
    groups: ['system:serviceaccounts', `system:serviceaccounts:${cluster}`, 'system:authenticated'],
  })

test('R5.4 R5.5 on the hub an agent reads its own kind and writes its status, in its own namespace; it reads no Secret at all: everything else is refused', async () => {
  const msa = { group: group.authentication, resource: 'managedserviceaccounts' }
  const kinds = [
    msa,
    { ...msa, subresource: 'status' },
    { group: group.proxy, resource: 'managedserviceaccounts' },
    { group: '', resource: 'secrets' },
    { group: '', resource: 'serviceaccounts' },
    { group: '', resource: 'serviceaccounts', subresource: 'token' },
    { group: '', resource: 'configmaps' },
    { group: group.addon, resource: 'managedclusteraddons' },
    { group: group.cluster, resource: 'managedclusters' },
    { group: group.work, resource: 'manifestworks' },
    { group: 'rbac.authorization.k8s.io', resource: 'rolebindings' },
  ]
  const verbs = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection']
  const { user: username, groups } = addOnIdentity('c1')
  const questions = ['c1', 'c2', ''].flatMap((namespace) =>
    kinds.flatMap((kind) => verbs.map((verb) => ({ ...kind, verb, namespace }))),
  )
  const allowed: string[] = []
  await Promise.all(
    questions.map(async (access) => {
      const { namespace, verb, resource, subresource } = access
      if (await mayAccess(admin, { username, groups }, { ...access, namespace: namespace || undefined }))
        allowed.push(`${namespace}: ${verb} ${resource}${subresource ? `/${subresource}` : ''}.${access.group}`)
    }),
  )
  assert.deepEqual(allowed.toSorted(), [
    'c1: create secrets.',
    'c1: get managedserviceaccounts.authentication.open-cluster-management.io',
    'c1: list managedserviceaccounts.authentication.open-cluster-management.io',
    'c1: patch managedserviceaccounts/status.authentication.open-cluster-management.io',
    'c1: patch secrets.',
    'c1: watch managedserviceaccounts.authentication.open-cluster-management.io',
  ])
})

test('R5.4 of the Secrets in its namespace an agent can write those that are tokens, and no others: not with any label, owner, type, key or finalizer, and not to read what is there', async () => {
  await scene.create('c1', 'real')
  await scene.works('c1', 'real')
  const { uid } = (await scene.accounts('c1').get('real')).metadata
  const role = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'agent' }
  await admin.of(RoleBinding).create({
    metadata: { name: 'agent-by-token', namespace: 'c1' },
    roleRef: role,
    subjects: [{ kind: 'ServiceAccount', namespace: 'c1', name: accountName('c1', addOnName) }],
  })
  const owner = { apiVersion: 'authentication.open-cluster-management.io/v1beta1', kind: 'ManagedServiceAccount' }
  const token = (name: string, change: object = {}, metadata: object = {}): Secret => ({
    metadata: {
      name,
      namespace: 'c1',
      labels: { ...managedLabels },
      ownerReferences: [{ ...owner, name, uid: uid! }],
      ...metadata,
    },
    type: 'Opaque',
    data: { token: 'eA==' },
    ...change,
  })
  await admin.of(Secret).create({ metadata: { name: 'cloud', namespace: 'c1' }, stringData: { key: 'sesame' } })
  await admin.of(Secret).create({
    metadata: { name: 'labelled', namespace: 'c1', labels: { ...managedLabels } },
    stringData: { key: 'sesame' },
  })
  const refused = /denied request|forbidden/i
  for (const agent of [byCertificate('c1'), byToken('c1')]) {
    const secrets = agent.of(Secret, 'c1')
    const bad: [string, Secret][] = [
      ['no label', token('x', {}, { labels: {} })],
      ['no owner', token('x', {}, { ownerReferences: [] })],
      ['another owner', token('x', {}, { ownerReferences: [{ ...owner, name: 'real', uid: uid! }] })],
      [
        'owner of another kind',
        token('x', {}, { ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'x', uid: uid! }] }),
      ],
      [
        'two owners',
        token(
          'x',
          {},
          {
            ownerReferences: [
              { ...owner, name: 'x', uid: uid! },
              { ...owner, name: 'x', uid: 'u' },
            ],
          },
        ),
      ],
      ['another key', token('x', { data: { kubeconfig: 'eA==' } })],
      ['stringData', token('x', { stringData: { kubeconfig: 'x' } })],
      ['a finalizer', token('x', {}, { finalizers: ['example.com/held'] })],
      ['another type', token('x', { type: 'kubernetes.io/basic-auth', data: { username: 'eA==' } })],
      ['a bootstrap token', token('x', { type: 'bootstrap.kubernetes.io/token' })],
      ['a made-up name', { ...token('x'), metadata: { ...token('x').metadata, name: undefined, generateName: 'x' } }],
    ]
    for (const [what, secret] of bad) await assert.rejects(secrets.create(secret), refused, what)
    for (const name of ['cloud', 'labelled']) {
      const read = secrets.patch(name, { merge: {} }).then(({ data }) => JSON.stringify(data))
      await assert.rejects(
        read,
        (error: Error) => refused.test(error.message) && !error.message.includes('sesame'),
        name,
      )
      await assert.rejects(secrets.patch(name, { merge: token(name) }), refused, name)
      const takeover = token(name, { data: { key: null, token: 'eA==' } })
      await assert.rejects(secrets.patch(name, { merge: takeover }), refused, `${name} would become a token`)
      await assert.rejects(secrets.get(name), refused)
    }
    await assert.rejects(secrets.patch('real', { merge: { metadata: { labels: null } } }), refused)
    await assert.rejects(secrets.delete('real'), refused)
    await assert.rejects(secrets.list(), refused)
    await assert.rejects(agent.of(Secret, 'c2').create(token('x', {}, { namespace: 'c2' })), refused)
  }
  // Others write Secrets as ever.
  await admin.of(Secret).create({ metadata: { name: 'other', namespace: 'team' }, stringData: { a: 'b' } })
  await scene.accounts('c1').delete('real')
})

test('R5.32 the admission rules come back when somebody removes or weakens them', async () => {
  await admin.of(guard.binding).delete(guard.name)
  await eventually(async () => assert.ok(await admin.of(guard.binding).find(guard.name)), slow)
  const json = [{ op: 'replace', path: '/spec/validations', value: [{ expression: 'true' }] }]
  await admin.of(guard.policy).patch(guard.name, { json })
  await eventually(async () => {
    const policy = (await admin.of(guard.policy).get(guard.name)) as { spec?: { validations?: unknown[] } }
    assert.equal(policy.spec?.validations?.length, 4)
  }, slow)
})

test('R5.22 a Secret of that name which is somebody else’s is left as it is; the object says so, and goes on when the name is free', async () => {
  await scene.create('c1', 'cloud')
  await scene.says('c1', 'cloud', 'SecretCreated', 'False', /NameTaken .*is left as it is; delete it/)
  await scene.says('c1', 'cloud', 'TokenReported', 'False')
  await scene.says('c1', 'cloud', 'AllServiceAccountPresent', 'True')
  const secret = await admin.of(Secret, 'c1').get('cloud')
  assert.deepEqual(Object.keys(secret.data!), ['key'])
  await admin.of(Secret, 'c1').delete('cloud')
  scene.clock.jump(61_000)
  await scene.works('c1', 'cloud')
  await scene.accounts('c1').delete('cloud')
  await scene.gone('c1', 'cloud')
})

test('R5.10 in a namespace that is neither a cluster’s nor bound to a set nothing is made, and the object says which two there are', async () => {
  await scene.create('team', 'nowhere')
  await scene.says(
    'team',
    'nowhere',
    'AllServiceAccountPresent',
    'False',
    /NamespaceNotUsable .*ManagedCluster.*clusteradm clusterset bind/,
  )
  assert.equal((await admin.of(ManagedServiceAccount).list()).items.length, 1)
  await scene.accounts('team').delete('nowhere')
})

test('R5.3 without the add-on an object waits and says how to install it; when the add-on goes, its tokens go', async () => {
  await scene.create('c2', 'waits')
  await scene.works('c2', 'waits')
  await scene.stopAgent('c2')
  await admin.of(ManagedClusterAddOn, 'c2').delete(addOnName)
  await scene.says('c2', 'waits', 'AllServiceAccountPresent', 'False', /WaitingForAgent .*clusteradm addon enable/)
  await eventually(async () => assert.equal(await admin.of(Secret, 'c2').find('waits'), undefined), slow)
  assert.equal((await scene.accounts('c2').get('waits')).status?.tokenSecretRef, undefined)
  await admin.of(ManagedClusterAddOn).create({ metadata: { name: addOnName, namespace: 'c2' } })
  scene.startAgent('c2')
  await scene.works('c2', 'waits')
  await scene.accounts('c2').delete('waits')
  await scene.gone('c2', 'waits')
})

test('R5.31 an object with ttlSecondsAfterCreation is deleted when its time is up, with all that it had, and not before', async () => {
  await scene.create('c1', 'brief', { ttlSecondsAfterCreation: 3600 })
  const token = await scene.works('c1', 'brief')
  scene.clock.jump(3_500_000)
  assert.equal(await scene.works('c1', 'brief'), token)
  scene.clock.jump(101_000)
  await eventually(async () => assert.equal(await scene.accounts('c1').find('brief'), undefined), slow)
  await scene.gone('c1', 'brief')
})

test('R5.2 what is written in the group of the specification is done by its twin, with its status mirrored back; spec, deletion and clashes are followed', async () => {
  const proxies = admin.of(ProxyManagedServiceAccount, 'c1')
  const spec = { audiences: ['foo', 'bar'], rotation: { enabled: true, validity: '4320h0m0s' } }
  await proxies.create({ metadata: { name: 'my-foo', namespace: 'c1' }, spec })
  const first = await scene.works('c1', 'my-foo', { audiences: ['bar'] })
  const says = (type: string, status: string, message = /(?:)/) =>
    eventually(async () => {
      const now = await proxies.get('my-foo')
      const found = now.status?.conditions?.find((one) => one.type === type)
      assert.ok(found?.status === status && message.test(`${found.reason} ${found.message}`), JSON.stringify(now))
      assert.equal(found.observedGeneration, now.metadata.generation)
      return now
    }, slow)
  const now = await says('AllServiceAccountPresent', 'True')
  assert.equal(now.status?.tokenSecretRef?.name, 'my-foo')
  await proxies.patch('my-foo', { merge: { spec: { audiences: ['baz'] } } })
  const second = await scene.works('c1', 'my-foo', { audiences: ['baz'], not: first })
  // The twin follows, whoever edits it, and comes back when it is deleted.
  await scene.accounts('c1').patch('my-foo', { merge: { spec: { audiences: ['mine'] } } })
  const third = await scene.works('c1', 'my-foo', { audiences: ['baz'], not: second })
  await scene.accounts('c1').delete('my-foo')
  await scene.works('c1', 'my-foo', { audiences: ['baz'], not: third })
  await proxies.delete('my-foo')
  await scene.gone('c1', 'my-foo')
  await eventually(async () => assert.equal(await scene.accounts('c1').find('my-foo'), undefined), slow)

  await scene.create('c1', 'my-foo', { audiences: ['own'] })
  await proxies.create({ metadata: { name: 'my-foo', namespace: 'c1' }, spec })
  await says('AllServiceAccountPresent', 'False', /NameTaken .*was not made from this one/)
  assert.deepEqual((await scene.accounts('c1').get('my-foo')).spec?.audiences, ['own'])
  await proxies.delete('my-foo')
  await scene.works('c1', 'my-foo', { audiences: ['own'] })
  await scene.accounts('c1').delete('my-foo')
  await scene.gone('c1', 'my-foo')
})

test('R5.34 bad input: durations that are none or too short, too many audiences, a time of nothing are refused with what to do; names at the limits and a validity that no cluster grants are told', async () => {
  const refused = (spec: object, message: RegExp) => assert.rejects(scene.create('c1', 'bad', spec), message)
  await refused({ rotation: { validity: '9m59s' } }, /below 10m cannot be had/)
  await refused({ rotation: { validity: '0s' } }, /below 10m/)
  for (const validity of ['forever', '10', '-1h', '1d', ''])
    await refused({ rotation: { validity } }, /spec\.rotation\.validity/)
  const many = Array.from({ length: 100 }, (_, i) => `audience-${i}`)
  await refused({ audiences: many }, /spec\.audiences.*at most 32/)
  await refused({ audiences: ['a', 'a'] }, /spec\.audiences.*[Dd]uplicate/)
  await refused({ audiences: [''] }, /spec\.audiences/)
  await refused({ ttlSecondsAfterCreation: 0 }, /ttlSecondsAfterCreation/)

  // Longer than the API server's own field can say.
  await scene.create('c1', 'ever', { rotation: { validity: '2000000h' } })
  await scene.says('c1', 'ever', 'TokenReported', 'False', /refuses spec\.rotation\.validity .*correct the spec/)
  await scene.accounts('c1').patch('ever', { merge: { spec: { rotation: { validity: '10m' } } } })
  await scene.works('c1', 'ever')
  const long = `${'a'.repeat(63)}.${'b'.repeat(63)}.${'c'.repeat(63)}.${'d'.repeat(61)}`
  assert.equal(long.length, 253)
  for (const name of [long, 'a', 'with.dots']) {
    await scene.create('c1', name)
    await scene.works('c1', name)
  }
  for (const name of ['ever', long, 'a', 'with.dots']) {
    await scene.accounts('c1').delete(name)
    await scene.gone('c1', name)
  }
})
