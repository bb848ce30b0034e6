import type { ManagedCluster } from '../../api/index.ts'
import type { Api, ClientOptions, KubeconfigParts, SecretChange, SecretData } from '../../kube/index.ts'
import type { Clock, ConditionState, Logger, Manager, Reason } from '../../runtime/index.ts'

/**
 * A registration driver is how a cluster proves who it is. It is one folder with a hub side and an agent side, and one line
 * in the table of drivers; nothing else knows that it exists.
 */

/** What the hub does for clusters that use a driver, beyond the RBAC that all clusters get. */
export interface HubDriver {
  /** As it is written in objects: `csr`, `awsirsa`, `grpc`. */
  readonly name: string
  /** Whether the cluster asks to be registered by this driver. The drivers are asked in order; the first one serves it. */
  serves(cluster: ManagedCluster): boolean
  /** With auto-approval on: why this cluster still has to wait for a person; undefined when it need not. */
  waitsForPerson(cluster: ManagedCluster): Reason | undefined
  /**
   * Makes what the cluster's identity needs outside of Kubernetes. Called at each reconcile of an accepted cluster: sends nothing
   * when nothing differs. A driver that takes its time says what is still to come, and wakes the cluster then.
   */
  grant(cluster: ManagedCluster, signal: AbortSignal): Promise<Reason | undefined | void>
  /** Takes all of that away, after RBAC was revoked. What is already gone is a success; a crash in the middle is made good by the next call. */
  revoke(cluster: ManagedCluster, signal: AbortSignal): Promise<void>
  /** Adds controllers of its own: approval, signing. `isOurs` says whether a cluster is this driver's, among those of the hub. */
  start?(manager: Manager, isOurs?: (cluster: ManagedCluster) => boolean): void
  /** After `start`: names clusters for which it may answer differently now. A watch for whoever accepts clusters. */
  wakes?(enqueue: (cluster: string) => void): () => void
}

export type { SecretChange, SecretData }

/** Whose credential it is. */
export interface AgentIdentity {
  readonly cluster: string
  readonly agent: string
}

export interface ObtainContext {
  readonly identity: AgentIdentity
  /** The hub, as the bootstrap user at first and as the cluster itself for a renewal. */
  readonly hub: Api
  /** What is in the secret now. A driver may keep there what a restart must not lose, such as a key whose certificate is not issued yet. */
  readonly present: SecretData
  /** Saves such things at once. */
  save(change: SecretChange): Promise<void>
  /** Says what it waits for, in words that help, or how it went. */
  report(state: { waitingFor: string } | { condition: ConditionState }): void
  readonly clock: Clock
  readonly random: () => number
  readonly log: Logger
  readonly signal: AbortSignal
}

/** A credential in a secret, and how it is kept fresh. */
export interface CredentialDriver {
  /** Why what is in the secret cannot be used; undefined when it can. Pure. */
  unusable(secret: SecretData, at: { identity: AgentIdentity; now: number }): Reason | undefined
  /** From when on it should be renewed. `random` spreads a fleet that joined together. Pure. */
  renewAt(secret: SecretData, random: () => number): number
  /** When it ends; undefined when it has no end of its own. Pure. */
  expiresAt(secret: SecretData): number | undefined
  /** Gets a new one, however long it takes. The answer holds what goes into the secret. */
  obtain(context: ObtainContext): Promise<SecretChange>
}

/** The hub that a bootstrap secret sends an agent to. */
export interface HubAddress {
  /** For messages: which secret or file said so. */
  readonly source: string
  readonly server: string
  readonly ca?: string | undefined
  readonly tlsServerName?: string | undefined
  readonly proxyUrl?: string | undefined
  /** How the bootstrap kubeconfig calls the hub; other agents compare it, so it is kept. */
  readonly clusterEntry: string
  /** Where add-ons find the API server of the hub, if that is elsewhere. */
  readonly addOns?: HubAddress | undefined
}

/** A subject of an add-on that needs a credential of its own. */
export interface AddOnSubject {
  readonly addOn: string
  readonly user: string
  readonly groups: readonly string[]
  readonly organizationalUnits?: readonly string[] | undefined
  readonly signerName: string
  readonly dnsNames?: readonly string[] | undefined
}

/** What the agent does to have a credential for the hub, and to use it. */
export interface AgentDriver extends CredentialDriver {
  readonly name: string
  /** Adds what the hub must know of this cluster before it accepts it: annotations, usually. */
  describe(cluster: ManagedCluster): ManagedCluster
  /** Where the bootstrap secret sends us. Throws an error that names what is wrong with the secret. */
  hubOf(bootstrap: SecretData, source: string): Promise<HubAddress>
  /** The hub as the bootstrap user, who asks for this cluster. */
  asBootstrap(bootstrap: SecretData, source: string, options: ClientOptions, identity: AgentIdentity): Promise<Api>
  /** The hub as this cluster. `secret` is asked for each request, so that a renewed credential is used at once. */
  asCluster(secret: () => SecretData, hub: HubAddress, options: ClientOptions): Api
  /** How a kubeconfig that lies beside the secret's other keys uses the credential. */
  kubeconfigUser(identity: AgentIdentity): KubeconfigParts['user']
  /** What else lies in the secret, for others who use the credential. */
  beside?(hub: HubAddress): Promise<SecretData>
  /** A certificate for an add-on, over the same connection to the hub. */
  forAddOn(subject: AddOnSubject): CredentialDriver
}
