import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { runAddOnAgent, type AddOnAgentOptions } from '../src/addons/agent/index.ts'
import {
  accountName,
  addOnSecretName,
  TokenInfrastructureReady,
  tokenReadyMessage,
  tokenRoleName,
  type Registration,
} from '../src/addons/contract.ts'
import { label, ManagedClusterAddOn, subject } from '../src/api/index.ts'
import {
  CertificateSigningRequest,
  ClusterRole,
  ClusterRoleBinding,
  clientFor,
  connectionFrom,
  decoded,
  isConflict,
  Namespace,
  parseKubeconfig,
  Role,
  RoleBinding,
  Secret,
  ServiceAccount,
  type Client,
  type Condition,
  type KubeObject,
  type Resource,
} from '../src/kube/index.ts'
import { groupsOf } from '../src/registration/contract.ts'
import { csrAgentDriver } from '../src/registration/drivers/csr/agent.ts'
import { permissionsOf, sharedRoles } from '../src/registration/hub/permissions.ts'
import { jsonLogger, Metrics, setConditions, type ConditionState } from '../src/runtime/index.ts'
import type { ControlPlane } from './control-plane.ts'
import { eventually } from './eventually.ts'
import { jumpingClock, type JumpingClock } from './jumping-clock.ts'
import { approve, ensure, following } from './stand-in-hub.ts'

/** A cluster with an agent that keeps its add-ons' credentials, and the words that tests about it use. */
export interface AddOnScene {
  readonly cluster: string
  readonly hub: Client
  readonly local: Client
  readonly metrics: Metrics
  readonly clock: JumpingClock
  readonly lines: readonly string[]
  readonly userAgent: string
  /** Where its add-ons are installed unless they say otherwise. */
  readonly namespace: string
  /** Creates an add-on with these items, as its own hub controller does: without driver and subject. */
  create(name: string, items?: Registration[], metadata?: KubeObject['metadata']): Promise<void>
  addOn(name: string): Promise<ManagedClusterAddOn>
  /** Changes what the hub says of an add-on. */
  say(name: string, change: (status: Status) => Status): Promise<void>
  /** What the add-on manager does for a declared token: account, role, binding, condition. Says the UID. */
  tokenInfrastructure(name: string, account?: string): Promise<string>
  /** The same, as soon as the add-on declares it; until the scene ends. */
  serveTokens(): void
  /** Approves add-ons' certificate requests until the scene ends. */
  approveCertificates(): void
  condition(name: string, type: string): Promise<Condition | undefined>
  /** Waits for a condition to say this. */
  says(name: string, type: string, status: string, message?: RegExp): Promise<Condition>
  secret(name: string, namespace?: string): Promise<Record<string, string> | undefined>
  /** Waits until the add-on's secret has a credential with which the hub knows it, and says as whom. */
  works(name: string, namespace?: string): Promise<string>
  /** Tokens that were requested so far, by the audit log. */
  tokenRequests(): Promise<number>
  start(change?: Partial<AddOnAgentOptions>): void
  stop(): Promise<void>
}

type Status = NonNullable<ManagedClusterAddOn['status']>

export interface AddOnSceneOptions extends Partial<AddOnAgentOptions> {
  plane: ControlPlane
  cluster: string
  /** How the agent reaches the hub: a proxy, for faults. */
  server?: string
}

