import type { AWSClusterRoleIdentity } from '../api/index.ts'
import {
  hasFinalizer,
  watching,
  withFinalizer,
  withoutFinalizer,
  type Reconcile,
  type Watch,
} from '../runtime/index.ts'
import type { KubeObject, Resource } from '../kube/index.ts'
import { withIdentityOwner, writeCluster } from './cluster-writes.ts'
import {
  annotation,
  identityKey,
  identityResources,
  inUseFinalizer,
  type Identity,
  type IdentityKind,
} from './contract.ts'
import { clustersOwnedBy, namesOf, rightfulUsers, type Records } from './records.ts'
import type { Room } from './room.ts'
import { identityOfCluster, someOf, sourceOfRole } from './users.ts'

/** The key of an identity object. */
export const keyOfIdentity = (kind: IdentityKind, { metadata }: KubeObject): string =>
  identityKey({ kind, name: metadata.name! }, metadata.namespace ?? '')

/** Holds identities while clusters use them, and lets go of the clusters before an identity goes. Keys are those of `identityKey`. */
export const reconcileIdentity =
  (room: Room): Reconcile =>
  async (key, signal) => {
    const identity = room.records.identity(key)
    if (!identity) return {}
    const kind = key.slice(0, key.indexOf('/')) as IdentityKind
    const users = rightfulUsers(room.records, key)
    const isHeld = users.length > 0 && identity.metadata.annotations?.[annotation.deleteInUse] !== 'true'
    if (identity.metadata.deletionTimestamp)
      return isHeld ? hold(room, identity, users) : letGo(room, kind, identity, signal)
    const wanted =
      users.length > 0 ? withFinalizer(identity, inUseFinalizer) : withoutFinalizer(identity, inUseFinalizer)
    // Free of users it must be free of clusters too, or deleting it would take them along.
    if (users.length === 0 && hasFinalizer(identity, inUseFinalizer)) await release(room, identity, signal)
    if (wanted !== identity) await writeFinalizers(room, kind, wanted, signal)
    return {}
  }

const hold = async (room: Room, identity: Identity, users: ReturnType<typeof rightfulUsers>) => {
  room.events.record(identity, {
    type: 'Warning',
    reason: 'IdentityInUse',
    action: 'Delete',
    note: `is used by ${someOf(namesOf(users))} and goes when they have another identity or are gone; annotation ${annotation.deleteInUse}=true lets it go now`,
  })
  return {}
}

const letGo = async (room: Room, kind: IdentityKind, identity: Identity, signal: AbortSignal) => {
  if (!hasFinalizer(identity, inUseFinalizer)) return {}
  await release(room, identity, signal)
  await writeFinalizers(room, kind, withoutFinalizer(identity, inUseFinalizer), signal)
  return {}
}

/** Takes the identity out of the owners of all clusters: the garbage collector must find none when it is gone. */
const release = async (room: Room, identity: Identity, signal: AbortSignal): Promise<void> => {
  for (const cluster of clustersOwnedBy(room.records, identity))
    await writeCluster(room, cluster, { ownerReferences: withIdentityOwner(cluster, undefined) }, signal)
}

const writeFinalizers = async (
  room: Room,
  kind: IdentityKind,
  { metadata }: Identity,
  signal: AbortSignal,
): Promise<void> => {
  const { name, namespace, uid, resourceVersion, finalizers } = metadata
  const resource: Resource<KubeObject> = identityResources[kind]
  await room.client
    .of(resource, namespace)
    // The version makes it a conflict, and another try, when somebody else changed the finalizers.
    .patch(name!, { merge: { metadata: { uid, resourceVersion, finalizers } } }, { fieldManager: 'lanyard', signal })
}

/** A cluster that comes, goes or changes its identity concerns every identity of its chain; so does a role that changes its source. */
export const identityWatches = (records: Records): Watch[] => {
  const upwards = (key: string): string[] => {
    const keys = new Set<string>()
    let next: string | undefined = key
    while (next && !keys.has(next)) {
      keys.add(next)
      const role: Identity | undefined = next.startsWith('AWSClusterRoleIdentity/') ? records.identity(next) : undefined
      next = role && sourceOfRole(role as AWSClusterRoleIdentity)
    }
    return [...keys]
  }
  return [
    watching(records.clusters, (cluster) => upwards(identityOfCluster(cluster))),
    watching(records.roles, (role) => [
      ...upwards(keyOfIdentity('AWSClusterRoleIdentity', role)),
      ...upwards(sourceOfRole(role)),
    ]),
    watching(records.controllers, (one) => [keyOfIdentity('AWSClusterControllerIdentity', one)]),
    watching(records.statics, (one) => [keyOfIdentity('AWSClusterStaticIdentity', one)]),
    watching(records.accounts, (one) => [keyOfIdentity('AWSServiceAccountIdentity', one)]),
    watching(records.namespaces, ({ metadata }) =>
      records.clusters.list(metadata.name).flatMap((cluster) => upwards(identityOfCluster(cluster))),
    ),
  ]
}
