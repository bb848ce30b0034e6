import type { ManagedCluster } from '../../api/index.ts'
import type { Client } from '../../kube/index.ts'
import type { Clock, EventRecorder, Informer, Logger, Manager } from '../../runtime/index.ts'
import type { HubDriver } from '../drivers/driver.ts'

/** What may be turned on and off on a hub. Names and defaults are those of the feature gates. */
export interface HubGates {
  /** New clusters whose identity is listed are accepted without a person. */
  managedClusterAutoApproval: boolean
  /** The sets `default` and `global` exist. */
  defaultClusterSet: boolean
  /** Works and add-ons of a cluster are removed with it. */
  resourceCleanup: boolean
}

export interface HubSettings {
  gates: HubGates
  /** In the order in which they are asked whether they serve a cluster; the last one serves all that are left. */
  drivers: readonly HubDriver[]
  /** More labels for everything that is made for a cluster. */
  labels: Record<string, string>
  /** How long a denied or deleted cluster keeps the access that it needs to remove its works. */
  farewellMs: number
}

/** What the controllers of the hub share. */
export interface Hub {
  readonly client: Client
  readonly manager: Manager
  readonly clusters: Informer<ManagedCluster>
  readonly events: EventRecorder
  readonly clock: Clock
  readonly log: Logger
  readonly settings: HubSettings
}

/** The driver that serves a cluster. */
export const driverOf = (hub: Hub, cluster: ManagedCluster): HubDriver => {
  const { drivers } = hub.settings
  return drivers.find((driver) => driver.serves(cluster)) ?? drivers.at(-1)!
}
