import { isDeepStrictEqual } from 'node:util'
import { AWSCluster, group } from '../api/index.ts'
import type { OwnerReference } from '../kube/index.ts'
import { setConditions, type ConditionState } from '../runtime/index.ts'
import { identityResources, type IdentityReference } from './contract.ts'
import type { Room } from './room.ts'

type Operation = { op: 'test' | 'add' | 'remove'; path: string; value?: unknown }
type Conditions = NonNullable<NonNullable<AWSCluster['status']>['conditions']>

/** What this room may change of a cluster outside of its status. Absent parts stay as they are. */
export interface ClusterChange {
  identityRef?: IdentityReference | undefined
  accountID?: string | undefined
  ownerReferences?: OwnerReference[] | undefined
  finalizers?: string[] | undefined
}

/**
 * The cluster with the change; the same one, and no request, when there is none. The patch tests only what it relies on: the
 * infrastructure's controllers and people write the same object.
 */
export const writeCluster = async (
  room: Pick<Room, 'client'>,
  cluster: AWSCluster,
  change: ClusterChange,
  signal?: AbortSignal,
): Promise<AWSCluster> => {
  const { metadata, spec } = cluster
  const json = [
    ...replaced('/metadata/ownerReferences', metadata.ownerReferences, change.ownerReferences),
    ...replaced('/metadata/finalizers', metadata.finalizers, change.finalizers),
    ...specChange(spec, change),
  ]
  if (json.length === 0) return cluster
  const same: Operation = { op: 'test', path: '/metadata/uid', value: metadata.uid }
  return room.client
    .of(AWSCluster, metadata.namespace)
    .patch(metadata.name!, { json: [same, ...json] }, { fieldManager: 'lanyard', signal })
}

const replaced = (path: string, present: unknown[] | undefined, wanted: unknown[] | undefined): Operation[] => {
  if (!wanted || isDeepStrictEqual(wanted, present ?? [])) return []
  return [
    { op: 'test', path, value: present ?? null },
    wanted.length ? { op: 'add', path, value: wanted } : { op: 'remove', path },
  ]
}

/** Only what is missing is filled in: neither an identity nor an account is ever changed here. */
const specChange = (spec: AWSCluster['spec'], { identityRef, accountID }: ClusterChange): Operation[] => {
  const missing = Object.entries({ identityRef, accountID }).filter(
    ([field, value]) => value !== undefined && !spec?.[field as 'identityRef' | 'accountID'],
  )
  if (missing.length === 0) return []
  if (!spec)
    return [
      { op: 'test', path: '/spec', value: null },
      { op: 'add', path: '/spec', value: Object.fromEntries(missing) },
    ]
  return missing.flatMap(([field, value]): Operation[] => [
    { op: 'test', path: `/spec/${field}`, value: spec[field as 'accountID'] ?? null },
    { op: 'add', path: `/spec/${field}`, value },
  ])
}

/** The owners of a cluster with this identity among them and no other identity; others' references stay. */
export const withIdentityOwner = (cluster: AWSCluster, owner: OwnerReference | undefined): OwnerReference[] => {
  const others = (cluster.metadata.ownerReferences ?? []).filter((one) => !isIdentity(one) || one.uid === owner?.uid)
  return !owner || others.some(({ uid }) => uid === owner.uid) ? others : [...others, owner]
}

const isIdentity = ({ apiVersion, kind }: OwnerReference): boolean =>
  apiVersion.split('/')[0] === group.infrastructure && Object.hasOwn(identityResources, kind)

/** The cluster with these conditions; the same one, and no request, when it has them. */
export const reportConditions = async (
  room: Pick<Room, 'client' | 'clock'>,
  cluster: AWSCluster,
  states: readonly ConditionState[],
  signal?: AbortSignal,
): Promise<AWSCluster> => {
  const present = cluster.status?.conditions
  const at = { now: room.clock.now(), generation: cluster.metadata.generation }
  const set = setConditions(present, states, at)
  if (set === present) return cluster
  // Cluster API shows how bad a False is, and refuses one that does not say.
  const conditions: Conditions = set.map((condition, i) =>
    condition !== present?.[i] && condition.status === 'False'
      ? { ...condition, severity: 'Error' as const }
      : condition,
  )
  const json: Operation[] = [{ op: 'test', path: '/metadata/uid', value: cluster.metadata.uid }]
  if (!cluster.status) json.push({ op: 'add', path: '/status', value: { conditions } })
  else
    json.push(
      // Others own the other conditions: if one of theirs came in between, this is tried again on what there is then.
      { op: 'test', path: '/status/conditions', value: present ?? null },
      { op: 'add', path: '/status/conditions', value: conditions },
    )
  return room.client
    .of(AWSCluster, cluster.metadata.namespace)
    .patch(cluster.metadata.name!, { json }, { subresource: 'status', fieldManager: 'lanyard', signal })
}
