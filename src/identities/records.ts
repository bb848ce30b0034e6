import {
  AWSCluster,
  AWSClusterControllerIdentity,
  AWSClusterRoleIdentity,
  AWSClusterStaticIdentity,
  AWSServiceAccountIdentity,
} from '../api/index.ts'
import { keyOf, Namespace, type KubeObject } from '../kube/index.ts'
import type { Informer, Manager } from '../runtime/index.ts'
import { secretOf, walkChain, type Asked, type Chain, type Directory } from './chain.ts'
import { referenceOf, type Identity, type IdentityKind } from './contract.ts'
import { clustersUsing, identityOfCluster, sourceOfRole, type Users } from './users.ts'

/** Everything that chains are made of, from caches, and who stands on whom. */
export interface Records extends Directory, Users {
  clusters: Informer<AWSCluster>
  controllers: Informer<AWSClusterControllerIdentity>
  statics: Informer<AWSClusterStaticIdentity>
  roles: Informer<AWSClusterRoleIdentity>
  accounts: Informer<AWSServiceAccountIdentity>
  namespaces: Informer<Namespace>
  /** Where clusters act that name no region. */
  defaultRegion: string
}

/** The indexes by which a change finds whom it concerns. */
const index = { identity: 'identity', owner: 'owner', name: 'name', source: 'source', secret: 'secret' } as const

/** The informers of this room, with their indexes. */
export const recordsOf = (
  manager: Pick<Manager, 'informer'>,
  settings: { controllerNamespace: string; defaultRegion: string },
): Records => {
  const { controllerNamespace, defaultRegion } = settings
  const clusters = manager.informer(AWSCluster, {
    indexes: {
      [index.identity]: (cluster) => [identityOfCluster(cluster)],
      [index.name]: ({ metadata }) => [metadata.name!],
      [index.owner]: ({ metadata }) => (metadata.ownerReferences ?? []).map(({ uid }) => uid),
    },
  })
  const statics = manager.informer(AWSClusterStaticIdentity, {
    indexes: { [index.secret]: (identity) => secretKeys(identity, controllerNamespace) },
  })
  const roles = manager.informer(AWSClusterRoleIdentity, {
    indexes: { [index.source]: (role) => [sourceOfRole(role)] },
  })
  const controllers = manager.informer(AWSClusterControllerIdentity)
  const accounts = manager.informer(AWSServiceAccountIdentity)
  const namespaces = manager.informer(Namespace, { metadataOnly: true })
  const caches: Record<IdentityKind, Pick<Informer<Identity>, 'get'>> = {
    AWSClusterControllerIdentity: controllers,
    AWSClusterStaticIdentity: statics,
    AWSClusterRoleIdentity: roles,
    AWSServiceAccountIdentity: accounts,
  }
  return {
    clusters,
    controllers,
    statics,
    roles,
    accounts,
    namespaces,
    controllerNamespace,
    defaultRegion,
    identity: (key) => {
      const slash = key.indexOf('/')
      return caches[key.slice(0, slash) as IdentityKind]?.get(key.slice(slash + 1))
    },
    namespace: (name) => {
      const found = namespaces.get(name)
      return found && { name, labels: found.metadata.labels ?? {} }
    },
    clustersOf: (identity) => clusters.by(index.identity, identity),
    rolesFrom: (identity) => roles.by(index.source, identity),
  }
}

const secretKeys = (identity: AWSClusterStaticIdentity, controllerNamespace: string): string[] => {
  if (!identity.spec?.secretRef) return []
  const { namespace, name } = secretOf(identity, controllerNamespace)
  return [`${namespace}/${name}`]
}

/** The static identities whose access key is in a Secret. */
export const staticsOn = ({ statics }: Records, secret: string): AWSClusterStaticIdentity[] =>
  statics.by(index.secret, secret)

/** The clusters of one name, in all namespaces. */
export const clustersNamed = ({ clusters }: Records, name: string): AWSCluster[] => clusters.by(index.name, name)

/** The clusters that an object owns. */
export const clustersOwnedBy = ({ clusters }: Records, owner: KubeObject): AWSCluster[] =>
  owner.metadata.uid ? clusters.by(index.owner, owner.metadata.uid) : []

/** What a cluster asks for. */
export const askedBy = (records: Pick<Records, 'defaultRegion' | 'identity'>, cluster: AWSCluster): Asked => {
  const identity = records.identity(identityOfCluster(cluster))
  return {
    reference: referenceOf(cluster),
    namespace: cluster.metadata.namespace!,
    region: cluster.spec?.region || records.defaultRegion,
    partition: cluster.spec?.partition,
    // The reference is ours, written when the identity was used; it names one identity, not the next of the same name.
    established: cluster.metadata.ownerReferences?.some(({ uid }) => uid === identity?.metadata.uid) ?? false,
  }
}

/** The chain of a cluster as it is now. */
export const chainOf = (records: Records, cluster: AWSCluster): Chain => walkChain(records, askedBy(records, cluster))

/**
 * The clusters that an identity must not be taken from. One that it does not allow is none of them, nor one that came when it was
 * leaving already: otherwise anybody could keep an identity from being deleted.
 */
export const rightfulUsers = (records: Records, identity: string): AWSCluster[] =>
  clustersUsing(records, identity).filter((cluster) =>
    chainOf(records, cluster).links.every(({ refusal }) => !refusal?.denied && refusal?.reason !== 'IdentityDeleting'),
  )

/** Names of clusters for messages, in order. */
export const namesOf = (clusters: readonly AWSCluster[]): string[] => clusters.map(keyOf).toSorted()
