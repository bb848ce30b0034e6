import { label } from '../../api/index.ts'
import { ClusterRole } from '../../kube/index.ts'
import { applySet, watching } from '../../runtime/index.ts'
import type { Hub } from './hub.ts'
import { sharedLabel, sharedRoles } from './permissions.ts'
import { recordsOf } from './records.ts'

/** Keeps the ClusterRoles that the bindings of all clusters refer to. They stay when the hub stops. */
export const keepSharedRoles = (hub: Hub): void => {
  const { clusterRoles } = recordsOf(hub)
  const isShared = (role: ClusterRole | undefined): boolean =>
    role?.metadata.labels?.[label.clusterName] === sharedLabel
  hub.manager.controller({
    name: 'shared-roles',
    workers: sharedRoles.length,
    watches: [
      (enqueue) => {
        for (const { metadata } of sharedRoles) enqueue(metadata.name!)
        return () => {}
      },
      watching(clusterRoles, undefined, (role, old) => isShared(role) || isShared(old)),
    ],
    reconcile: async (name, signal) => {
      const wanted = sharedRoles.filter(({ metadata }) => metadata.name === name)
      const targets = [{ resource: ClusterRole, cache: clusterRoles }]
      await applySet(wanted, { client: hub.client, targets, fieldManager: 'lanyard', signal })
      return {}
    },
  })
}
