import assert from 'node:assert/strict'
import { createPublicKey } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { addOnEverywhereGroup, addOnGroup, defaultSubject } from '../src/addons/contract.ts'
import { ManagedCluster, ManagedClusterAddOn, ManagedServiceAccount } from '../src/api/index.ts'
import {
  clientFor,
  decoded,
  Namespace,
  Role,
  RoleBinding,
  Secret,
  ServiceAccount,
  type Client,
  type Condition,
} from '../src/kube/index.ts'
import { findCondition, jsonLogger, Manager, Metrics } from '../src/runtime/index.ts'
import { newKey } from '../src/runtime/pki/index.ts'
import { runServiceAccountAgent } from '../src/serviceaccounts/agent/index.ts'
import { addOnName, agentAccount, SecretCreated, TokenReported } from '../src/serviceaccounts/contract.ts'
import { agentRules, applyGuard, startServiceAccounts } from '../src/serviceaccounts/hub/index.ts'
import { installHubCrds } from './add-on-hub.ts'
import type { ControlPlane } from './control-plane.ts'
import { eventually } from './eventually.ts'
import { filesIn } from './flags.ts'
import { jumpingClock } from './jumping-clock.ts'

const slow = { timeoutMs: 60_000 }

/** Where a cluster is: another control plane, or a namespace of the hub's own. */
export interface Where {
  plane: ControlPlane
  namespace: string
}

/** Who the agent of the add-on is on the hub, by certificate. */
export const addOnIdentity = (cluster: string) => ({
  user: defaultSubject('csr', cluster, addOnName).user,
  groups: [addOnGroup(cluster, addOnName), addOnEverywhereGroup(addOnName)],
})

/** The cluster signs its tokens with another key from now on, and takes no token of the one before. */
export const replaceSigningKey = async (plane: ControlPlane): Promise<void> => {
  const { serviceAccountKey, serviceAccountPublicKey } = filesIn(plane.folder)
  const key = newKey()
  await plane.apiServer.kill()
  writeFileSync(serviceAccountKey, key)
  writeFileSync(serviceAccountPublicKey, createPublicKey(key).export({ type: 'spki', format: 'pem' }))
  await plane.apiServer.start()
}

/** A hub that keeps ManagedServiceAccounts, and clusters with agents, in this process. */
export type ServiceAccountScene = Awaited<ReturnType<typeof startServiceAccountScene>>

