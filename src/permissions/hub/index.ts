/**
 * The hub's side of permissions. A tour:
 *
 * `permission.ts` reconciles ClusterPermissions, `set-permission.ts` ClusterSetPermissions. Both resolve the roles of the hub
 * that are copied (`hub-roles.ts`), decide under whose authority (`authorization.ts`, which asks with `authority.ts` for the
 * people that `stamps.ts` has written down), and have one ManifestWork for each cluster kept (`works.ts`, `payload.ts`).
 * `webhooks.ts` says at admission what would be refused later. `../bindings.ts`, `../rules.ts` and `../faults.ts` are pure.
 */
import type { Client } from '../../kube/index.ts'
import { silentLogger, systemClock, type Clock, type Logger, type Manager } from '../../runtime/index.ts'
import type { Route } from '../../runtime/webhook/index.ts'
import { hubFor } from './hub.ts'
import { permissionMetrics } from './metrics.ts'
import { clusterPermissions } from './permission.ts'
import { clusterSetPermissions } from './set-permission.ts'
import { permissionWebhooks } from './webhooks.ts'

export { permissionWebhookConfigurations, webhookPath } from './webhooks.ts'

export interface PermissionOptions {
  client: Client
  /** Whether `webhooks` are served: without them nobody knows who wrote a permission, and all are delivered. */
  admission: boolean
  clock?: Clock | undefined
  log?: Logger | undefined
}

/** Adds everything that permissions need on a hub to the manager; the routes are for its webhook server. */
export const startPermissions = (manager: Manager, options: PermissionOptions): { webhooks: Record<string, Route> } => {
  const { client, admission, clock = systemClock, log = silentLogger } = options
  const hub = hubFor(manager, { client, admission, clock, log })
  for (const add of [clusterPermissions, clusterSetPermissions, permissionMetrics]) add(hub)
  return { webhooks: permissionWebhooks(hub) }
}
