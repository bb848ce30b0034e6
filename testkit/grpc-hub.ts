import { startAddOns, type AddOn } from '../src/addons/hub/index.ts'
import { label, ManagedCluster, ManifestWork, signer, subject } from '../src/api/index.ts'
import {
  EventClient,
  heartbeatType,
  makeEvent,
  readEvent,
  attribute,
  type CloudEvent,
  type EventClientOptions,
  type EventParts,
  type ReadEvent,
  type Subscription,
} from '../src/events/index.ts'
import { mayAccess, Namespace, Secret, type Client, type Credential, type KubeObject } from '../src/kube/index.ts'
import { createRequest, issue, type KeyPair } from '../src/runtime/pki/index.ts'
import { EventRecorder, Manager, silentLogger, systemClock, type Clock, type Logger } from '../src/runtime/index.ts'
import { grpcHubDriver, ownUser, requesterBehind, type GrpcHubOptions } from '../src/registration/drivers/grpc/index.ts'
import type { Endpoint } from '../src/registration/drivers/grpc/hub/index.ts'
import { startRegistration } from '../src/registration/hub/index.ts'
import type { ControlPlane } from './control-plane.ts'
import { installHubCrds } from './add-on-hub.ts'
import { eventually } from './eventually.ts'
import { allowBootstrap } from './lanyard.ts'

export const hubNamespace = 'open-cluster-management-hub'

export interface GrpcHubSettings {
  grpc?: Partial<GrpcHubOptions['grpc']>
  addOns?: readonly AddOn[]
  autoApproval?: boolean
  clock?: Clock
  log?: Logger
  /** The same port again after a restart. */
  port?: number
}

/** A hub's registration, add-ons and gRPC endpoint in this process. */
export interface GrpcHub {
  endpoint: Endpoint
  client: Client
  manager: Manager
  server: string
  ca: string
  /** Signs a client certificate with the endpoint's own authority, as if it had been asked for and approved. */
  certificateFor(
    who: { user: string; groups?: readonly string[] },
    life?: { notBefore?: number; notAfter?: number },
  ): KeyPair
  clientWith(credential: Omit<Credential, 'ca'>, options?: EventClientOptions): EventClient
  /** As the agent of a cluster. */
  asCluster(cluster: string, options?: EventClientOptions): EventClient
  stop(): Promise<void>
}

/** Prepares a control plane: CRDs, the hub's namespace, and a bootstrap user. */
export const prepareGrpcHub = async (plane: ControlPlane): Promise<void> => {
  const admin = plane.client()
  await installHubCrds(admin)
  await admin.of(Namespace).create({ metadata: { name: hubNamespace } })
  await allowBootstrap(plane, 'bootstrap')
}

export const startGrpcHub = async (plane: ControlPlane, settings: GrpcHubSettings = {}): Promise<GrpcHub> => {
  const { clock = systemClock, log = silentLogger, autoApproval = false, addOns = [] } = settings
  const client = plane.client({ user: 'hub', groups: ['system:masters'], userAgent: 'grpc-hub' })
  const manager = new Manager({ client, clock, log, gracePeriodMs: 0 })
  const events = new EventRecorder({ client, controller: 'lanyard.io/registration', instance: 'test', log })
  const gates = { managedClusterAutoApproval: autoApproval, defaultClusterSet: true, resourceCleanup: true }
  const endpointUser = await ownUser(client)
  const driver = grpcHubDriver({
    client,
    gates,
    namespace: hubNamespace,
    events,
    clock,
    log,
    grpc: {
      host: '127.0.0.1',
      port: settings.port ?? 0,
      names: ['127.0.0.1', 'localhost'],
      signingMs: 3_600_000,
      autoApproveUsers: autoApproval ? ['bootstrap'] : [],
      endpointUser,
      ...settings.grpc,
    },
  })
  const drivers = { gates, drivers: [driver], labels: {}, farewellMs: 3_600_000 }
  startRegistration(manager, { client, instance: 'test', log, settings: drivers })
  startAddOns(manager, {
    client,
    manager: true,
    addOns,
    events,
    clock,
    log,
    requesterOf: requesterBehind(endpointUser),
  })
  const end = new AbortController()
  const running = manager.run(end.signal)
  const endpoint = driver.endpoint!
  await Promise.race([eventually(() => endpoint.listening, { timeoutMs: 60_000 }), running])
  const { caBundle } = endpoint.certificates.current()
  const { data } = await client.of(Secret, hubNamespace).get('lanyard-grpc')
  const authority = { cert: caBundle, key: Buffer.from(data!['ca.key']!, 'base64').toString('utf8') }
  const server = `https://127.0.0.1:${endpoint.port}`
  const clients: EventClient[] = []
  const clientWith: GrpcHub['clientWith'] = (credential, options) => {
    const held = { ca: caBundle, ...credential }
    const made = new EventClient({ source: 'test', server, credentials: async () => held }, options)
    clients.push(made)
    return made
  }
  const certificateFor: GrpcHub['certificateFor'] = ({ user, groups = [] }, life = {}) => {
    const { notBefore = Date.now() - 60_000, notAfter = Date.now() + 3_600_000 } = life
    return issue(authority, {
      commonName: user,
      organizations: groups,
      usages: ['client'],
      notBefore: new Date(notBefore),
      notAfter: new Date(notAfter),
    })
  }
  return {
    endpoint,
    client,
    manager,
    server,
    ca: caBundle,
    certificateFor,
    clientWith,
    asCluster: (cluster, options) => clientWith(certificateFor(agentIdentity(cluster)), options),
    stop: async () => {
      for (const one of clients) one.close()
      end.abort()
      await running
      await events.flush()
      client.close()
    },
  }
}

