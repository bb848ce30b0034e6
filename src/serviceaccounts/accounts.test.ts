import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eventually, startControlPlane, type ControlPlane } from '../../testkit/index.ts'
import {
  replaceSigningKey,
  startServiceAccountScene,
  type ServiceAccountScene,
} from '../../testkit/service-account-scene.ts'
import { label, ManagedServiceAccount } from '../api/index.ts'
import { ConfigMap, Secret, ServiceAccount } from '../kube/index.ts'
import { agentAccount, mark } from './contract.ts'

/** One control plane is hub and managed cluster at once; there is no garbage collector: what goes, we have removed. */
let plane: ControlPlane
let scene: ServiceAccountScene
const c = 'c1'
const slow = { timeoutMs: 60_000 }
before(async () => {
  plane = await startControlPlane({ controllerManager: false })
  scene = await startServiceAccountScene(plane)
  await scene.join(c)
})
after(async () => {
  await scene?.stop()
  await plane?.stop()
})

const secrets = () => scene.admin.of(Secret, c)
const locals = () => scene.local(c).of(ServiceAccount, scene.namespaceOf(c))
const base64 = (text: string) => Buffer.from(text).toString('base64')
const drop = async (name: string) => {
  await scene.accounts(c).delete(name)
  await scene.gone(c, name)
}
const digest = async (name: string) => (await scene.accounts(c).get(name)).status?.tokenSecretRef?.digest
/** Waits until a token is taken for nobody; an API server may remember for ten seconds that it was good. */
const dies = (token: string) => eventually(async () => assert.equal(await scene.whoIs(c, token), undefined), slow)
/** Nothing is going on any more: what is said of the token is what the Secret holds. */
const settled = (name: string) =>
  eventually(async () => {
    const annotation = (await secrets().get(name)).metadata.annotations?.[mark.digest]
    assert.equal(annotation, await digest(name))
  }, slow)

test('R5.7 R5.12 R5.13 R5.17 R5.18 R5.22 R5.24 an object on the hub is an account on the cluster, and its token is on the hub and works there as that account, for its audiences alone', async () => {
  await scene.create(c, 'first', { audiences: ['foo', 'bar'], rotation: { validity: '1h' } })
  const token = await scene.works(c, 'first', { audiences: ['foo'] })
  const user = `system:serviceaccount:${scene.namespaceOf(c)}:first`
  assert.deepEqual(await scene.whoIs(c, token, ['foo', 'bar', 'baz']), { user, audiences: ['foo', 'bar'] })
  assert.equal(await scene.whoIs(c, token), undefined, 'it is not for the API server')

  const account = await scene.account(c, 'first')
  assert.equal(account!.metadata.labels![label.isManagedServiceAccount], 'true')
  assert.equal(account!.automountServiceAccountToken, false)
  const now = await scene.accounts(c).get('first')
  const secret = await secrets().get('first')
  assert.equal(secret.type, 'Opaque')
  assert.deepEqual(Object.keys(secret.data!).toSorted(), ['ca.crt', 'token'])
  assert.equal(Buffer.from(secret.data!['ca.crt']!, 'base64').toString(), plane.ca)
  const { apiVersion, kind, name, uid } = secret.metadata.ownerReferences![0]!
  assert.deepEqual(
    [apiVersion, kind, name, uid],
    ['authentication.open-cluster-management.io/v1beta1', 'ManagedServiceAccount', 'first', now.metadata.uid],
  )
  assert.equal(now.status?.tokenSecretRef?.name, 'first')
  const lifetime =
    Date.parse(now.status.expirationTimestamp!) - Date.parse(now.status.tokenSecretRef.lastRefreshTimestamp)
  assert.ok(Math.abs(lifetime - 3_600_000) < 60_000, `${lifetime}`)
  await scene.says(c, 'first', 'AllServiceAccountPresent', 'True', /first is there/)

  await scene.create(c, 'plain')
  const plain = await scene.works(c, 'plain')
  const asIt = scene.withToken(c, plain)
  await assert.rejects(
    asIt.of(ConfigMap, 'default').list(),
    /User "system:serviceaccount:agent-of-c1:plain" cannot list/,
    'R5.25',
  )
  asIt.close()
  assert.ok(!scene.lines.some((line) => line.includes(token) || line.includes(plain)), 'tokens in the log')
  await drop('plain')
  await drop('first')
})

