import { conditions } from './conditions.ts'
import { ageColumn, conditionColumn, defineKind, type ObjectOf } from './kind.ts'
import { conditionType, group } from './names.ts'
import { array, boolean, bytes, integer, intOrString, map, object, string, time } from './schema.ts'

const clientConfig = object('One way to reach the API server.', {
  url: string('Its address.'),
  'caBundle?': bytes('Certificates that its serving certificate is checked against; the system roots if absent.'),
})

const taint = object('Keeps placements away from the cluster.', {
  key: string('Its name, in the form of a label key.', {
    maxLength: 316,
    pattern:
      '^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$',
  }),
  'value?': string('Its value.', { maxLength: 1024 }),
  effect: string('What happens to placements that do not tolerate it.', {
    enum: ['NoSelect', 'PreferNoSelect', 'NoSelectIfNew'],
  }),
  'timeAdded?': time('When it was added.'),
})

const managedNamespace = object('A namespace of a cluster set on this cluster.', {
  name: string('Its name on the managed cluster.', { minLength: 1, maxLength: 63 }),
  clusterSet: string('The set that asks for it.', { minLength: 1, maxLength: 253 }),
  'conditions?': conditions('Whether it is there.'),
})

const schema = () =>
  object(
    'A cluster that has joined the hub, or wants to. It owns the namespace of the same name.',
    {
      spec: object('What the hub decides about the cluster.', {
        'hubAcceptsClient?': boolean(
          'Whether the hub lets the cluster in. Needs the right to managedclusters/accept.',
          {
            default: false,
          },
        ),
        'leaseDurationSeconds?': integer('How often the agent renews its lease; 0 means 60.', {
          default: 60,
          minimum: 0,
        }),
        'managedClusterClientConfigs?': array('How the hub can reach the cluster.', clientConfig),
        'taints?': array('What keeps placements away.', taint),
      }),
      'status?': object('What the agent and the hub report.', {
        'conditions?': conditions('Acceptance, join, availability, credentials.'),
        'capacity?': map('All resources of the cluster, as quantities.', intOrString()),
        'allocatable?': map('The part of them that workloads can have.', intOrString()),
        'version?': object('What the cluster runs.', { 'kubernetes?': string('Version of its API server.') }),
        'clusterClaims?': array(
          'Facts that the cluster tells about itself.',
          object('One fact.', {
            name: string('Its name.', { minLength: 1, maxLength: 253 }),
            value: string('Its value.', { minLength: 1, maxLength: 1024 }),
          }),
        ),
        'managedNamespaces?': array('Namespaces of its cluster sets.', managedNamespace, {
          keys: ['clusterSet', 'name'],
        }),
      }),
    },
    {
      rules: [
        {
          rule: 'self.metadata.name.matches("^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")',
          message:
            'the name of a managed cluster is also the name of its namespace: at most 63 of a-z, 0-9 and "-", not beginning or ending with "-"',
        },
      ],
    },
  )

/** A cluster that has joined the hub, or asks to. */
export const ManagedCluster = defineKind({
  group: group.cluster,
  kind: 'ManagedCluster',
  plural: 'managedclusters',
  shortNames: ['mcl', 'mcls'],
  scope: 'Cluster',
  stored: 'v1',
  versions: {
    v1: {
      schema,
      columns: [
        { name: 'Hub Accepted', type: 'boolean', jsonPath: '.spec.hubAcceptsClient' },
        { name: 'Managed Cluster URLs', type: 'string', jsonPath: '.spec.managedClusterClientConfigs[*].url' },
        conditionColumn('Joined', conditionType.managedCluster.joined),
        conditionColumn('Available', conditionType.managedCluster.available),
        ageColumn,
      ],
    },
  },
})

/** A ManagedCluster as it is on the hub. */
export type ManagedCluster = ObjectOf<typeof ManagedCluster>
