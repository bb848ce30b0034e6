import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { failureOf } from '../../testkit/failures.ts'
import { startControlPlane, type ControlPlane } from '../../testkit/index.ts'
import {
  clientFor,
  ConfigMap,
  connectionFrom,
  isAlreadyExists,
  isConflict,
  isForbidden,
  isInvalid,
  isNotFound,
  isUnauthorized,
  loadKubeconfig,
  Namespace,
  resource,
  type Client,
  type Credential,
  type KubeObject,
} from './index.ts'

interface Review extends KubeObject {
  status?: { userInfo: { username: string; uid?: string; groups: string[]; extra?: Record<string, string[]> } }
}
const SelfSubjectReview = resource<Review>({
  group: 'authentication.k8s.io',
  version: 'v1',
  kind: 'SelfSubjectReview',
  plural: 'selfsubjectreviews',
  namespaced: false,
})

let plane: ControlPlane
before(async () => (plane = await startControlPlane({ controllerManager: false })))
after(() => plane?.stop())

const whoAmI = async (client: Client) => (await client.of(SelfSubjectReview).create({ metadata: {} })).status!.userInfo

const credentialOf = (user: string, groups: string[] = []): Promise<Credential> =>
  plane.client({ user, groups }).connection.credentials()

test('R0.8 a client is who its certificate says, and is known in the audit log by its user agent', async (t) => {
  const client = plane.client({ user: 'ada', groups: ['a', 'b'], userAgent: 'lanyard-hub/1.2 (acceptance)' })
  const { username, groups } = await whoAmI(client)
  assert.equal(username, 'ada')
  assert.deepEqual(groups, ['a', 'b', 'system:authenticated'])

  const watch = new AbortController()
  await failureOf(client.of(ConfigMap, 'default').watch({ signal: watch.signal }))
  const { byVerb, total } = await plane.requestsBy('lanyard-hub/1.2 (acceptance)')
  assert.deepEqual(byVerb, { create: 1, watch: 1 })
  assert.equal(total, 2)

  const unnamed = clientFor({ ...client.connection })
  t.after(() => unnamed.close())
  await whoAmI(unnamed)
  const agents = (await plane.requestsBy('lanyard')).entries.map(({ userAgent }) => userAgent)
  assert.equal(agents.filter((agent) => agent === 'lanyard').length, 1)
})

test('R0.5 acting as somebody else: exactly that user, uid, groups and extra, over the same connections', async () => {
  const ada = plane.client().as({
    user: 'zoë@example.com',
    uid: '42',
    groups: ['first', 'second group', 'dritte/Gruppe é'],
    extra: { 'example.com/team': ['red', 'blue (dark)'], scopes: ['all'] },
  })
  const { username, uid, groups, extra } = await whoAmI(ada)

  assert.equal(username, 'zoë@example.com')
  assert.equal(uid, '42')
  assert.deepEqual(groups, ['first', 'second group', 'dritte/Gruppe é', 'system:authenticated'])
  assert.deepEqual(extra, { 'example.com/team': ['red', 'blue (dark)'], scopes: ['all'] })
  const error = await failureOf(ada.of(ConfigMap, 'default').watch())
  assert.match(error.message, /User "zoë@example.com" cannot watch resource "configmaps"/)
})

test('R0.5 whoever may not act as somebody else is told so', async () => {
  const error = await failureOf(whoAmI(plane.client({ user: 'eve' }).as({ user: 'ada', groups: ['system:masters'] })))
  assert.ok(isForbidden(error))
  assert.match(error.message, /cannot impersonate/)
})

