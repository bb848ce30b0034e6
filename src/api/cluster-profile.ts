import { conditions } from './conditions.ts'
import { ageColumn, conditionColumn, defineKind, type ObjectOf } from './kind.ts'
import { conditionType, group } from './names.ts'
import { array, boolean, bytes, object, string, time, unknownObject } from './schema.ts'

/** `clusters[].cluster` of a kubeconfig, with its names. */
const cluster = object('How the API server is reached, as in a kubeconfig.', {
  'server?': string('Its address.'),
  'tls-server-name?': string('The name that its certificate is for, where that is not the host of its address.'),
  'insecure-skip-tls-verify?': boolean('Whether its certificate is not checked.'),
  'certificate-authority?': string('A file with the certificates that it is checked against.'),
  'certificate-authority-data?': bytes('These certificates themselves.'),
  'proxy-url?': string('A proxy in between.'),
  'disable-compression?': boolean('Whether answers are not compressed.'),
  'extensions?': array(
    'What plug-ins are told; client.authentication.k8s.io/exec is what an exec plug-in finds in its environment.',
    object('One of them.', { name: string('Its name.'), extension: unknownObject('What it says.') }),
  ),
})

const provider = object('A way into the cluster.', {
  name: string('Which plug-in gives the credential: consumers say how it is run.'),
  'cluster?': cluster,
})

const schema = () =>
  object('A cluster of a fleet, for programs that work with many.', {
    spec: object('Whose it is.', {
      'displayName?': string('What people call it.'),
      clusterManager: object(
        'Who keeps it.',
        { name: string('Its name.') },
        { rules: [{ rule: 'self == oldSelf', message: 'clusterManager cannot be changed: make another profile' }] },
      ),
    }),
    'status?': object('What its manager reports.', {
      'conditions?': conditions('How it is.'),
      'version?': object('What the cluster runs.', { 'kubernetes?': string('Version of its API server.') }),
      'properties?': array(
        'Facts about it.',
        object('One fact.', {
          name: string('Its name.', { minLength: 1, maxLength: 253 }),
          value: string('Its value.', { minLength: 1, maxLength: 1024 }),
          'lastObservedTime?': time('When it was seen.'),
        }),
      ),
      'accessProviders?': array('Ways into it.', provider),
      'credentialProviders?': array('The former name of accessProviders.', provider),
    }),
  })

/** A cluster of a fleet as the cluster inventory API has it. Its CRD is that API's: ours is for hubs without it. */
export const ClusterProfile = defineKind({
  group: group.inventory,
  kind: 'ClusterProfile',
  plural: 'clusterprofiles',
  scope: 'Namespaced',
  stored: 'v1alpha1',
  versions: {
    v1alpha1: {
      schema,
      columns: [
        { name: 'Manager', type: 'string', jsonPath: '.spec.clusterManager.name' },
        conditionColumn('Healthy', conditionType.clusterProfile.controlPlaneHealthy),
        ageColumn,
      ],
    },
  },
})

/** A ClusterProfile as it is on the hub. */
export type ClusterProfile = ObjectOf<typeof ClusterProfile>
