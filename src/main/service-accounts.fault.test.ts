import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import {
  accept,
  eventually,
  rounds,
  seededRandom,
  sendTo,
  startAgent,
  startControlPlane,
  startHub,
  type ControlPlane,
} from '../../testkit/index.ts'
import { isAtWork, Kills } from '../../testkit/kills.ts'
import { ManagedClusterAddOn, ManagedServiceAccount } from '../api/index.ts'
import { decoded, isNotFound, Secret, ServiceAccount, type KubeObject } from '../kube/index.ts'
import { findCondition, isTrue } from '../runtime/index.ts'
import {
  addOnName,
  agentAccount,
  defaultAgentNamespace as namespace,
  managedSelector,
  userOf,
} from '../serviceaccounts/contract.ts'

/** No garbage collector on the managed cluster: what goes there, the agent has removed. */
let hubPlane: ControlPlane
let managed: ControlPlane
before(async () => {
  ;[hubPlane, managed] = await Promise.all([
    startControlPlane({ audit: false }),
    startControlPlane({ audit: false, controllerManager: false }),
  ])
})
after(() => Promise.all([hubPlane?.stop(), managed?.stop()]))

const cluster = 'c1'
const patience = { timeoutMs: 180_000 }
const hour = 3_600_000

const accounts = () => hubPlane.client().of(ManagedServiceAccount, cluster)
const secrets = () => hubPlane.client().of(Secret, cluster)
const locals = () => managed.client().of(ServiceAccount, namespace)
const tokenOf = async (name: string): Promise<string> => decoded(await secrets().find(name))?.['token'] ?? ''

/** A write that has to succeed in the end, though the hub may be away; what is gone needs no harm. */
const sure = (act: () => Promise<unknown>): Promise<void> =>
  eventually(async () => {
    await act().catch((error: unknown) => {
      if (!isNotFound(error)) throw error
    })
  }, patience)

const ask = (name: string, audience: string): Promise<void> =>
  sure(() =>
    accounts().apply(
      { metadata: { name, namespace: cluster }, spec: { audiences: [audience], rotation: { validity: '2h' } } },
      { fieldManager: 'person', force: true },
    ),
  )

/** Who the managed cluster takes a token for; undefined when for nobody. */
const whoIs = async (token: string, audience: string): Promise<string | undefined> => {
  const { status } = await managed.client().json<{ status: { authenticated?: boolean; user?: { username: string } } }>({
    method: 'POST',
    path: '/apis/authentication.k8s.io/v1/tokenreviews',
    body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token, audiences: [audience] } },
  })
  return status.authenticated ? status.user!.username : undefined
}

/** Waits until all that is said of an account is true now, and its token is taken for it. */
const works = (name: string, audience: string): Promise<string> =>
  eventually(async () => {
    const now = await accounts().get(name)
    for (const type of ['AllServiceAccountPresent', 'SecretCreated', 'TokenReported']) {
      assert.ok(isTrue(now, type), JSON.stringify(now))
      assert.equal(findCondition(now, type)!.observedGeneration, now.metadata.generation, JSON.stringify(now))
    }
    const token = await tokenOf(name)
    assert.equal(await whoIs(token, audience), userOf(namespace, name))
    const { exp } = JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString()) as { exp: number }
    assert.equal(Date.parse(now.status!.expirationTimestamp!), exp * 1000, 'the status is of this very token')
    return token
  }, patience)

/** Waits until hub and cluster have these accounts and Secrets, and no others. */
const exactly = (names: readonly string[]): Promise<void> =>
  eventually(async () => {
    const expected = names.toSorted()
    const named = ({ items }: { items: KubeObject[] }) => items.map(({ metadata }) => metadata.name!).toSorted()
    assert.deepEqual(named(await accounts().list()), expected, 'objects')
    assert.deepEqual(named(await secrets().list({ labelSelector: managedSelector })), expected, 'Secrets')
    assert.deepEqual(named(await locals().list()), [...expected, agentAccount].toSorted(), 'accounts')
  }, patience)

