import type { ClusterManager, Klusterlet, ManagedCluster, ManifestWork } from '../../api/index.ts'
import type { CertificateSigningRequest, Lease, Namespace, RoleBinding, SecretData } from '../../kube/index.ts'
import type { AddOnHubView, KeptCredential } from './add-on-view.ts'
import { whyNotAvailable } from '../deployment.ts'
import type { AwsView } from './aws-view.ts'
import { known, perhaps, unseen, type Fault, type Seen, type Side } from './faults.ts'

/** A Deployment, with what finds its pods. */
export type RunningDeployment = NonNullable<Parameters<typeof whyNotAvailable>[0]> & {
  spec: { selector?: { matchLabels?: Record<string, string> } }
}

/** A server that does not answer the person's own kubeconfig. */
export interface Silence {
  readonly fault: Extract<Fault, 'hub-unreachable' | 'managed-unreachable' | 'wrong-ca'>
  readonly why: string
}

/** An object that keeps a namespace from going away. */
export interface Holder {
  /** As kubectl names it. */
  readonly resource: string
  readonly name: string
  readonly finalizers: readonly string[]
}

/** The hub, as its kubeconfig lets us see it. */
export interface HubView {
  readonly server: string
  /** Where it runs. */
  readonly namespace: string
  /** How `join` pins its CA; undefined where its certificate is from a well-known authority. */
  readonly caHash: string | undefined
  readonly silence: Silence | undefined
  /** What it serves, as `plural.group`. */
  readonly kinds: Seen<ReadonlySet<string>>
  readonly managers: Seen<readonly ClusterManager[]>
  readonly deployments: Seen<readonly RunningDeployment[]>
  /** Of the hub's own replicas. */
  readonly leader: Seen<Lease | undefined>
  /** Why a harmless write is not admitted; undefined when it is. */
  readonly admission: Seen<string | undefined>
  readonly clusters: Seen<readonly ManagedCluster[]>
  readonly namespaces: Seen<readonly Namespace[]>
  /** Of namespaces that are being deleted: what holds them. */
  readonly holders: ReadonlyMap<string, Seen<readonly Holder[]>>
  readonly clusterRoles: Seen<ReadonlySet<string>>
  readonly clusterRoleBindings: Seen<readonly RoleBinding[]>
  readonly roleBindings: Seen<readonly RoleBinding[]>
  readonly requests: Seen<readonly CertificateSigningRequest[]>
  readonly leases: Seen<readonly Lease[]>
  readonly works: Seen<readonly ManifestWork[]>
  readonly addOns: AddOnHubView
}

/** What comes of asking a hub for a ManagedCluster with a credential from a secret. */
export type Way =
  | { readonly kind: 'broken'; readonly why: string }
  | { readonly kind: 'unreachable' | 'distrusted' | 'forbidden'; readonly server: string; readonly why: string }
  | { readonly kind: 'refused' | 'not-a-hub'; readonly server: string }
  | { readonly kind: 'open'; readonly server: string; readonly cluster: ManagedCluster | undefined }

/** The managed cluster, as its kubeconfig lets us see it. */
export interface ManagedView {
  readonly server: string
  readonly silence: Silence | undefined
  /** It is the hub as well. */
  readonly isHub: boolean
  /** The ids that it is known by: the UID of kube-system, and its claim. */
  readonly ids: Seen<readonly string[]>
  readonly kinds: Seen<ReadonlySet<string>>
  readonly klusterlet: Seen<Klusterlet | undefined>
  readonly deployments: Seen<readonly RunningDeployment[]>
  /** Where the agent keeps its secrets. */
  readonly namespace: string
  readonly bootstrap: Seen<SecretData | undefined>
  /** The agent's own credential for the hub. */
  readonly credential: Seen<SecretData | undefined>
  /** To the hub as the bootstrap secret has it. */
  readonly way: Seen<Way>
  /** To the hub with the agent's own credential. */
  readonly ownWay: Seen<Way>
  readonly namespaces: Seen<ReadonlySet<string>>
  readonly addOnCredentials: Seen<readonly KeptCredential[]>
}

/** How commands reach a side: flags for kubectl and for us, which are spelled alike. */
export type Words = Readonly<Record<Side, readonly string[]>>

/** All that is known at one moment about the way of one cluster to its hub. */
export interface Snapshot {
  readonly now: number
  /** The cluster; empty where only the hub is looked at. */
  readonly name: string
  readonly program: string
  readonly words: Words
  readonly hub: HubView | undefined
  readonly managed: ManagedView | undefined
  /** Of a cluster that is known by AWS IAM, when it alone is asked about. */
  readonly aws?: AwsView | undefined
}

export const hubOf = ({ hub }: Snapshot): HubView =>
  hub ?? unseen('there is no kubeconfig for the hub: give --hub-kubeconfig or --hub-context')

export const managedOf = ({ managed }: Snapshot): ManagedView =>
  managed ?? unseen('there is no kubeconfig for the managed cluster: give --managed-kubeconfig or --managed-context')

/** The ManagedCluster: as the hub has it, else as the hub shows it to the agent. Undefined when the hub has none. */
export const clusterOf = (s: Snapshot): ManagedCluster | undefined => {
  const listed = perhaps(s.hub?.clusters)
  if (listed) return listed.find(({ metadata }) => metadata.name === s.name)
  const ways = [perhaps(s.managed?.ownWay), perhaps(s.managed?.way)]
  const open = ways.find((way) => way?.kind === 'open')
  return open ? open.cluster : known(hubOf(s).clusters)[0] // which says why nobody could look
}

/** Whether the hub wants the cluster. What comes after that cannot be expected before. */
export const isLetIn = (s: Snapshot): boolean => {
  const cluster = clusterOf(s)
  return cluster?.spec.hubAcceptsClient === true && !cluster.metadata.deletionTimestamp
}
export const notLetIn = 'the cluster has to be let in first'

export const deploymentIn = (
  seen: Seen<readonly RunningDeployment[]>,
  namespace: string,
  name: string,
): RunningDeployment | undefined =>
  known(seen).find(({ metadata }) => metadata.namespace === namespace && metadata.name === name)

/** Why a Deployment does not run; undefined when it does. One that is scaled away is as it should be, and still does not run. */
export const whyNotRunning = (deployment: RunningDeployment | undefined): string | undefined =>
  deployment?.spec.replicas === 0 ? 'it is scaled to 0' : whyNotAvailable(deployment)