test('R5.20 a token Secret that is deleted, damaged, emptied, replaced, extended or stripped of its marks is restored, whatever was put there', async () => {
  const name = 'drifts'
  await scene.create(c, name)
  let token = await scene.works(c, name)
  const after = async (what: string, change: () => Promise<unknown>, sameToken = false) => {
    await settled(name)
    await change()
    await eventually(async () => {
      const secret = await secrets().get(name)
      assert.deepEqual(Object.keys(secret.data ?? {}).toSorted(), ['ca.crt', 'token'], what)
      assert.equal(secret.metadata.labels?.[label.isManagedServiceAccount], 'true', what)
      assert.equal(secret.metadata.ownerReferences?.length, 1, what)
      assert.equal(Buffer.from(secret.data!['ca.crt']!, 'base64').toString(), plane.ca, what)
      assert.ok(!secret.immutable, what)
    }, slow)
    const next = await scene.works(c, name, sameToken ? {} : { not: token })
    if (sameToken) assert.equal(next, token, what)
    token = next
  }
  const patch = (merge: object) => secrets().patch(name, { merge })
  const jwt = [{ alg: 'none' }, { sub: 'system:serviceaccount:x:y', exp: 99e9, iat: 1 }, {}]
  const forged = jwt.map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')
  await after('deleted', () => secrets().delete(name))
  await after('another JWT', () => patch({ data: { token: base64(forged) } }))
  await after('no JWT', () => patch({ data: { token: base64('rotated-token-1') } }))
  await after('no token', () => patch({ data: { token: null } }))
  await after('nothing at all', () => patch({ data: null }))
  await after('another CA', () => patch({ data: { 'ca.crt': base64('none') } }))
  await after('a key added', () => patch({ data: { more: base64('x') } }), true)
  await after('made immutable', () => patch({ immutable: true }))
  await after('the label removed', () => patch({ metadata: { labels: null } }), true)
  await after('the owner removed', () => patch({ metadata: { ownerReferences: null } }), true)
  await after('taken over', () =>
    patch({
      metadata: {
        labels: { team: 'x', [label.isManagedServiceAccount]: null },
        ownerReferences: null,
        annotations: null,
      },
      data: { token: base64('mine') },
    }),
  )
  await after('taken over while nobody looked', async () => {
    await scene.stopHub()
    await scene.stopAgent(c)
    await patch({ data: { token: base64('mine') } })
    scene.startHub()
    scene.startAgent(c)
  })
  await drop(name)
})

test('R5.20 a Secret that somebody replaced together with its marks is found out, too', async () => {
  const name = 'forged'
  await scene.create(c, name)
  const token = await scene.works(c, name)
  await settled(name)
  // Everything fits, as whoever reads our code would write it; but the agent has reported another one.
  const { contentDigest } = await import('./contract.ts')
  const annotations = { [mark.digest]: contentDigest({ ca: plane.ca, token: 'mine' }) }
  await secrets().patch(name, { merge: { metadata: { annotations }, data: { token: base64('mine') } } })
  await eventually(() => {
    scene.clock.jump(11_000)
    return scene.token(c, name).then((now) => now !== 'mine')
  }, slow)
  await scene.works(c, name, { not: token })
  await drop(name)
})

test('R5.19 an account that is deleted, recreated by others or edited is restored; dead tokens are replaced, living ones are not', async () => {
  const name = 'edited'
  await scene.create(c, name)
  let token = await scene.works(c, name)
  const uid = async () => (await scene.account(c, name))?.metadata.uid
  await locals().delete(name)
  let next = await scene.works(c, name, { not: token })
  await dies(token)
  token = next

  const before = await uid()
  const ours = (check: (account: ServiceAccount) => boolean | undefined) =>
    eventually(async () => assert.ok(check((await scene.account(c, name))!)), slow)
  const patch = (merge: object) => locals().patch(name, { merge })
  await patch({ metadata: { labels: null } })
  await ours(({ metadata }) => metadata.labels?.[label.isManagedServiceAccount] === 'true')
  await patch({ metadata: { labels: null, annotations: null, ownerReferences: null } })
  await ours(({ metadata }) => Boolean(metadata.annotations?.[mark.ownerUid] && metadata.ownerReferences?.length))
  await patch({ automountServiceAccountToken: true })
  await ours(({ automountServiceAccountToken }) => automountServiceAccountToken === false)
  assert.equal(await uid(), before)
  assert.equal(await scene.works(c, name), token)

  // What a cluster's own controllers put on every account stays: they would put it there again.
  await patch({ metadata: { annotations: { 'example.com/added': 'yes' } }, imagePullSecrets: [{ name: 'registry' }] })
  await patch({ metadata: { labels: null } })
  await ours(({ metadata, imagePullSecrets }) =>
    Boolean(metadata.labels && metadata.annotations?.['example.com/added'] && imagePullSecrets?.length),
  )
  assert.equal(await scene.works(c, name), token)

  await scene.stopAgent(c)
  await locals().delete(name)
  await locals().create({
    metadata: { name, namespace: scene.namespaceOf(c), labels: { [label.isManagedServiceAccount]: 'true' } },
  })
  scene.startAgent(c)
  next = await scene.works(c, name, { not: token })
  assert.equal(
    (await scene.account(c, name))!.metadata.annotations?.[mark.ownerUid],
    (await scene.accounts(c).get(name)).metadata.uid,
  )
  await drop(name)
})

