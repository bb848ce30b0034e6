import type { TestContext } from 'node:test'
import { startAddOns, type AddOn } from '../src/addons/hub/index.ts'
import { allKinds, installCrds, label, ManagedCluster, ManagedClusterAddOn, signer, subject } from '../src/api/index.ts'
import {
  CertificateSigningRequest,
  clientFor,
  isConflict,
  ServiceAccount,
  type Client,
  type Condition,
} from '../src/kube/index.ts'
import { acceptance } from '../src/registration/hub/acceptance.ts'
import { keepSharedRoles } from '../src/registration/hub/shared-roles.ts'
import { Accepted } from '../src/registration/contract.ts'
import { isTrue, Metrics, type Clock, type Logger } from '../src/runtime/index.ts'
import { createRequest } from '../src/runtime/pki/index.ts'
import { runWorkAgent } from '../src/work/agent/index.ts'
import type { ControlPlane } from './control-plane.ts'
import { eventually } from './eventually.ts'
import { createCluster, runHub, type TestHub } from './registration-hub.ts'

/** The CRDs of the hub, without the webhook that converts: only stored versions are served. */
export const installHubCrds = (client: Client): Promise<void> =>
  installCrds(
    client,
    allKinds.map((kind) => kind.crd({ conversion: 'none' })),
  )

export interface AddOnHubOptions {
  addOns?: readonly AddOn[]
  clock?: Clock
  log?: Logger
  userAgent?: string
}

/** A hub's controllers for clusters and their add-ons in this process, until the test ends. */
export const runAddOnHub = (t: TestContext, plane: ControlPlane, options: AddOnHubOptions = {}): Promise<TestHub> => {
  const { addOns = [], ...rest } = options
  return runHub(t, plane, {
    ...rest,
    controllers: [
      keepSharedRoles,
      acceptance,
      ({ manager, client, events, clock, log }) =>
        void startAddOns(manager, { client, manager: true, addOns, events, clock, log }),
    ],
  })
}

/** The hub as a cluster's agent sees it, with the identity that its certificate gives. */
export const asCluster = (plane: ControlPlane, cluster: string, userAgent = `agent-${cluster}`): Client =>
  plane.client({
    user: subject.agentUser(cluster, 'agent1'),
    groups: [subject.clusterGroup(cluster), subject.managedClusters],
    userAgent,
  })

/** The hub as whoever holds a token. */
export const withToken = (plane: ControlPlane, token: string): Client =>
  clientFor(
    { source: 'a token', server: plane.server, credentials: async () => ({ ca: plane.ca, token }) },
    { userAgent: 'add-on' },
  )

/** Clusters, once the hub has let them in. */
export const createClusters = async (client: Client, names: readonly string[]): Promise<void> => {
  await Promise.all(names.map((name) => createCluster(client, name)))
  await Promise.all(
    names.map((name) =>
      eventually(
        async () => {
          const cluster = await client.of(ManagedCluster).get(name)
          if (!isTrue(cluster, Accepted.type)) throw new Error(JSON.stringify(cluster.status))
        },
        { timeoutMs: 60_000, message: `cluster ${name} is not accepted` },
      ),
    ),
  )
}

/** As an administrator enables an add-on on a cluster. */
export const enable = (
  client: Client,
  cluster: string,
  name: string,
  more: Partial<ManagedClusterAddOn> = {},
): Promise<ManagedClusterAddOn> =>
  client
    .of(ManagedClusterAddOn, cluster)
    .create({ spec: {}, ...more, metadata: { name, namespace: cluster, ...more.metadata } })

type Registrations = NonNullable<NonNullable<ManagedClusterAddOn['status']>['registrations']>

/** As an agent, or somebody with its rights, writes the items of an add-on. */
export const writeRegistrations = async (
  client: Client,
  cluster: string,
  name: string,
  registrations: Registrations,
): Promise<void> => {
  for (;;) {
    const addOn = await client.of(ManagedClusterAddOn, cluster).get(name)
    const { resourceVersion } = addOn.metadata
    const merge = { metadata: { resourceVersion }, status: { registrations } }
    try {
      await client.of(ManagedClusterAddOn, cluster).patch(name, { merge }, { subresource: 'status' })
      return
    } catch (error) {
      if (!isConflict(error)) throw error
    }
  }
}

/** As an agent declares how its add-on authenticates, and as whom. */
export const declare = (
  client: Client,
  cluster: string,
  name: string,
  driver: 'csr' | 'token',
  subject?: { user?: string; groups?: string[] },
): Promise<void> =>
  writeRegistrations(client, cluster, name, [
    { type: 'kubeClient', kubeClient: { driver, ...(subject ? { subject } : {}) } },
  ])

