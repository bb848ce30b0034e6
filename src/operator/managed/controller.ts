import { finalizer, Klusterlet } from '../../api/index.ts'
import { Namespace, keyOf, type KubeObject } from '../../kube/index.ts'
import {
  Freshest,
  hasFinalizer,
  withFinalizer,
  type ConditionState,
  type Reconcile,
  type ReconcileResult,
} from '../../runtime/index.ts'
import { secretName } from '../../registration/contract.ts'
import { Agent } from '../conditions.ts'
import { createdBy, externalKubeconfigSecret, pullSecret } from '../contract.ts'
import { finishDeletions } from '../definitions.ts'
import { availability } from '../deployment-state.ts'
import { readingConditions } from '../hub/controller.ts'
import { Deployment } from '../objects.ts'
import type { Operator } from '../operator.ts'
import type { Reading } from '../reading.ts'
import { applyOwned, related, type KeptKind } from '../set.ts'
import { report, type Report } from '../status.ts'
import { Workloads } from '../workloads.ts'
import { agentCaches, type AgentCaches } from './caches.ts'
import { agentDeployment, agentNamespace, agentObjects, sharedObjects, type AgentSettings } from './desired.ts'
import { hubConnection } from './hub-connection.ts'
import { placeOf, placeRefusal, type Place } from './place.ts'
import { applyRemotely, RemoteClusters } from './remote.ts'
import { removeAgent } from './removal.ts'
import { readAgentSpec } from './spec.ts'

/** How often a cluster that is managed from here, and not watched, is looked at. */
const remoteMs = 300_000

/** What a pass over one Klusterlet works with. */
export interface Pass {
  readonly operator: Operator
  readonly caches: AgentCaches
  readonly remotes: RemoteClusters
  readonly klusterlet: Klusterlet
  readonly place: Place
  readonly reading: Reading
  readonly settings: AgentSettings
  readonly say: (said: Report) => Promise<void>
  readonly signal: AbortSignal
}

/** Keeps agents as their Klusterlets say. */
export const keepAgents = (operator: Operator): void => {
  const { caches, watches } = agentCaches(operator)
  finishDeletions(operator, 'klusterlet-definitions', caches.definitions)
  operator.manager.controller({ name: 'klusterlet', workers: 2, watches, reconcile: reconcileAgent(operator, caches) })
}

const reconcileAgent = (operator: Operator, caches: AgentCaches): Reconcile => {
  const { client, clock, settings } = operator
  const workloads = new Workloads(client)
  const remotes = new RemoteClusters()
  const written = new Freshest<Klusterlet>()
  return async (name, signal) => {
    const klusterlet = written.of(name, caches.klusterlets.get(name))
    if (!klusterlet || !caches.klusterlets.get(name)) {
      remotes.forget(name)
      return {}
    }
    const place = placeOf(klusterlet)
    const { secrets } = caches
    const pass: Pass = {
      operator,
      caches,
      remotes,
      klusterlet,
      place,
      reading: readAgentSpec(klusterlet.spec ?? {}, settings),
      settings: {
        image: settings.image,
        workRole: settings.workRole,
        pullCredentials: secrets.pull.get(`${settings.namespace}/${pullSecret}`),
        external: place.hosted ? secrets.external.get(`${place.namespace}/${externalKubeconfigSecret}`) : undefined,
      },
      say: async (said) => {
        const now = await report({ client, resource: Klusterlet, clock, signal }, klusterlet, said)
        if (now !== klusterlet) written.wrote(name, klusterlet, now)
      },
      signal,
    }
    if (klusterlet.metadata.deletionTimestamp) return removeAgent(pass)
    const refused = refusals(pass)
    if (refused.length > 0) {
      await pass.say({ conditions: [Agent.Applied.refused(refused.join('; ')), ...readingConditions(pass.reading)] })
      return {}
    }
    if (!hasFinalizer(klusterlet, finalizer.klusterlet)) {
      const { resourceVersion, finalizers } = withFinalizer(klusterlet, finalizer.klusterlet).metadata
      await client.of(Klusterlet).patch(name, { merge: { metadata: { resourceVersion, finalizers } } }, { signal })
      return {} // the change brings it back here, with the version that status is written to
    }
    return keep(pass, workloads)
  }
}

const refusals = ({ klusterlet, place, reading, caches }: Pass): string[] => {
  const since = ({ metadata }: Klusterlet): string => `${metadata.creationTimestamp} ${metadata.name}`
  const others = caches.klusterlets.list().filter((one) => since(one) < since(klusterlet))
  const refusal = placeRefusal({ place, others: others.map(placeOf) })
  return [...(refusal ? [refusal.message] : []), ...reading.refused]
}