test('R5.21 while the agent’s own account is gone, as when the add-on goes, nothing is made that would outlive it', async () => {
  const name = 'orphan'
  await scene.create(c, name)
  const token = await scene.works(c, name)
  const own = await locals().get(agentAccount)
  const said = (): number => scene.lines.filter((line) => line.includes('own account is not there')).length
  const before = said()
  await locals().delete(agentAccount)
  await locals().delete(name) // what the garbage collector does then
  await eventually(() => assert.ok(said() > before), slow)
  assert.equal(await scene.account(c, name), undefined)

  const { uid } = (await locals().create({ metadata: { name: agentAccount } })).metadata
  assert.notEqual(uid, own.metadata.uid)
  await scene.works(c, name, { not: token })
  const { ownerReferences } = (await scene.account(c, name))!.metadata
  assert.deepEqual(
    ownerReferences?.map((owner) => owner.uid),
    [uid],
  )
  await drop(name)
})

test('R5.11 R5.22 an account that somebody else made, and the agent’s own, are never used: the object says so, no token leaves, and all is well when the name is free', async () => {
  const namespace = scene.namespaceOf(c)
  const before = (await plane.requestsBy('local-c1')).entries.filter(
    ({ subresource }) => subresource === 'token',
  ).length
  await locals().create({ metadata: { name: 'theirs', namespace } })
  // Somebody labels the agent's own account: it is still its own.
  const own = await locals().patch('managed-serviceaccount', {
    merge: { metadata: { labels: { [label.isManagedServiceAccount]: 'true' } } },
  })
  for (const name of ['theirs', 'managed-serviceaccount']) {
    await scene.create(c, name)
    await scene.says(c, name, 'AllServiceAccountPresent', 'False', /NameTaken .*choose another name/)
    await scene.says(c, name, 'TokenReported', 'False', /NoServiceAccount/)
    await scene.says(c, name, 'SecretCreated', 'False')
    assert.equal(await secrets().find(name), undefined)
  }
  const theirs = (await scene.account(c, 'theirs'))!
  assert.equal(theirs.metadata.labels, undefined)
  const asked = (await plane.requestsBy('local-c1')).entries.filter(({ subresource }) => subresource === 'token').length
  assert.equal(asked, before, 'tokens were requested')

  await locals().delete('theirs')
  await scene.works(c, 'theirs')
  await scene.says(c, 'theirs', 'AllServiceAccountPresent', 'True')
  // And the other way round: the account is theirs again while the token is on the hub.
  await scene.stopAgent(c)
  await locals().delete('theirs')
  await locals().create({ metadata: { name: 'theirs', namespace } })
  scene.startAgent(c)
  await scene.says(c, 'theirs', 'AllServiceAccountPresent', 'False', /NameTaken/)
  await eventually(async () => assert.equal(await secrets().find('theirs'), undefined), slow)
  for (const name of ['theirs', 'managed-serviceaccount']) await scene.accounts(c).delete(name)
  await eventually(async () => assert.equal(await scene.accounts(c).find('theirs'), undefined))
  assert.ok(await scene.account(c, 'theirs'))
  assert.equal((await scene.account(c, 'managed-serviceaccount'))?.metadata.uid, own.metadata.uid)
  await locals().delete('theirs')
})

test('R5.14 R5.15 R5.16 tokens are renewed by time and when the spec changes; the old one works on; without rotation the end is told', async () => {
  const name = 'turns'
  const minute = 60_000
  await scene.create(c, name, { rotation: { validity: '1h' } })
  const first = await scene.works(c, name)
  scene.clock.jump(40 * minute)
  assert.equal(await scene.works(c, name), first)
  scene.clock.jump(12 * minute)
  const second = await scene.works(c, name, { not: first })
  assert.ok(await scene.whoIs(c, first), 'the old token is good until its own end')
  const change = (spec: object) => scene.accounts(c).patch(name, { merge: { spec } })
  await change({ rotation: { validity: '2h' } })
  const third = await scene.works(c, name, { not: second })
  await change({ audiences: ['vault'] })
  const fourth = await scene.works(c, name, { not: third, audiences: ['vault'] })
  assert.equal(await scene.whoIs(c, fourth), undefined)

  await change({ rotation: { enabled: false } })
  await scene.says(c, name, 'TokenReported', 'True', /^TokenReported/)
  assert.equal(await scene.token(c, name), fourth, 'asking for less asks for no token')
  scene.clock.jump(105 * minute)
  await scene.says(c, name, 'TokenReported', 'True', /TokenExpiresSoon .*rotation.enabled/)
  scene.clock.jump(20 * minute)
  await scene.says(c, name, 'TokenReported', 'False', /TokenExpired .*rotation.enabled/)
  assert.equal(await scene.token(c, name), fourth)
  await change({ rotation: { enabled: true } })
  await scene.works(c, name, { not: fourth, audiences: ['vault'] })
  await drop(name)
})

