import { annotation, ClusterManagementAddOn, ManagedClusterAddOn } from '../../api/index.ts'
import { isNotFound, keyOf, parseKey } from '../../kube/index.ts'
import { findCondition, ownerReference, withOwner, type ConditionState, type Reconcile } from '../../runtime/index.ts'
import {
  AddOnManifestApplied,
  Configured,
  Degraded,
  HostingClusterValidity,
  Progressing,
  RegistrationApplied,
  TokenInfrastructureReady,
} from '../contract.ts'
import { configurationOf, namespaceFor, referencesWhen, type Configuration } from './configuration.ts'
import { customize } from './customize.ts'
import type { AddOn, Manifest } from './definition.ts'
import { definitionOf } from './definitions.ts'
import { healthCheckOf, healthOf, unknownWith } from './health.ts'
import { finish, holdForHooks, splitHooks } from './hooks.ts'
import { currentAddOn, fieldManager, type AddOnHub } from './hub.ts'
import { permissions, removePermissions } from './permissions.ts'
import { registrationsOf } from './registrations.ts'
import { writeReport, type Report } from './report.ts'
import { invalid } from './subject.ts'
import { removeTokenInfrastructure, tokenInfrastructure } from './token-infrastructure.ts'
import { applyWorks, deliveryOf, deployWorks, inWorks, manifestApplied, removeWorks, type Delivery } from './works.ts'

/** One add-on on one cluster: what it needs on the hub, what is deployed, and all that there is to say, in one write. */
export const reconcileAddOn =
  (hub: AddOnHub): Reconcile =>
  async (key, signal) => {
    const found = currentAddOn(hub, key)
    if (!found) return cleanUp(hub, key, signal)
    const addOn = hub.isManager ? await adopt(hub, found, signal) : found
    const reports: Report[] = []
    const errors: unknown[] = []
    const part = async (run: () => Promise<Report> | Report, failed: (message: string) => ConditionState) => {
      try {
        reports.push(await run())
      } catch (error) {
        if (signal.aborted) throw error
        errors.push(error)
        reports.push({ conditions: [failed((error as Error).message)] })
      }
    }
    if (hub.isManager) await part(() => tokenInfrastructure(hub, addOn, signal), TokenInfrastructureReady.failed)
    const configuration = configurationOf(hub, addOn)
    let definition: AddOn | undefined
    await part(() => {
      definition = definitionOf(hub, addOn, configuration)
      const isOurs = definition !== undefined || (hub.isManager && configuration.namesTemplate)
      return isOurs ? configured(configuration) : {}
    }, Configured.failed)
    const known = definition
    if (known) {
      await part(() => permissions(hub, addOn, known, signal), RegistrationApplied.failed)
      await part(() => deployment(hub, addOn, known, configuration, signal), AddOnManifestApplied.workFailed)
    }
    if (hub.isManager || known) reports.push(verdict(hub, addOn, known, reports))
    // Against what they were computed from: whatever the agent has written since makes the patch fail, not disappear.
    await report(hub, addOn, reports, signal)
    if (errors.length > 0) throw errors[0]
    return { requeueAfterMs: smallest(reports) }
  }

const smallest = (reports: readonly Report[]): number | undefined => {
  const times = reports.flatMap(({ requeueAfterMs }) => (requeueAfterMs === undefined ? [] : [requeueAfterMs]))
  return times.length > 0 ? Math.min(...times) : undefined
}

const report = async (
  hub: AddOnHub,
  addOn: ManagedClusterAddOn,
  reports: readonly Report[],
  signal: AbortSignal,
): Promise<void> => {
  try {
    await writeReport(hub, addOn, reports, signal)
  } catch (error) {
    // Gone in the meantime: its deletion brings us back.
    if (!isNotFound(error)) throw error
  }
}

/** What was made for an add-on that is gone. Its tokens end here: not earlier, since it may need them to finish. */
const cleanUp = async (hub: AddOnHub, key: string, signal: AbortSignal) => {
  hub.written.forget(key)
  const { namespace: cluster = '', name: addOn } = parseKey(key)
  if (hub.isManager) await removeTokenInfrastructure(hub, { cluster, addOn }, signal)
  await removePermissions(hub, key, signal)
  await removeWorks(hub, key, signal)
  return {}
}

/** The add-on goes with its ClusterManagementAddOn; controllers in the field wait until it belongs to it. */
const adopt = async (hub: AddOnHub, addOn: ManagedClusterAddOn, signal: AbortSignal): Promise<ManagedClusterAddOn> => {
  const owner = hub.catalogue.get(addOn.metadata.name!)
  if (!owner || owner.metadata.deletionTimestamp || addOn.metadata.deletionTimestamp) return addOn
  const owned = withOwner(addOn, ownerReference(owner, ClusterManagementAddOn))
  if (owned === addOn) return addOn
  const { name, namespace, uid, ownerReferences } = addOn.metadata
  const json = [
    { op: 'test', path: '/metadata/uid', value: uid },
    { op: 'test', path: '/metadata/ownerReferences', value: ownerReferences ?? null },
    { op: 'add', path: '/metadata/ownerReferences', value: owned.metadata.ownerReferences },
  ]
  const written = await hub.client.of(ManagedClusterAddOn, namespace).patch(name!, { json }, { fieldManager, signal })
  return hub.written.wrote(keyOf(addOn), addOn, written)
}

