import { finalizer, ManagedCluster, ManagedClusterAddOn, ManifestWork } from '../../api/index.ts'
import { apiVersionOf, type ClusterRole } from '../../kube/index.ts'
import { findCondition, inParallel, type ReconcileResult } from '../../runtime/index.ts'
import { Accepted, Deleting, rbac, revokedOnAnnotation } from '../contract.ts'
import { reportConditions, writeCluster } from './cluster-writes.ts'
import { summary } from './left-behind.ts'
import { removeNamespace } from './namespace.ts'
import { isReduced, leavesByAnnotation, permissionsOf } from './permissions.ts'
import { applyPermissions, permissionsInPlace, wroteCluster, type Records } from './records.ts'
import { isHeld, noneHeld, noneLeft, remainingOf, removeRemaining, type Remaining } from './remaining.ts'

/** How far a farewell has come. */
export interface Farewell {
  /** When the agent loses the access to its works, in milliseconds. */
  readonly leavesBy: number
  /** The drivers have taken away what they gave. */
  readonly revokedOn?: string | undefined
}

/** What the cluster's role remembers. Only a reduced one does: on any other it is left from an earlier farewell. */
export const rememberedFarewell = (cluster: string, role: ClusterRole | undefined): Farewell | undefined => {
  if (!role || !isReduced(cluster, role)) return undefined
  const leavesBy = Date.parse(role.metadata.annotations?.[leavesByAnnotation] ?? '')
  if (Number.isNaN(leavesBy)) return undefined
  return { leavesBy, revokedOn: role.metadata.annotations?.[revokedOnAnnotation] }
}

/** When the agent's access ends: at once when nothing is left for it to do, else when the time is up. It is never prolonged. */
export const farewellAt = (
  now: number,
  at: { remembered: Farewell | undefined; someRemain: boolean; farewellMs: number },
): Farewell => {
  const { remembered, someRemain, farewellMs } = at
  if (!remembered) return { leavesBy: someRemain ? now + farewellMs : now }
  return !someRemain && now < remembered.leavesBy ? { ...remembered, leavesBy: now } : remembered
}

/** A cluster that was accepted and is not any more: it loses access first, its identity elsewhere when its works are gone. */
export const deny = async (
  records: Records,
  cluster: ManagedCluster,
  signal: AbortSignal,
): Promise<ReconcileResult> => {
  const name = cluster.metadata.name!
  // Never accepted: there is nothing to take away. That it has no condition is what a person sees who looks for new clusters.
  if (!wasKnown(records, cluster)) return {}
  const { farewell, isNew } = await revoke(records, cluster, signal)
  if (isNew)
    records.events.record(withKind(cluster), {
      type: 'Normal',
      reason: 'ManagedClusterDenied',
      action: 'Deny',
      note: `cluster ${name} was denied: its access is revoked`,
    })
  const leavesInMs = farewell.leavesBy - records.clock.now()
  if (leavesInMs > 0) {
    const works = remainingOf(records, name).works.filter(isHeld).length
    const until = new Date(farewell.leavesBy).toISOString()
    await reportDenied(
      records,
      cluster,
      `; until ${until} its agent may still remove its works (${works} left)`,
      signal,
    )
    return { requeueAfterMs: leavesInMs }
  }
  if (farewell.revokedOn) {
    await reportDenied(records, cluster, '', signal)
    return {}
  }
  try {
    await revokeByDrivers(records, cluster, signal)
  } catch (error) {
    const why = (error as Error).message
    await reportDenied(records, cluster, `; what it was given outside of this hub is not removed yet: ${why}`, signal)
    throw error
  }
  await applyAt(records, name, { ...farewell, revokedOn: new Date(records.clock.now()).toISOString() }, signal)
  await reportDenied(records, cluster, '', signal)
  return {}
}

