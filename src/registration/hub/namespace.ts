import { label, type ManagedCluster } from '../../api/index.ts'
import { isAlreadyExists, Lease, Namespace } from '../../kube/index.ts'
import { waiting } from '../../runtime/index.ts'
import { leaseName, rbac } from '../contract.ts'
import { leftIn, summary } from './left-behind.ts'
import { workBindingOf, letGo, type Records } from './records.ts'

/** How often a namespace that is in the way is looked at again: without our label no watch tells us when it is gone. */
const lookAgainMs = 5 * 60_000

/** The cluster's namespace, made if there is none. One that is somebody else's is never taken over. */
export const ensureNamespace = async (
  records: Records,
  cluster: ManagedCluster,
  signal: AbortSignal,
): Promise<void> => {
  const name = cluster.metadata.name!
  const labels = { ...records.settings.labels, [label.clusterName]: name }
  const cached = records.namespaces.get(name)
  if (cached?.metadata.deletionTimestamp) return leavingNamespace(records, name, signal)
  if (cached && lacks(cached, labels).length === 0) return

  const present = cached ?? (await createOrFind(records, name, labels, signal))
  if (!present) return
  const owner = present.metadata.labels?.[label.clusterName]
  if (owner !== name) await mayAdopt(records, name, owner, signal)
  await records.client
    .of(Namespace)
    .patch(name, { merge: { metadata: { uid: present.metadata.uid, labels } } }, { fieldManager: 'lanyard', signal })
}

const lacks = (namespace: Namespace, labels: Record<string, string>): string[] =>
  Object.keys(labels).filter((key) => namespace.metadata.labels?.[key] !== labels[key])

/** Undefined when it was made just now. */
const createOrFind = async (
  records: Records,
  name: string,
  labels: Record<string, string>,
  signal: AbortSignal,
): Promise<Namespace | undefined> => {
  const namespaces = records.client.of(Namespace)
  try {
    await namespaces.create({ metadata: { name, labels } }, { fieldManager: 'lanyard', signal })
    records.unseen.wrote(name, 'accept', records.clock.now(), [() => records.namespaces.get(name) !== undefined])
    return undefined
  } catch (error) {
    if (!isAlreadyExists(error)) throw error
    return namespaces.get(name, { signal })
  }
}

/** A namespace without our label can become the cluster's when nobody has put anything into it, or when it was ours before. */
const mayAdopt = async (
  records: Records,
  name: string,
  owner: string | undefined,
  signal: AbortSignal,
): Promise<void> => {
  if (owner !== undefined && owner !== '')
    throw waiting('NamespaceOfAnotherCluster', {
      message: `cluster ${name} cannot be accepted: namespace ${name} is labelled ${label.clusterName}=${owner}`,
      next: `correct the label if the namespace is meant for ${name}, else join the cluster under another name`,
      afterMs: lookAgainMs,
    })
  if (records.roleBindings.get(`${name}/${rbac.registrationBinding(name)}`)) return
  const left = await leftIn(records, name, signal)
  if (left.length === 0) return
  throw waiting('NamespaceTaken', {
    message: `cluster ${name} cannot be accepted: namespace ${name} was there before and holds ${summary(left)}`,
    next: `if the cluster may have it, run: kubectl label namespace ${name} ${label.clusterName}=${name}; else join under another name`,
    afterMs: lookAgainMs,
  })
}

/** Somebody deletes the namespace of a cluster that is still accepted: its agent lets go of the works, then it is made anew. */
const leavingNamespace = async (records: Records, name: string, signal: AbortSignal): Promise<never> => {
  const works = records.works.list(name).length
  const binding = workBindingOf(records, name)
  if (works === 0 && binding?.metadata.deletionTimestamp) await letGo(records, binding, signal)
  throw waiting('NamespaceTerminating', {
    message: `cluster ${name}: its namespace is being deleted${works ? `, and its agent has ${works} works to remove first` : ''}`,
    next: 'nothing to do: it is made anew when it is gone; to let the cluster go, delete its ManagedCluster',
    afterMs: 10_000,
  })
}

/** Removes the cluster's namespace when nothing that a person made is in it; else answers what that is. */
export const removeNamespace = async (
  records: Records,
  cluster: ManagedCluster,
  signal: AbortSignal,
): Promise<string[]> => {
  const name = cluster.metadata.name!
  // Not from the cache alone: what was made a moment ago by another replica must go as well.
  const namespace = await records.client.of(Namespace).find(name, { signal })
  if (!namespace || namespace.metadata.deletionTimestamp) return []
  if (namespace.metadata.labels?.[label.clusterName] !== name) return []
  const left = await leftIn(records, name, signal)
  if (left.length > 0) {
    await records.client.of(Lease, name).delete(leaseName, { signal })
    return left
  }
  const { uid } = namespace.metadata
  await records.client.of(Namespace).delete(name, { preconditions: { uid }, signal })
  return []
}