/** The identity in an agent's certificate. */
export const agentIdentity = (cluster: string) => ({
  user: subject.agentUser(cluster, 'agent1'),
  groups: [subject.clusterGroup(cluster), subject.managedClusters],
})

/** An event of an agent, with what is always the same filled in. */
export const said = (
  cluster: string,
  parts: Pick<EventParts, 'dataType' | 'side' | 'action'> & Partial<EventParts>,
): CloudEvent => makeEvent({ source: cluster, cluster, now: Date.now(), ...parts })

/** An object that an agent publishes. */
export const saidObject = (
  cluster: string,
  type: Pick<EventParts, 'dataType' | 'side' | 'action'>,
  object: KubeObject,
  change: Partial<EventParts> = {},
): CloudEvent => said(cluster, { ...type, resourceId: object.metadata.name, data: object, ...change })

/** A subscription with its list: everything that there is, and then what changes. Heartbeats are left out. */
export const listening = async (
  client: EventClient,
  cluster: string,
  of: string,
  held: { resourceID: string; resourceVersion: number }[] = [],
): Promise<{
  listed: ReadEvent[]
  next(): Promise<ReadEvent>
  until(check: (event: ReadEvent) => boolean): Promise<ReadEvent>
  close(): void
}> => {
  const subscription: Subscription = await client.subscribe({ source: cluster, clusterName: cluster, dataType: of })
  const events = subscription[Symbol.asyncIterator]()
  const resync = said(cluster, {
    dataType: of,
    side: 'spec',
    action: 'resync_request',
    data: { resourceVersions: held },
  })
  await client.publish(resync)
  const listed: ReadEvent[] = []
  const raw = async (): Promise<CloudEvent> => {
    const { value, done } = await within(patienceMs, events.next(), `an event of ${of} for ${cluster}`)
    if (done) throw new Error('the subscription has ended')
    return value
  }
  for (;;) {
    const event = await raw()
    if (event.type === heartbeatType && event.attributes.get(attribute.resync) === resync.id) break
    const read = readEvent(event)
    if (read) listed.push(read)
  }
  const next = async (): Promise<ReadEvent> => {
    for (const until = Date.now() + patienceMs; ;) {
      const read = readEvent(await raw())
      if (read) return read
      if (Date.now() > until) throw new Error(`no event of ${of} for ${cluster} within ${patienceMs / 1000} s`)
    }
  }
  const until = async (check: (event: ReadEvent) => boolean): Promise<ReadEvent> => {
    for (;;) {
      const read = await next()
      if (check(read)) return read
    }
  }
  return { listed, next, until, close: () => subscription.close() }
}

/** Heartbeats come for ever: without a limit, a test that waits for what never comes would too. */
const patienceMs = 60_000

const within = async <T>(ms: number, awaited: Promise<T>, what: string): Promise<T> => {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(`${what} did not come within ${ms / 1000} s`)), ms)
  return Promise.race([awaited, promise]).finally(() => clearTimeout(timer))
}

/** A certificate request of a cluster, as its agent makes it. */
export const agentRequest = (cluster: string, name: string, change: { user?: string; groups?: string[] } = {}) => {
  const { user, groups } = { ...agentIdentity(cluster), ...change }
  const { csr, key } = createRequest({ commonName: user, organizations: groups })
  const object = {
    metadata: { name, labels: { [label.clusterName]: cluster } as Record<string, string> },
    spec: {
      request: Buffer.from(csr).toString('base64'),
      signerName: signer.grpc as string,
      usages: ['digital signature', 'key encipherment', 'client auth'],
    },
  }
  return { object, key }
}

/** Accepts a cluster as an administrator does, and waits until it has its rights. */
export const acceptAndWait = async (admin: Client, cluster: string): Promise<void> => {
  await admin.of(ManagedCluster).patch(cluster, { merge: { spec: { hubAcceptsClient: true } } })
  await eventually.watching(
    admin.of(ManagedCluster),
    (all) =>
      all
        .find(({ metadata }) => metadata.name === cluster)
        ?.status?.conditions?.some(({ type, status }) => type === 'HubAcceptedManagedCluster' && status === 'True') ??
      false,
    { timeoutMs: 60_000 },
  )
}

/** An accepted cluster whose agent may do what an agent may. */
export const joinCluster = async (admin: Client, cluster: string): Promise<void> => {
  await admin.of(ManagedCluster).create({ metadata: { name: cluster }, spec: {} })
  await acceptAndWait(admin, cluster)
  const { user: username, groups } = agentIdentity(cluster)
  const works = { group: 'work.open-cluster-management.io', resource: 'manifestworks', namespace: cluster }
  await eventually(() => mayAccess(admin, { username, groups }, { ...works, verb: 'watch' }), { timeoutMs: 60_000 })
}

/** A work with one ConfigMap of its name. */
export const createWork = (admin: Client, cluster: string, name: string, data = 'one'): Promise<ManifestWork> =>
  admin.of(ManifestWork, cluster).create({
    metadata: { name, namespace: cluster },
    spec: {
      workload: {
        manifests: [{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default' }, data: { data } }],
      },
    },
  })

/** A condition as an agent reports it. */
export const toldCondition = (type: string, status: 'True' | 'False', at = '2026-01-01T00:00:00Z') => ({
  type,
  status,
  reason: 'Test',
  message: '',
  lastTransitionTime: at,
})