test('R5.21 deleting the object removes account, Secret and token: also when the agent or the hub was away, and when somebody holds the object', async () => {
  for (const name of ['away', 'held', 'again'])
    await scene.create(c, name, {}, name === 'held' ? { finalizers: ['example.com/held'] } : {})
  const tokens = { away: '', held: '', again: '' }
  for (const name of ['away', 'held', 'again'] as const) tokens[name] = await scene.works(c, name)
  await scene.accounts(c).delete('held')
  await scene.gone(c, 'held')
  assert.ok(await scene.accounts(c).find('held'), 'it is there still, and has nothing')
  await dies(tokens.held)
  await scene.accounts(c).patch('held', { merge: { metadata: { finalizers: null } } })

  await Promise.all([scene.stopAgent(c), scene.stopHub()])
  await scene.accounts(c).delete('away')
  await scene.accounts(c).delete('again')
  await scene.create(c, 'again')
  // What was known of them is gone with the objects; that they belong to the agent is left.
  for (const name of ['away', 'again'])
    await locals().patch(name, { merge: { metadata: { labels: null, annotations: null } } })
  scene.startHub()
  scene.startAgent(c)
  await scene.gone(c, 'away')
  await dies(tokens.away)
  await scene.works(c, 'again', { not: tokens.again })
  await dies(tokens.again)
  await drop('again')
})

test('R5.33 in a steady state nothing is asked of the hub or of the cluster, and a restart of both asks for no token', async () => {
  const names = Array.from({ length: 10 }, (_, i) => `steady-${i}`)
  await Promise.all(names.map((name) => scene.create(c, name)))
  for (const name of names) await scene.works(c, name)
  const cost = async () => {
    const of = await Promise.all(['accounts-c1', 'local-c1', 'the-hub'].map((who) => plane.requestsBy(who)))
    return of.flatMap(({ entries }) => entries).filter(({ uri }) => uri.includes('/steady-')).length
  }
  for (const name of names) await settled(name)
  const before = await cost()
  await Promise.all([scene.stopAgent(c), scene.stopHub()])
  scene.startHub()
  scene.startAgent(c)
  // Whatever comes next comes after what they did at their start.
  await scene.create(c, 'marker')
  await scene.works(c, 'marker')
  await settled('marker')
  assert.equal(await cost(), before)
  await Promise.all([...names, 'marker'].map(drop))
})

test('R5.19 R5.33 R5.35 a cluster that replaces its signing key refuses every token at once: new ones are reported, also when the agent was away and without rotation; while the key stays, none is asked for', async () => {
  const name = 'signed'
  const minute = 60_000
  await scene.create(c, name, { rotation: { enabled: false } })
  const first = await scene.works(c, name)
  const looks = async () =>
    (await plane.requestsBy('local-c1')).entries.filter(({ uri, code }) => uri === '/openid/v1/jwks' && code === 200)
      .length
  const before = await looks()
  scene.clock.jump(60 * minute)
  await eventually(async () => assert.equal(await looks(), before + 1), slow)
  assert.equal(await scene.works(c, name), first)

  await replaceSigningKey(plane)
  assert.equal(await scene.whoIs(c, first), undefined)
  scene.clock.jump(minute)
  const second = await scene.works(c, name, { not: first })

  await scene.stopAgent(c)
  await replaceSigningKey(plane)
  assert.equal(await scene.whoIs(c, second), undefined)
  scene.startAgent(c)
  await scene.works(c, name, { not: second })
  await drop(name)
})

test('R5.1 the older version of the group serves the same object', async () => {
  const old = ManagedServiceAccount.versions.v1alpha1
  await scene.admin.of(old, c).create({ metadata: { name: 'older', namespace: c } })
  await scene.works(c, 'older')
  assert.equal((await scene.admin.of(old, c).get('older')).spec?.rotation?.validity, '8640h0m0s')
  await drop('older')
})
