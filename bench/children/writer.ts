/** Changes clusters of the fleet, half of them by label and half by status, as people and agents do. */
import { ManagedCluster } from '../../src/api/index.ts'
import { inParallel } from '../../src/runtime/index.ts'
import { nameOf } from '../fleet.ts'
import { report, settings } from './child.ts'
import { lastMark } from './informer-steps.ts'
import { connect } from './lanyard.ts'

const { kubeconfig, round, writes } = settings as { kubeconfig: string; round: string; writes: number }
const clusters = connect(kubeconfig, 'lanyard-bench-writer').of(ManagedCluster)

const change = async (index: number): Promise<void> => {
  const value = `${round}-${index}`
  const merge = index % 2 ? { metadata: { labels: { beat: value } } } : { status: { version: { kubernetes: value } } }
  await clusters.patch(nameOf(index), { merge })
}

const started = performance.now()
const all = Array.from({ length: writes - 1 }, (_, index) => () => change(index))
await inParallel(16, all)
await clusters.patch(nameOf(0), { merge: { metadata: { annotations: { [lastMark]: round } } } })
report({ perSecond: (writes * 1000) / (performance.now() - started) })
