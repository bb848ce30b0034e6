import { ClusterManager, finalizer } from '../../api/index.ts'
import {
  ClusterRoleBinding,
  CustomResourceDefinition,
  keyOf,
  RoleBinding,
  Secret,
  ServiceAccount,
} from '../../kube/index.ts'
import {
  Freshest,
  hasFinalizer,
  watching,
  withFinalizer,
  type ConditionState,
  type Reconcile,
} from '../../runtime/index.ts'
import { Hub, SpecHonored, ValidFeatureGates } from '../conditions.ts'
import { createdBy, namespace, pullSecret, role } from '../contract.ts'
import { finishDeletions } from '../definitions.ts'
import { awsAuthNamespace } from '../install/index.ts'
import { CronJob, Deployment, Service } from '../objects.ts'
import type { Operator } from '../operator.ts'
import type { Reading } from '../reading.ts'
import { applyOwned, joint, kept, related, type KeptKind } from '../set.ts'
import { report, type Report } from '../status.ts'
import { Workloads } from '../workloads.ts'
import { desiredCrds } from './crds.ts'
import { cleanupCronJob, hubDeployment, hubObjects, type HubSettings } from './desired.ts'
import { hubHealth } from './health.ts'
import { removeHub } from './removal.ts'
import { readHubSpec } from './spec.ts'

/** The caches that the reconciler of ClusterManagers reads. */
export interface HubCaches {
  readonly crds: KeptKind<CustomResourceDefinition>
  readonly deployments: KeptKind<Deployment>
  readonly cronJobs: KeptKind<CronJob>
  /** Everything that is one of many: accounts, bindings, the Service, the pull secret. */
  readonly others: readonly KeptKind[]
}

/** Keeps the hub as its ClusterManager says. */
export const keepHubs = (operator: Operator): void => {
  const { manager, settings } = operator
  const own = { labelSelector: createdBy.clusterManager }
  const here = { ...own, namespace: namespace.hub }
  const managers = manager.informer(ClusterManager)
  const crds = manager.informer(CustomResourceDefinition, own)
  const deployments = manager.informer(Deployment, here)
  const cronJobs = manager.informer(CronJob, here)
  // By name, so that the operator needs no right to read other secrets.
  const byName = { fieldSelector: `metadata.name=${pullSecret}` }
  const pullSource = manager.informer(Secret, { ...byName, namespace: settings.namespace })
  const caches: HubCaches = {
    crds: { resource: CustomResourceDefinition, cache: crds },
    deployments: { resource: Deployment, cache: deployments },
    cronJobs: { resource: CronJob, cache: cronJobs },
    others: [
      kept(ServiceAccount, manager.informer(ServiceAccount, here)),
      kept(Service, manager.informer(Service, here)),
      kept(
        RoleBinding,
        joint(
          manager.informer(RoleBinding, here),
          manager.informer(RoleBinding, {
            namespace: awsAuthNamespace,
            fieldSelector: `metadata.name=${role.awsAuth}`,
          }),
        ),
      ),
      kept(ClusterRoleBinding, manager.informer(ClusterRoleBinding, own)),
      kept(Secret, manager.informer(Secret, { ...byName, namespace: namespace.hub })),
    ],
  }
  const ownerOf = ({ metadata }: { metadata: { labels?: Record<string, string> | undefined } }): string[] => {
    const owner = metadata.labels?.[createdBy.clusterManager]
    return owner ? [owner] : []
  }
  const all = (): string[] => managers.list().map(keyOf)
  finishDeletions(operator, 'cluster-manager-definitions', crds)
  manager.controller({
    name: 'cluster-manager',
    workers: 1,
    watches: [
      // One more or less decides which of several counts.
      watching(managers, () => all()),
      watching(managers),
      watching(pullSource, all),
      ...[crds, deployments, cronJobs].map((informer) => watching(informer as typeof crds, ownerOf)),
      ...caches.others.map(({ cache }) => watching(cache, ownerOf)),
    ],
    reconcile: reconcileHub(operator, {
      caches,
      managers: () => managers.list(),
      get: (name) => managers.get(name),
      pullCredentials: () => pullSource.get(`${settings.namespace}/${pullSecret}`),
    }),
  })
}

interface HubView {
  caches: HubCaches
  managers: () => ClusterManager[]
  get: (name: string) => ClusterManager | undefined
  pullCredentials: () => Secret | undefined
}

