import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { podsByCluster } from '../../../examples/pods.ts'
import { eventually, rounds, startControlPlane, type ControlPlane } from '../../../testkit/index.ts'
import { allow, rule } from '../../../testkit/people.ts'
import { startTokenScene, type TokenScene } from '../../../testkit/token-scene.ts'
import { ManagedCluster, ManagedClusterSet, ManagedServiceAccount } from '../../api/index.ts'
import { clientFor, connectionFrom, parseKubeconfig, Secret, type Client } from '../../kube/index.ts'
import { managedLabels } from '../contract.ts'
import { openTokens, type TokenError, type Tokens, type TokensOptions } from './index.ts'

/** `c1` is a cluster of its own, and the hub manages itself as `c2`. */
let hub: ControlPlane
let other: ControlPlane
let scene: TokenScene
const slow = { timeoutMs: 60_000 }

before(async () => {
  ;[hub, other] = await Promise.all([
    startControlPlane({ controllerManager: false }),
    startControlPlane({ controllerManager: false, audit: false }),
  ])
  scene = await startTokenScene(hub)
  await scene.join('c1', other, { region: 'eu', 'cluster.open-cluster-management.io/clusterset': 'blue' })
  await scene.join('c2', hub, { region: 'us' })
  for (const cluster of ['c1', 'c2']) await scene.account(cluster, 'reader', { team: 'a' })
})
after(() => Promise.all([hub?.stop(), other?.stop()]))

const open = async (t: { after(run: () => void): void }, options: Partial<TokensOptions> = {}): Promise<Tokens> => {
  const tokens = await openTokens({ client: hub.client(), patienceMs: 60_000, ...options })
  t.after(() => tokens.close())
  return tokens
}

interface Review {
  status: { userInfo: { username: string; extra: Record<string, string[]> } }
}
const whoIs = async (client: Client): Promise<{ user: string; id: string }> => {
  const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }
  const { username, extra } = (await client.json<Review>({ method: 'POST', path, body })).status.userInfo
  return { user: username, id: extra['authentication.kubernetes.io/credential-id']?.[0] ?? '' }
}
const isRefused = async (plane: ControlPlane, token: string): Promise<boolean> => {
  const credential = { ca: plane.ca, token }
  const client = clientFor({ source: 'an old token', server: plane.server, credentials: async () => credential })
  try {
    return await whoIs(client).then(
      () => false,
      (error: { status?: number }) => error.status === 401,
    )
  } finally {
    client.close()
  }
}

test('R5.24 R5.26 a program on the hub reads pods on two managed clusters, through rotations and the end of each old token, without one failed request', async (t) => {
  const clusters = ['c1', 'c2'] as const
  const plane = { c1: other, c2: hub }
  const current = { c1: await scene.rotate('c1', 'reader'), c2: await scene.rotate('c2', 'reader') }
  const tokens = await open(t, { name: 'reader', patienceMs: 0 })

  let reads = 0
  const over = new AbortController()
  t.after(() => over.abort())
  const failures: unknown[] = []
  const reading = (async () => {
    while (!over.signal.aborted) {
      await podsByCluster(tokens)
        .then((pods) => assert.deepEqual(Object.fromEntries(pods), { c1: 0, c2: 0 }))
        .catch((error: unknown) => failures.push(error))
      reads++
      await sleep(20) // a program that only reads would take the machine away from the API servers
    }
  })()

  const ended: { cluster: 'c1' | 'c2'; token: string }[] = []
  for (let round = 0; round < rounds(3); round++) {
    for (const cluster of clusters) {
      const old = current[cluster]
      current[cluster] = await scene.rotate(cluster, 'reader')
      await eventually(async () => {
        const { user, id } = await whoIs(tokens.clientFor(cluster))
        assert.equal(user, 'system:serviceaccount:open-cluster-management-agent-addon:reader')
        assert.equal(id, current[cluster].id)
      }, slow)
      await old.revoke()
      ended.push({ cluster, token: old.token })
    }
  }
  // The API server remembers for ten seconds whom it has let in.
  await Promise.all(ended.map(({ cluster, token }) => eventually(() => isRefused(plane[cluster], token), slow)))
  const before = reads
  await eventually(() => reads > before + 1, slow)
  over.abort()
  await reading
  assert.deepEqual(failures, [])
})

