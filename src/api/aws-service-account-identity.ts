import { roleFields } from './aws-role.ts'
import { awsVersions, identityLabels } from './aws-versions.ts'
import { defineKind, type ObjectOf } from './kind.ts'
import { group } from './names.ts'
import { array, integer, object, string } from './schema.ts'

const schema = () =>
  object('An AWS role, assumed with the token of the service account of the same name.', {
    spec: object('Which role, with what token.', {
      ...roleFields,
      'audiences?': array('Who the token is for.', string(undefined, { minLength: 1, maxLength: 1024 }), {
        default: ['sts.amazonaws.com'],
        maxItems: 32,
      }),
      'expirationSeconds?': integer('Lifetime that is asked for the token; the API server may shorten it.', {
        format: 'int64',
        default: 86400,
        minimum: 600,
      }),
    }),
  })

/** An AWS role, assumed with the token of a service account. Namespaced, because that token names its namespace. */
export const AWSServiceAccountIdentity = defineKind({
  group: group.infrastructure,
  kind: 'AWSServiceAccountIdentity',
  plural: 'awsserviceaccountidentities',
  shortNames: ['awssai'],
  categories: ['cluster-api'],
  scope: 'Namespaced',
  labels: identityLabels,
  stored: 'v1beta2',
  versions: awsVersions(schema),
})

/** An AWSServiceAccountIdentity as it is on the management cluster. */
export type AWSServiceAccountIdentity = ObjectOf<typeof AWSServiceAccountIdentity>
