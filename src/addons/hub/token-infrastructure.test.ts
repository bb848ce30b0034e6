import assert from 'node:assert/strict'
import { after, before, test, type TestContext } from 'node:test'
import {
  asCluster,
  conditionOf,
  createClusters,
  declare,
  enable,
  installHubCrds,
  requestToken,
  runAddOnHub,
  withToken,
} from '../../../testkit/add-on-hub.ts'
import { eventually, startControlPlane, type ControlPlane } from '../../../testkit/index.ts'
import { setAccepts } from '../../../testkit/registration-hub.ts'
import { quiet } from '../../../testkit/work-agent.ts'
import { annotation, conditionType, label, ManagedClusterAddOn } from '../../api/index.ts'
import { isForbidden, isUnauthorized, Role, RoleBinding, ServiceAccount, type Client } from '../../kube/index.ts'
import { readTokenReady, serviceAccountUser } from '../contract.ts'

let plane: ControlPlane
let admin: Client
before(async () => {
  plane = await startControlPlane()
  admin = plane.client()
  await installHubCrds(admin)
})
after(() => plane.stop())

const ready = conditionType.addOn.tokenInfrastructureReady
const userOf = (cluster: string, account: string) => ({ user: serviceAccountUser(cluster, account) })

/** A cluster with an add-on whose agent has declared the token driver, and whose infrastructure is there. */
const tokenAddOn = async (t: TestContext, cluster: string, name = 'hello') => {
  await runAddOnHub(t, plane, { userAgent: `hub-of-${cluster}` })
  await createClusters(admin, [cluster])
  await enable(admin, cluster, name)
  const agent = asCluster(plane, cluster)
  await declare(agent, cluster, name, 'token', userOf(cluster, `${cluster}-${name}-agent`))
  return { agent, account: await readyAccount(cluster, name) }
}

const readyAccount = async (cluster: string, name: string) => {
  const found = await conditionOf(admin, cluster, name, ready, (one) => one?.status === 'True')
  return readTokenReady(found!.message)!
}

const partsOf = async (cluster: string): Promise<string[]> => {
  const labelSelector = `${label.tokenInfrastructure}=true`
  const lists = await Promise.all(
    [ServiceAccount, Role, RoleBinding].map(async (kind) =>
      (await admin.of<{ metadata: object }>(kind, cluster).list({ labelSelector })).items.map(
        ({ metadata }) => `${kind.kind} ${(metadata as { name: string }).name}`,
      ),
    ),
  )
  return lists.flat()
}

const goneFrom = (cluster: string): Promise<void> =>
  eventually(async () => assert.deepEqual(await partsOf(cluster), []), { timeoutMs: 60_000 })

test('R2.18 R2.20 a declared token driver gets an account, a role for its tokens alone, and a condition with the UID', async (t) => {
  const { agent, account } = await tokenAddOn(t, 'made')
  const { metadata } = await admin.of(ServiceAccount, 'made').get('made-hello-agent')
  assert.deepEqual(account, { namespace: 'made', account: 'made-hello-agent', uid: metadata.uid })

  const role = await admin.of(Role, 'made').get('hello-token-role')
  assert.deepEqual(role.rules, [
    { apiGroups: [''], resources: ['serviceaccounts/token'], resourceNames: ['made-hello-agent'], verbs: ['create'] },
    { apiGroups: [''], resources: ['serviceaccounts/token'], verbs: ['subscribe'] },
  ])
  const binding = await admin.of(RoleBinding, 'made').get('hello-token-role')
  assert.deepEqual(
    binding.subjects?.map(({ kind, name }) => `${kind} ${name}`),
    ['Group system:open-cluster-management:made', 'Group open-cluster-management:made'],
  )
  assert.match(await requestToken(agent, 'made', 'made-hello-agent'), /^ey/)
  await assert.rejects(requestToken(agent, 'made', 'default'), isForbidden)
})

test('R2.19 the account that other agents declare is made as well, and the one declared before goes', async (t) => {
  const { agent } = await tokenAddOn(t, 'theirs')

  await declare(agent, 'theirs', 'hello', 'token', userOf('theirs', 'hello-agent'))

  await conditionOf(admin, 'theirs', 'hello', ready, (one) => one?.message.includes('theirs/hello-agent ') ?? false)
  await eventually(async () =>
    assert.deepEqual((await partsOf('theirs')).toSorted(), [
      'Role hello-token-role',
      'RoleBinding hello-token-role',
      'ServiceAccount hello-agent',
    ]),
  )
})

