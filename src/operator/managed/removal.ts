import { AppliedManifestWork, finalizer, Klusterlet } from '../../api/index.ts'
import { apiVersionOf, isNotFound, Secret, type Client, type KubeObject } from '../../kube/index.ts'
import { secretKey, secretName } from '../../registration/contract.ts'
import { hasFinalizer, inParallel, withoutFinalizer, type ReconcileResult } from '../../runtime/index.ts'
import { Agent } from '../conditions.ts'
import { createdBy, remainsAnnotation } from '../contract.ts'
import { Deployment, Job } from '../objects.ts'
import { kept, ownedBy, release, type KeptKind } from '../set.ts'
import type { Pass } from './controller.ts'
import { leaveJob, leaveJobName, sharedOwner } from './desired.ts'
import { removeRemotely } from './remote.ts'

/** How often a removal that waits looks again: a managed cluster that is not watched has no other way to be seen. */
const againMs = 1000

/** On a Klusterlet that is being deleted: how the farewell went. */
const leftAnnotation = 'operator.open-cluster-management.io/left'

/** On a Klusterlet in mode Hosted that is being deleted: its managed cluster needs no more visits, and the way there may go. */
const cleanedAnnotation = 'operator.open-cluster-management.io/managed-cluster-cleaned'

/**
 * Takes an agent away, step by step; each pass does what can be done by now. The agent stops, a job tells the hub and removes
 * what works have left, and then everything that was made for the agent goes. A hub that does not answer holds this up for a
 * limited time only.
 */
export const removeAgent = async (pass: Pass): Promise<ReconcileResult> => {
  const { operator, klusterlet, place } = pass
  if (!hasFinalizer(klusterlet, finalizer.klusterlet)) return {}
  const { caches } = pass
  const agents = [kept(Deployment, caches.deployments)]
  const running = ownedBy(agents, createdBy.klusterlet, place.klusterlet)
  if (running.length > 0) {
    await remove(pass, agents, running, 'Foreground')
    return waits(pass, 'the agent is being stopped')
  }
  if (klusterlet.metadata.annotations?.[leftAnnotation] === undefined) {
    const outcome = await leave(pass)
    if (outcome === undefined)
      return waits(pass, `the agent leaves its hub and removes its works, until ${until(pass)}`)
    await note(pass, outcome)
    return {} // the note brings it back here
  }
  if (place.hosted && klusterlet.metadata.annotations[cleanedAnnotation] === undefined) {
    const left = await removeFromManaged(pass)
    if (left.length > 0) return waits(pass, `still there: ${left.join(', ')}`)
    await annotate(pass, cleanedAnnotation, 'true')
    return {}
  }
  const left = await removeAll(pass)
  if (left.length > 0) return waits(pass, `still there: ${left.join(', ')}`)
  await release(operator.client, Klusterlet, klusterlet, { finalizer: finalizer.klusterlet, signal: pass.signal })
  return {}
}

const waits = async (pass: Pass, message: string): Promise<ReconcileResult> => {
  await pass.say({ conditions: [Agent.Applied.removing(message)] })
  return { requeueAfterMs: againMs }
}

const deadline = ({ klusterlet, operator }: Pass): number =>
  Date.parse(klusterlet.metadata.deletionTimestamp!) + operator.settings.leaveMs
const until = (pass: Pass): string => new Date(deadline(pass)).toISOString()

/** Undefined while it is under way; else how it went, empty when nothing remains. */
const leave = async (pass: Pass): Promise<string | undefined> => {
  const { operator, caches, klusterlet, place, reading, settings, signal } = pass
  const secret = caches.secrets.hub.get(`${place.namespace}/${secretName.hub}`)
  const joined = secret?.data?.[secretKey.kubeconfig] !== undefined
  if (!joined && !(await hasRecords(pass))) return ''
  const job = caches.jobs.get(`${place.namespace}/${leaveJobName(place.klusterlet)}`)
  if (!job) {
    // A pod has to start before, and an answer may be slow: well within the time.
    const seconds = Math.round(operator.settings.leaveMs / 3000)
    const wanted = leaveJob(klusterlet, place, reading.flags, { ...settings, seconds })
    const jobs = operator.client.of(Job, place.namespace)
    if (!(await jobs.find(wanted.metadata.name!, { signal })))
      await jobs.create(wanted, { fieldManager: 'lanyard-operator', signal })
  }
  const remains = secret?.metadata.annotations?.[remainsAnnotation]
  if (job?.status?.succeeded) return remains ?? ''
  const failed = job?.status?.conditions?.some(({ type, status }) => type === 'Failed' && status === 'True')
  if (!failed && operator.clock.now() < deadline(pass)) return undefined
  return remains ?? 'the agent could not leave in time: its ManagedCluster is still on the hub, delete it there'
}

