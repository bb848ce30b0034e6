import { allKinds, ClusterManager, finalizer } from '../../api/index.ts'
import { ClusterRole, isNotFound, Lease, Secret, type KubeObject, type Resource } from '../../kube/index.ts'
import { hasFinalizer, inParallel, type ReconcileResult } from '../../runtime/index.ts'
import { MutatingWebhookConfiguration, ValidatingWebhookConfiguration } from '../../runtime/webhook/index.ts'
import { Hub } from '../conditions.ts'
import { createdBy, namespace, webhookService } from '../contract.ts'
import { addOnName, guard as serviceAccountGuard } from '../../serviceaccounts/contract.ts'
import { hubCrds, sharedRoles, webhookConfigurations } from '../install/index.ts'
import type { Operator } from '../operator.ts'
import { ownedBy, release, type KeptKind } from '../set.ts'
import type { Report } from '../status.ts'
import type { HubCaches } from './controller.ts'

/** How often a removal that waits for people or for the garbage collector looks again. */
const againMs = 5000

/** What the hub makes by itself. */
const madeByHub = new Set([
  'ManagedClusterSet default',
  'ManagedClusterSet global',
  `ClusterManagementAddOn ${addOnName}`,
])

/**
 * Takes a hub away, step by step; each pass does what can be done by now. First people's objects have to go, for without the
 * hub nobody could clean up after them; then the hub, then what it left behind, then the kinds themselves.
 */
export const removeHub = async (
  operator: Operator,
  caches: HubCaches,
  manager: ClusterManager,
  say: (said: Report) => Promise<void>,
  signal: AbortSignal,
): Promise<ReconcileResult> => {
  if (!hasFinalizer(manager, finalizer.clusterManager)) return {}
  const { client } = operator
  const owner = manager.metadata.name!
  const owned = (kinds: KeptKind[]): KubeObject[] => ownedBy(kinds, createdBy.clusterManager, owner)
  const left = await peoplesObjects(operator, owned([caches.crds]), signal)
  if (left.length > 0) {
    const message = `the hub stays until these are gone: ${left.join(', ')}; delete them, or unjoin the clusters`
    await say({ conditions: [Hub.Applied.waiting(message)] })
    return { requeueAfterMs: againMs }
  }
  const running = owned([caches.deployments, caches.cronJobs] as KeptKind[])
  if (running.length > 0) {
    await remove(operator, running, caches, signal, 'Foreground')
    await say({ conditions: [Hub.Applied.removing('the hub is being stopped')] })
    return { requeueAfterMs: againMs }
  }
  await removeLeftovers(operator, signal)
  const rest = owned([...caches.others])
  await remove(operator, rest, caches, signal)
  const crds = owned([caches.crds])
  await remove(operator, crds, caches, signal)
  if (rest.length + crds.length > 0) {
    const names = [...rest, ...crds].map(({ kind, metadata }) => `${kind} ${metadata.name}`)
    await say({ conditions: [Hub.Applied.removing(`still there: ${names.join(', ')}`)] })
    return { requeueAfterMs: againMs }
  }
  await release(client, ClusterManager, manager, { finalizer: finalizer.clusterManager, signal })
  return {}
}

const remove = async (
  { client }: Operator,
  objects: readonly KubeObject[],
  caches: HubCaches,
  signal: AbortSignal,
  propagationPolicy: 'Foreground' | 'Background' = 'Background',
): Promise<void> => {
  const kinds = [caches.crds, caches.deployments, caches.cronJobs, ...caches.others] as KeptKind[]
  await inParallel(
    8,
    objects
      .filter(({ metadata }) => !metadata.deletionTimestamp)
      .map(({ kind, metadata }) => async () => {
        const { resource } = kinds.find((one) => one.resource.kind === kind)!
        const options = { preconditions: { uid: metadata.uid }, propagationPolicy, signal }
        await client.of(resource, metadata.namespace).delete(metadata.name!, options)
      }),
  )
}

/** What a hub that has stopped leaves: nobody else looks after it. */
const removeLeftovers = async ({ client }: Operator, signal: AbortSignal): Promise<void> => {
  const things: [Resource<KubeObject>, string, string?][] = [
    ...webhookConfigurations.flatMap((name): [Resource<KubeObject>, string][] => [
      [ValidatingWebhookConfiguration, name],
      [MutatingWebhookConfiguration, name],
    ]),
    [serviceAccountGuard.policy, serviceAccountGuard.name],
    [serviceAccountGuard.binding, serviceAccountGuard.name],
    ...sharedRoles.map((name): [Resource<KubeObject>, string] => [ClusterRole, name]),
    [Secret, webhookService, namespace.hub],
    [Lease, 'lanyard-hub', namespace.hub],
  ]
  await inParallel(
    8,
    things.map(([resource, name, where]) => async () => {
      await client.of(resource, where).delete(name, { signal })
    }),
  )
}

/** The first few objects of the hub's kinds that the hub did not make by itself. */
const peoplesObjects = async ({ client }: Operator, crds: KubeObject[], signal: AbortSignal): Promise<string[]> => {
  const there = new Set(crds.filter(({ metadata }) => !metadata.deletionTimestamp).map(({ metadata }) => metadata.name))
  const names = new Set(hubCrds().map(({ metadata }) => metadata.name))
  const kinds = allKinds.filter(({ plural, group }) => {
    const name = `${plural}.${group}`
    return names.has(name) && there.has(name)
  })
  const found = await Promise.all(
    kinds.map(async (kind) => {
      const objects: Resource<KubeObject> = kind
      const { items } = await client
        .of(objects)
        .list({ metadataOnly: true, signal })
        .catch((error: unknown) => {
          if (isNotFound(error)) return { items: [] }
          throw error
        })
      const theirs = items.map(({ metadata }) => {
        const where = metadata.namespace ? `${metadata.namespace}/` : ''
        return `${kind.kind} ${where}${metadata.name}`
      })
      const named = theirs.filter((one) => !madeByHub.has(one))
      return named.length > 3 ? [...named.slice(0, 3), `${named.length - 3} more ${kind.plural}`] : named
    }),
  )
  return found.flat()
}