test('R5.26 a request whose token was revoked waits for the next one, and a missing token is waited for', async (t) => {
  // Not used before it is revoked: the API server remembers for ten seconds whom it has let in.
  const old = await scene.rotate('c1', 'reader')
  const tokens = await open(t, { clusters: ['c1'], name: 'reader' })
  const client = tokens.clientFor('c1')
  await old.revoke()
  await eventually(() => isRefused(other, old.token), slow)
  let answered = false
  const asked = whoIs(client).finally(() => (answered = true))
  const next = await scene.mint('c1', 'reader')
  assert.equal(answered, false)
  await scene.report('c1', 'reader', next)
  assert.equal((await asked).id, next.id)

  await hub.client().of(Secret, 'c1').delete('reader')
  await eventually(() => tokens.list().length === 0, slow)
  const again = whoIs(client)
  const last = await scene.rotate('c1', 'reader')
  assert.equal((await again).id, last.id)
})

test('R5.26 a token that stays refused is told as refused, and one that stays missing with its reason', async (t) => {
  const minted = await scene.rotate('c1', 'reader')
  const tokens = await open(t, { patienceMs: 0 })
  await minted.revoke()
  await eventually(() => isRefused(other, minted.token), slow)
  await assert.rejects(whoIs(tokens.clientFor('c1', 'reader')), /401 Unauthorized.*ManagedServiceAccount c1\/reader/)

  const reasonOf = (cluster: string, name: string): Promise<string> =>
    tokens.kubeconfigFor(cluster, name).then(
      () => 'it is there',
      (error: TokenError) => error.reason,
    )
  assert.equal(await reasonOf('c9', 'reader'), 'NoCluster')
  assert.equal(await reasonOf('c1', 'writer'), 'NoAccount')
  await scene.account('c1', 'silent')
  await eventually(async () => (await reasonOf('c1', 'silent')) === 'NoToken', slow)

  // Whoever may write Secrets in the namespace could put one there that looks like a token.
  const forged = { name: 'silent', namespace: 'c1', labels: { ...managedLabels } }
  await hub
    .client()
    .of(Secret)
    .create({ metadata: forged, data: { token: 'Zm9yZ2Vk' } })
  await eventually(async () => (await reasonOf('c1', 'silent')) === 'NotAToken', slow)
  assert.equal(tokens.get('c1', 'silent'), undefined)
  assert.throws(() => tokens.clientFor('c1'), /say which ManagedServiceAccount/)
})

