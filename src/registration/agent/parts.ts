import type { ManagedCluster } from '../../api/index.ts'
import type { Api, Client } from '../../kube/index.ts'
import type { Clock, Informer, Logger, Metrics } from '../../runtime/index.ts'
import type { AgentIdentity, HubAddress } from '../drivers/driver.ts'
import { patiently } from './patience.ts'

/** What the parts of a joined agent work with. It is over when the signal is aborted: another hub may follow. */
export interface Joined {
  /** The hub, as this cluster. A renewed credential is used from the next request on. */
  readonly hub: Api
  readonly hubServer: string
  /** Where it is, for kubeconfigs of others. */
  readonly address: HubAddress
  readonly local: Client
  readonly identity: AgentIdentity
  /** Our own ManagedCluster, and no other. */
  readonly clusters: Informer<ManagedCluster>
  readonly clock: Clock
  readonly random: () => number
  readonly log: Logger
  readonly metrics: Metrics
  readonly signal: AbortSignal
}

/** Something that runs while the cluster is joined, also while it is denied: work has to be cleaned up then. */
export interface JoinedPart {
  readonly name: string
  /** Runs until `joined.signal`. When it fails it is started again. */
  run(joined: Joined): Promise<void>
}

/** Runs a part again and again until the phase is over. */
export const kept = async (part: JoinedPart, joined: Joined): Promise<void> => {
  const { clock, random, signal } = joined
  const log = joined.log.with({ part: part.name })
  const attempt = async (): Promise<void> => {
    await part.run({ ...joined, log })
    if (!signal.aborted) throw new Error(`${part.name} ended by itself`)
  }
  const failed = (error: unknown): void => log.error('a part failed; starting it again', { error })
  await patiently(attempt, { clock, random, signal, failed }).catch(() => {})
}