const reconcileHub = (operator: Operator, view: HubView): Reconcile => {
  const { client, clock, settings } = operator
  const workloads = new Workloads(client)
  const written = new Freshest<ClusterManager>()
  return async (name, signal) => {
    const manager = written.of(name, view.get(name))
    if (!manager || !view.get(name)) return {}
    const say = async (said: Report): Promise<void> => {
      const now = await report({ client, resource: ClusterManager, clock, signal }, manager, said)
      if (now !== manager) written.wrote(name, manager, now)
    }
    if (manager.metadata.deletionTimestamp) return removeHub(operator, view.caches, manager, say, signal)

    const reading = readHubSpec(manager.spec ?? {}, settings)
    const first = firstManager(view.managers())?.metadata.name
    if (first !== name) {
      const message = `ClusterManager ${first} is older and runs the hub of this cluster; delete one of the two`
      await say({ conditions: [Hub.Applied.second(message)] })
      return {}
    }
    if (reading.refused.length > 0) {
      await say({ conditions: [Hub.Applied.refused(reading.refused.join('; ')), ...readingConditions(reading)] })
      return {}
    }
    if (!hasFinalizer(manager, finalizer.clusterManager)) {
      const { resourceVersion, finalizers } = withFinalizer(manager, finalizer.clusterManager).metadata
      await client.of(ClusterManager).patch(name, { merge: { metadata: { resourceVersion, finalizers } } }, { signal })
      return {} // the change brings it back here, with the version that status is written to
    }
    try {
      await say(await apply(operator, view, workloads, { manager, reading }, signal))
    } catch (error) {
      const message = `${(error as Error).message}; it is tried again`
      await say({ conditions: [Hub.Applied.failed(message), ...readingConditions(reading)] })
      throw error
    }
    return {}
  }
}

/** Several would fight over one namespace: the oldest counts. */
export const firstManager = (managers: readonly ClusterManager[]): ClusterManager | undefined => {
  const age = ({ metadata }: ClusterManager): string => `${metadata.creationTimestamp} ${metadata.name}`
  return managers
    .filter(({ metadata }) => !metadata.deletionTimestamp || hasFinalizer({ metadata }, finalizer.clusterManager))
    .toSorted((a, b) => (age(a) < age(b) ? -1 : 1))[0]
}

const apply = async (
  operator: Operator,
  view: HubView,
  workloads: Workloads,
  { manager, reading }: { manager: ClusterManager; reading: Reading },
  signal: AbortSignal,
): Promise<Report> => {
  const { client, settings } = operator
  const { caches } = view
  const owner = manager.metadata.name!
  const hub: HubSettings = {
    image: settings.image,
    replicas: settings.hubReplicas,
    pullCredentials: view.pullCredentials(),
  }
  const of = { label: createdBy.clusterManager, owner, signal }
  const { desired: crds, others } = await desiredCrds(client, caches.crds.cache, owner, signal)
  await applyOwned(client, [caches.crds], crds, of)
  const objects = hubObjects(manager, hub)
  await applyOwned(client, caches.others, objects, of)
  const known = { generations: manager.status?.generations, signal }
  const deployment = hubDeployment(manager, reading.flags, hub)
  const cronJob = cleanupCronJob(manager, hub)
  const runs = await workloads.apply(Deployment, caches.deployments.cache, deployment, known)
  const sweeps = await workloads.apply(CronJob, caches.cronJobs.cache, cronJob, known)
  const ignored = others.map((name) => `CustomResourceDefinition ${name}: it was there before, and is left as it is`)
  const kinds = [caches.crds, caches.deployments, caches.cronJobs, ...caches.others] as KeptKind[]
  return {
    conditions: [
      Hub.Applied.applied(),
      ...hubHealth(runs.object),
      ...readingConditions({ ...reading, ignored: [...reading.ignored, ...ignored] }),
    ],
    generations: [runs.generation, sweeps.generation],
    relatedResources: [...crds, ...objects, deployment, cronJob].map((object) => related(kinds, object)),
  }
}

/** What reading the spec had to say, whether it could be followed or not. */
export const readingConditions = ({ ignored, badGates }: Reading): ConditionState[] => [
  badGates.length > 0 ? ValidFeatureGates.invalid(badGates.join('; ')) : ValidFeatureGates.valid(),
  ignored.length > 0 ? SpecHonored.some(ignored.join('; ')) : SpecHonored.all(),
]