test('R2.19 a subject that is no account of the add-on gets nothing, takes away what was there, and says what to declare', async (t) => {
  const { agent } = await tokenAddOn(t, 'liar')
  const subjects = [
    'system:serviceaccount:liar:default',
    'system:serviceaccount:kube-system:liar-hello-agent',
    'system:serviceaccount:liar:liar-other-agent',
    'system:serviceaccount:liar:liar-hello-agent:x',
    'system:admin',
    '',
  ]
  for (const user of subjects) {
    await declare(agent, 'liar', 'hello', 'token', { user })
    const refused = await conditionOf(admin, 'liar', 'hello', ready, (one) => one?.reason === 'SubjectRefused')
    assert.match(refused!.message, /must declare system:serviceaccount:liar:liar-hello-agent/)
    await goneFrom('liar')
    await declare(agent, 'liar', 'hello', 'token', userOf('liar', 'liar-hello-agent'))
    await readyAccount('liar', 'hello')
  }
})

test('R2.21 what is removed or changed comes back, and the message tells the new UID', async (t) => {
  const { account } = await tokenAddOn(t, 'drift')
  await admin.of(ServiceAccount, 'drift').delete('drift-hello-agent')
  const again = await conditionOf(
    admin,
    'drift',
    'hello',
    ready,
    (one) => one?.status === 'True' && !one.message.includes(account.uid),
  )
  const { metadata } = await admin.of(ServiceAccount, 'drift').get('drift-hello-agent')
  assert.equal(readTokenReady(again!.message)?.uid, metadata.uid)

  const breakages: (() => Promise<unknown>)[] = [
    () => admin.of(Role, 'drift').delete('hello-token-role'),
    () => admin.of(RoleBinding, 'drift').delete('hello-token-role'),
    () =>
      admin.of(Role, 'drift').patch('hello-token-role', {
        merge: { rules: [{ apiGroups: [''], resources: ['serviceaccounts/token', 'secrets'], verbs: ['*'] }] },
      }),
    () =>
      admin
        .of(RoleBinding, 'drift')
        .patch('hello-token-role', { merge: { subjects: [{ kind: 'User', name: 'eve' }] } }),
    () => admin.of(Role, 'drift').patch('hello-token-role', { merge: { metadata: { labels: null } } }),
    () => admin.of(RoleBinding, 'drift').patch('hello-token-role', { merge: { metadata: { labels: null } } }),
    () => admin.of(ServiceAccount, 'drift').patch('drift-hello-agent', { merge: { metadata: { labels: null } } }),
  ]
  for (const breakIt of breakages) {
    const before = await snapshot('drift')
    await breakIt()
    await eventually(async () => assert.deepEqual(await snapshot('drift'), before), { timeoutMs: 60_000 })
  }
})

const snapshot = async (cluster: string) => {
  const role = await admin.of(Role, cluster).get('hello-token-role')
  const binding = await admin.of(RoleBinding, cluster).get('hello-token-role')
  const account = await admin.of(ServiceAccount, cluster).get(`${cluster}-hello-agent`)
  return [
    [role.rules, role.metadata.labels],
    [binding.subjects, binding.roleRef, binding.metadata.labels],
    [account.metadata.uid, account.metadata.labels],
  ]
}

test('R2.42 a change away from token removes account, role and condition, and a change back makes them anew', async (t) => {
  const { agent, account } = await tokenAddOn(t, 'switch')
  const token = await requestToken(agent, 'switch', account.account)
  for (const _ of [1, 2, 3]) {
    await declare(agent, 'switch', 'hello', 'csr')
    await goneFrom('switch')
    await conditionOf(admin, 'switch', 'hello', ready, (one) => one === undefined)
    await declare(agent, 'switch', 'hello', 'token', userOf('switch', 'switch-hello-agent'))
    const { uid } = await readyAccount('switch', 'hello')
    assert.notEqual(uid, account.uid)
  }
  await eventually(() =>
    assert.rejects(withToken(plane, token).of(ServiceAccount, 'switch').get('default'), isUnauthorized),
  )
})

