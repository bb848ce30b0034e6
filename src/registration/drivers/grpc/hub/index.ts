/**
 * The hub's side of registration over gRPC. A tour:
 *
 * `endpoint.ts` serves: `service.ts` takes a call through who calls (`authentication.ts`), how much they may (`limits.ts`), and
 * whether they may (`authorization.ts`, `wishes.ts`). `writes.ts` acts on what is published, with `csr-request.ts`,
 * `work-status.ts` and `token-request.ts`; `served.ts` is what can be subscribed to, `broker.ts` tells subscribers what changed,
 * and `vigil.ts` watches over them. `signing.ts` issues the certificates that clients of the endpoint have.
 */
import { label, signer } from '../../../../api/index.ts'
import { resource, type Client, type KubeObject } from '../../../../kube/index.ts'
import type { Clock, EventRecorder, Logger } from '../../../../runtime/index.ts'
import { Approval, removeUnissued } from '../../csr/index.ts'
import type { HubDriver } from '../../driver.ts'
import { requesterBehind } from './csr-request.ts'
import { grpcEndpoint, type Endpoint, type EndpointOptions } from './endpoint.ts'
import { grpcSigning } from './signing.ts'

export { requesterBehind } from './csr-request.ts'
export type { Endpoint, EndpointOptions } from './endpoint.ts'
export { defaultLimits, type Limits } from './limits.ts'

export interface GrpcHubOptions {
  client: Client
  gates: { managedClusterAutoApproval: boolean; defaultClusterSet: boolean }
  namespace: string
  events: Pick<EventRecorder, 'record'>
  clock: Clock
  log: Logger
  /** What only this driver has. */
  grpc: Omit<EndpointOptions, 'client' | 'gates' | 'namespace' | 'clock' | 'log'> & {
    /** Users whose clusters join without a person, with the gate on: as a token or certificate names them. */
    autoApproveUsers: readonly string[]
    /** Who the hub is to its API server, and so who makes certificate requests for agents. */
    endpointUser: string
  }
}

/** Clusters that reach the hub over its gRPC endpoint alone, by client certificates of a signer of their own. */
export const grpcHubDriver = (options: GrpcHubOptions): HubDriver & { readonly endpoint: Endpoint | undefined } => {
  const { client, gates, namespace, events, clock, log, grpc } = options
  const requesterOf = requesterBehind(grpc.endpointUser)
  const policy = { autoApproval: gates.managedClusterAutoApproval, users: new Set(grpc.autoApproveUsers) }
  let approval: Approval | undefined
  let endpoint: Endpoint | undefined
  const asked = (cluster: string): boolean => (approval?.requestsOf(cluster).length ?? 0) > 0
  return {
    name: 'grpc',
    // Nothing on a ManagedCluster says how it reaches the hub; whoever asked for a certificate of this signer does.
    serves: ({ metadata: { name = '' } }) => asked(name),
    waitsForPerson: ({ metadata: { name = '' } }) =>
      approval?.vouched(name)
        ? undefined
        : {
            reason: 'NoTrustedRequest',
            message: `nobody whose clusters are accepted automatically has asked for a certificate of ${name} over gRPC; a person decides: clusteradm accept --clusters ${name}`,
          },
    grant: async () => {},
    revoke: ({ metadata: { name = '' } }, signal) => removeUnissued(client, name, signer.grpc, signal),
    start: (manager, isOurs) => {
      const name = 'grpc-csr-approval'
      approval = new Approval(
        { name, client, signerName: signer.grpc, policy, events, clock, log, requesterOf, isOurs },
        manager,
      )
      grpcSigning(manager, { client, namespace, signingMs: grpc.signingMs, clock, log, requesterOf })
      endpoint = grpcEndpoint(manager, { client, gates, namespace, clock, log, ...grpc })
      manager.add(endpoint)
    },
    wakes: (enqueue) =>
      approval?.csrs.on({ added: (csr) => enqueue(csr.metadata.labels?.[label.clusterName] ?? '') }) ?? (() => {}),
    get endpoint() {
      return endpoint
    },
  }
}

interface SelfSubjectReview extends KubeObject {
  status?: { userInfo?: { username?: string } }
}
const SelfSubjectReview = resource<SelfSubjectReview>({
  group: 'authentication.k8s.io',
  version: 'v1',
  kind: 'SelfSubjectReview',
  plural: 'selfsubjectreviews',
  namespaced: false,
})

/** Who we are to the API server. */
export const ownUser = async (client: Client, signal?: AbortSignal): Promise<string> => {
  const { status } = await client.of(SelfSubjectReview).create({ metadata: {} }, { signal })
  const user = status?.userInfo?.username
  if (!user) throw new Error(`${client.connection.server} does not say who we are: it must be Kubernetes 1.28 or newer`)
  return user
}
