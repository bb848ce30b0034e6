import type { ManifestWork } from '../../api/index.ts'
import { isTrue, type Metrics } from '../../runtime/index.ts'
import type { DriftWatches } from './drift.ts'

/** What the agent counts. */
export interface WorkMetrics {
  applied(kind: string, seconds: number): void
  failed(kind: string): void
  repaired(kind: string): void
}

const states = ['applied', 'failed', 'deleting'] as const

const stateOf = (work: ManifestWork): (typeof states)[number] => {
  if (work.metadata.deletionTimestamp) return 'deleting'
  return isTrue(work, 'Applied') ? 'applied' : 'failed'
}

/** Registers the metrics of work delivery; `works` and `drift` are read when somebody asks. */
export const workMetrics = (metrics: Metrics, works: () => ManifestWork[], drift: DriftWatches): WorkMetrics => {
  const total = metrics.gauge('lanyard_work_works', 'ManifestWorks of this cluster by state')
  for (const state of states) total.read(() => works().filter((work) => stateOf(work) === state).length, { state })
  metrics.gauge('lanyard_work_watches', 'Watches that protect delivered objects').read(() => drift.size)
  const applied = metrics.histogram('lanyard_work_apply_seconds', 'How long it took to apply one manifest, by kind')
  const failures = metrics.counter('lanyard_work_apply_failures_total', 'Manifests that could not be applied, by kind')
  const repairs = metrics.counter(
    'lanyard_work_drift_repairs_total',
    'Delivered objects put right after a change, by kind',
  )
  return {
    applied: (kind, seconds) => applied.observe(seconds, { kind }),
    failed: (kind) => failures.inc({ kind }),
    repaired: (kind) => repairs.inc({ kind }),
  }
}
