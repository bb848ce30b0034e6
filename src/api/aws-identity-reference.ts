import { object, string } from './schema.ts'

const name = string('Its name.', { minLength: 1, maxLength: 253 })

/** An identity that can be the source of a role: only those that namespaces cannot make themselves. */
export const clusterIdentityReference = (description: string) =>
  object(description, {
    kind: string('Its kind.', {
      enum: ['AWSClusterControllerIdentity', 'AWSClusterRoleIdentity', 'AWSClusterStaticIdentity'],
    }),
    name,
  })

/** An identity that a cluster can use. */
export const identityReference = (description: string) =>
  object(description, {
    kind: string('Its kind. An AWSServiceAccountIdentity is looked for in the namespace of the cluster.', {
      enum: [
        'AWSClusterControllerIdentity',
        'AWSClusterRoleIdentity',
        'AWSClusterStaticIdentity',
        'AWSServiceAccountIdentity',
      ],
    }),
    name,
  })