/** Starts an agent on a control plane that is hub and managed cluster at once. The hub's CRDs must be there. */
export const startAddOnScene = async (t: TestContext, options: AddOnSceneOptions): Promise<AddOnScene> => {
  const { plane, cluster, server = plane.server, ...given } = options
  const [hub, userAgent, namespace] = [plane.client(), `addon-agent-${cluster}`, `addons-of-${cluster}`]
  await ensure(hub, Namespace, { metadata: { name: cluster } })
  await ensure(hub, Namespace, { metadata: { name: namespace } })
  for (const role of sharedRoles) await ensure(hub, ClusterRole, role)
  const kinds: Record<string, Resource<KubeObject>> = { ClusterRole, ClusterRoleBinding, RoleBinding }
  for (const object of permissionsOf(cluster, 'accepted', { labels: {} }))
    await ensure(hub, kinds[object.kind!]!, object)

  const agent = 'agent1'
  const user = {
    user: subject.agentUser(cluster, agent),
    groups: [...groupsOf(cluster).slice(0, 1), subject.managedClusters],
  }
  const lines: string[] = []
  const clock = jumpingClock()
  const metrics = new Metrics()
  const over = new AbortController()
  const addOns = hub.of(ManagedClusterAddOn, cluster)
  let running: { stop: AbortController; ended: Promise<void> } | undefined

  const scene: AddOnScene = {
    cluster,
    hub,
    local: hub,
    metrics,
    clock,
    lines,
    userAgent,
    namespace,
    create: async (name, items = [{ type: 'kubeClient' }], metadata = {}) => {
      await addOns.create({ metadata: { ...metadata, name, namespace: cluster } })
      await scene.say(name, (status) => ({ ...status, namespace, registrations: items }))
    },
    addOn: (name) => addOns.get(name),
    say: async (name, change) => {
      for (;;)
        try {
          const { status, ...rest } = await addOns.get(name)
          await addOns.updateStatus({ ...rest, status: change(status ?? {}) })
          return
        } catch (error) {
          if (!isConflict(error)) throw error
        }
    },
    tokenInfrastructure: async (name, account = accountName(cluster, name)) => {
      const labels = { [label.tokenInfrastructure]: 'true', [label.tokenAddOnName]: name }
      const metadata = { name: tokenRoleName(name), namespace: cluster, labels }
      await ensure(hub, ServiceAccount, { metadata: { name: account, namespace: cluster, labels } })
      await ensure(hub, Role, {
        metadata,
        rules: [{ apiGroups: [''], resources: ['serviceaccounts/token'], resourceNames: [account], verbs: ['create'] }],
      })
      await ensure(hub, RoleBinding, {
        metadata,
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: tokenRoleName(name) },
        subjects: groupsOf(cluster).map((of) => ({ kind: 'Group', apiGroup: 'rbac.authorization.k8s.io', name: of })),
      })
      const uid = (await hub.of(ServiceAccount, cluster).get(account)).metadata.uid!
      await scene.say(name, saying(TokenInfrastructureReady.ready(tokenReadyMessage(cluster, account, uid))))
      return uid
    },
    serveTokens: () => {
      void following(addOns, over.signal, async ({ metadata, status }) => {
        const item = status?.registrations?.find(({ type }) => type === 'kubeClient')?.kubeClient
        const ready = status?.conditions?.some(({ type }) => type === TokenInfrastructureReady.type)
        if (item?.driver === 'token' && !ready) await scene.tokenInfrastructure(metadata.name!)
        if (item?.driver !== 'token' && ready) {
          await hub.of(ServiceAccount, cluster).delete(accountName(cluster, metadata.name!))
          await scene.say(metadata.name!, (all) => ({
            ...all,
            conditions: all.conditions?.filter(({ type }) => type !== TokenInfrastructureReady.type),
          }))
        }
      })
    },
    approveCertificates: () => {
      const csrs = hub.of(CertificateSigningRequest)
      void following(csrs, over.signal, async (csr) => {
        if (csr.status?.conditions?.length || csr.metadata.labels?.[label.clusterName] !== cluster) return
        await approve(hub, csr)
      })
    },
    condition: async (name, type) => (await addOns.get(name)).status?.conditions?.find((one) => one.type === type),
    says: (name, type, status, message = /(?:)/) =>
      eventually(
        async () => {
          const all = (await addOns.get(name)).status
          const found = all?.conditions?.find((one) => one.type === type)
          assert.ok(found?.status === status && message.test(found.message), JSON.stringify(all))
          return found
        },
        { timeoutMs: 60_000 },
      ),
    secret: async (name, where = namespace) => decoded(await hub.of(Secret, where).find(name)),
    works: (name, where) =>
      eventually(
        async () => {
          const data = await scene.secret(addOnSecretName.kubeClient(name), where)
          assert.ok(data?.['kubeconfig'], `secret of ${name}: ${Object.keys(data ?? {}).join()}`)
          return whoIs(data)
        },
        { timeoutMs: 60_000 },
      ),
    tokenRequests: async () => {
      const { entries } = await plane.requestsBy(userAgent)
      return entries.filter(({ subresource, verb }) => verb === 'create' && subresource === 'token').length
    },
    start: (change = {}) => {
      const stop = new AbortController()
      const address = { source: 'the test', server, ca: plane.ca, clusterEntry: 'hub' }
      const ended = runAddOnAgent(
        {
          hub: plane.client({ ...user, userAgent, server }),
          local: plane.client({ user: 'addon-agent', groups: ['system:masters'], userAgent: `local-${userAgent}` }),
          address,
          identity: { cluster, agent },
          owner: `agent-of-${cluster}`,
          driver: 'token',
          certificateFor: (of) => csrAgentDriver().forAddOn(of),
          clock,
          log: jsonLogger((line) => lines.push(line)),
          metrics,
          ...given,
          ...change,
        },
        stop.signal,
      )
      running = { stop, ended }
    },
    stop: async () => {
      running?.stop.abort()
      await running?.ended
      running = undefined
    },
  }
  t.after(async () => {
    over.abort()
    await scene.stop()
  })
  scene.start()
  return scene
}

/** For `say`: a condition of the hub's. */
export const saying =
  (state: ConditionState) =>
  (status: Status): Status => ({
    ...status,
    conditions: setConditions(status.conditions, [state], { now: Date.now() }),
  })

/** The hub with the credential in a secret, as an add-on uses it that mounts the secret. */
export const asAddOn = async (data: Record<string, string>): Promise<Client> => {
  const kubeconfig = await parseKubeconfig(inlined(data), { source: 'the secret' })
  return clientFor(connectionFrom(kubeconfig, { env: {} }), { userAgent: 'the-add-on' })
}

/** Uses the credential in a secret, and says who the hub takes it for. */
export const whoIs = async (data: Record<string, string>): Promise<string> => {
  const client = await asAddOn(data)
  try {
    return await whoAmI(client)
  } finally {
    client.close()
  }
}

/** Who the hub takes a client for. */
export const whoAmI = async (client: Client): Promise<string> => {
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }
  const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
  const { status } = await client.json<{ status: { userInfo: { username: string } } }>({ method: 'POST', path, body })
  return status.userInfo.username
}

/** The files beside the kubeconfig, put into it: what mounting the secret as a folder does. */
const inlined = (data: Record<string, string>): string => {
  const base64 = (key: string): string => Buffer.from(data[key] ?? '').toString('base64')
  return data['kubeconfig']!.replace(/tokenFile: token$/m, `token: ${data['token']}`)
    .replace(/client-certificate: tls\.crt$/m, `client-certificate-data: ${base64('tls.crt')}`)
    .replace(/client-key: tls\.key$/m, `client-key-data: ${base64('tls.key')}`)
}
