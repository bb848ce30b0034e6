import { ClusterManagementAddOn, ManagedClusterAddOn, type ManagedCluster } from '../../api/index.ts'
import { isAlreadyExists, isNotFound, keyOf } from '../../kube/index.ts'
import { equal, inParallel, ownerReference, setConditions, watching, type Reconcile } from '../../runtime/index.ts'
import { fitsRule, installOnAnnotation, installRule, Progressing } from '../contract.ts'
import { specHash } from './configuration.ts'
import { fieldManager, index, type AddOnHub } from './hub.ts'

/** On ManagedClusterAddOns that were installed by that rule, and go with it. */
export const installedByAnnotation = 'addon.open-cluster-management.io/installed-by'

/** Installs add-ons by rule, and says of each what its configurations are and what cannot be followed. */
export const install = (hub: AddOnHub): void => {
  const reconcile: Reconcile = async (name, signal) => {
    const catalogue = hub.catalogue.get(name)
    if (!catalogue || catalogue.metadata.deletionTimestamp) return {} // the garbage collector removes what it owns
    const rule = installRule(catalogue.metadata.annotations?.[installOnAnnotation])
    if (!rule || !('fault' in rule)) await installBy(hub, catalogue, rule?.labels, signal)
    await reportCatalogue(hub, catalogue, rule && 'fault' in rule ? rule.fault : undefined, signal)
    return {}
  }
  hub.manager.controller({
    name: 'add-on-install',
    reconcile,
    watches: [
      watching(hub.catalogue),
      watching(hub.configs, () => hub.catalogue.list().map(keyOf)),
      watching(hub.templates, () => hub.catalogue.list().map(keyOf)),
      watching(
        hub.addOns,
        ({ metadata }) => [metadata.name!],
        (_, old) => !old,
      ),
      watching(
        hub.clusters,
        () => hub.catalogue.list().map(keyOf),
        (cluster, old) => !old || chosenBy(cluster) !== chosenBy(old),
      ),
    ],
  })
}

const chosenBy = ({ spec, metadata }: ManagedCluster): string =>
  JSON.stringify([spec.hubAcceptsClient, metadata.deletionTimestamp, metadata.labels])

const installBy = async (
  hub: AddOnHub,
  catalogue: ClusterManagementAddOn,
  labels: Record<string, string> | undefined,
  signal: AbortSignal,
): Promise<void> => {
  const name = catalogue.metadata.name!
  const wanted = new Set(
    labels
      ? hub.clusters
          .list()
          .filter((one) => fitsRule(one, labels))
          .map(({ metadata }) => metadata.name!)
      : [],
  )
  const present = hub.addOns.by(index.name, name)
  const missing = [...wanted].filter((cluster) => !hub.addOns.get(`${cluster}/${name}`))
  const obsolete = present.filter(
    ({ metadata }) =>
      metadata.annotations?.[installedByAnnotation] === installOnAnnotation &&
      !metadata.deletionTimestamp &&
      !wanted.has(metadata.namespace!),
  )
  await inParallel(16, [
    ...missing.map((namespace) => async () => {
      const metadata = {
        name,
        namespace,
        annotations: { [installedByAnnotation]: installOnAnnotation },
        ownerReferences: [ownerReference(catalogue, ClusterManagementAddOn)],
      }
      await hub.client
        .of(ManagedClusterAddOn, namespace)
        .create({ metadata, spec: {} }, { fieldManager, signal })
        .catch((error: unknown) => {
          if (!isAlreadyExists(error)) throw error
        })
    }),
    ...obsolete.map(({ metadata: { namespace, uid } }) => async () => {
      await hub.client.of(ManagedClusterAddOn, namespace).delete(name, { preconditions: { uid }, signal })
    }),
  ])
}

type Status = NonNullable<ClusterManagementAddOn['status']>

/** Default configurations with their hashes; and for each placement that it is not followed here. */
const reportCatalogue = async (
  hub: AddOnHub,
  catalogue: ClusterManagementAddOn,
  fault: string | undefined,
  signal: AbortSignal,
): Promise<void> => {
  const { spec, status: present, metadata } = catalogue
  const defaultConfigReferences = (spec?.defaultConfigs ?? [])
    .filter(({ name }) => !name.startsWith('__'))
    .map(({ group, resource, namespace, name }) => {
      const found = resource === 'addontemplates' ? hub.templates.get(name) : hub.configs.get(`${namespace}/${name}`)
      const at = { ...(namespace ? { namespace } : {}), name }
      return { group, resource, desiredConfig: { ...at, ...(found ? { specHash: specHash(found.spec) } : {}) } }
    })
  const why =
    fault ??
    `this hub has no placements: set the annotation ${installOnAnnotation} to the labels of the clusters, or create ManagedClusterAddOns`
  const installProgressions = (spec?.installStrategy?.placements ?? []).map(({ namespace, name }) => ({
    namespace,
    name,
    conditions: setConditions(
      present?.installProgressions?.find((one) => one.namespace === namespace && one.name === name)?.conditions,
      [Progressing.unsupported(why)],
      { now: hub.clock.now(), generation: metadata.generation },
    ),
  }))
  const status: Status = { defaultConfigReferences, installProgressions }
  if (fault) hub.log.warn('an add-on cannot be installed by rule', { addOn: metadata.name, fault })
  if (equal(present ?? {}, status)) return
  const json = [
    { op: 'test', path: '/metadata/uid', value: metadata.uid },
    { op: 'add', path: '/status', value: status },
  ]
  await hub.client
    .of(ClusterManagementAddOn)
    .patch(metadata.name!, { json }, { subresource: 'status', fieldManager, signal })
    .catch((error: unknown) => {
      if (!isNotFound(error)) throw error
    })
}
