import { defineKind, type ObjectOf } from './kind.ts'
import { group } from './names.ts'
import { boolean, integer, object, openObject, string } from './schema.ts'

const reference = (description: string) =>
  openObject(description, {
    'apiVersion?': string('Group and version, up to v1beta1.'),
    'apiGroup?': string('Group alone, from v1beta2.'),
    'kind?': string('Kind of the object.'),
    'namespace?': string('Its namespace, up to v1beta1.'),
    'name?': string('Its name.'),
  })

/** Only what we read is named. Cluster API owns the rest, and it passes through untouched. */
const schema = () =>
  object('A cluster of Cluster API.', {
    'spec?': openObject('What is wanted.', {
      'paused?': boolean('Controllers leave it and everything that it owns alone.'),
      'controlPlaneEndpoint?': openObject('Where its API server is reached.', {
        'host?': string('Name or address.'),
        'port?': integer('Port.'),
      }),
      'controlPlaneRef?': reference('Its control plane.'),
      'infrastructureRef?': reference('Its infrastructure, such as an AWSCluster.'),
    }),
    'status?': openObject('What is there.', {
      'phase?': string('How far it has come.'),
      'infrastructureReady?': boolean('Whether infrastructure is there, up to v1beta1.'),
      'controlPlaneReady?': boolean('Whether the control plane is there, up to v1beta1.'),
      'initialization?': openObject('The same from v1beta2.', {
        'infrastructureProvisioned?': boolean('Whether infrastructure is there.'),
        'controlPlaneInitialized?': boolean('Whether the control plane is there.'),
      }),
    }),
  })

/** A cluster of Cluster API. Its CRD is theirs: ours is for management clusters without Cluster API, such as in tests. */
export const Cluster = defineKind({
  group: group.clusterApi,
  kind: 'Cluster',
  plural: 'clusters',
  shortNames: ['cl'],
  categories: ['cluster-api'],
  scope: 'Namespaced',
  stored: 'v1beta1',
  versions: { v1beta1: { schema }, v1beta2: { schema } },
})

/** A Cluster as it is on the management cluster. */
export type Cluster = ObjectOf<typeof Cluster>
