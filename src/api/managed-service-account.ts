import { conditions } from './conditions.ts'
import { defineKind, type ObjectOf } from './kind.ts'
import { group } from './names.ts'
import { array, boolean, integer, object, string, time } from './schema.ts'

const rotation = object(
  'How its token is renewed.',
  {
    'enabled?': boolean('Whether the token is renewed before it expires.', { default: true }),
    'validity?': string('Lifetime of a token, as in 4320h0m0s; the managed cluster may shorten it.', {
      default: '8640h0m0s',
      maxLength: 64,
      pattern: '^([0-9]+(\\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$',
      rules: [
        {
          rule: 'duration(self) >= duration("10m")',
          message: 'a validity below 10m cannot be had: no API server issues shorter tokens',
        },
      ],
    }),
  },
  { default: {} },
)

const schema = () =>
  object('A service account on managed clusters whose token the hub holds.', {
    'spec?': object(
      'What is wanted.',
      {
        'audiences?': array(
          'Who the token is for; the API server of the managed cluster if absent.',
          string(undefined, { minLength: 1, maxLength: 1024 }),
          {
            set: true,
            maxItems: 32,
          },
        ),
        'rotation?': rotation,
        'ttlSecondsAfterCreation?': integer('Delete it this long after it was created.', { minimum: 1 }),
      },
      { default: {} },
    ),
    'status?': object('What the agent reports.', {
      'conditions?': conditions('Whether account, token and secret are there.'),
      'expirationTimestamp?': time('When the token expires.'),
      'tokenSecretRef?': object('The secret with the token, in the same namespace.', {
        name: string('Its name.'),
        lastRefreshTimestamp: time('When its token was last renewed.'),
        'digest?': string('Of the content that was written: tells whether the secret still has it.', { maxLength: 64 }),
        'accountUID?': string('Of the service account on the managed cluster that the token is for.', {
          maxLength: 64,
        }),
        'request?': string('Of audiences, validity and CA: tells whether the token is what is asked for.', {
          maxLength: 64,
        }),
        'signingKey?': string('Of the key that signed the token: tells whether the cluster still takes it.', {
          maxLength: 64,
        }),
      }),
      'clusters?': object('In the namespace of cluster sets: on how many clusters it is how far.', {
        'selected?': integer('Clusters of the sets.'),
        'replicated?': integer('Those with a ManagedServiceAccount made from this one.'),
        'present?': integer('Those where the service account is there.'),
        'reported?': integer('Those whose token is on the hub.'),
      }),
      'troubles?': array(
        'Clusters where it is not there, or has no token; not more than 50.',
        object('One cluster.', {
          cluster: string('Its name.'),
          reason: string('Why, in one word.'),
          'message?': string('Why, and what to do about it.'),
        }),
        { keys: ['cluster'] },
      ),
    }),
  })

const names = {
  kind: 'ManagedServiceAccount',
  plural: 'managedserviceaccounts',
  scope: 'Namespaced',
} as const

/** A service account on a managed cluster, or on every cluster of a set, whose token the hub holds. */
export const ManagedServiceAccount = defineKind({
  ...names,
  group: group.authentication,
  stored: 'v1beta1',
  versions: {
    v1alpha1: { schema, deprecated: 'use authentication.open-cluster-management.io/v1beta1: it has the same fields' },
    v1beta1: { schema },
  },
})

/** The same under the group of the specification; mirrored into the other. */
export const ProxyManagedServiceAccount = defineKind({
  ...names,
  group: group.proxy,
  stored: 'v1alpha1',
  versions: { v1alpha1: { schema } },
})

/** A ManagedServiceAccount, in either group, as it is on the hub. */
export type ManagedServiceAccount = ObjectOf<typeof ManagedServiceAccount>