/** Waits until a condition of an add-on is as the check wants it. */
export const conditionOf = (
  client: Client,
  cluster: string,
  name: string,
  type: string,
  check: (condition: Condition | undefined) => boolean,
): Promise<Condition | undefined> =>
  eventually(
    async () => {
      const addOn = await client.of(ManagedClusterAddOn, cluster).find(name)
      const found = addOn?.status?.conditions?.find((one) => one.type === type)
      if (!check(found))
        throw new Error(
          `${cluster}/${name}: ${type} is ${JSON.stringify(found)} of ${JSON.stringify(addOn?.status?.conditions)}`,
        )
      return found
    },
    { timeoutMs: 60_000 },
  )

/** Requests a token, as whoever the client is. */
export const requestToken = async (client: Client, namespace: string, account: string): Promise<string> => {
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 3600 } }
  const answer = await client
    .of(ServiceAccount, namespace)
    .subresource<{ status: { token: string } }>(account, 'token', { method: 'POST', body })
  return answer.status.token
}

export interface CertificateAsk {
  cluster: string
  addOn: string
  user: string
  groups?: readonly string[]
  organizationalUnits?: readonly string[]
  signerName?: string
  dnsNames?: readonly string[]
  usages?: string[]
  expirationSeconds?: number
}

/** Asks for an add-on's certificate, as whoever the client is. */
export const requestCertificate = async (
  client: Client,
  ask: CertificateAsk,
): Promise<{ name: string; key: string }> => {
  const { cluster, addOn, user, groups = [], signerName = signer.kubeApiServerClient, dnsNames } = ask
  const { csr, key } = createRequest({
    commonName: user,
    organizations: groups,
    organizationalUnits: ask.organizationalUnits,
    dnsNames,
  })
  const { metadata } = await client.of(CertificateSigningRequest).create({
    metadata: {
      generateName: `addon-${cluster}-${addOn}-`,
      labels: { [label.clusterName]: cluster, [label.addOnName]: addOn },
    },
    spec: {
      request: Buffer.from(csr).toString('base64'),
      signerName,
      usages: ask.usages ?? ['digital signature', 'key encipherment', 'client auth'],
      expirationSeconds: ask.expirationSeconds,
    },
  })
  return { name: metadata.name!, key }
}

/** Waits for the certificate of a request. */
export const certificateOf = (client: Client, name: string): Promise<string> =>
  eventually(
    async () => {
      const { status } = await client.of(CertificateSigningRequest).get(name)
      if (!status?.certificate) throw new Error(`CSR ${name}: ${JSON.stringify(status)}`)
      return Buffer.from(status.certificate, 'base64').toString()
    },
    { timeoutMs: 60_000 },
  )

/** The hub as whoever holds a certificate. */
export const withCertificate = (plane: ControlPlane, cert: string, key: string): Client =>
  clientFor(
    { source: 'a certificate', server: plane.server, credentials: async () => ({ ca: plane.ca, cert, key }) },
    { userAgent: 'add-on' },
  )

/** The work agent of a cluster that is the hub itself, until the test ends. */
export const startAddOnWork = async (t: TestContext, plane: ControlPlane, cluster: string): Promise<void> => {
  const userAgent = `work-${cluster}`
  const identity = { user: 'work-agent', groups: ['system:masters'], userAgent }
  const stop = new AbortController()
  const running = runWorkAgent(
    {
      hub: plane.client(identity),
      local: plane.client(identity),
      cluster,
      hubServer: plane.server,
      metrics: new Metrics(),
    },
    stop.signal,
  )
  t.after(async () => {
    stop.abort()
    await running
  })
}

/** What a kubelet would do, of which there is none: says how the pods of a namespace are. */
export const setPods = async (
  plane: ControlPlane,
  namespace: string,
  phase: 'Running' | 'Succeeded',
): Promise<void> => {
  const names = await eventually(
    async () => {
      const found = (await plane.kubectl(['get', 'pods', '-n', namespace, '-o', 'name'])).split('\n').filter(Boolean)
      if (found.length === 0) throw new Error(`there are no pods in ${namespace}`)
      return found
    },
    { timeoutMs: 60_000 },
  )
  const conditions = [{ type: 'Ready', status: phase === 'Running' ? 'True' : 'False' }]
  const patch = JSON.stringify({ status: { phase, conditions } })
  for (const name of names)
    await plane.kubectl(['patch', name, '-n', namespace, '--subresource=status', '--type=merge', '-p', patch])
}