const reportDenied = async (
  records: Records,
  cluster: ManagedCluster,
  more: string,
  signal: AbortSignal,
): Promise<void> => {
  const denied = Accepted.denied()
  const written = await reportConditions(records, cluster, [Accepted.denied(denied.message + more)], signal)
  wroteCluster(records, 'farewell', cluster, written)
}

/** A cluster that is deleted: it loses access first, then its works and add-ons go, then everything that was made for it. */
export const release = async (
  records: Records,
  cluster: ManagedCluster,
  signal: AbortSignal,
): Promise<ReconcileResult> => {
  const name = cluster.metadata.name!
  const ours = cluster.metadata.finalizers?.some((f) => ourFinalizers.includes(f)) ?? false
  if (!ours && permissionsInPlace(records, name).length === 0) return {}
  const { resourceCleanup } = records.settings.gates
  const { farewell, someRemain } = await revoke(records, cluster, signal)
  const isOver = records.clock.now() >= farewell.leavesBy
  const remaining = remainingOf(records, name)
  if (someRemain && (resourceCleanup || !isOver)) {
    if (resourceCleanup) await removeRemaining(records, cluster, remaining, { isOver, signal })
    await reportRemaining(records, cluster, remaining, farewell, signal)
    // Each object that goes brings the cluster back here; the time is for when none does.
    return { requeueAfterMs: isOver ? 10_000 : farewell.leavesBy - records.clock.now() }
  }
  try {
    if (!farewell.revokedOn) await revokeByDrivers(records, cluster, signal)
    if (someRemain) await applyPermissions(records, name, [], { intent: 'farewell', signal })
    const left = await removeNamespace(records, cluster, signal)
    await bid(records, cluster, left, signal)
  } catch (error) {
    const why = `cluster ${name} has no access any more, but is not cleaned up yet: ${(error as Error).message}`
    await reportConditions(records, cluster, [Deleting.failed(why)], signal)
    throw error
  }
  return {}
}

/** Of ours and of other hubs that were here before. */
export const ourFinalizers: readonly string[] = [finalizer.managedCluster, finalizer.managedClusterResources]

/** The last words, and then the finalizer goes. */
const bid = async (
  records: Records,
  cluster: ManagedCluster,
  left: readonly string[],
  signal: AbortSignal,
): Promise<void> => {
  const name = cluster.metadata.name!
  const finalizers = (cluster.metadata.finalizers ?? []).filter((f) => !ourFinalizers.includes(f))
  if (left.length > 0) {
    const note = `namespace ${name} stays, because people made things in it: ${summary(left)}; delete it when they are not needed`
    records.events.record(withKind(cluster), {
      type: 'Warning',
      reason: 'NamespaceKept',
      action: 'Delete',
      note,
    })
    await reportConditions(records, cluster, [Deleting.empty(note)], signal)
  } else if (finalizers.length > 0) {
    await reportConditions(records, cluster, [Deleting.empty()], signal)
  }
  const written = await writeCluster(records, cluster, { finalizers }, signal)
  wroteCluster(records, 'farewell', cluster, written)
}

/** Takes access away at once, and says how far the farewell has come. */
const revoke = async (
  records: Records,
  cluster: ManagedCluster,
  signal: AbortSignal,
): Promise<{ farewell: Farewell; isNew: boolean; someRemain: boolean }> => {
  const name = cluster.metadata.name!
  const isDeleted = cluster.metadata.deletionTimestamp !== undefined
  // What an add-on has to do before it goes may lead to more works.
  const withAddOns = isDeleted && records.settings.gates.resourceCleanup
  const remembered = rememberedFarewell(name, records.clusterRoles.get(rbac.cluster(name)))
  const now = records.clock.now()
  const isOver = remembered !== undefined && now >= remembered.leavesBy
  const { works, addOns } = remainingOf(records, name)
  const kinds = withAddOns ? [ManifestWork, ManagedClusterAddOn] : [ManifestWork]
  // Of a cluster that is deleted all works go, and are waited for; one that is denied keeps those that its agent has let go.
  const areSeen = isDeleted ? works.length > 0 || (withAddOns && addOns.length > 0) : works.some(isHeld)
  const areNone = () => (isDeleted ? noneLeft(records, name, kinds, signal) : noneHeld(records, name, signal))
  // A cache that is a moment behind must not cut the agent off from its last work: the server is asked before that.
  const someRemain = areSeen || (!isOver && !(await areNone()))
  const farewell = farewellAt(now, { remembered, someRemain, farewellMs: records.settings.farewellMs })
  // Of a cluster that is deleted and has nothing left, all RBAC goes; else its role stays and remembers.
  if (isDeleted && !someRemain) await applyPermissions(records, name, [], { intent: 'farewell', signal })
  else await applyAt(records, name, farewell, signal)
  return { farewell, isNew: !remembered, someRemain }
}

