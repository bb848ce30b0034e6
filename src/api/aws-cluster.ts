import { identityReference } from './aws-identity-reference.ts'
import { loadBalancer, loadBalancerStatus } from './aws-load-balancer.ts'
import { network } from './aws-network.ts'
import { awsTags } from './aws-tags.ts'
import { awsVersions, contractLabels } from './aws-versions.ts'
import { severityConditions } from './conditions.ts'
import { type Column, defineKind, type ObjectOf } from './kind.ts'
import { group, label } from './names.ts'
import { array, boolean, integer, map, nullable, object, string } from './schema.ts'

/** A field that somebody may still fill in, and nobody may change after that. */
const fixedOnceSet = (field: string, why: string) => ({
  rule: `!has(oldSelf.${field}) || oldSelf.${field} == "" || (has(self.${field}) && self.${field} == oldSelf.${field})`,
  message: `${why}: ${field} cannot be changed once set`,
  fieldPath: `.${field}`,
})

const spec = () =>
  object(
    'What the cluster needs in AWS.',
    {
      'region?': string('AWS region.', { maxLength: 63 }),
      'partition?': string('AWS partition; that of the region if absent.', { maxLength: 63 }),
      'identityRef?': identityReference('Who acts in AWS for the cluster; the controller itself if absent.'),
      'accountID?': string('AWS account that the cluster lives in; found out and kept if absent.', {
        maxLength: 12,
        pattern: '^[0-9]{12}$',
      }),
      'network?': network,
      'networkSpec?': network, // what v1alpha3 called it; kept so that it is read and not lost
      'sshKeyName?': nullable(
        string('Key pair of the machines: "default" if absent, none if empty.', { maxLength: 255 }),
      ),
      'controlPlaneEndpoint?': object('Where the API server is reached.', {
        host: string('Name or address.', { maxLength: 512 }),
        port: integer('Port.', { minimum: 0, maximum: 65535 }),
      }),
      'controlPlaneLoadBalancer?': loadBalancer('The load balancer in front of the API server.'),
      'secondaryControlPlaneLoadBalancer?': loadBalancer('A second one, for clients inside.'),
      'additionalTags?': awsTags('Tags of everything that is made for the cluster.'),
      'imageLookupFormat?': string('How machine images are named.', { maxLength: 1024 }),
      'imageLookupOrg?': string('Account that owns the machine images.', { maxLength: 255 }),
      'imageLookupBaseOS?': string('Operating system of the machine images.', { maxLength: 255 }),
      'bastion?': object('A machine to reach the others through.', {
        'enabled?': boolean('Whether there is one.'),
        'disableIngressRules?': boolean('Let nobody in.'),
        'allowedCIDRBlocks?': array('Who is let in.', string(undefined, { maxLength: 64 })),
        'instanceType?': string('Its size.', { maxLength: 63 }),
        'ami?': string('Its image.', { maxLength: 128 }),
      }),
      's3Bucket?': object('Where large user data is kept.', {
        'name?': string('Its name.', { minLength: 3, maxLength: 63, pattern: '^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$' }),
        'controlPlaneIAMInstanceProfile?': string('Who reads data of the control plane.', { maxLength: 255 }),
        'nodesIAMInstanceProfiles?': array('Who reads data of the nodes.', string(undefined, { maxLength: 255 })),
        'presignedURLDuration?': string('Lifetime of links to the data.', { maxLength: 64 }),
        'bestEffortDeleteObjects?': boolean('Go on when data cannot be deleted.'),
      }),
    },
    {
      rules: [
        fixedOnceSet('region', 'a cluster stays in its region'),
        fixedOnceSet('accountID', 'a cluster stays in its account'),
        {
          rule: '!has(oldSelf.identityRef) || has(self.identityRef)',
          message: 'identityRef can be changed but not removed: name the identity that the cluster shall use',
          fieldPath: '.identityRef',
        },
        {
          rule: '!has(oldSelf.controlPlaneEndpoint) || oldSelf.controlPlaneEndpoint.host == "" || (has(self.controlPlaneEndpoint) && self.controlPlaneEndpoint == oldSelf.controlPlaneEndpoint)',
          message: 'clients know this address: controlPlaneEndpoint cannot be changed once set',
          fieldPath: '.controlPlaneEndpoint',
        },
      ],
    },
  )

const status = () =>
  object('What is there in AWS.', {
    'ready?': boolean('Whether the infrastructure is ready for machines.', { default: false }),
    'networkStatus?': object('The network as it was made.', {
      'securityGroups?': map(
        'Security groups by role.',
        object('One security group.', {
          id: string('Its id.'),
          'name?': string('Its name.'),
          'tags?': map('Its tags.', string()),
        }),
      ),
      'apiServerElb?': loadBalancerStatus('The load balancer in front of the API server.'),
      'secondaryAPIServerELB?': loadBalancerStatus('The second one.'),
      'natGatewaysIPs?': array('Addresses that the cluster calls out from.', string()),
    }),
    'failureDomains?': map(
      'Zones that machines can be spread over.',
      object('One zone.', {
        'controlPlane?': boolean('Whether control plane machines may run there.'),
        'attributes?': map('More about it.', string()),
      }),
    ),
    'bastion?': object('The bastion as it was made.', {
      'id?': string('Its id.'),
      'instanceState?': string('Its state.'),
      'publicIp?': string('Its address.'),
      'ipv6Address?': string('Its IPv6 address.'),
    }),
    'conditions?': severityConditions('Identity, network and load balancer.'),
  })

const schema = () => object('A Kubernetes cluster in AWS.', { 'spec?': spec(), 'status?': status() })

const columns: Column[] = [
  {
    name: 'Cluster',
    type: 'string',
    jsonPath: `.metadata.labels.${label.clusterApiClusterName.replaceAll('.', '\\.')}`,
    description: 'Cluster that it belongs to',
  },
  { name: 'Ready', type: 'string', jsonPath: '.status.ready', description: 'Whether machines can be made' },
  { name: 'VPC', type: 'string', jsonPath: '.spec.network.vpc.id', description: 'VPC of the cluster' },
  { name: 'Account', type: 'string', jsonPath: '.spec.accountID', description: 'AWS account of the cluster' },
  { name: 'Endpoint', type: 'string', jsonPath: '.spec.controlPlaneEndpoint', description: 'API server', priority: 1 },
  { name: 'Bastion IP', type: 'string', jsonPath: '.status.bastion.publicIp', description: 'Bastion of the cluster' },
]

/** A Kubernetes cluster in AWS, and the identity that makes it. */
export const AWSCluster = defineKind({
  group: group.infrastructure,
  kind: 'AWSCluster',
  plural: 'awsclusters',
  shortNames: ['awsc'],
  categories: ['cluster-api'],
  scope: 'Namespaced',
  labels: contractLabels,
  stored: 'v1beta2',
  versions: awsVersions(schema, columns),
})

/** An AWSCluster as it is on the management cluster. */
export type AWSCluster = ObjectOf<typeof AWSCluster>
