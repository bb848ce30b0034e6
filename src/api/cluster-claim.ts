import { defineKind, type ObjectOf } from './kind.ts'
import { group } from './names.ts'
import { object, string } from './schema.ts'

const schema = () =>
  object('A fact that a managed cluster tells about itself.', {
    'spec?': object('The fact.', { 'value?': string('Its value.', { minLength: 1, maxLength: 1024 }) }),
  })

/** A fact that a managed cluster tells about itself; the agent copies it to the hub. */
export const ClusterClaim = defineKind({
  group: group.cluster,
  kind: 'ClusterClaim',
  plural: 'clusterclaims',
  scope: 'Cluster',
  stored: 'v1alpha1',
  versions: { v1alpha1: { schema } },
})

/** A ClusterClaim as it is on a managed cluster. */
export type ClusterClaim = ObjectOf<typeof ClusterClaim>