/** RBAC as a farewell has it. In a namespace that is being deleted nothing can be made: the work binding's finalizer keeps it there. */
const applyAt = async (records: Records, name: string, farewell: Farewell, signal: AbortSignal): Promise<void> => {
  const memory = { leavesBy: new Date(farewell.leavesBy).toISOString(), revokedOn: farewell.revokedOn }
  const standing = records.clock.now() < farewell.leavesBy ? 'leaving' : 'denied'
  const desired = permissionsOf(name, standing, { labels: records.settings.labels, memory })
  const namespace = records.namespaces.get(name)
  const isThere = namespace !== undefined && !namespace.metadata.deletionTimestamp
  const possible = isThere ? desired : desired.filter((object) => !object.metadata.namespace)
  const kept = !isThere && standing === 'leaving' ? [rbac.workBinding(name)] : []
  await applyPermissions(records, name, possible, { intent: 'farewell', kept, signal })
}

// What an agent wrote cannot say which driver it was: each is asked, and each knows what it gave.
const revokeByDrivers = (records: Records, cluster: ManagedCluster, signal: AbortSignal): Promise<void> =>
  inParallel(
    records.settings.drivers.length,
    records.settings.drivers.map((driver) => () => driver.revoke(cluster, signal)),
  )

/** Whether the hub ever did something for the cluster. Not by what the agent could have changed alone. */
const wasKnown = (records: Records, cluster: ManagedCluster): boolean =>
  permissionsInPlace(records, cluster.metadata.name!).length > 0 ||
  findCondition(cluster, Accepted.type) !== undefined ||
  (cluster.metadata.finalizers?.includes(finalizer.managedCluster) ?? false)

const reportRemaining = async (
  records: Records,
  cluster: ManagedCluster,
  remaining: Remaining,
  farewell: Farewell,
  signal: AbortSignal,
): Promise<void> => {
  const isOver = records.clock.now() >= farewell.leavesBy
  const held = [...remaining.addOns, ...remaining.works].filter((o) => o.metadata.finalizers?.length).length
  const names = [
    ...remaining.addOns.map(({ metadata }) => `ManagedClusterAddOn ${metadata.name}`),
    ...remaining.works.map(({ metadata }) => `ManifestWork ${metadata.name}`),
  ].toSorted() // a message that says the same has to be the same
  const until = new Date(farewell.leavesBy).toISOString()
  const message =
    `${remaining.works.length} ManifestWorks and ${remaining.addOns.length} ManagedClusterAddOns remain, ` +
    `${held} of them held by a finalizer: ${summary(names)}; ` +
    (isOver
      ? `the time of the agent was up at ${until}: what they put on the managed cluster may still be there`
      : `the agent may remove them until ${until}`)
  const written = await reportConditions(records, cluster, [Deleting.remaining(message)], signal)
  wroteCluster(records, 'farewell', cluster, written)
}

/** Objects of a list name no kind, and events have to. */
export const withKind = (cluster: ManagedCluster): ManagedCluster => ({
  ...cluster,
  apiVersion: apiVersionOf(ManagedCluster),
  kind: ManagedCluster.kind,
})
