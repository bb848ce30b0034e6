import type { AWSCluster, AWSClusterRoleIdentity } from '../api/index.ts'
import { controllerReference, identityKey, referenceOf } from './contract.ts'

/** Who stands on whom, looked up by the key of `identityKey`. */
export interface Users {
  clustersOf(identity: string): readonly AWSCluster[]
  rolesFrom(identity: string): readonly AWSClusterRoleIdentity[]
}

/** The key of the identity that a cluster names. */
export const identityOfCluster = (cluster: AWSCluster): string =>
  identityKey(referenceOf(cluster), cluster.metadata.namespace ?? '')

/** The key of the identity that assumes a role. */
export const sourceOfRole = (role: AWSClusterRoleIdentity): string =>
  identityKey(role.spec?.sourceIdentityRef ?? controllerReference, '')

/** All clusters whose credentials come from an identity, by whatever chain. Loops end where they close. */
export const clustersUsing = (users: Users, identity: string): AWSCluster[] =>
  [...identitiesOn(users, identity)].flatMap((key) => users.clustersOf(key))

/** The identity and all roles that stand on it. */
export const identitiesOn = (users: Users, identity: string): Set<string> => {
  const found = new Set([identity])
  for (const key of found)
    for (const role of users.rolesFrom(key)) found.add(`AWSClusterRoleIdentity/${role.metadata.name}`)
  return found
}

/** `ns/a, ns/b and 3 more`: enough to act on, short enough to read. */
export const someOf = (names: readonly string[], most = 10): string => {
  const shown = names.slice(0, most)
  const more = names.length - shown.length
  return more > 0 ? `${shown.join(', ')} and ${more} more` : shown.join(', ')
}
