import { conditions } from './conditions.ts'
import { eksClusterArn } from './eks-cluster-arn.ts'
import { featureGates } from './feature-gates.ts'
import { defineKind, type ObjectOf } from './kind.ts'
import { group } from './names.ts'
import { nodePlacement } from './node-placement.ts'
import { relatedResource, resourceGeneration } from './resource-identifier.ts'
import { resourceRequirement } from './resource-requirements.ts'
import { array, bytes, integer, object, string } from './schema.ts'

const identities = (description: string) =>
  array(description, string(undefined, { maxLength: 2048 }), { maxItems: 128 })

const registrationDriver = object(
  'One way in which clusters may prove who they are.',
  {
    'authType?': string('By certificate, by AWS IAM, or over gRPC.', {
      enum: ['csr', 'awsirsa', 'grpc'],
      default: 'csr',
    }),
    'csr?': object('Used with csr.', { 'autoApprovedIdentities?': identities('Users whose requests need no person.') }),
    'awsirsa?': object('Used with awsirsa.', {
      'hubClusterArn?': eksClusterArn('ARN of the hub.'),
      'autoApprovedIdentities?': identities('Patterns of cluster ARNs that need no person.'),
      'tags?': array(
        'Tags for the IAM objects, each key=value.',
        string(undefined, { maxLength: 385, pattern: '^[^=]+=.*$' }),
        {
          maxItems: 50,
        },
      ),
    }),
    'grpc?': object('Used with grpc.', {
      'autoApprovedIdentities?': identities('Users whose requests need no person.'),
    }),
  },
  {
    rules: [
      {
        rule: 'self.authType != "awsirsa" || (has(self.awsirsa) && has(self.awsirsa.hubClusterArn))',
        message: 'authType awsirsa needs awsirsa.hubClusterArn, the ARN of the hub',
      },
    ],
  },
)

const address = object('Where clients find it.', {
  host: string('Name or address, with a port if it is not 443.'),
  'caBundle?': bytes('Certificates that it is checked against.'),
})

const endpoint = object('How clients from outside reach it.', {
  'type?': string('What stands in front.', { enum: ['hostname', 'loadBalancer', 'route'], default: 'hostname' }),
  'hostname?': address,
  'loadBalancer?': object('A load balancer of the cloud.', {
    'host?': string('Its name, if it is fixed.'),
    'caBundle?': bytes('Certificates that it is checked against.'),
  }),
  'route?': object('An OpenShift route.', {
    'host?': string('Its name, if it is fixed.'),
    'caBundle?': bytes('Certificates that it is checked against.'),
  }),
})

const spec = () =>
  object('How the hub runs.', {
    'registrationImagePullSpec?': string('Image of the registration controllers.'),
    'workImagePullSpec?': string('Image of the work controllers.'),
    'placementImagePullSpec?': string('Image of the placement controllers.'),
    'addOnManagerImagePullSpec?': string('Image of the add-on manager.'),
    'nodePlacement?': nodePlacement,
    'deployOption?': object('Where the hub runs.', {
      'mode?': string('In this cluster, or in another one for it.', {
        enum: ['Default', 'Hosted'],
        default: 'Default',
      }),
    }),
    'resourceRequirement?': resourceRequirement,
    'registrationConfiguration?': object('Who may register, and how.', {
      'autoApproveUsers?': identities(
        'Users whose clusters need no person; says the same as csr.autoApprovedIdentities.',
      ),
      'featureGates?': featureGates,
      'importerConfiguration?': object('How clusters are imported.', {
        'renderers?': array(
          'Where the agent configuration comes from.',
          string(undefined, { enum: ['render-auto', 'render-from-config-secret'] }),
        ),
      }),
      'registrationDrivers?': array('The ways in which clusters may register; csr if absent.', registrationDriver, {
        keys: ['authType'],
        maxItems: 3,
      }),
    }),
    'workConfiguration?': object('How works are delivered.', {
      'featureGates?': featureGates,
      'workDriver?': string('Over what.', { enum: ['kube', 'mqtt', 'grpc'], default: 'kube' }),
    }),
    'addOnManagerConfiguration?': object('How add-ons are managed.', { 'featureGates?': featureGates }),
    'serverConfiguration?': object('The gRPC endpoint.', {
      'imagePullSpec?': string('Its image.'),
      'featureGates?': featureGates,
      'endpointsExposure?': array(
        'How it is reached from outside.',
        object('One way.', {
          'usage?': string('What it is for.'),
          'protocol?': string('What it speaks.', { enum: ['grpc', 'https'], default: 'grpc' }),
          'grpc?': endpoint,
          'https?': endpoint,
        }),
      ),
    }),
  })

const schema = () =>
  object('The hub.', {
    'spec?': spec(),
    'status?': object('What the operator reports.', {
      'conditions?': conditions('Whether the hub runs.'),
      'generations?': array('What the operator last wrote.', resourceGeneration),
      'relatedResources?': array('What the operator keeps.', relatedResource),
      'observedGeneration?': integer('The metadata.generation that was looked at.', { format: 'int64' }),
    }),
  })

/** The hub, as the operator installs it. */
export const ClusterManager = defineKind({
  group: group.operator,
  kind: 'ClusterManager',
  plural: 'clustermanagers',
  scope: 'Cluster',
  stored: 'v1',
  versions: { v1: { schema } },
})

/** A ClusterManager as it is on the hub. */
export type ClusterManager = ObjectOf<typeof ClusterManager>