const configured = ({ problems, references }: Configuration): Report => ({
  conditions: [
    problems.length > 0
      ? Configured.failed(problems.join('; '))
      : Configured.configured(`${references.length} configuration${references.length === 1 ? ' is' : 's are'} in use`),
  ],
})

/** Everything that goes to the managed cluster, and what is said of it. */
const deployment = async (
  hub: AddOnHub,
  addOn: ManagedClusterAddOn,
  definition: AddOn,
  configuration: Configuration,
  signal: AbortSignal,
): Promise<Report> => {
  const namespace = namespaceFor(addOn, configuration, definition)
  const status = {
    namespace,
    healthCheck: healthCheckOf(definition),
    registrations: registrationsOf(addOn, definition),
  }
  const cluster = hub.clusters.get(addOn.metadata.namespace!)
  const hosting = addOn.metadata.annotations?.[annotation.hostingClusterName]
  // On the managed cluster it would be where nobody wanted it.
  if (hosting && !addOn.metadata.deletionTimestamp)
    return {
      status,
      conditions: [
        HostingClusterValidity.unsupported(hosted(hosting)),
        AddOnManifestApplied.workFailed(hosted(hosting)),
        Progressing.unsupported(hosted(hosting)),
      ],
    }
  // With half of its configuration it would be another add-on: what is deployed stays as it is.
  if (!cluster || configuration.problems.length > 0) return { status }
  const manifests = await manifestsOf(definition, { addOn, cluster, namespace, configuration })
  const { deployed, hooks } = splitHooks(manifests)
  if (addOn.metadata.deletionTimestamp) {
    const finishing = await finish(hub, addOn, definition, hooks, signal)
    return { ...finishing, status }
  }
  const held = await holdForHooks(hub, addOn, hooks, signal)
  const expected = inWorks(deployed).length
  const isIn = cluster.spec.hubAcceptsClient && !cluster.metadata.deletionTimestamp
  const changed = isIn && (await applyWorks(hub, held, definition, deployed, signal))
  const works = deployWorks(hub, addOn)
  // What the cache says of works that were just written is about the ones before.
  const delivery: Delivery = changed ? { state: 'waiting' } : deliveryOf(works, expected)
  const health = unknownWith(cluster) ?? healthOf(definition, works, delivery)
  const references = referencesWhen(configuration, delivery.state === 'applied', addOn.status?.configReferences)
  return {
    status: { ...status, configReferences: references },
    conditions: [manifestApplied(delivery, expected), progress(delivery), ...(health ? [health] : [])],
    cleared: [HostingClusterValidity.type],
  }
}

const hosted = (cluster: string): string =>
  `the add-on should run on cluster ${JSON.stringify(cluster.slice(0, 63))} (annotation ${annotation.hostingClusterName}), and this hub deploys add-ons only on the cluster that they are for: remove the annotation, and it is installed there`

const manifestsOf = async (
  definition: AddOn,
  about: {
    addOn: ManagedClusterAddOn
    cluster: Parameters<AddOn['manifests']>[0]['cluster']
    namespace: string
    configuration: Configuration
  },
): Promise<Manifest[]> => {
  const { config } = about.configuration
  const variables = Object.fromEntries((config.customizedVariables ?? []).map(({ name, value }) => [name, value ?? '']))
  const manifests = await definition.manifests({
    cluster: about.cluster,
    addOn: about.addOn,
    installNamespace: about.namespace,
    config,
    variables,
  })
  return manifests.map((manifest) => customize(manifest, config))
}

const progress = (delivery: Delivery): ConditionState => {
  if (delivery.state === 'failed') return Progressing.failed(delivery.message)
  return delivery.state === 'applied'
    ? Progressing.completed('what is configured is on the managed cluster')
    : Progressing.progressing('a change is on its way to the managed cluster')
}

/** Whether somebody has to look at it. And what is not known of the cluster is not known of its add-ons. */
const verdict = (
  hub: AddOnHub,
  addOn: ManagedClusterAddOn,
  definition: AddOn | undefined,
  reports: readonly Report[],
): Report => {
  const { namespace: cluster = '', name = '' } = addOn.metadata
  const wrong = invalid({ cluster, addOn: name, registrations: addOn.status?.registrations ?? [] })
  const said = reports.flatMap(({ conditions }) => conditions ?? [])
  const failing = said.find(({ type, reason }) => type === AddOnManifestApplied.type && reason.endsWith('Failed'))
  const unknown = definition ? undefined : unknownWith(hub.clusters.get(cluster))
  const present = findCondition(addOn, Degraded.type)?.reason ?? ''
  // Whoever runs an add-on that we do not know says itself how it is; we only take back what we said.
  const isOurs =
    definition !== undefined || wrong !== undefined || ['InvalidName', 'InvalidRegistrations'].includes(present)
  return { conditions: [...(isOurs ? [degradation(wrong, failing)] : []), ...(unknown ? [unknown] : [])] }
}

const degradation = (wrong: ReturnType<typeof invalid>, failing: ConditionState | undefined): ConditionState => {
  if (wrong) return wrong.reason === 'InvalidName' ? Degraded.name(wrong.message) : Degraded.invalid(wrong.message)
  return failing ? Degraded.failing(failing.message) : Degraded.no()
}
