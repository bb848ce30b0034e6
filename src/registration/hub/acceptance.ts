import { finalizer, label, ManagedCluster } from '../../api/index.ts'
import { ApiError, ConnectionError, isConflict, isInvalid, isNotFound, type KubeObject } from '../../kube/index.ts'
import {
  findCondition,
  hasFinalizer,
  watching,
  type Reason,
  type Reconcile,
  type ReconcileResult,
  type Watch,
} from '../../runtime/index.ts'
import { Accepted, rbac } from '../contract.ts'
import { acceptAutomatically } from './auto-acceptance.ts'
import { reportConditions, writeCluster } from './cluster-writes.ts'
import { deny, ourFinalizers, release } from './farewell.ts'
import { driverOf, type Hub } from './hub.ts'
import { ensureNamespace } from './namespace.ts'
import { forgotten, leavesByAnnotation, permissionsOf } from './permissions.ts'
import {
  applyPermissions,
  letGo,
  permissionsInPlace,
  recordsOf,
  workBindingOf,
  wroteCluster,
  type Records,
} from './records.ts'
import { nameRefusal } from './reserved-names.ts'
import { wantedTaints } from './taints.ts'

/** Lets clusters in, and lets them go. */
export const acceptance = (hub: Hub): void => {
  const records = recordsOf(hub)
  const ofCluster = (object: KubeObject): string[] => {
    const name = object.metadata.labels?.[label.clusterName]
    return name ? [name] : []
  }
  const ofNamespace = (object: KubeObject): string[] => [object.metadata.namespace!]
  const isLeaving = (object: KubeObject): boolean => {
    const cluster = hub.clusters.get(object.metadata.namespace!)
    return cluster !== undefined && (!!cluster.metadata.deletionTimestamp || !cluster.spec.hubAcceptsClient)
  }
  hub.manager.controller({
    name: 'acceptance',
    reconcile: reconcile(records),
    // Each has four requests under way at most: enough to keep all connections of a client busy.
    workers: 16,
    watches: [
      watching(hub.clusters),
      watching(records.namespaces, ofCluster),
      watching(records.clusterRoles, ofCluster),
      watching(records.clusterRoleBindings, ofCluster),
      watching(records.roleBindings, ofCluster),
      watching(records.works, ofNamespace, isLeaving),
      watching(records.addOns, ofNamespace, isLeaving),
      ...hub.settings.drivers.map(
        (driver): Watch =>
          (enqueue) =>
            driver.wakes?.(enqueue) ?? (() => {}),
      ),
    ],
  })
}

const reconcile =
  (records: Records): Reconcile =>
  async (name, signal) => {
    const cluster = records.clusters.get(name)
    const accepts = cluster?.spec.hubAcceptsClient && !cluster.metadata.deletionTimestamp
    const waitMs = records.unseen.waitMs(name, accepts ? 'accept' : 'farewell', records.clock.now())
    if (waitMs > 0) return { requeueAfterMs: waitMs }

    if (!cluster) return forget(records, name, signal)
    const refusal = nameRefusal(name)
    if (refusal) return refuse(records, cluster, refusal, signal)
    if (cluster.metadata.deletionTimestamp) return release(records, cluster, signal)
    if (accepts) return accept(records, cluster, signal)
    const accepted = await acceptAutomatically(records, cluster, signal)
    return accepted ? accept(records, accepted, signal) : deny(records, cluster, signal)
  }

/** Nothing is made for a cluster whose name stands for something else, and so there is nothing to take away. */
const refuse = async (
  records: Records,
  cluster: ManagedCluster,
  { message }: Reason,
  signal: AbortSignal,
): Promise<ReconcileResult> => {
  const { name, deletionTimestamp, finalizers } = cluster.metadata
  const why = `cluster ${name} cannot be accepted under this name: ${message}; delete this ManagedCluster and join the cluster under another name`
  if (deletionTimestamp)
    await writeCluster(records, cluster, { finalizers: finalizers?.filter((f) => !ourFinalizers.includes(f)) }, signal)
  else if (cluster.spec.hubAcceptsClient) await report(records, cluster, Accepted.failed(why), signal)
  else if (findCondition(cluster, Accepted.type)) await report(records, cluster, Accepted.denied(), signal)
  return {}
}