const keep = async (pass: Pass, workloads: Workloads): Promise<ReconcileResult> => {
  const { operator, caches, klusterlet, place, reading } = pass
  const { secrets } = caches
  const several = klusterlet.spec?.registrationConfiguration?.bootstrapKubeConfigs?.type === 'LocalSecrets'
  const connection = hubConnection({
    place,
    clusterName: klusterlet.spec?.clusterName,
    bootstrap: several ? 'several' : secrets.bootstrap.get(`${place.namespace}/${secretName.bootstrap}`),
    hub: secrets.hub.get(`${place.namespace}/${secretName.hub}`),
    now: operator.clock.now(),
  })
  const always = [connection.state, ...readingConditions(reading)]
  const dropped = place.hosted ? [] : [Agent.ReadyToApply.type]
  const failed = async (states: ConditionState[], error: unknown): Promise<never> => {
    await pass.say({ conditions: [...states, ...always], dropped })
    throw error
  }
  const because = (error: unknown): string => `${(error as Error).message}; it is tried again`

  // Where secrets are put has to be there before there is a way to the managed cluster.
  const ours = await ownNamespace(pass).catch((error: unknown) => failed([Agent.Applied.failed(because(error))], error))
  if (place.hosted)
    await bringTo(pass).catch((error: unknown) =>
      failed([Agent.ReadyToApply.failed((error as Error).message), Agent.Applied.managedFailed(because(error))], error),
    )
  const applied = await apply(pass, workloads, ours).catch((error: unknown) =>
    failed([Agent.Applied.failed(because(error))], error),
  )
  await pass.say({
    ...applied,
    conditions: [...(place.hosted ? [Agent.ReadyToApply.prepared()] : []), ...applied.conditions, ...always],
    dropped,
  })
  const nextMs = (connection.changesAt ?? Infinity) - operator.clock.now()
  const requeueAfterMs = Math.min(place.hosted ? remoteMs : Infinity, Math.min(nextMs, 86_400_000) + 1000)
  return Number.isFinite(requeueAfterMs) && (place.hosted || connection.changesAt !== undefined)
    ? { requeueAfterMs }
    : {}
}

const bringTo = async ({ remotes, klusterlet, settings, signal }: Pass): Promise<void> =>
  applyRemotely(await remotes.of(klusterlet.metadata.name!, settings.external), signal)

/** A namespace that somebody else made is used and never removed; one that is missing is made, and is ours. */
const ownNamespace = async (pass: Pass): Promise<KubeObject[]> => {
  const { operator, caches, place, signal } = pass
  const desired = agentNamespace(place)
  const kinds = caches.shared
  const known = kinds[0]!.cache.get(place.namespace)
  const theirs = known === undefined && (await operator.client.of(Namespace).find(place.namespace, { signal }))
  if (theirs && theirs.metadata.labels?.[createdBy.klusterlet] === undefined) return []
  const of = { label: createdBy.klusterlet, owner: place.klusterlet, signal }
  // One that an older spec named stays until the Klusterlet goes: people's secrets may be in it.
  await applyOwned(operator.client, kinds, [desired], { ...of, spare: () => true })
  return [desired]
}

const apply = async (pass: Pass, workloads: Workloads, namespaces: KubeObject[]): Promise<Report> => {
  const { operator, caches, klusterlet, place, reading, settings, signal } = pass
  const { client } = operator
  const owner = place.klusterlet
  const of = { label: createdBy.klusterlet, owner, signal }
  const shared = place.hosted ? [] : sharedObjects()
  await applyOwned(client, caches.shared, shared, { ...of, spare: () => true })
  const own = agentObjects(klusterlet, place, settings)
  await applyOwned(client, caches.own, own, of)
  const deployment = agentDeployment(klusterlet, place, reading.flags, settings)
  await removeStale(pass, deployment)
  const known = { generations: klusterlet.status?.generations, signal }
  const runs = await workloads.apply(Deployment, caches.deployments, deployment, known)
  const kinds = [...caches.shared, ...caches.own, { resource: Deployment, cache: caches.deployments }] as KeptKind[]
  return {
    conditions: [Agent.Applied.applied(), ...agentHealth(runs.object)],
    generations: [runs.generation],
    relatedResources: [...namespaces, ...shared, ...own, deployment].map((object) => related(kinds, object)),
  }
}

/** The agent of an older spec, in another namespace. */
const removeStale = async ({ operator, caches, place, signal }: Pass, wanted: Deployment): Promise<void> => {
  const stale = caches.deployments
    .list()
    .filter((one) => one.metadata.labels?.[createdBy.klusterlet] === place.klusterlet && keyOf(one) !== keyOf(wanted))
  for (const { metadata } of stale)
    await operator.client.of(Deployment, metadata.namespace).delete(metadata.name!, { signal })
}

const agentHealth = (deployment: Deployment): ConditionState[] => {
  const { available, message } = availability(deployment)
  return [
    available ? Agent.Available.available() : Agent.Available.none(message),
    available ? Agent.RegistrationDegraded.functional() : Agent.RegistrationDegraded.unavailable(message),
    available ? Agent.WorkDegraded.functional() : Agent.WorkDegraded.unavailable(message),
  ]
}
