import {
  addOnConfiguration,
  addOnMeta,
  config,
  configName,
  configs,
  defaultReference,
  installReference,
} from './add-on-config.ts'
import { conditions } from './conditions.ts'
import { type Column, defineKind, type ObjectOf } from './kind.ts'
import { group } from './names.ts'
import { array, object, string, unknownObject } from './schema.ts'

const placement = {
  namespace: string('Namespace of the placement.', { minLength: 1, maxLength: 63 }),
  name: string('Name of the placement.', { minLength: 1, maxLength: 253 }),
}

const installStrategy = object(
  'Where it is installed.',
  {
    type: string('By hand, or on the clusters of placements.', { enum: ['Manual', 'Placements'], default: 'Manual' }),
    'placements?': array(
      'The placements.',
      object('One placement.', {
        ...placement,
        'configs?': configs,
        'rolloutStrategy?': unknownObject('How changes reach its clusters; kept as given.'),
      }),
      { keys: ['namespace', 'name'] },
    ),
  },
  {
    default: { type: 'Manual' },
    rules: [
      {
        rule: 'self.type == "Placements" || !has(self.placements)',
        message: 'placements are used with type Placements only',
      },
    ],
  },
)

const status = object('What the hub reports.', {
  'defaultConfigReferences?': array('Default configurations.', defaultReference, { keys: ['group', 'resource'] }),
  'installProgressions?': array(
    'How far each placement has come.',
    object('One placement.', {
      ...placement,
      'configReferences?': array('Its configurations.', installReference),
      'conditions?': conditions('Whether it is done.'),
    }),
    { keys: ['namespace', 'name'] },
  ),
})

const v1beta1 = () =>
  object('An add-on that the hub knows.', {
    'spec?': object('What it is and where it goes.', {
      'addOnMeta?': addOnMeta,
      'defaultConfigs?': array(
        'Kinds of configuration that it understands, with their defaults.',
        config('One default.'),
        {
          keys: ['group', 'resource'],
        },
      ),
      'installStrategy?': installStrategy,
    }),
    'status?': status,
  })

const v1alpha1 = () =>
  object('An add-on that the hub knows, in the older form.', {
    'spec?': object('What it is and where it goes.', {
      'addOnMeta?': addOnMeta,
      'addOnConfiguration?': addOnConfiguration,
      'supportedConfigs?': array(
        'Kinds of configuration that it understands.',
        object('One kind.', {
          'group?': string('API group.', { default: '', maxLength: 253 }),
          resource: string('Plural resource.', { minLength: 1, maxLength: 253 }),
          'defaultConfig?': configName('Used where nothing else is chosen.'),
        }),
        { keys: ['group', 'resource'] },
      ),
      'installStrategy?': installStrategy,
    }),
    'status?': status,
  })

const displayName: Column = { name: 'Display Name', type: 'string', jsonPath: '.spec.addOnMeta.displayName' }
const crdName: Column = { name: 'CRD Name', type: 'string', jsonPath: '.spec.addOnConfiguration.crdName' }

/** An add-on that the hub knows. */
export const ClusterManagementAddOn = defineKind({
  group: group.addon,
  kind: 'ClusterManagementAddOn',
  plural: 'clustermanagementaddons',
  shortNames: ['cma', 'cmas'],
  scope: 'Cluster',
  stored: 'v1beta1',
  conversion: 'webhook',
  versions: {
    v1alpha1: { schema: v1alpha1, columns: [displayName, crdName] },
    v1beta1: { schema: v1beta1, columns: [displayName] },
  },
})

/** A ClusterManagementAddOn as it is on the hub. */
export type ClusterManagementAddOn = ObjectOf<typeof ClusterManagementAddOn>

/** A ClusterManagementAddOn in its older form. */
export type ClusterManagementAddOnV1alpha1 = ObjectOf<typeof ClusterManagementAddOn.versions.v1alpha1>
