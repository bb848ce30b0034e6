import { AppliedManifestWork, finalizer, type ManifestWork } from '../../api/index.ts'
import { isAlreadyExists } from '../../kube/index.ts'
import { equal, hasFinalizer, waiting } from '../../runtime/index.ts'
import { appliedName } from '../contract.ts'
import type { Agent } from './agent.ts'
import type { Target } from './plan.ts'

export type AppliedResource = NonNullable<NonNullable<AppliedManifestWork['status']>['appliedResources']>[number]

/** Which object an entry of a record means, whatever version it was applied at. */
export const refKey = (of: {
  group?: string | undefined
  resource: string
  namespace?: string | undefined
  name: string
}): string => `${of.group ?? ''}/${of.resource}/${of.namespace ?? ''}/${of.name}`

/** The entry for an object. Without a uid it is an intent: the object may exist, or be about to. */
export const refOf = ({ resource, namespace }: Target, name: string, uid?: string): AppliedResource => ({
  ...(resource.group && { group: resource.group }),
  version: resource.version,
  resource: resource.plural,
  ...(namespace && { namespace }),
  name,
  ...(uid && { uid }),
})

/** The uid under which a record has an object; undefined when it has none, or an intent. */
export const refUid = (record: AppliedManifestWork, target: Target, name: string): string | undefined => {
  const key = refKey(refOf(target, name))
  return record.status?.appliedResources?.find((ref) => refKey(ref) === key)?.uid
}

/** The record of a work on this cluster, made if there is none. It exists before anything that it is to own. */
export const ensureRecord = async (
  agent: Agent,
  work: ManifestWork,
  signal: AbortSignal,
): Promise<AppliedManifestWork> => {
  const name = appliedName(agent.hubHash, work.metadata.name!)
  const spec = { hubHash: agent.hubHash, agentID: agent.agentId, manifestWorkName: work.metadata.name! }
  const objects = agent.local.of(AppliedManifestWork)
  const present = recordOf(agent, name) ?? (await createRecord())
  if (present.metadata.deletionTimestamp)
    throw waiting('RecordLeaving', {
      message: `work ${work.metadata.name}: AppliedManifestWork ${name} is being deleted; it is made anew when it is gone`,
      afterMs: 1000,
    })
  if (equal(present.spec, spec) && hasFinalizer(present, finalizer.appliedManifestWork)) return present
  const { uid, resourceVersion, finalizers = [] } = present.metadata
  const merge = {
    metadata: { uid, resourceVersion, finalizers: [...new Set([...finalizers, finalizer.appliedManifestWork])] },
    spec,
  }
  return agent.records.wrote(name, present, await objects.patch(name, { merge }, { signal }))

  async function createRecord(): Promise<AppliedManifestWork> {
    const record: AppliedManifestWork = {
      metadata: {
        name,
        finalizers: [finalizer.appliedManifestWork],
        ...(work.metadata.labels && { labels: work.metadata.labels }),
      },
      spec,
    }
    try {
      return agent.records.wrote(name, undefined, await objects.create(record, { signal }))
    } catch (error) {
      if (!isAlreadyExists(error)) throw error
      return objects.get(name, { signal })
    }
  }
}

/** The newest state of a record that we know. */
export const recordOf = (agent: Agent, name: string): AppliedManifestWork | undefined =>
  agent.records.of(name, agent.applied.get(name))

/** Writes the entries of a record; nothing is sent when they are the same. */
export const writeRefs = async (
  agent: Agent,
  record: AppliedManifestWork,
  refs: readonly AppliedResource[],
  signal: AbortSignal,
): Promise<AppliedManifestWork> => {
  const appliedResources = fitting(refs)
  if (equal(record.status?.appliedResources, appliedResources)) return record
  const { name, uid, resourceVersion } = record.metadata
  const written = await agent.local
    .of(AppliedManifestWork)
    .patch(
      name!,
      { merge: { metadata: { uid, resourceVersion }, status: { appliedResources } } },
      { subresource: 'status', signal },
    )
  return agent.records.wrote(name!, record, written)
}

/** etcd takes 1.5 MiB for an object. */
const mostBytes = 1_300_000

/** A record that would be too large goes without uids: owner references still say what is ours. */
const fitting = (refs: readonly AppliedResource[]): AppliedResource[] => {
  const sorted = refs.toSorted((a, b) => (refKey(a) < refKey(b) ? -1 : 1))
  if (refs.length < 1000 || JSON.stringify(sorted).length <= mostBytes) return sorted
  return sorted.map((ref) => ({ ...ref, uid: undefined }))
}
