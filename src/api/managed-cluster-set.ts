import { matchesSelector } from '../kube/index.ts'
import { conditions } from './conditions.ts'
import { ageColumn, conditionColumn, defineKind, type ObjectOf } from './kind.ts'
import { labelSelector } from './label-selector.ts'
import type { ManagedCluster } from './managed-cluster.ts'
import { conditionType, group, label } from './names.ts'
import { array, object, string } from './schema.ts'

const schema = () =>
  object('A group of managed clusters.', {
    'spec?': object(
      'Which clusters belong to it.',
      {
        'clusterSelector?': object(
          'How its clusters are found.',
          {
            'selectorType?': string(
              'By the label clusterset, which puts a cluster in one set only, or by any labels.',
              {
                enum: ['ExclusiveClusterSetLabel', 'LabelSelector'],
                default: 'ExclusiveClusterSetLabel',
              },
            ),
            'labelSelector?': labelSelector('Used with LabelSelector; empty selects every cluster.'),
          },
          { default: { selectorType: 'ExclusiveClusterSetLabel' } },
        ),
        'managedNamespaces?': array(
          'Namespaces that every cluster of the set gets.',
          object('One namespace.', { name: string('Its name.', { minLength: 1, maxLength: 63 }) }),
          { keys: ['name'] },
        ),
      },
      { default: {} },
    ),
    'status?': object('What the hub reports.', { 'conditions?': conditions('Whether it has clusters.') }),
  })

/** A group of managed clusters. */
export const ManagedClusterSet = defineKind({
  group: group.cluster,
  kind: 'ManagedClusterSet',
  plural: 'managedclustersets',
  shortNames: ['mclset', 'mclsets'],
  scope: 'Cluster',
  stored: 'v1beta2',
  versions: {
    v1beta2: { schema, columns: [conditionColumn('Empty', conditionType.managedClusterSet.empty), ageColumn] },
  },
})

/** A ManagedClusterSet as it is on the hub. */
export type ManagedClusterSet = ObjectOf<typeof ManagedClusterSet>

/** Whether a cluster belongs to a set: by its labels, or by the one label that names its set. */
export const isMember = (set: ManagedClusterSet, { metadata }: Pick<ManagedCluster, 'metadata'>): boolean => {
  const selector = set.spec?.clusterSelector
  return selector?.selectorType === 'LabelSelector'
    ? matchesSelector(selector.labelSelector, metadata.labels)
    : metadata.labels?.[label.clusterSet] === set.metadata.name
}
