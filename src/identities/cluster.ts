import { finalizer, type AWSCluster } from '../api/index.ts'
import { keyOf } from '../kube/index.ts'
import {
  findCondition,
  hasFinalizer,
  ownerReference,
  type ConditionState,
  type Reconcile,
  type ReconcileResult,
} from '../runtime/index.ts'
import { reportConditions, withIdentityOwner, writeCluster } from './cluster-writes.ts'
import {
  accountRecorded,
  annotation,
  controllerReference,
  identityResources,
  inUseFinalizer,
  type IdentityKind,
} from './contract.ts'
import { clusterOf, isPaused, pausedMs } from './paused.ts'
import { preflight, type Outcome } from './preflight.ts'
import type { Room } from './room.ts'

/** Finds out whether a cluster's identity works, and says so. It makes nothing in AWS: that is for whoever reads the conditions. */
export const reconcileCluster =
  (room: Room, enqueue: (key: string) => void): Reconcile =>
  async (key, signal) => {
    const cluster = room.records.clusters.get(key)
    if (!cluster) {
      room.claims.leave(key)
      return {}
    }
    if (isPaused(cluster, await clusterOf(room, cluster, signal))) return { requeueAfterMs: pausedMs }
    const outcome = await preflight(room, cluster, signal)
    const written = await writeCluster(room, cluster, changeFor(room, cluster, outcome), signal)
    await report(room, cluster, written, outcome, signal)
    if (outcome.pending) void outcome.pending.catch(() => {}).then(() => enqueue(key))
    return { requeueAfterMs: outcome.requeueAfterMs } satisfies ReconcileResult
  }

const changeFor = (room: Room, cluster: AWSCluster, outcome: Outcome) => ({
  // Stored before there was a webhook: now it says what has been true all the time.
  identityRef: controllerReference,
  accountID: outcome.account,
  ownerReferences: withIdentityOwner(cluster, ownerOf(outcome)),
  ...(cluster.metadata.deletionTimestamp ? { finalizers: finalizersLeft(room, cluster, outcome) } : {}),
})

/**
 * The identity, once it is held by its finalizer: an owner that goes takes what it owns along. A cluster that may not use the
 * identity is not owned by it either.
 */
const ownerOf = ({ chain }: Outcome) => {
  const [first] = chain.links
  const isHeld = first?.identity && !chain.refusal && hasFinalizer(first.identity, inUseFinalizer)
  return isHeld ? ownerReference(first.identity!, identityResources[first.reference.kind as IdentityKind]) : undefined
}

/** With nobody who could remove what a cluster has in AWS, a person may say that it goes all the same. */
const finalizersLeft = (room: Room, cluster: AWSCluster, { credential }: Outcome): string[] => {
  const { finalizers = [], annotations } = cluster.metadata
  const abandons = annotations?.[annotation.abandon] === 'true' && hasFinalizer(cluster, finalizer.awsCluster)
  if (!abandons || credential.status !== 'False') return finalizers
  room.events.record(cluster, {
    type: 'Warning',
    reason: 'Abandoned',
    action: 'Delete',
    note: `whatever cluster ${keyOf(cluster)} has in account ${cluster.spec?.accountID ?? '(never reached)'} stays there, as annotation ${annotation.abandon} says`,
  })
  return finalizers.filter((one) => one !== finalizer.awsCluster)
}

const report = async (
  room: Room,
  before: AWSCluster,
  cluster: AWSCluster,
  outcome: Outcome,
  signal: AbortSignal,
): Promise<void> => {
  const isGone = cluster.metadata.deletionTimestamp && !cluster.metadata.finalizers?.length
  if (isGone) return
  const states = statesOf(before, outcome)
  await reportConditions(room, cluster, states, signal)
  for (const state of states) tell(room, before, state)
}

/** While AWS is slow, what was found out before still counts. */
const statesOf = (cluster: AWSCluster, { usage, credential, account, pending, chain }: Outcome): ConditionState[] => {
  const known = pending && findCondition(cluster, credential.type)
  const recorded = account && !findCondition(cluster, accountRecorded) ? [recordedIn(account)] : []
  const told = withWayOut(cluster, credential, chain.refusal !== undefined)
  return [usage, ...(known ? [] : [told]), ...recorded]
}

const withWayOut = (cluster: AWSCluster, credential: ConditionState, isRefused: boolean): ConditionState =>
  cluster.metadata.deletionTimestamp && isRefused && hasFinalizer(cluster, finalizer.awsCluster)
    ? {
        ...credential,
        message: `${credential.message}; the cluster is being deleted and waits for this: mend it, or give up what is in AWS with kubectl -n ${cluster.metadata.namespace} annotate awscluster ${cluster.metadata.name} ${annotation.abandon}=true`,
      }
    : credential

const recordedIn = (account: string): ConditionState => ({
  type: accountRecorded,
  status: 'True',
  reason: 'AccountRecorded',
  message: `the cluster lives in account ${account}, as spec.accountID says from now on`,
})

/** An event for each change of mind, and none for its repetition. */
const tell = (room: Room, before: AWSCluster, { type, status, reason, message }: ConditionState): void => {
  const old = findCondition(before, type)
  if (old?.status === status && old.reason === reason) return
  if (status === 'Unknown' && !old) return
  const note = message
  room.events.record(before, { type: status === 'True' ? 'Normal' : 'Warning', reason, action: 'CheckIdentity', note })
}
