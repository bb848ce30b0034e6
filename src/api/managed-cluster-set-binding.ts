import { conditions } from './conditions.ts'
import { defineKind, type ObjectOf } from './kind.ts'
import { group } from './names.ts'
import { object, string } from './schema.ts'

const schema = () =>
  object(
    'Lets a namespace use a cluster set.',
    {
      spec: object('Which set.', { clusterSet: string('The name of the set.', { minLength: 1, maxLength: 253 }) }),
      'status?': object('What the hub reports.', { 'conditions?': conditions('Whether the set exists.') }),
    },
    {
      rules: [
        {
          rule: 'self.spec.clusterSet == self.metadata.name',
          message: 'spec.clusterSet must equal metadata.name: a namespace binds a set once',
        },
      ],
    },
  )

/** Lets a namespace use a cluster set. */
export const ManagedClusterSetBinding = defineKind({
  group: group.cluster,
  kind: 'ManagedClusterSetBinding',
  plural: 'managedclustersetbindings',
  shortNames: ['mclsetbinding', 'mclsetbindings'],
  scope: 'Namespaced',
  stored: 'v1beta2',
  versions: { v1beta2: { schema } },
})

/** A ManagedClusterSetBinding as it is on the hub. */
export type ManagedClusterSetBinding = ObjectOf<typeof ManagedClusterSetBinding>