const accept = async (records: Records, cluster: ManagedCluster, signal: AbortSignal): Promise<ReconcileResult> => {
  let current = cluster
  try {
    const { written, pending } = await letIn(records, cluster, signal)
    current = written
    // Its driver wakes it when it is done; what is not there yet must not be called accepted.
    if (pending) records.log.info('a cluster waits for its driver', { cluster: cluster.metadata.name, ...pending })
    else await report(records, current, Accepted.accepted(), signal)
  } catch (error) {
    if (!isPassing(error)) await report(records, current, Accepted.failed((error as Error).message), signal)
    throw error
  }
  return {}
}

/** Two waves: what is in the namespace cannot be made before it. */
const letIn = async (
  records: Records,
  cluster: ManagedCluster,
  signal: AbortSignal,
): Promise<{ written: ManagedCluster; pending: Reason | undefined | void }> => {
  const name = cluster.metadata.name!
  const finalizers = [...new Set([...(cluster.metadata.finalizers ?? []), finalizer.managedCluster])]
  // The first taint goes along: a write of its own would raise the generation once more, and so cost two.
  const taints = hasFinalizer(cluster, finalizer.managedCluster)
    ? undefined
    : wantedTaints(cluster, records.clock.now())
  const [namespace, written] = await Promise.allSettled([
    ensureNamespace(records, cluster, signal),
    writeCluster(records, cluster, { finalizers, taints }, signal),
  ])
  if (written.status === 'fulfilled') wroteCluster(records, 'accept', cluster, written.value)
  if (namespace.status === 'rejected') {
    await withdraw(records, name, namespace.reason, signal)
    throw namespace.reason
  }
  if (written.status === 'rejected') throw written.reason
  // Somebody deleted the binding that outlives its deletion: it is made anew as soon as it is gone.
  const binding = workBindingOf(records, name)
  if (binding?.metadata.deletionTimestamp) await letGo(records, binding, signal)
  const wasLeaving = records.clusterRoles.get(rbac.cluster(name))?.metadata.annotations?.[leavesByAnnotation]
  const memory = wasLeaving ? forgotten : undefined
  const desired = permissionsOf(name, 'accepted', { labels: records.settings.labels, memory })
  await applyPermissions(records, name, desired, { intent: 'accept', signal })
  const pending = await driverOf(records, written.value).grant(written.value, signal)
  return { written: written.value, pending }
}

/** A cluster that may not have its namespace has no access to it either; one whose namespace is made anew keeps what it needs. */
const withdraw = async (records: Records, name: string, why: unknown, signal: AbortSignal): Promise<void> => {
  const { reason } = why as { reason?: string }
  if (isPassing(why) || reason === 'NamespaceTerminating') return
  await applyPermissions(records, name, [], { intent: 'accept', signal })
}

const report = async (
  records: Records,
  cluster: ManagedCluster,
  state: ReturnType<typeof Accepted.accepted>,
  signal: AbortSignal,
): Promise<void> => {
  const written = await reportConditions(records, cluster, [state], signal)
  wroteCluster(records, 'accept', cluster, written)
}

/** What the next try will most likely not meet again: a write that came first, a server that is busy or away. */
const isPassing = (error: unknown): boolean =>
  (error instanceof AggregateError && error.errors.every(isPassing)) ||
  isConflict(error) ||
  // A `test` in a patch that did not hold.
  (isInvalid(error) && error.request.method === 'PATCH') ||
  isNotFound(error) ||
  error instanceof ConnectionError ||
  (error instanceof ApiError && (error.status >= 500 || error.status === 429)) ||
  (error instanceof Error && error.name === 'AbortError')

/** A cluster that is gone though we held it with a finalizer: somebody took that off. Its access must go all the same. */
const forget = async (records: Records, name: string, signal: AbortSignal): Promise<ReconcileResult> => {
  if (permissionsInPlace(records, name).length === 0) return {}
  // It may be so new that only its RBAC has come to us yet, made by the replica that led before.
  if (await records.client.of(ManagedCluster).find(name, { signal })) return {}
  await applyPermissions(records, name, [], { intent: 'farewell', signal })
  return {}
}
