import { ManagedClusterAddOn } from '../../api/index.ts'
import { keyOf } from '../../kube/index.ts'
import type { ConditionState } from '../../runtime/index.ts'
import { statusChanges, type StatusChange } from '../status-changes.ts'
import { fieldManager, type AddOnHub } from './hub.ts'

/** What one part of the reconcile has to say about an add-on. */
export interface Report {
  /** Conditions as they are now. */
  conditions?: readonly ConditionState[] | undefined
  /** Types of conditions that mean nothing any more. */
  cleared?: readonly string[] | undefined
  /** Fields of the status that the hub writes. */
  status?: StatusChange['fields'] | undefined
  /** Look again then. */
  requeueAfterMs?: number | undefined
}

/** Writes all reports in one patch, or nothing when nothing differs. */
export const writeReport = async (
  hub: AddOnHub,
  addOn: ManagedClusterAddOn,
  reports: readonly Report[],
  signal: AbortSignal,
): Promise<void> => {
  const change: StatusChange = {
    fields: Object.assign({}, ...reports.map(({ status }) => status ?? {})),
    states: reports.flatMap(({ conditions }) => conditions ?? []),
    cleared: reports.flatMap(({ cleared }) => cleared ?? []),
  }
  const json = statusChanges(addOn, change, { now: hub.clock.now(), generation: addOn.metadata.generation })
  if (json.length === 0) return
  const written = await hub.client
    .of(ManagedClusterAddOn, addOn.metadata.namespace)
    .patch(addOn.metadata.name!, { json }, { subresource: 'status', fieldManager, signal })
  hub.written.wrote(keyOf(addOn), addOn, written)
}
