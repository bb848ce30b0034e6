import { annotation, conditionType, label, type ManagedCluster } from '../../../api/index.ts'
import type { CertificateSigningRequest, Requester } from '../../../kube/index.ts'
import { firstOf, isTrue, type Reason } from '../../../runtime/index.ts'
import { readSafely, RequestError, shown, type ReadRequest } from '../../../runtime/pki/index.ts'

/** What is decided about a certificate request. Only `refused` with `final` is also denied: it can never become right. */
export type Outcome = Reason & ({ kind: 'ignored' | 'waits' | 'approved' } | { kind: 'refused'; final: boolean })

/** Everything that the checks look at. */
export interface CsrState {
  csr: CertificateSigningRequest
  signerName: string
  /** As the API server (or, over another wire, the hub itself) has authenticated it. */
  requester: Requester
  /** From the label; empty when there is none. */
  cluster: string
  request: ReadRequest | RequestError
  /** The cluster's object, if it exists. */
  managedCluster?: ManagedCluster | undefined
  /** It proves who it is in another way: whoever asks for a certificate in its name is not known to be it. */
  isOthers?: boolean | undefined
}

/** What an approver may decide without a person. */
export interface ApprovalPolicy {
  autoApproval: boolean
  users: ReadonlySet<string>
}

/** Gathers the state: reads the request once, whatever is in it. */
export const stateOf = (
  csr: CertificateSigningRequest,
  about: {
    signerName: string
    requester: Requester
    managedCluster: (name: string) => ManagedCluster | undefined
    isOurs?: ((cluster: ManagedCluster) => boolean) | undefined
  },
): CsrState => {
  const cluster = csr.metadata.labels?.[label.clusterName] ?? ''
  const managedCluster = cluster ? about.managedCluster(cluster) : undefined
  return {
    csr,
    signerName: about.signerName,
    requester: about.requester,
    cluster,
    request: readSafely(csr.spec.request),
    managedCluster,
    isOthers: managedCluster !== undefined && about.isOurs?.(managedCluster) === false,
  }
}

/** Why a CSR is none of our business. */
export const notOurs = firstOf<CsrState>([
  ({ csr }) => isDecided(csr) && { reason: 'Decided', message: 'it has been decided already' },
  ({ csr, signerName }) =>
    csr.spec.signerName !== signerName && {
      reason: 'OtherSigner',
      message: `it is for the signer ${csr.spec.signerName}`,
    },
  ({ cluster }) => !cluster && { reason: 'NoClusterLabel', message: `it has no label ${label.clusterName}` },
  ({ csr }) =>
    csr.metadata.labels?.[label.addOnName] !== undefined && {
      reason: 'AddOn',
      message: `it has the label ${label.addOnName}: an add-on's approver decides`,
    },
])

/** Approved, denied, failed or signed: nothing is left to decide. */
export const isDecided = ({ status }: CertificateSigningRequest): boolean =>
  Boolean(status?.certificate) || Boolean(status?.conditions?.length)

/** Whether the cluster asks for its next certificate with its present one. */
export const isRenewal = ({ request, requester }: CsrState): boolean =>
  !(request instanceof RequestError) && requester.username === request.subject.commonName

/** Why a renewal is not approved now. What its requester may do is asked of the API server afterwards. */
export const renewalRefused = firstOf<CsrState>([
  ({ managedCluster, cluster }) =>
    !managedCluster && { reason: 'ClusterMissing', message: `there is no ManagedCluster ${cluster}` },
  ({ managedCluster, cluster }) =>
    managedCluster!.metadata.deletionTimestamp !== undefined && {
      reason: 'ClusterDeleted',
      message: `ManagedCluster ${cluster} is being deleted`,
    },
  ({ managedCluster, cluster }) =>
    !managedCluster!.spec.hubAcceptsClient && {
      reason: 'ClusterNotAccepted',
      message: `ManagedCluster ${cluster} is not accepted (hubAcceptsClient is false)`,
    },
])

/** What a bootstrap request is judged by, besides itself. */
export interface BootstrapState extends CsrState {
  policy: ApprovalPolicy
}

const personNext = (cluster: string): string => `a person decides: clusteradm accept --clusters ${cluster}`

/** Why a first request was not made by somebody whose clusters may join without a person. */
export const needsPerson = firstOf<BootstrapState>([
  ({ isOthers, cluster }) =>
    isOthers === true && {
      reason: 'OtherDriver',
      message: `cluster ${cluster} asks to be known by something else than a certificate; ${personNext(cluster)}`,
    },
  ({ policy, cluster }) =>
    !policy.autoApproval && {
      reason: 'NoAutoApproval',
      message: `ManagedClusterAutoApproval is off; ${personNext(cluster)}`,
    },
  ({ policy, requester, cluster }) =>
    !policy.users.has(requester.username) && {
      reason: 'RequesterNotListed',
      message: `${shown([requester.username])} is not among the identities whose clusters are approved automatically; ${personNext(cluster)}`,
    },
])

/** Why a first request waits although its maker is trusted: what is known of the cluster speaks against it. */
export const bootstrapWaits = firstOf<BootstrapState & { holder?: string | undefined; agent: string }>([
  ({ managedCluster, cluster }) =>
    !managedCluster && { reason: 'ClusterMissing', message: `there is no ManagedCluster ${cluster} yet` },
  ({ managedCluster, cluster }) =>
    managedCluster!.metadata.deletionTimestamp !== undefined && {
      reason: 'ClusterDeleted',
      message: `ManagedCluster ${cluster} is being deleted`,
    },
  ({ managedCluster, cluster }) =>
    !managedCluster!.spec.hubAcceptsClient &&
    managedCluster!.metadata.annotations?.[annotation.automaticallyAcceptedOn] !== undefined && {
      reason: 'ClusterDenied',
      message: `ManagedCluster ${cluster} was denied by a person; ${personNext(cluster)}`,
    },
  ({ managedCluster, cluster }) =>
    !managedCluster!.spec.hubAcceptsClient && {
      reason: 'ClusterNotAccepted',
      message: `ManagedCluster ${cluster} is not accepted yet`,
    },
  ({ managedCluster, holder, cluster }) =>
    isTrue(managedCluster!, conditionType.managedCluster.joined) &&
    holder === undefined && {
      reason: 'HolderUnknown',
      message: `cluster ${cluster} has joined before, and the hub does not know with which agent; ${personNext(cluster)}`,
    },
  ({ holder, agent, cluster }) =>
    holder !== undefined &&
    holder !== agent && {
      reason: 'HeldByAnotherAgent',
      message: `cluster ${cluster} belongs to agent ${holder}, and agent ${agent} asks for it: a second cluster with the same name, or an agent that lost its name; ${personNext(cluster)}`,
    },
  // Whoever holds the bootstrap credential can read the agent's name: while the holder is alive, nobody may follow it.
  ({ managedCluster, holder, cluster }) =>
    holder !== undefined &&
    isTrue(managedCluster!, conditionType.managedCluster.available) && {
      reason: 'StillConnected',
      message: `cluster ${cluster} is connected with a certificate of its own, with which its agent would renew; wait until it counts as unavailable, or ${personNext(cluster)}`,
    },
])
