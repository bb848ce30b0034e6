import { addOnConfiguration, addOnMeta, configKind, configs, referenceFields } from './add-on-config.ts'
import { conditions } from './conditions.ts'
import { conditionColumn, defineKind, type ObjectOf } from './kind.ts'
import { conditionType, group } from './names.ts'
import { resourceIdentifier } from './resource-identifier.ts'
import { array, object, string } from './schema.ts'

const user = {
  'user?': string('User name of the add-on agent on the hub.'),
  'groups?': array('Groups of the add-on agent on the hub.', string()),
}

const driver = (description: string) => string(description, { enum: ['csr', 'token'] })

const signerName = string('Who signs the certificate: a domain, a slash, a name.', {
  minLength: 5,
  maxLength: 571,
  pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+/[a-z0-9.:-]+$',
})

/** A credential that the add-on needs. */
const registration = object(
  'A credential that the add-on needs.',
  {
    type: string('For the API server of the hub, or for an endpoint with its own signer.', {
      enum: ['kubeClient', 'customSigner'],
    }),
    'kubeClient?': object('Access to the API server of the hub.', {
      'driver?': driver('How the agent authenticates; the agent writes what it uses.'),
      'subject?': object('Who the agent is. With the token driver only user is set.', user),
    }),
    'customSigner?': object('A client certificate for another endpoint; always by CSR.', {
      signerName,
      'subject?': object('What the certificate says.', {
        ...user,
        'organizationUnits?': array('Organization units of the certificate.', string()),
      }),
    }),
  },
  {
    rules: [
      {
        rule: 'self.type == "kubeClient" ? !has(self.customSigner) : has(self.customSigner) && !has(self.kubeClient)',
        message: 'type kubeClient takes only kubeClient; type customSigner needs customSigner and nothing else',
      },
    ],
  },
)

const statusFields = {
  'conditions?': conditions('Health, installation and credentials of the add-on.'),
  'relatedObjects?': array('Objects of interest.', resourceIdentifier('An object of interest.')),
  'addOnMeta?': addOnMeta,
  'supportedConfigs?': array('Kinds of configuration that it understands.', configKind('One kind.'), {
    keys: ['group', 'resource'],
  }),
  'namespace?': string('Where it is installed on the managed cluster.', { maxLength: 63 }),
  'healthCheck?': object('How its health is known.', {
    'mode?': string('By its lease, or as its own controller says.', {
      enum: ['Lease', 'Customized'],
      default: 'Lease',
    }),
  }),
}

const v1beta1 = () =>
  object('An add-on on one managed cluster.', {
    'spec?': object('How it is installed.', { 'configs?': configs }),
    'status?': object('What hub and agent report.', {
      ...statusFields,
      'configReferences?': array('Configurations in use.', object('One configuration.', referenceFields)),
      'registrations?': array('Credentials that it needs.', registration, { maxItems: 64 }),
    }),
  })

const v1alpha1 = () =>
  object('An add-on on one managed cluster, in the older form.', {
    'spec?': object('How it is installed.', {
      'installNamespace?': string('Where it is installed on the managed cluster.', {
        default: 'open-cluster-management-agent-addon',
        maxLength: 63,
        pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$',
      }),
      'configs?': configs,
    }),
    'status?': object('What hub and agent report.', {
      ...statusFields,
      'addOnConfiguration?': addOnConfiguration,
      'configReferences?': array(
        'Configurations in use.',
        object('One configuration.', {
          ...referenceFields,
          'namespace?': string('Namespace of the configuration; say it in desiredConfig.'),
          'name?': string('Name of the configuration; say it in desiredConfig.'),
        }),
      ),
      'registrations?': array(
        'Certificates that it needs.',
        object('One certificate.', {
          signerName,
          'subject?': object('What it says.', {
            ...user,
            'organizationUnit?': array('Organization units of the certificate.', string()),
          }),
        }),
        { maxItems: 64 },
      ),
      'kubeClientDriver?': driver('How the agent authenticates to the API server of the hub.'),
    }),
  })

const columns = [
  conditionColumn('Available', conditionType.addOn.available),
  conditionColumn('Degraded', conditionType.addOn.degraded),
  conditionColumn('Progressing', conditionType.addOn.progressing),
]

/** An add-on on one managed cluster. */
export const ManagedClusterAddOn = defineKind({
  group: group.addon,
  kind: 'ManagedClusterAddOn',
  plural: 'managedclusteraddons',
  shortNames: ['mca', 'mcas'],
  scope: 'Namespaced',
  stored: 'v1beta1',
  conversion: 'webhook',
  versions: { v1alpha1: { schema: v1alpha1, columns }, v1beta1: { schema: v1beta1, columns } },
})

/** A ManagedClusterAddOn as it is on the hub. */
export type ManagedClusterAddOn = ObjectOf<typeof ManagedClusterAddOn>

/** A ManagedClusterAddOn in the older form that Go agents still speak. */
export type ManagedClusterAddOnV1alpha1 = ObjectOf<typeof ManagedClusterAddOn.versions.v1alpha1>