test('R0.10 a refusal is of one kind, with its reason and details, and names server and source', async () => {
  const configMaps = plane.client().of(ConfigMap, 'default')
  const object = { metadata: { name: 'typed' } }
  const created = await configMaps.create(object)
  const errors = {
    isNotFound: await failureOf(configMaps.get('none')),
    isAlreadyExists: await failureOf(configMaps.create(object)),
    isConflict: await failureOf(
      configMaps.update({ ...created, metadata: { ...created.metadata, resourceVersion: '1' } }),
    ),
    isInvalid: await failureOf(configMaps.create({ metadata: { name: 'No Good' } })),
    isForbidden: await failureOf(plane.client({ user: 'eve' }).of(ConfigMap, 'default').get('typed')),
  }
  const kinds = { isNotFound, isAlreadyExists, isConflict, isInvalid, isForbidden }
  for (const [name, error] of Object.entries(errors))
    for (const [kind, is] of Object.entries(kinds))
      assert.equal(is(error), kind === name, `${kind} of ${error.message}`)

  const { isNotFound: missing, isInvalid: invalid } = errors
  assert.ok(isNotFound(missing) && isInvalid(invalid))
  assert.equal(missing.status, 404)
  assert.deepEqual(missing.details, { name: 'none', kind: 'configmaps' })
  assert.equal(missing.serverMessage, 'configmaps "none" not found')
  assert.equal(invalid.details.causes?.[0]?.field, 'metadata.name')
  assert.match(
    missing.message,
    /^GET \/api\/v1\/namespaces\/default\/configmaps\/none at https:\S+ \(lanyard-testkit of /,
  )
})

test('R0.37 an expired client certificate gives an error with the context, the end date, the server and what to do', async (t) => {
  const path = plane.kubeconfigFor({ user: 'ada', groups: ['system:masters'], ttlMs: -5000 })
  const client = clientFor(connectionFrom(await loadKubeconfig({ path, env: {} })))
  t.after(() => client.close())

  for (const request of [() => client.of(Namespace).list(), () => client.of(Namespace).watch()]) {
    const error = await failureOf(request())
    assert.ok(isUnauthorized(error))
    assert.ok(error.message.includes(plane.server) && error.message.includes(path), error.message)
    assert.match(error.message, /the client certificate expired at 20\d\d-[\d:.T-]+Z; renew it or log in again$/)
  }
})

test('R0.6 after a 401 the new credential is used, for requests and for watches', async (t) => {
  const good = await credentialOf('ada', ['system:masters'])
  let asked = 0
  const client = clientFor({
    ...plane.client().connection,
    credentials: async (about) => {
      if (about?.rejected) asked++
      return about?.rejected ? good : { ca: plane.ca, token: 'not a token' }
    },
  })
  t.after(() => client.close())

  assert.equal((await whoAmI(client)).username, 'ada')
  for await (const batch of await client.of(Namespace).watch({ sendInitialEvents: true })) if (batch.length) break
  assert.equal(asked, 2)
})

test('R0.7 what is under way finishes with the old credential, what is new uses the new one', async (t) => {
  let current = await credentialOf('first', ['system:masters'])
  const client = clientFor({ ...plane.client().connection, credentials: async () => current })
  t.after(() => client.close())
  const configMaps = client.of(ConfigMap, 'default')
  const watch = await configMaps.watch({ sendInitialEvents: true })
  const slow = Array.from({ length: 20 }, () => whoAmI(client))

  const second = await credentialOf('second', ['system:masters'])
  current = second
  const fresh = await Promise.all(Array.from({ length: 20 }, () => whoAmI(client)))

  assert.deepEqual(new Set((await Promise.all(slow)).map((who) => who.username)), new Set(['first']))
  assert.deepEqual(new Set(fresh.map((who) => who.username)), new Set(['second']))
  await configMaps.create({ metadata: { name: 'seen-by-the-old-watch' } })
  const seen: (string | undefined)[] = []
  for await (const batch of watch) {
    seen.push(...batch.map(({ object }) => object.metadata.name))
    if (seen.includes('seen-by-the-old-watch')) break
  }
  assert.equal(seen.at(-1), 'seen-by-the-old-watch')
})

test('R0.7 a token may change with every request, over one connection', async (t) => {
  const { server } = plane
  const tokens = ['one', 'two']
  const client = clientFor({
    source: 'test',
    server,
    credentials: async () => ({ ca: plane.ca, token: tokens.shift() ?? 'x' }),
  })
  t.after(() => client.close())
  for (let request = 0; request < 3; request++) assert.ok(isUnauthorized(await failureOf(whoAmI(client))))
})

test('R0.8 text and version are there to be asked for, and the kubeconfig of the plane works', async (t) => {
  const client = clientFor(connectionFrom(await loadKubeconfig({ path: plane.kubeconfig, env: {} })))
  t.after(() => client.close())
  assert.equal(await client.text({ method: 'GET', path: '/readyz' }), 'ok')
  const version = await client.json<{ gitVersion: string }>({ method: 'GET', path: '/version' })
  assert.match(version.gitVersion, /^v1\./)
  assert.ok(isNotFound(await failureOf(client.json({ method: 'GET', path: '/apis/none.example/v1' }))))
  assert.ok(readFileSync(plane.kubeconfig, 'utf8').includes(plane.server))
})