/** Kept on the object, so that a restart does not begin anew; told as an event, because the object goes. */
const note = async (pass: Pass, outcome: string): Promise<void> => {
  const { operator, klusterlet } = pass
  if (outcome)
    operator.events.record(
      { ...klusterlet, apiVersion: apiVersionOf(Klusterlet), kind: Klusterlet.kind },
      { type: 'Warning', reason: 'ThingsRemain', action: 'Remove', note: outcome },
    )
  operator.log.info('the agent has left', { klusterlet: klusterlet.metadata.name, remains: outcome })
  await annotate(pass, leftAnnotation, outcome || 'nothing remains')
}

const annotate = async ({ operator, klusterlet, signal }: Pass, annotation: string, value: string): Promise<void> => {
  const { name, resourceVersion } = klusterlet.metadata
  const merge = { metadata: { resourceVersion, annotations: { [annotation]: value } } }
  await operator.client.of(Klusterlet).patch(name!, { merge }, { signal })
}

const managedClient = async ({ operator, remotes, place, settings }: Pass): Promise<Client> =>
  place.hosted ? remotes.of(place.klusterlet, settings.external) : operator.client

const recordsOf = async (client: Client, signal: AbortSignal): Promise<AppliedManifestWork[]> =>
  client
    .of(AppliedManifestWork)
    .list({ signal })
    .then(({ items }) => items)
    .catch((error: unknown) => {
      if (isNotFound(error)) return [] // the kind is gone
      throw error
    })

const hasRecords = async (pass: Pass): Promise<boolean> => {
  try {
    return isLast(pass) && (await recordsOf(await managedClient(pass), pass.signal)).length > 0
  } catch {
    return false // a managed cluster that cannot be reached is not waited for
  }
}

/** Whether no other Klusterlet of this cluster needs what they share. */
const isLast = ({ caches, klusterlet, place }: Pass): boolean =>
  place.hosted ||
  caches.klusterlets
    .list()
    .every(
      ({ metadata, spec }) =>
        metadata.name === klusterlet.metadata.name || /Hosted/.test(spec?.deployOption?.mode ?? ''),
    )

/** Deletes what can be deleted by now; answers with what is still there. */
const removeAll = async (pass: Pass): Promise<string[]> => {
  const { caches, place } = pass
  if (!place.hosted && isLast(pass)) await releaseRecords(pass.operator.client, pass.signal)
  await removeHubSecret(pass)
  const kinds = [kept(Job, caches.jobs), ...caches.own, ...caches.shared]
  const own = ownedBy(kinds, createdBy.klusterlet, place.klusterlet)
  const shared = !place.hosted && isLast(pass) ? ownedBy([...caches.shared], createdBy.klusterlet, sharedOwner) : []
  await remove(pass, kinds, [...own, ...shared])
  return [...own, ...shared].map(({ kind, metadata }) => `${kind} ${metadata.name}`)
}

/** A managed cluster that does not answer is given up after a while: it may be gone for good. */
const removeFromManaged = async (pass: Pass): Promise<string[]> => {
  try {
    const client = await managedClient(pass)
    await releaseRecords(client, pass.signal)
    return await removeRemotely(client, pass.signal)
  } catch (error) {
    const message = `the managed cluster of Klusterlet ${pass.place.klusterlet} cannot be cleaned up: ${(error as Error).message}`
    if (pass.operator.clock.now() < deadline(pass)) return [message]
    pass.operator.log.warn('given up', { message })
    return []
  }
}

/** Records whose agent is gone: nobody else would take their finalizer off. Their objects stay, as the note has said. */
const releaseRecords = async (client: Client, signal: AbortSignal): Promise<void> => {
  const records = client.of(AppliedManifestWork)
  for (const record of await recordsOf(client, signal)) {
    const { name, uid } = record.metadata
    const { finalizers } = withoutFinalizer(record, finalizer.appliedManifestWork).metadata
    await records.patch(name!, { merge: { metadata: { uid, finalizers } } }, { signal })
    await records.delete(name!, { preconditions: { uid }, signal })
  }
}

/** The agent's own credential goes even where its namespace is somebody else's and stays. */
const removeHubSecret = async ({ operator, caches, place, signal }: Pass): Promise<void> => {
  const secret = caches.secrets.hub.get(`${place.namespace}/${secretName.hub}`)
  if (!secret || secret.metadata.deletionTimestamp) return
  await operator.client.of(Secret, place.namespace).delete(secretName.hub, { signal })
}

const remove = async (
  { operator, signal }: Pass,
  kinds: readonly KeptKind[],
  objects: readonly KubeObject[],
  propagationPolicy: 'Foreground' | 'Background' = 'Background',
): Promise<void> =>
  inParallel(
    8,
    objects
      .filter(({ metadata }) => !metadata.deletionTimestamp)
      .map(({ kind, metadata }) => async () => {
        const { resource } = kinds.find((one) => one.resource.kind === kind)!
        const options = { preconditions: { uid: metadata.uid }, propagationPolicy, signal }
        await operator.client.of(resource, metadata.namespace).delete(metadata.name!, options)
      }),
  )
