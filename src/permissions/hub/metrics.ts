import { grantsState, permissionStates } from '../grants.ts'
import type { Hub } from './hub.ts'

/** Counts permissions when somebody asks. */
export const permissionMetrics = (hub: Hub): void => {
  const gauge = hub.manager.metrics.gauge(
    'lanyard_hub_permissions',
    'ClusterPermissions and ClusterSetPermissions by state',
  )
  for (const [kind, informer] of [
    ['ClusterPermission', hub.permissions],
    ['ClusterSetPermission', hub.setPermissions],
  ] as const)
    for (const state of permissionStates)
      gauge.read(() => informer.list().filter((one) => grantsState(one) === state).length, { kind, state })
}