/** Starts the hub's side; `join` brings clusters. Time is the real one, and can be moved forward. */
export const startServiceAccountScene = async (plane: ControlPlane) => {
  const admin = plane.client()
  const clock = jumpingClock()
  const lines: string[] = []
  const log = jsonLogger((line) => lines.push(line))
  const places = new Map<string, Where>()
  const agents = new Map<string, { stop: AbortController; ended: Promise<void> }>()
  let hub: { stop: AbortController; ended: Promise<void> } | undefined
  await installHubCrds(admin)
  assert.equal(await applyGuard(admin, new AbortController().signal), true)

  const startHub = (): void => {
    const client = plane.client({ user: 'hub', groups: ['system:masters'], userAgent: 'the-hub' })
    const manager = new Manager({ client, clock, log, gracePeriodMs: 0 })
    startServiceAccounts(manager, { client, clock, log })
    const stop = new AbortController()
    hub = { stop, ended: manager.run(stop.signal) }
  }
  const stopHub = async (): Promise<void> => {
    hub?.stop.abort()
    await hub?.ended
    hub = undefined
  }
  const startAgent = (cluster: string, server = plane.server): void => {
    const where = places.get(cluster)!
    const stop = new AbortController()
    const userAgent = `accounts-${cluster}`
    const ended = runServiceAccountAgent(
      {
        hub: plane.client({ ...addOnIdentity(cluster), userAgent, server }),
        local: where.plane.client({ user: 'agent', groups: ['system:masters'], userAgent: `local-${cluster}` }),
        cluster,
        namespace: where.namespace,
        clock,
        log,
        metrics: new Metrics(),
      },
      stop.signal,
    )
    agents.set(cluster, { stop, ended })
  }
  const stopAgent = async (cluster: string): Promise<void> => {
    const agent = agents.get(cluster)
    agents.delete(cluster)
    agent?.stop.abort()
    await agent?.ended
  }
  /** What registration and the add-on manager do. */
  const join = async (
    cluster: string,
    { labels = {}, ...where }: Partial<Where> & { labels?: Record<string, string> } = {},
  ): Promise<void> => {
    const place = { plane, namespace: `agent-of-${cluster}`, ...where }
    places.set(cluster, place)
    await admin.of(Namespace).create({ metadata: { name: cluster } })
    const local = place.plane.client()
    await local.of(Namespace).create({ metadata: { name: place.namespace } })
    await local.of(ServiceAccount).create({ metadata: { name: agentAccount, namespace: place.namespace } })
    const metadata = { name: 'agent', namespace: cluster }
    await admin.of(Role).create({ metadata, rules: [...agentRules] })
    await admin.of(RoleBinding).create({
      metadata,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'agent' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: addOnGroup(cluster, addOnName) }],
    })
    await admin.of(ManagedClusterAddOn).create({ metadata: { name: addOnName, namespace: cluster } })
    await admin.of(ManagedCluster).create({ metadata: { name: cluster, labels }, spec: { hubAcceptsClient: true } })
    startAgent(cluster)
  }

  const local = (cluster: string): Client => places.get(cluster)!.plane.client()
  const namespaceOf = (cluster: string): string => places.get(cluster)!.namespace
  const accounts = (namespace: string) => admin.of(ManagedServiceAccount, namespace)
  const account = (cluster: string, name: string): Promise<ServiceAccount | undefined> =>
    local(cluster).of(ServiceAccount, namespaceOf(cluster)).find(name)
  const create = (
    namespace: string,
    name: string,
    spec: ManagedServiceAccount['spec'] = {},
    metadata: object = {},
  ): Promise<ManagedServiceAccount> => accounts(namespace).create({ metadata: { name, namespace, ...metadata }, spec })
  const token = async (cluster: string, name: string): Promise<string> =>
    decoded(await admin.of(Secret, cluster).get(name))!['token']!
  /** Waits for a condition to say this. */
  const says = (namespace: string, name: string, type: string, status: string, message = /(?:)/): Promise<Condition> =>
    eventually(async () => {
      const now = await accounts(namespace).get(name)
      const found = findCondition(now, type)
      const fresh = found?.observedGeneration === now.metadata.generation
      assert.ok(
        found?.status === status && fresh && message.test(`${found.reason} ${found.message}`),
        JSON.stringify(now),
      )
      return found
    }, slow)
  /** Who the managed cluster takes a token for; undefined when it takes it for nobody. */
  const whoIs = async (cluster: string, bearer: string, audiences?: string[]) => {
    const { status } = await local(cluster).json<{
      status: { authenticated?: boolean; user?: { username: string }; audiences?: string[] }
    }>({
      method: 'POST',
      path: '/apis/authentication.k8s.io/v1/tokenreviews',
      body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token: bearer, audiences } },
    })
    return status.authenticated ? { user: status.user!.username, audiences: status.audiences } : undefined
  }
  /** Waits until all is well and the token in the Secret is taken for the account; gives the token. */
  const works = (cluster: string, name: string, { not, audiences }: { not?: string; audiences?: string[] } = {}) =>
    eventually(async () => {
      const now = await accounts(cluster).get(name)
      for (const type of [SecretCreated.type, TokenReported.type])
        assert.equal(findCondition(now, type)?.status, 'True', JSON.stringify(now))
      const bearer = await token(cluster, name)
      assert.notEqual(bearer, not)
      const seen = await whoIs(cluster, bearer, audiences)
      assert.equal(seen?.user, `system:serviceaccount:${namespaceOf(cluster)}:${name}`)
      return bearer
    }, slow)
  const gone = (cluster: string, name: string): Promise<unknown> =>
    eventually(async () => {
      assert.equal(await account(cluster, name), undefined)
      assert.equal(await admin.of(Secret, cluster).find(name), undefined)
    }, slow)

  startHub()
  return {
    plane,
    admin,
    clock,
    lines,
    join,
    startHub,
    stopHub,
    startAgent,
    stopAgent,
    local,
    namespaceOf,
    accounts,
    account,
    create,
    token,
    says,
    whoIs,
    works,
    gone,
    /** The managed cluster, as whoever holds a token. */
    withToken: (cluster: string, bearer: string): Client => {
      const { server, ca } = places.get(cluster)!.plane
      const credential = { ca, token: bearer }
      return clientFor({ source: 'a token', server, credentials: async () => credential }, { userAgent: 'consumer' })
    },
    stop: async (): Promise<void> => {
      await Promise.all([stopHub(), ...[...agents.keys()].map(stopAgent)])
    },
  }
}
