import { allowedNamespaces } from './allowed-namespaces.ts'
import { clusterIdentityReference } from './aws-identity-reference.ts'
import { roleFields } from './aws-role.ts'
import { awsVersions, identityLabels } from './aws-versions.ts'
import { defineKind, type ObjectOf } from './kind.ts'
import { group } from './names.ts'
import { object, string } from './schema.ts'

const schema = () =>
  object('An AWS role, assumed from another identity.', {
    spec: object(
      'Which role, and who may use it.',
      {
        'allowedNamespaces?': allowedNamespaces,
        ...roleFields,
        'externalID?': string('What the owner of the role demands, so that nobody else is served in your name.', {
          minLength: 2,
          maxLength: 1224,
          pattern: '^[\\w+=,.@:/-]*$',
        }),
        'sourceIdentityRef?': clusterIdentityReference('The identity that assumes the role.'),
      },
      {
        rules: [
          {
            rule: '!has(oldSelf.sourceIdentityRef) || has(self.sourceIdentityRef)',
            message: 'sourceIdentityRef can be changed but not removed',
            fieldPath: '.sourceIdentityRef',
          },
        ],
      },
    ),
  })

/** An AWS role, assumed from another identity. */
export const AWSClusterRoleIdentity = defineKind({
  group: group.infrastructure,
  kind: 'AWSClusterRoleIdentity',
  plural: 'awsclusterroleidentities',
  shortNames: ['awsri'],
  categories: ['cluster-api'],
  scope: 'Cluster',
  labels: identityLabels,
  stored: 'v1beta2',
  versions: awsVersions(schema),
})

/** An AWSClusterRoleIdentity as it is on the management cluster. */
export type AWSClusterRoleIdentity = ObjectOf<typeof AWSClusterRoleIdentity>
