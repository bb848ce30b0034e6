import { crds, group, label, ManagedCluster, installCrds } from '../src/api/index.ts'
import {
  CertificateSigningRequest,
  ClusterRole,
  ClusterRoleBinding,
  isAlreadyExists,
  kubeconfigText,
  Lease,
  Namespace,
  RoleBinding,
  Secret,
  ServiceAccount,
  type Client,
  type KubeObject,
  type Resource,
  type ResourceClient,
} from '../src/kube/index.ts'
import { microTimestamp, setConditions, timestamp } from '../src/runtime/conditions.ts'
import { Accepted, groupsOf, leaseName, rbac, registerGroup } from '../src/registration/contract.ts'
import type { ControlPlane } from './control-plane.ts'

/** A person at a hub: what the hub's controllers do, done by hand, so that an agent can be tested without them. */
export interface StandInHub {
  readonly client: Client
  /** A kubeconfig for agents that want to join, with a token of its own account. */
  bootstrapKubeconfig(server?: string): Promise<string>
  /** Takes back all tokens of bootstrap kubeconfigs. */
  revokeBootstrap(): Promise<void>
  accept(cluster: string): Promise<void>
  deny(cluster: string): Promise<void>
  /** Approves what is pending of this cluster; the controller manager signs it. Says how many there were. */
  approve(cluster: string): Promise<number>
  cluster(name: string): Promise<ManagedCluster | undefined>
  /** Accepts and approves everything, until the signal. */
  letEverybodyIn(signal: AbortSignal): void
  /** A token of the account that `accept` gives the rights of the cluster, beside its groups. */
  tokenFor(cluster: string): Promise<string>
  revokeToken(cluster: string): Promise<void>
}

const home = 'stand-in-hub'
const bootstrapAccount = 'agent-registration-bootstrap'

/** Prepares a control plane as a hub. */
export const standInHub = async (plane: ControlPlane): Promise<StandInHub> => {
  const client = plane.client()
  await installCrds(client, crds({ conversion: 'none' }))
  await Promise.all([
    ensure(client, Namespace, { metadata: { name: home } }),
    ensure(client, ClusterRole, { metadata: { name: 'open-cluster-management:bootstrap' }, rules: bootstrapRules }),
    ensure(client, ClusterRole, { metadata: { name: rbac.registrationRole }, rules: registrationRules }),
    ensure(client, ClusterRoleBinding, {
      metadata: { name: 'open-cluster-management:bootstrap' },
      roleRef: clusterRole('open-cluster-management:bootstrap'),
      subjects: [{ kind: 'ServiceAccount', name: bootstrapAccount, namespace: home }],
    }),
  ])
  const clusters = client.of(ManagedCluster)
  const csrs = client.of(CertificateSigningRequest)
  const tokenOf = async (account: string): Promise<string> => {
    await ensure(client, ServiceAccount, { metadata: { name: account, namespace: home } })
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} }
    const answer = await client
      .of(ServiceAccount, home)
      .subresource<{ status: { token: string } }>(account, 'token', { method: 'POST', body })
    return answer.status.token
  }
  const say = async (name: string, states: Parameters<typeof setConditions>[1]): Promise<void> => {
    const present = await clusters.get(name)
    const conditions = setConditions(present.status?.conditions, states, { now: Date.now() })
    const { uid, resourceVersion } = present.metadata
    await clusters.patch(
      name,
      { merge: { metadata: { uid, resourceVersion }, status: { conditions } } },
      { subresource: 'status' },
    )
  }
  const hub: StandInHub = {
    client,
    cluster: (name) => clusters.find(name),
    bootstrapKubeconfig: async (server = plane.server) =>
      kubeconfigText({ cluster: 'hub', server, ca: plane.ca, user: { token: await tokenOf(bootstrapAccount) } }),
    revokeBootstrap: async () => void (await client.of(ServiceAccount, home).delete(bootstrapAccount)),
    tokenFor: (cluster) => tokenOf(`of-${cluster}`),
    revokeToken: async (cluster) => void (await client.of(ServiceAccount, home).delete(`of-${cluster}`)),
    accept: async (name) => {
      await clusters.patch(name, { merge: { spec: { hubAcceptsClient: true } } })
      await ensure(client, Namespace, { metadata: { name, labels: { [label.clusterName]: name } } })
      await Promise.all([
        ensure(client, ClusterRole, { metadata: { name: rbac.cluster(name) }, rules: clusterRules(name, true) }),
        ensure(client, ClusterRoleBinding, binding(rbac.cluster(name), rbac.cluster(name), name)),
        ensure(client, RoleBinding, binding(rbac.registrationBinding(name), rbac.registrationRole, name, name)),
        ensure(client, Lease, {
          metadata: { name: leaseName, namespace: name },
          spec: { holderIdentity: leaseName, renewTime: microTimestamp(Date.now()) },
        }),
      ])
      await client.of(ClusterRole).patch(rbac.cluster(name), { merge: { rules: clusterRules(name, true) } })
      await retried(() => say(name, [Accepted.accepted()]))
    },
    deny: async (name) => {
      await clusters.patch(name, { merge: { spec: { hubAcceptsClient: false } } })
      await client.of(ClusterRole).patch(rbac.cluster(name), { merge: { rules: clusterRules(name, false) } })
      await client.of(RoleBinding, name).delete(rbac.registrationBinding(name))
      await retried(() => say(name, [Accepted.denied()]))
    },
    approve: async (name) => {
      const { items } = await csrs.list({ labelSelector: `${label.clusterName}=${name}` })
      const pending = items.filter(({ status }) => !status?.conditions?.length)
      await Promise.all(pending.map((csr) => approve(client, csr)))
      return pending.length
    },
    letEverybodyIn: (signal) => {
      void following(clusters, signal, async ({ metadata, spec }) => {
        if (!spec.hubAcceptsClient && !metadata.annotations?.['denied']) await hub.accept(metadata.name!)
      })
      void following(csrs, signal, async (csr) => {
        if (!csr.status?.conditions?.length) await approve(client, csr)
      })
    },
  }
  await ensure(client, ServiceAccount, { metadata: { name: bootstrapAccount, namespace: home } })
  return hub
}

