import { allowedNamespaces } from './allowed-namespaces.ts'
import { awsVersions, identityLabels } from './aws-versions.ts'
import { defineKind, type ObjectOf } from './kind.ts'
import { group } from './names.ts'
import { object } from './schema.ts'
import { secretReference } from './secret-reference.ts'

const schema = () =>
  object('An AWS access key, kept in a secret.', {
    spec: object('Which key, and who may use it.', {
      'allowedNamespaces?': allowedNamespaces,
      secretRef: secretReference(
        'The secret with AccessKeyID, SecretAccessKey and perhaps SessionToken. A plain name is a secret in the namespace of the controller.',
      ),
    }),
  })

/** An AWS access key, kept in a secret. */
export const AWSClusterStaticIdentity = defineKind({
  group: group.infrastructure,
  kind: 'AWSClusterStaticIdentity',
  plural: 'awsclusterstaticidentities',
  shortNames: ['awssi'],
  categories: ['cluster-api'],
  scope: 'Cluster',
  labels: identityLabels,
  stored: 'v1beta2',
  versions: awsVersions(schema),
})

/** An AWSClusterStaticIdentity as it is on the management cluster. */
export type AWSClusterStaticIdentity = ObjectOf<typeof AWSClusterStaticIdentity>
