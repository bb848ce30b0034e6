import { AppliedManifestWork } from '../../api/index.ts'
import { timestamp, type Reconcile, type ReconcileResult } from '../../runtime/index.ts'
import type { Agent } from './agent.ts'
import { recordOf } from './applied-record.ts'
import { finishRecord } from './removal.ts'

/** From here on it means never. */
const never = 100 * 365 * 86_400_000

/** Finishes records that are being deleted, and evicts those whose work is gone. Records of other agents are left alone. */
export const keepRecord =
  (agent: Agent): Reconcile =>
  async (name, signal) => {
    const record = recordOf(agent, name)
    if (!record) {
      agent.records.forget(name)
      agent.drift.want(`record/${name}`, [])
      return {}
    }
    if (record.spec.agentID !== agent.agentId) return {}
    if (record.metadata.deletionTimestamp) return finishRecord(agent, record, signal)
    return evict(agent, record, signal)
  }

/** A hub that was restored or replaced may bring the work back: what it left here stays for a while. */
const evict = async (agent: Agent, record: AppliedManifestWork, signal: AbortSignal): Promise<ReconcileResult> => {
  const { name, uid } = record.metadata
  const since = record.status?.evictionStartTime
  const records = agent.local.of(AppliedManifestWork)
  const mark = async (evictionStartTime: string | null): Promise<void> => {
    const merge = { metadata: { uid, resourceVersion: record.metadata.resourceVersion }, status: { evictionStartTime } }
    agent.records.wrote(name!, record, await records.patch(name!, { merge }, { subresource: 'status', signal }))
  }
  const wanted = record.spec.hubHash === agent.hubHash && agent.workOf(record.spec.manifestWorkName) !== undefined
  if (wanted || agent.evictionGraceMs >= never) {
    if (since) await mark(null)
    return {}
  }
  const now = agent.clock.now()
  if (!since) {
    agent.log.info('the work of a record is gone; its objects go after the grace period', { record: name })
    await mark(timestamp(now))
    return { requeueAfterMs: agent.evictionGraceMs }
  }
  const left = Date.parse(since) + agent.evictionGraceMs - now
  if (left > 0) return { requeueAfterMs: left }
  await records.delete(name!, { preconditions: { uid }, signal })
  return {}
}
