/**
 * The hub's side of registration. A tour:
 *
 * `acceptance.ts` reconciles ManagedClusters: it lets them in (`namespace.ts`, `permissions.ts`), or lets them go
 * (`farewell.ts`, `remaining.ts`, `left-behind.ts`). `records.ts` is what it keeps for clusters and how that is written.
 * `auto-acceptance.ts` decides who needs no person; `shared-roles.ts` keeps what all clusters share. Whether a cluster is
 * alive is looked after by `availability.ts`, `clock.ts` and `taints.ts`; `cluster-sets.ts` and `set-bindings.ts` group them.
 */
import { ManagedCluster } from '../../api/index.ts'
import type { Client } from '../../kube/index.ts'
import { EventRecorder, silentLogger, systemClock, type Clock, type Logger, type Manager } from '../../runtime/index.ts'
import { acceptance } from './acceptance.ts'
import { availability } from './availability.ts'
import { clock } from './clock.ts'
import { clusterSets } from './cluster-sets.ts'
import { driverOf, type Hub, type HubSettings } from './hub.ts'
import { clusterMetrics } from './metrics.ts'
import { setBindings } from './set-bindings.ts'
import { keepSharedRoles } from './shared-roles.ts'
import { taints } from './taints.ts'

export { driverOf, type Hub, type HubGates, type HubSettings } from './hub.ts'
export { nameRefusal } from './reserved-names.ts'
export { registrationWebhookConfigurations, registrationWebhooks } from './webhooks.ts'

export interface RegistrationOptions {
  client: Client
  settings: HubSettings
  /** Which replica, in events. */
  instance?: string | undefined
  clock?: Clock | undefined
  log?: Logger | undefined
}

/** What all controllers of the hub get. */
export const hubFor = (manager: Manager, options: RegistrationOptions): Hub => {
  const { client, settings, instance = 'hub' } = options
  const time = options.clock ?? systemClock
  const log = options.log ?? silentLogger
  return {
    client,
    manager,
    clusters: manager.informer(ManagedCluster),
    events: new EventRecorder({ client, controller: 'lanyard.io/registration', instance, clock: time, log }),
    clock: time,
    log,
    settings,
  }
}

const parts = [keepSharedRoles, acceptance, availability, clock, taints, clusterSets, setBindings, clusterMetrics]

/** Adds everything that registration needs on a hub to the manager. */
export const startRegistration = (manager: Manager, options: RegistrationOptions): Hub => {
  const hub = hubFor(manager, options)
  for (const add of parts) add(hub)
  for (const driver of options.settings.drivers) driver.start?.(manager, (cluster) => driverOf(hub, cluster) === driver)
  return hub
}
