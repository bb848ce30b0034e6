import { finalizer, ManagedClusterAddOn, type ManifestWork } from '../../api/index.ts'
import { isNotFound, keyOf } from '../../kube/index.ts'
import { applySet, hasFinalizer } from '../../runtime/index.ts'
import { HookCompleted, workName } from '../contract.ts'
import type { AddOn, Manifest } from './definition.ts'
import { fieldManager, targetsOf, type AddOnHub } from './hub.ts'
import type { Report } from './report.ts'
import { workFor } from './works.ts'

/** Jobs and Pods with this annotation (or label, as older ones have it) run on the managed cluster before the add-on goes. */
export const hookMark = 'addon.open-cluster-management.io/addon-pre-delete'

const isHook = ({ metadata }: Manifest): boolean =>
  hookMark in (metadata.annotations ?? {}) || hookMark in (metadata.labels ?? {})

/** What is deployed, and what runs at the end. */
export const splitHooks = (manifests: readonly Manifest[]): { deployed: Manifest[]; hooks: Manifest[] } => ({
  deployed: manifests.filter((manifest) => !isHook(manifest)),
  hooks: manifests.filter(isHook),
})

/** Holds an add-on with hooks, and lets go of one without. */
export const holdForHooks = async (
  hub: AddOnHub,
  addOn: ManagedClusterAddOn,
  hooks: readonly Manifest[],
  signal: AbortSignal,
): Promise<ManagedClusterAddOn> => {
  const held = hasFinalizer(addOn, finalizer.addOnPreDelete)
  if (held === hooks.length > 0) return addOn
  return setFinalizer(hub, addOn, !held, signal)
}

const setFinalizer = async (
  hub: AddOnHub,
  addOn: ManagedClusterAddOn,
  held: boolean,
  signal: AbortSignal,
): Promise<ManagedClusterAddOn> => {
  const { name, namespace, uid, finalizers = [] } = addOn.metadata
  const others = finalizers.filter((one) => one !== finalizer.addOnPreDelete)
  const value = held ? [...others, finalizer.addOnPreDelete] : others
  const json = [
    { op: 'test', path: '/metadata/uid', value: uid },
    { op: 'test', path: '/metadata/finalizers', value: addOn.metadata.finalizers ?? null },
    { op: 'add', path: '/metadata/finalizers', value },
  ]
  const written = await hub.client.of(ManagedClusterAddOn, namespace).patch(name!, { json }, { fieldManager, signal })
  return hub.written.wrote(keyOf(addOn), addOn, written)
}

/** Runs the hooks of an add-on that is being deleted; when they are done, or nobody is there to run them, it may go. */
export const finish = async (
  hub: AddOnHub,
  addOn: ManagedClusterAddOn,
  definition: AddOn,
  hooks: readonly Manifest[],
  signal: AbortSignal,
): Promise<Report> => {
  if (!hasFinalizer(addOn, finalizer.addOnPreDelete)) return {}
  const { namespace = '', name = '' } = addOn.metadata
  const work = workName.preDelete(name)
  const present = hub.works.get(`${namespace}/${work}`)
  if (hooks.length === 0 || !hub.clusters.get(namespace) || (present && areDone(present, hooks))) {
    await setFinalizer(hub, addOn, false, signal).catch((error: unknown) => {
      if (!isNotFound(error)) throw error
    })
    return { conditions: [] }
  }
  const desired = [workFor(addOn, definition, work, hooks)]
  await applySet(desired, { client: hub.client, targets: targetsOf(hub), fieldManager, signal })
  const names = hooks.map(({ kind, metadata }) => `${kind} ${metadata.namespace}/${metadata.name}`).join(', ')
  return { conditions: [HookCompleted.waiting(`waiting on the managed cluster for ${names}`)] }
}

/** A Job is done when it is complete, a Pod when it has succeeded. */
const areDone = ({ status }: ManifestWork, hooks: readonly Manifest[]): boolean =>
  hooks.every(({ kind, metadata }) => {
    const found = status?.resourceStatus?.manifests?.find(
      ({ resourceMeta: r }) => r.kind === kind && r.name === metadata.name && r.namespace === metadata.namespace,
    )
    const value = (name: string) => found?.statusFeedback?.values?.find((one) => one.name === name)?.fieldValue.string
    return kind === 'Job' ? value('JobComplete') === 'True' : value('PodPhase') === 'Succeeded'
  })
