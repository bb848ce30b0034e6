import { type Column, defineKind, type ObjectOf } from './kind.ts'
import { manifestWorkSpec } from './manifest-work.ts'
import { group } from './names.ts'
import { array, object, string } from './schema.ts'

const namespace = string('A namespace on the hub.', { minLength: 1, maxLength: 63 })

/** Roles that exist on the hub: a template grants what an administrator has written down, and invents nothing. */
const hubPermission = object(
  'A role on the hub that the agent gets.',
  {
    type: string('In the namespace of its cluster, or in one namespace.', {
      enum: ['CurrentCluster', 'SingleNamespace'],
    }),
    'currentCluster?': object('In the namespace of the cluster.', {
      clusterRoleName: string('A ClusterRole.', { minLength: 1 }),
    }),
    'singleNamespace?': object('In one namespace, for the agents of all clusters.', {
      namespace,
      roleRef: object('A Role of that namespace, or a ClusterRole.', {
        'apiGroup?': string('API group of roles.', { default: 'rbac.authorization.k8s.io' }),
        kind: string('Role or ClusterRole.', { enum: ['Role', 'ClusterRole'] }),
        name: string('Its name.', { minLength: 1 }),
      }),
    }),
  },
  {
    rules: [
      {
        rule: 'self.type == "CurrentCluster" ? has(self.currentCluster) && !has(self.singleNamespace) : has(self.singleNamespace) && !has(self.currentCluster)',
        message:
          'type CurrentCluster needs currentCluster and nothing else; type SingleNamespace needs singleNamespace',
      },
    ],
  },
)

const registration = object(
  'A credential that the add-on needs.',
  {
    type: string('For the API server of the hub, or for an endpoint with its own signer.', {
      enum: ['KubeClient', 'CustomSigner'],
    }),
    'kubeClient?': object('Access to the API server of the hub.', {
      'hubPermissions?': array('What it may do there.', hubPermission, { maxItems: 64 }),
    }),
    'customSigner?': object('A client certificate for another endpoint.', {
      signerName: string('Who signs the certificate: a domain, a slash, a name.', { minLength: 5, maxLength: 571 }),
      'subject?': object('What the certificate says; without it, the name of the add-on on its cluster.', {
        'user?': string('Common name.'),
        'groups?': array('Organizations.', string()),
        'organizationUnit?': array('Organization units.', string()),
      }),
      signingCA: object('The Secret that holds the signing certificate and its key, as tls.crt and tls.key.', {
        namespace,
        name: string('Name of the Secret.', { minLength: 1, maxLength: 253 }),
      }),
    }),
  },
  {
    rules: [
      {
        rule: 'self.type == "KubeClient" ? !has(self.customSigner) : has(self.customSigner) && !has(self.kubeClient)',
        message: 'type KubeClient takes only kubeClient; type CustomSigner needs customSigner and nothing else',
      },
    ],
  },
)

const schema = () =>
  object('An add-on without code: what is deployed, and which credentials it needs.', {
    spec: object('The add-on.', {
      addonName: string('Name of the add-on, as its ClusterManagementAddOn has it.', { minLength: 1, maxLength: 63 }),
      agentSpec: manifestWorkSpec(),
      'registration?': array('Credentials that it needs.', registration, { maxItems: 64 }),
    }),
  })

const addOnName: Column = { name: 'Addon Name', type: 'string', jsonPath: '.spec.addonName' }

/** An add-on without code. Both versions have one shape, so no webhook converts them. */
export const AddOnTemplate = defineKind({
  group: group.addon,
  kind: 'AddOnTemplate',
  plural: 'addontemplates',
  scope: 'Cluster',
  stored: 'v1beta1',
  versions: { v1alpha1: { schema, columns: [addOnName] }, v1beta1: { schema, columns: [addOnName] } },
})

/** An AddOnTemplate as it is on the hub. */
export type AddOnTemplate = ObjectOf<typeof AddOnTemplate>