test('R5.15 R5.16 R5.19 R5.20 R5.21 R5.22 hub and agent as real processes, killed at random moments while accounts are asked for, changed, harmed, renewed and deleted, also while the agent is away: in the end there is exactly what is asked for, and its tokens work', async (t) => {
  const random = seededRandom(t)
  const hub = await startHub(hubPlane, { args: ['--lease-seconds=4', '--service-accounts-install-on=*'] })
  await sendTo(managed, hubPlane)
  const agent = await startAgent(managed, cluster, { args: ['--service-accounts'] })
  await accept(hubPlane, cluster)
  await eventually(async () => {
    assert.ok(isTrue(await hubPlane.client().of(ManagedClusterAddOn, cluster).get(addOnName), 'RunsInAgent'))
  }, patience)

  const kills = new Kills(random)
  const harmed = (during: string, act: () => Promise<unknown>): Promise<void> => kills.amid(during, [agent, hub], act)

  /** What is asked for: the audience by name. */
  const wanted = new Map<string, string>()
  /** Tokens of accounts that nobody asks for any more. */
  const ended: { token: string; audience: string }[] = []
  let serial = 0
  const add = async (): Promise<void> => {
    const name = `a${serial++}`
    wanted.set(name, 'x')
    await ask(name, 'x')
  }
  const change = async (): Promise<void> => {
    const name = random.pick([...wanted.keys()])
    const audience = random.pick(['x', 'y', 'z'])
    wanted.set(name, audience)
    await ask(name, audience)
  }
  const drop = async (name: string): Promise<void> => {
    const audience = wanted.get(name)!
    wanted.delete(name)
    const token = await tokenOf(name)
    if (token && (await whoIs(token, audience))) ended.push({ token, audience })
    await sure(() => accounts().delete(name))
  }
  const replace = async (): Promise<void> => {
    const name = random.pick([...wanted.keys()])
    await drop(name)
    wanted.set(name, 'y')
    await ask(name, 'y')
  }
  const merge = (patch: object) => ({ merge: patch })
  const harms: ((name: string) => Promise<unknown>)[] = [
    (name) => secrets().delete(name),
    (name) => secrets().patch(name, merge({ data: { token: 'bWluZQ==' } })),
    (name) => secrets().patch(name, merge({ metadata: { labels: null, ownerReferences: null } })),
    (name) => locals().delete(name),
    (name) => locals().patch(name, merge({ metadata: { labels: null, annotations: null } })),
  ]
  const harm = (): Promise<void> => {
    const [how, name] = [random.pick(harms), random.pick([...wanted.keys()])]
    return sure(() => how(name))
  }
  const some = async (count: number, acts: (() => Promise<void>)[]): Promise<void> => {
    for (let i = 0; i < count; i++) await random.pick(acts)()
  }
  const settled = async (): Promise<Map<string, string>> => {
    await exactly([...wanted.keys()])
    return new Map(
      await Promise.all([...wanted].map(async ([name, audience]) => [name, await works(name, audience)] as const)),
    )
  }

  for (let round = 0; round < rounds(1); round++) {
    await harmed('creation', () => some(3, [add]))
    await harmed('change', () => some(4, [change, replace, harm, harm]))
    const tokens = await settled()

    // Away for so long that a token has nearly ended; meanwhile one was deleted, and one made anew.
    await isAtWork(agent)
    await kills.kill('absence', agent)
    const aged = random.pick([...wanted.keys()])
    const status = {
      expirationTimestamp: new Date(Date.now() + 60_000).toISOString(),
      tokenSecretRef: { lastRefreshTimestamp: new Date(Date.now() - 2 * hour).toISOString() },
    }
    await sure(() => accounts().patch(aged, merge({ status }), { subresource: 'status' }))
    await drop(random.pick([...wanted.keys()].filter((name) => name !== aged)))
    await some(3, [replace, harm, change])
    agent.process.spawn()
    await harmed('return', () => some(1, [add, harm]))
    const renewed = await settled()
    if (wanted.has(aged)) assert.notEqual(renewed.get(aged), tokens.get(aged), 'renewed before its end')
  }
  await harmed('deletion', async () => {
    for (const name of [...wanted.keys()].slice(1)) await drop(name)
  })
  await kills.kill('absence', agent)
  for (const name of wanted.keys()) await drop(name)
  agent.process.spawn()
  await exactly([])
  // An API server remembers for ten seconds whom it has let in.
  for (const { token, audience } of ended)
    await eventually(async () => assert.equal(await whoIs(token, audience), undefined), patience)
  t.diagnostic(`${kills.summary()}; ${serial} accounts, ${ended.length} tokens ended`)
})
