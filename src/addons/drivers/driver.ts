import type { ManagedClusterAddOn } from '../../api/index.ts'
import type { Api, SecretChange, SecretData } from '../../kube/index.ts'
import type { AgentIdentity, CredentialDriver, HubAddress } from '../../registration/contract.ts'
import type { Clock, ConditionState, Logger } from '../../runtime/index.ts'
import type { AddOnDriver } from '../contract.ts'

/** One credential that an add-on needs: who it is for, and where it goes. */
export interface Item {
  readonly addOn: string
  readonly type: 'kubeClient' | 'customSigner'
  readonly driver: AddOnDriver
  readonly signerName: string
  readonly user: string
  readonly groups: readonly string[]
  readonly organizationalUnits: readonly string[]
  /** On the managed cluster. */
  readonly namespace: string
  readonly secret: string
}

/** A secret as a driver wants it: keys to set and to remove, and the annotations that belong to them. */
export interface Content {
  readonly data: SecretChange
  readonly annotations: Readonly<Record<string, string | undefined>>
}

/** A secret as it is. */
export interface Present {
  readonly data: SecretData
  readonly annotations: Readonly<Record<string, string>>
}

/** What a keeper works with each time it looks. */
export interface Look {
  readonly addOn: ManagedClusterAddOn
  /** What the add-on has now; undefined when it has nothing. */
  readonly present: Present | undefined
  readonly signal: AbortSignal
}

/** How a credential stands after a look. */
export interface Standing {
  /** Undefined: there is nothing to tell yet. */
  readonly condition: ConditionState | undefined
  /** Whatever happens, look again then. */
  readonly lookAgainAt: number
  /** It did not work; try again soon, with patience. */
  readonly error?: unknown
}

/** Keeps one credential fresh, in one secret. A driver instance: it comes and goes with its item. */
export interface Keeper {
  look(look: Look): Promise<Standing>
  /** When the credential ends; undefined when there is none. */
  expiresAt(): number | undefined
  /** When it was issued, for those whose age tells something. */
  issuedAt?(): number | undefined
  /** Settles when nothing of it is at work any more. */
  stop(): Promise<void>
}

/** What keepers are made of. */
export interface KeeperContext {
  readonly item: Item
  readonly identity: AgentIdentity
  readonly hub: Api
  readonly address: HubAddress
  /** A certificate over the cluster's own way to the hub. */
  readonly certificateFor: (item: Item) => CredentialDriver
  readonly tokenSeconds: number
  /** Sends only what differs; the secret is made if it is not there. */
  readonly write: (content: Content, signal: AbortSignal) => Promise<void>
  /** Asks for another look. */
  readonly enqueue: () => void
  readonly counts: DriverCounts
  readonly clock: Clock
  readonly random: () => number
  readonly log: Logger
}

/** What drivers count. */
export interface DriverCounts {
  tokenIssued(addOn: string, because: string): void
  tokenFailed(addOn: string, reason: string): void
  certificateIssued(addOn: string): void
  certificateFailed(addOn: string): void
}

/** How long something may be waited for before a condition says so: a registration that goes well writes none. */
export const patienceMs = 60_000
