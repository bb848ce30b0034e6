/**
 * The hub's side of add-ons. A tour:
 *
 * `reconcile.ts` handles one ManagedClusterAddOn from top to bottom and writes all that there is to say in one patch
 * (`report.ts`): the account and role by which its cluster requests tokens (`token-infrastructure.ts`), its permissions on the
 * hub (`permissions.ts`), its manifests (`works.ts`, `hooks.ts`, `customize.ts`) and its health (`health.ts`). What its agent
 * says of itself is believed only within `subject.ts`. What the add-on is comes from code (`definition.ts`) or from an
 * AddOnTemplate (`template.ts`), with `configuration.ts`. `approval.ts` and `signing.ts` decide about certificates;
 * `install.ts` puts add-ons on clusters, and `features.ts` labels these.
 */
import type { ManagedCluster } from '../../api/index.ts'
import { keyOf, type Api, type KubeObject } from '../../kube/index.ts'
import {
  findCondition,
  silentLogger,
  systemClock,
  watching,
  type Clock,
  type EventRecorder,
  type Logger,
  type Manager,
} from '../../runtime/index.ts'
import { Available } from '../../registration/contract.ts'
import { approval, type ApprovalOptions } from './approval.ts'
import { chosenConfigs } from './configuration.ts'
import type { AddOn } from './definition.ts'
import { features } from './features.ts'
import { addOnHub, keysNamed, keysOn, ownerKey, tokenOwnerKey, type AddOnHub } from './hub.ts'
import { install } from './install.ts'
import { addOnMetrics } from './metrics.ts'
import { reconcileAddOn } from './reconcile.ts'

export * from './definition.ts'
export type { AddOnHub } from './hub.ts'
export { installOnAnnotation } from '../contract.ts'
export { installedByAnnotation } from './install.ts'
export { hookMark } from './hooks.ts'
export { authorityIn } from './template.ts'
export { orphanAnnotation } from './works.ts'

export interface AddOnsOptions extends ApprovalOptions {
  client: Api
  /** Add-ons that are written in code and run in this process. */
  addOns?: readonly AddOn[] | undefined
  /**
   * Whether this process is the hub's own: it makes token infrastructure for every add-on, installs them, and runs those of
   * templates. Exactly one process of a hub is; others run their own add-ons only.
   */
  manager: boolean
  events: Pick<EventRecorder, 'record'>
  clock?: Clock | undefined
  log?: Logger | undefined
}

/** Adds everything that add-ons need on a hub to the manager of the process. */
export const startAddOns = (manager: Manager, options: AddOnsOptions): AddOnHub => {
  const { client, addOns = [], events, clock = systemClock, log = silentLogger, manager: isManager } = options
  const hub = addOnHub(manager, { client, addOns, events, clock, log, isManager })
  const ours = (key: string): boolean => isManager || hub.defined.has(key.slice(key.indexOf('/') + 1))
  const only =
    <T extends KubeObject>(keysOf: (object: T) => Iterable<string>) =>
    (object: T): string[] =>
      [...keysOf(object)].filter(ours)
  const owner = only((object: KubeObject) => [ownerKey(object)])
  const tokenOwner = only((object: KubeObject) => [tokenOwnerKey(object)])
  manager.controller({
    name: 'add-ons',
    workers: 16,
    reconcile: reconcileAddOn(hub),
    watches: [
      watching(
        hub.addOns,
        only((addOn) => [keyOf(addOn)]),
      ),
      watching(hub.works, owner),
      watching(hub.roles, owner),
      watching(hub.bindings, owner),
      watching(hub.hubBindings, owner),
      watching(
        hub.catalogue,
        only(({ metadata }) => keysNamed(hub, metadata.name!)),
      ),
      watching(
        hub.configs,
        only((config) => keysUsing(hub, config)),
      ),
      watching(
        hub.templates,
        only(({ spec }) => keysNamed(hub, spec.addonName)),
      ),
      watching(
        hub.clusters,
        only(({ metadata }) => keysOn(hub, metadata.name!)),
        (cluster, old) => !old || judgedBy(cluster) !== judgedBy(old),
      ),
      ...(isManager
        ? [
            watching(hub.accounts, tokenOwner),
            watching(hub.tokenRoles, tokenOwner),
            watching(hub.tokenBindings, tokenOwner),
          ]
        : []),
    ],
  })
  approval(hub, options)
  if (isManager) {
    install(hub)
    features(hub)
    addOnMetrics(hub)
  }
  return hub
}

/** What a reconcile looks at in a cluster; its heartbeat is not among it. Manifests may use its labels. */
const judgedBy = (cluster: ManagedCluster): string =>
  JSON.stringify([
    cluster.spec.hubAcceptsClient,
    cluster.metadata.deletionTimestamp,
    Object.entries(cluster.metadata.labels ?? {}).filter(([key]) => !key.startsWith('feature.')),
    findCondition(cluster, Available.type)?.status === 'Unknown',
  ])

const keysUsing = (hub: AddOnHub, config: KubeObject): string[] =>
  hub.addOns
    .list()
    .filter((addOn) =>
      [...chosenConfigs(addOn, hub.catalogue.get(addOn.metadata.name!)).values()].some(
        ({ namespace, name }) => namespace === config.metadata.namespace && name === config.metadata.name,
      ),
    )
    .map(keyOf)