test('R5.26 tokens are found by cluster, set and labels, and told when they come, are renewed and go', async (t) => {
  await hub
    .client()
    .of(ManagedClusterSet)
    .create({ metadata: { name: 'blue' }, spec: {} })
  for (const cluster of ['c1', 'c2']) await scene.rotate(cluster, 'reader')
  const found = async (options: Partial<TokensOptions>): Promise<string[]> =>
    (await open(t, options)).list().map(({ cluster, name }) => `${cluster}/${name}`)
  assert.deepEqual(await found({}), ['c1/reader', 'c2/reader'])
  assert.deepEqual(await found({ clusters: ['c2'] }), ['c2/reader'])
  assert.deepEqual(await found({ clusters: ['c1', 'c2'], name: 'writer' }), [])
  assert.deepEqual(await found({ clusterSet: 'blue' }), ['c1/reader'])
  assert.deepEqual(await found({ clusterSet: 'red' }), [])
  assert.deepEqual(await found({ clusterSelector: { matchLabels: { region: 'us' } } }), ['c2/reader'])
  assert.deepEqual(await found({ selector: { matchLabels: { team: 'b' } } }), [])

  const tokens = await open(t, { clusterSet: 'blue' })
  const told: string[] = []
  tokens.on({
    added: ({ cluster }) => told.push(`added ${cluster}`),
    changed: ({ cluster }) => told.push(`changed ${cluster}`),
    removed: ({ cluster }) => told.push(`removed ${cluster}`),
  })
  assert.deepEqual(told, ['added c1'])
  const expires = tokens.get('c1', 'reader')!.expires!.getTime()
  assert.ok(expires > Date.now())
  const clusters = hub.client().of(ManagedCluster)
  const inSet = (set: string | null) => ({
    merge: { metadata: { labels: { 'cluster.open-cluster-management.io/clusterset': set } } },
  })
  await clusters.patch('c2', inSet('blue'))
  await eventually(() => assert.deepEqual(told, ['added c1', 'added c2']), slow)
  await clusters.patch('c2', inSet(null))
  await eventually(() => assert.deepEqual(told.slice(2), ['removed c2']), slow)
  await scene.rotate('c1', 'reader')
  await eventually(() => assert.ok(told.slice(3).includes('changed c1')), slow)
  assert.ok(!JSON.stringify(tokens.list()).includes('ey'), 'what can be logged holds no token')
})

test('R5.26 a kubeconfig has what a client needs; a cluster that moved is not given its token at the old address', async (t) => {
  await scene.rotate('c1', 'reader')
  const tokens = await open(t, { name: 'reader', patienceMs: 0 })
  const kubeconfig = await parseKubeconfig(await tokens.kubeconfigFor('c1'), { source: 'the kubeconfig' })
  const client = clientFor(connectionFrom(kubeconfig))
  t.after(() => client.close())
  assert.match((await whoIs(client)).user, /:reader$/)

  const before = tokens.clientFor('c1')
  const moveTo = (url: string) =>
    hub
      .client()
      .of(ManagedCluster)
      .patch('c1', { merge: { spec: { managedClusterClientConfigs: [{ url }] } } })
  const elsewhere = other.server.replace('127.0.0.1', 'localhost')
  await moveTo(elsewhere)
  await eventually(() => assert.equal(tokens.get('c1')?.server, elsewhere), slow)
  await assert.rejects(whoIs(before), (error: TokenError) => error.reason === 'Moved')
  assert.match((await whoIs(tokens.clientFor('c1'))).user, /:reader$/)

  await moveTo('http://plain.example.com')
  await eventually(() => assert.equal(tokens.get('c1'), undefined), slow)
  await assert.rejects(whoIs(before), /does not know where c1 is: set spec.managedClusterClientConfigs/)
  await moveTo(other.server)
})

test('R5.26 for one cluster, rights in its namespace are enough; without rights it says which are missing', async (t) => {
  await scene.rotate('c1', 'reader')
  const admin = hub.client()
  await allow(admin, 'kim', [rule('list,watch', 'managedclusters.cluster.open-cluster-management.io')])
  const kim = hub.client({ user: 'kim' })
  await assert.rejects(open(t, { client: kim, clusters: ['c1'], syncTimeoutMs: 3000 }), (error: Error) => {
    assert.match(error.message, /has not shown its managedserviceaccounts, secrets within 3 s.*may list and watch/)
    return true
  })
  const accounts = `managedserviceaccounts.${ManagedServiceAccount.group}`
  await allow(admin, 'kim', [rule('list,watch', 'secrets'), rule('list,watch', accounts)], { namespace: 'c1' })
  const tokens = await eventually(() => open(t, { client: kim, clusters: ['c1'], syncTimeoutMs: 30_000 }), slow)
  assert.deepEqual(
    tokens.list().map(({ cluster }) => cluster),
    ['c1'],
  )
})
