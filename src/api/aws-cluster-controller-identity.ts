import { allowedNamespaces } from './allowed-namespaces.ts'
import { awsVersions, identityLabels } from './aws-versions.ts'
import { defineKind, type ObjectOf } from './kind.ts'
import { group } from './names.ts'
import { object } from './schema.ts'

const schema = () =>
  object(
    'Lets namespaces use the credentials of the controller itself.',
    { 'spec?': object('Who may use it.', { 'allowedNamespaces?': allowedNamespaces }) },
    {
      rules: [
        {
          rule: 'self.metadata.name == "default"',
          message: 'there is one AWSClusterControllerIdentity, and its name is default',
        },
        {
          rule: 'has(self.spec) == has(oldSelf.spec) && (!has(self.spec) || dyn(self.spec) == dyn(oldSelf.spec))',
          message: 'spec cannot be changed; delete the identity and create it anew',
          fieldPath: '.spec',
        },
      ],
    },
  )

/** The credentials of the controller itself, and who may use them. */
export const AWSClusterControllerIdentity = defineKind({
  group: group.infrastructure,
  kind: 'AWSClusterControllerIdentity',
  plural: 'awsclustercontrolleridentities',
  shortNames: ['awsci'],
  categories: ['cluster-api'],
  scope: 'Cluster',
  labels: identityLabels,
  stored: 'v1beta2',
  versions: awsVersions(schema),
})

/** An AWSClusterControllerIdentity as it is on the management cluster. */
export type AWSClusterControllerIdentity = ObjectOf<typeof AWSClusterControllerIdentity>
