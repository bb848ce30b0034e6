import { label, ManagedCluster } from '../src/api/index.ts'
import {
  CertificateSigningRequest,
  ClusterRole,
  ClusterRoleBinding,
  isAlreadyExists,
  kubeconfigText,
  Namespace,
  Secret,
  type ResourceClient,
} from '../src/kube/index.ts'
import { Component } from './component.ts'
import type { ControlPlane } from './control-plane.ts'
import { eventually } from './eventually.ts'
import { freePort } from './ports.ts'

const sourceProgram = new URL('../bin/lanyard', import.meta.url).pathname
const agentNamespace = 'open-cluster-management-agent'

/** A `lanyard` process with its health endpoint. */
export interface LanyardProcess {
  process: Component
  /** The body of /metrics. */
  metrics(): Promise<string>
  /** What it says it waits for; empty when it is ready. */
  unready(): Promise<string>
}

export interface StartOptions {
  /** More flags. */
  args?: readonly string[]
  /** Until it is ready. */
  wait?: boolean
  /** What is run: the sources, unless something that was built is to be tried. */
  program?: string | undefined
  /** More variables in its environment. */
  env?: Record<string, string> | undefined
}

const start = async (
  name: string,
  plane: ControlPlane,
  args: readonly string[],
  { wait, program = sourceProgram, env }: StartOptions & { wait: boolean },
): Promise<LanyardProcess> => {
  const health = `http://127.0.0.1:${await freePort()}`
  const component = new Component({
    name,
    binary: program,
    args: [...args, '--health-port', new URL(health).port],
    ...(env && { env }),
    folder: plane.folder,
    ready: async () => (await fetch(`${health}/readyz`)).ok,
  })
  plane.takeAlong(component)
  component.spawn()
  if (wait) await component.ready()
  return {
    process: component,
    metrics: async () => (await fetch(`${health}/metrics`)).text(),
    unready: async () => {
      const answer = await fetch(`${health}/readyz`)
      return answer.ok ? '' : answer.text()
    },
  }
}

/** `lanyard hub` against a control plane, with CRDs and webhooks, until the plane stops. */
export const startHub = async (
  plane: ControlPlane,
  { name = 'hub', args = [], wait = true, program, env }: StartOptions & { name?: string } = {},
): Promise<LanyardProcess> => {
  const port = await freePort()
  const webhooks = ['--webhook-host=127.0.0.1', `--webhook-port=${port}`, `--webhook-url=https://127.0.0.1:${port}`]
  const usual = ['hub', `--kubeconfig=${plane.kubeconfig}`, '--install-crds', ...webhooks]
  return start(name, plane, [...usual, ...args], { wait, program, env })
}

/** Lets a bootstrap user ask to join: what `clusteradm init` will set up. */
export const allowBootstrap = async (hub: ControlPlane, user: string): Promise<void> => {
  const name = 'open-cluster-management:bootstrap'
  const rule = (apiGroups: string[], resources: string[], verbs: string[]) => ({ apiGroups, resources, verbs })
  const role: ClusterRole = {
    metadata: { name },
    rules: [
      rule(['certificates.k8s.io'], ['certificatesigningrequests'], ['create', 'get', 'list', 'watch']),
      rule(['cluster.open-cluster-management.io'], ['managedclusters'], ['create', 'get', 'list', 'watch']),
      rule(['cluster.open-cluster-management.io'], ['managedclustersets/join'], ['create']),
    ],
  }
  const binding: ClusterRoleBinding = {
    metadata: { name: `${name}:${user}` },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }],
  }
  const client = hub.client()
  await exists(client.of(ClusterRole).create(role))
  await exists(client.of(ClusterRoleBinding).create(binding))
}

/** Puts the secret that leads to a hub on a managed cluster. */
export const sendTo = async (
  managed: ControlPlane,
  hub: ControlPlane,
  { user = 'bootstrap', secret = 'bootstrap-hub-kubeconfig', namespace = agentNamespace } = {},
): Promise<void> => {
  await allowBootstrap(hub, user)
  const { cert, key } = hub.clientCertificate({ user })
  const kubeconfig = await kubeconfigText({ cluster: 'hub', server: hub.server, ca: hub.ca, user: { cert, key } })
  const client = managed.client()
  await exists(client.of(Namespace).create({ metadata: { name: namespace } }))
  await client
    .of(Secret, namespace)
    .apply(
      { metadata: { name: secret, namespace }, stringData: { kubeconfig } },
      { fieldManager: 'testkit', force: true },
    )
}

/** `lanyard agent` on a managed cluster, which `sendTo` has pointed at a hub. */
export const startAgent = async (
  managed: ControlPlane,
  cluster: string,
  { args = [], wait = false, namespace = agentNamespace, program, env }: StartOptions & { namespace?: string } = {},
): Promise<LanyardProcess> => {
  const usual = ['agent', `--kubeconfig=${managed.kubeconfig}`, `--namespace=${namespace}`, '--install-crds']
  return start(`agent-${cluster}`, managed, [...usual, `--cluster-name=${cluster}`, ...args], { wait, program, env })
}

/** What a hub administrator does: accepts the cluster and approves its certificate request. */
export const accept = async (hub: ControlPlane, cluster: string): Promise<void> => {
  const clusters = hub.client().of(ManagedCluster)
  await eventually.watching(clusters, (all) => all.some((one) => one.metadata.name === cluster))
  await clusters.patch(cluster, { merge: { spec: { hubAcceptsClient: true } } })
  const csrs = hub.client().of(CertificateSigningRequest)
  await eventually.watching(csrs, async (all) => {
    const own = all.filter((csr) => csr.metadata.labels?.[label.clusterName] === cluster)
    for (const csr of own.filter(({ status }) => !status?.conditions?.length)) await approve(csrs, csr)
    return own.length > 0
  })
}

const approve = async (
  csrs: ResourceClient<CertificateSigningRequest>,
  csr: CertificateSigningRequest,
): Promise<void> => {
  const condition = { type: 'Approved', status: 'True', reason: 'Person', message: 'accepted by the test' }
  const body = { ...csr, status: { conditions: [condition] } }
  await csrs.subresource(csr.metadata.name!, 'approval', { method: 'PUT', body })
}

const exists = (created: Promise<unknown>): Promise<unknown> =>
  created.catch((error: unknown) => {
    if (!isAlreadyExists(error)) throw error
  })
