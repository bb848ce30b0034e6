import { authorization, permissionColumns, permissionSpec } from './cluster-permission.ts'
import { conditions } from './conditions.ts'
import { defineKind, type ObjectOf } from './kind.ts'
import { group } from './names.ts'
import { array, integer, object, string } from './schema.ts'

const schema = () =>
  object('The same RBAC for every managed cluster of a set.', {
    spec: object('Which clusters, and what they get.', {
      clusterSet: string('A ManagedClusterSet. Clusters get the RBAC when they join it and lose it when they leave.', {
        minLength: 1,
        maxLength: 253,
      }),
      permission: permissionSpec('What a ClusterPermission would say; the objects get the name of this one.'),
    }),
    'status?': object('What the hub reports.', {
      'conditions?': conditions('Whether it may be delivered, and whether it has arrived everywhere.'),
      'authorization?': authorization,
      'clusters?': object('How far it is.', {
        selected: integer('Clusters of the set that are accepted.'),
        delivered: integer('Those that have a ManifestWork with it.'),
        applied: integer('Those that say that all of it is applied.'),
      }),
      'troubles?': array(
        'Clusters on which something is wrong, at most 50.',
        object('One cluster.', {
          cluster: string('Its name.'),
          reason: string('One word for why.'),
          message: string('Why, and what to do next.'),
        }),
        { keys: ['cluster'] },
      ),
    }),
  })

/** RBAC for all managed clusters of a set. */
export const ClusterSetPermission = defineKind({
  group: group.rbac,
  kind: 'ClusterSetPermission',
  plural: 'clustersetpermissions',
  scope: 'Cluster',
  stored: 'v1alpha1',
  versions: { v1alpha1: { schema, columns: permissionColumns } },
})

/** A ClusterSetPermission as it is on the hub. */
export type ClusterSetPermission = ObjectOf<typeof ClusterSetPermission>
