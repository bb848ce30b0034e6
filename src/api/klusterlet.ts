import { conditions } from './conditions.ts'
import { eksClusterArn } from './eks-cluster-arn.ts'
import { featureGates } from './feature-gates.ts'
import { defineKind, type ObjectOf } from './kind.ts'
import { group } from './names.ts'
import { nodePlacement } from './node-placement.ts'
import { relatedResource, resourceGeneration } from './resource-identifier.ts'
import { resourceRequirement } from './resource-requirements.ts'
import { array, bytes, integer, map, object, string } from './schema.ts'

const apiLimits = {
  'kubeAPIQPS?': integer('Requests a second of agents that limit themselves.', { default: 50 }),
  'kubeAPIBurst?': integer('Requests at once of agents that limit themselves.', { default: 100 }),
}

const registrationDriver = object(
  'How the cluster proves who it is.',
  {
    'authType?': string('By certificate, by AWS IAM, or over gRPC.', {
      enum: ['csr', 'awsirsa', 'grpc'],
      default: 'csr',
    }),
    'awsIrsa?': object('Used with awsirsa.', {
      hubClusterArn: eksClusterArn('ARN of the hub.'),
      managedClusterArn: eksClusterArn('ARN of this cluster.'),
    }),
  },
  {
    rules: [
      {
        rule: 'self.authType != "awsirsa" || has(self.awsIrsa)',
        message: 'authType awsirsa needs awsIrsa with hubClusterArn and managedClusterArn',
      },
    ],
  },
)

const addOnDriver = object('How add-ons prove to the API server of the hub who they are.', {
  'authType?': string('By certificate or by service account token; csr if absent.', { enum: ['csr', 'token'] }),
  'token?': object('Used with token.', {
    'expirationSeconds?': integer('Lifetime of a token; 0 or absent means a year. Below 3600 only for tests.', {
      format: 'int64',
      minimum: 0,
    }),
  }),
})

const bootstrapKubeConfigs = object('Hubs that the agent may choose from.', {
  'type?': string('None uses the one bootstrap secret.', { enum: ['None', 'LocalSecrets'], default: 'None' }),
  'localSecretsConfig?': object('Used with LocalSecrets.', {
    kubeConfigSecrets: array(
      'Secrets with a kubeconfig each, first choice first.',
      object('One secret.', { name: string('Its name.') }),
    ),
    'hubConnectionTimeoutSeconds?': integer('How long a hub may be away before the next is tried.', {
      default: 600,
      minimum: 180,
    }),
  }),
})

const registrationConfiguration = object('How the cluster registers.', {
  'clientCertExpirationSeconds?': integer('Lifetime that is asked for the client certificate.', { minimum: 0 }),
  'featureGates?': featureGates,
  'clusterAnnotations?': map(
    'Annotations for the ManagedCluster; keys begin with agent.open-cluster-management.io.',
    string(),
  ),
  'clusterLabels?': map('Labels for the ManagedCluster when it is created.', string()),
  ...apiLimits,
  'bootstrapKubeConfigs?': bootstrapKubeConfigs,
  'registrationDriver?': registrationDriver,
  'addOnKubeClientRegistrationDriver?': addOnDriver,
  'clusterClaimConfiguration?': object('Which claims reach the hub.', {
    'maxCustomClusterClaims?': integer('How many of your own.', { default: 20, minimum: 0 }),
    'reservedClusterClaimSuffixes?': array(
      'Claims with these endings always do.',
      string(undefined, { minLength: 1, maxLength: 64 }),
      { maxItems: 10 },
    ),
  }),
})

const workConfiguration = object('How works are applied.', {
  'featureGates?': featureGates,
  ...apiLimits,
  'hubKubeAPIQPS?': integer('Requests a second to the hub.', { default: 50 }),
  'hubKubeAPIBurst?': integer('Requests at once to the hub.', { default: 100 }),
  'appliedManifestWorkEvictionGracePeriod?': string('How long objects stay after their work is gone from the hub.'),
  'statusSyncInterval?': string('How often status is read where it is not watched.'),
})

const spec = () =>
  object('How the agent runs.', {
    'namespace?': string('Where the agent runs.', {
      default: 'open-cluster-management-agent',
      maxLength: 57,
      pattern: '^open-cluster-management-[-a-z0-9]*[a-z0-9]$',
    }),
    'clusterName?': string('Name of the cluster on the hub; made up if absent.', {
      maxLength: 63,
      pattern: '^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$',
    }),
    'registrationImagePullSpec?': string('Image of the registration agent.'),
    'workImagePullSpec?': string('Image of the work agent.'),
    'imagePullSpec?': string('Image of the agent that does both.'),
    'externalServerURLs?': array(
      'How the hub can reach this cluster.',
      object('One address.', {
        url: string('Address.'),
        'caBundle?': bytes('Certificates that it is checked against.'),
      }),
    ),
    'nodePlacement?': nodePlacement,
    'deployOption?': object('Where the agent runs.', {
      'mode?': string('In this cluster, or in another one for it; as two processes or one.', {
        enum: ['Default', 'Hosted', 'Singleton', 'SingletonHosted'],
        default: 'Default',
      }),
    }),
    'hubApiServerHostAlias?': object('An entry in the hosts file of the agent.', {
      ip: string('Address of the hub.'),
      hostname: string('Name of the hub.'),
    }),
    'resourceRequirement?': resourceRequirement,
    'priorityClassName?': string('Priority class of the agent.'),
    'registrationConfiguration?': registrationConfiguration,
    'workConfiguration?': workConfiguration,
  })

const schema = () =>
  object('The agent of a managed cluster.', {
    'spec?': spec(),
    'status?': object('What the operator reports.', {
      'conditions?': conditions('Whether the agent runs and reaches the hub.'),
      'generations?': array('What the operator last wrote.', resourceGeneration),
      'relatedResources?': array('What the operator keeps.', relatedResource),
      'observedGeneration?': integer('The metadata.generation that was looked at.', { format: 'int64' }),
    }),
  })

/** The agent of a managed cluster, as the operator installs it. */
export const Klusterlet = defineKind({
  group: group.operator,
  kind: 'Klusterlet',
  plural: 'klusterlets',
  scope: 'Cluster',
  stored: 'v1',
  versions: { v1: { schema } },
})

/** A Klusterlet as it is on a managed cluster. */
export type Klusterlet = ObjectOf<typeof Klusterlet>
