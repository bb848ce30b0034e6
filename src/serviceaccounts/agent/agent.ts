import type { ManagedServiceAccount } from '../../api/index.ts'
import type { Api, Client, ServiceAccount } from '../../kube/index.ts'
import type { Clock, Logger, Metrics } from '../../runtime/index.ts'
import type { TokenCounts } from './metrics.ts'
import type { Received } from './refresh.ts'
import type { SigningKeys } from './signing-keys.ts'

export interface ServiceAccountAgentOptions {
  /** The hub, with the credential of the add-on's own registration. */
  hub: Api
  /** The managed cluster. */
  local: Client
  cluster: string
  /** Where the accounts are: the namespace that the add-on is installed in. */
  namespace: string
  /** Accounts there that are never used or removed, beside the add-on's own: those of this process. */
  ownAccounts?: readonly string[] | undefined
  clock?: Clock | undefined
  random?: (() => number) | undefined
  log?: Logger | undefined
  metrics: Metrics
  /** Told once everything is known and the work begins. */
  onReady?: (() => void) | undefined
}

/** What the parts of the agent share. */
export interface AccountAgent {
  readonly hub: Api
  readonly local: Client
  readonly cluster: string
  readonly namespace: string
  readonly own: ReadonlySet<string>
  readonly clock: Clock
  readonly log: Logger
  readonly counts: TokenCounts
  readonly keys: SigningKeys
  /** What this process got itself, by name. */
  readonly received: Map<string, Received>
  /** Names whose Secret was written while the word of it has not reached the hub. */
  readonly unreported: Set<string>
  /** The object on the hub, ours where the cache is behind. */
  wantedOf(name: string): ManagedServiceAccount | undefined
  wroteStatus(before: ManagedServiceAccount, written: ManagedServiceAccount): ManagedServiceAccount
  accountOf(name: string): ServiceAccount | undefined
  wroteAccount(before: ServiceAccount | undefined, written: ServiceAccount): ServiceAccount
  forget(name: string): void
}