/** What a person does about a certificate request. */
export const approve = async (client: Client, csr: CertificateSigningRequest): Promise<void> => {
  const now = timestamp(Date.now())
  const condition = { type: 'Approved', status: 'True', reason: 'ByHand', message: '', lastUpdateTime: now }
  const body = {
    ...csr,
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    status: { conditions: [condition] },
  }
  await client.of(CertificateSigningRequest).subresource(csr.metadata.name!, 'approval', { method: 'PUT', body })
}

/** Acts on each object that appears or changes, until the signal. */
export const following = async <T extends KubeObject>(
  of: ResourceClient<T>,
  signal: AbortSignal,
  act: (object: T) => Promise<void>,
): Promise<void> => {
  while (!signal.aborted)
    try {
      for await (const batch of await of.watch({ signal, timeoutSeconds: 300 }))
        for (const { type, object } of batch)
          if (type === 'ADDED' || type === 'MODIFIED') await act(object).catch(() => {})
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
}

/** Creates it unless it is there. */
export const ensure = async <T extends KubeObject>(client: Client, kind: Resource<T>, object: T): Promise<void> => {
  try {
    await client.of(kind, object.metadata.namespace).create(object)
  } catch (error) {
    if (!isAlreadyExists(error)) throw error
  }
}

const retried = async (attempt: () => Promise<void>): Promise<void> => {
  for (let left = 20; ; left--)
    try {
      return await attempt()
    } catch (error) {
      if (left === 0) throw error
    }
}

const clusterRole = (name: string) => ({ apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name })

const binding = (name: string, role: string, cluster: string, namespace?: string) => ({
  metadata: { name, ...(namespace ? { namespace } : {}) },
  roleRef: clusterRole(role),
  subjects: [
    ...groupsOf(cluster).map((of) => ({ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: of })),
    { kind: 'ServiceAccount', name: `of-${cluster}`, namespace: home },
  ],
})

const csrRule = {
  apiGroups: ['certificates.k8s.io'],
  resources: ['certificatesigningrequests'],
  verbs: ['create', 'get', 'list', 'watch'],
}

const bootstrapRules = [
  csrRule,
  { apiGroups: [group.cluster], resources: ['managedclusters'], verbs: ['get', 'create', 'list', 'watch'] },
  { apiGroups: [group.cluster], resources: ['managedclustersets/join'], verbs: ['create'] },
]

const registrationRules = [
  { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['get', 'list', 'watch', 'update'] },
  { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create'] },
]

const clusterRules = (name: string, accepted: boolean) =>
  accepted
    ? [
        csrRule,
        { apiGroups: [registerGroup], resources: ['managedclusters/clientcertificates'], verbs: ['renew'] },
        {
          apiGroups: [group.cluster],
          resources: ['managedclusters'],
          resourceNames: [name],
          verbs: ['get', 'list', 'update', 'watch'],
        },
        {
          apiGroups: [group.cluster],
          resources: ['managedclusters/status'],
          resourceNames: [name],
          verbs: ['patch', 'update'],
        },
      ]
    : [
        {
          apiGroups: [group.cluster],
          resources: ['managedclusters'],
          resourceNames: [name],
          verbs: ['get', 'list', 'watch'],
        },
      ]

/** Puts a bootstrap kubeconfig where an agent looks for it. */
export const writeBootstrap = async (
  client: Client,
  namespace: string,
  name: string,
  kubeconfig: string,
): Promise<void> => {
  const data = { kubeconfig: Buffer.from(kubeconfig).toString('base64') }
  await ensure(client, Namespace, { metadata: { name: namespace } })
  try {
    await client.of(Secret, namespace).create({ metadata: { name, namespace }, data })
  } catch (error) {
    if (!isAlreadyExists(error)) throw error
    await client.of(Secret, namespace).patch(name, { merge: { data } })
  }
}