test('R2.18 an add-on that is being deleted keeps its account until it has finished; then all goes', async (t) => {
  const { agent, account } = await tokenAddOn(t, 'ending')
  await admin
    .of(ManagedClusterAddOn, 'ending')
    .patch('hello', { merge: { metadata: { finalizers: ['example.com/still-busy'] } } })
  await admin.of(ManagedClusterAddOn, 'ending').delete('hello')
  // Something must have been seen of the deletion before its absence of effect means anything.
  await admin.of(ServiceAccount, 'ending').delete(account.account)
  await conditionOf(
    admin,
    'ending',
    'hello',
    ready,
    (one) => one?.status === 'True' && !one.message.includes(account.uid),
  )
  assert.match(await requestToken(agent, 'ending', account.account), /^ey/)

  await admin.of(ManagedClusterAddOn, 'ending').patch('hello', { merge: { metadata: { finalizers: null } } })
  await goneFrom('ending')
})

test('R2.37 a denied cluster loses the accounts of its add-ons at once, and gets them back when it is accepted', async (t) => {
  const { agent, account } = await tokenAddOn(t, 'denied')
  await setAccepts(admin, 'denied', false)
  await goneFrom('denied')
  const said = await conditionOf(admin, 'denied', 'hello', ready, (one) => one?.reason === 'ClusterNotAccepted')
  assert.match(said!.message, /clusteradm accept --clusters denied/)
  await assert.rejects(requestToken(agent, 'denied', account.account), isForbidden)
  await setAccepts(admin, 'denied', true)
  await readyAccount('denied', 'hello')
})

test('R2.37 an account that somebody else made is never handed out, and the condition says what to do', async (t) => {
  await runAddOnHub(t, plane)
  await createClusters(admin, ['foreign'])
  await admin.of(ServiceAccount, 'foreign').create({ metadata: { name: 'hello-agent', namespace: 'foreign' } })
  await enable(admin, 'foreign', 'hello')
  const agent = asCluster(plane, 'foreign')
  await declare(agent, 'foreign', 'hello', 'token', userOf('foreign', 'hello-agent'))
  const said = await conditionOf(admin, 'foreign', 'hello', ready, (one) => one?.status === 'False')
  assert.match(said!.message, /kubectl delete serviceaccount --namespace foreign hello-agent/)
  await assert.rejects(requestToken(agent, 'foreign', 'hello-agent'), isForbidden)
  await admin.of(ManagedClusterAddOn, 'foreign').delete('hello') // or each hub after it tries again from time to time
})

test('R2.37 two add-ons whose account names collide do not share an account', async (t) => {
  // "foo" of cluster "twin" declares twin-foo-agent; so does "twin-foo" in the form that other agents use.
  const { agent } = await tokenAddOn(t, 'twin', 'foo')
  await enable(admin, 'twin', 'twin-foo')
  await declare(agent, 'twin', 'twin-foo', 'token', userOf('twin', 'twin-foo-agent'))
  const said = await conditionOf(admin, 'twin', 'twin-foo', ready, (one) => one?.status === 'False')
  assert.match(said!.message, /belongs to add-on foo/)
  await readyAccount('twin', 'foo')
})

test('R2.18 what was left behind while the hub was away is removed when it comes back', async (t) => {
  const hub = await runAddOnHub(t, plane)
  await createClusters(admin, ['away'])
  await enable(admin, 'away', 'hello')
  await declare(asCluster(plane, 'away'), 'away', 'hello', 'token', userOf('away', 'away-hello-agent'))
  await readyAccount('away', 'hello')
  await hub.stop()
  await admin.of(ManagedClusterAddOn, 'away').delete('hello')
  await runAddOnHub(t, plane)
  await goneFrom('away')
})

test('R2.20 a hub with nothing to do writes nothing, also after a restart', async (t) => {
  const { agent } = await tokenAddOn(t, 'idle')
  await enable(admin, 'idle', 'second', { metadata: { annotations: { [annotation.installNamespace]: 'elsewhere' } } })
  await declare(agent, 'idle', 'second', 'token', userOf('idle', 'second-agent'))
  await readyAccount('idle', 'second')
  const userAgent = 'restarted-hub'
  const { hub } = await runAddOnHub(t, plane, { userAgent })
  await eventually(() => hub.manager.unready().length === 0)
  await quiet(plane, userAgent)
  const { writes, entries } = await plane.requestsBy(userAgent)
  assert.equal(writes, 0, JSON.stringify(entries.filter(({ verb }) => !['get', 'list', 'watch'].includes(verb))))
})
