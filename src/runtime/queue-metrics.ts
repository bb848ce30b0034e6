import type { Clock } from './clock.ts'
import type { Metrics } from './metrics.ts'

/** What a queue tells about itself. */
export interface QueueMetrics {
  observe(queue: { depth: number; processing: ReadonlyMap<string, number> }): void
  added(): void
  retried(): void
  /** A key was taken after waiting this long. */
  taken(waitedMs: number): void
  /** A key was worked on for this long. */
  finished(tookMs: number): void
}

/** The names that controller-runtime uses, so that existing dashboards and alerts work. */
export const queueMetrics = (metrics: Metrics, name: string, clock: Clock): QueueMetrics => {
  const labels = { name, controller: name }
  const adds = metrics.counter('workqueue_adds_total', 'Keys added to the queue')
  const retries = metrics.counter('workqueue_retries_total', 'Keys added again after a failure')
  const waited = metrics.histogram(
    'workqueue_queue_duration_seconds',
    'How long keys were ready before they were taken',
  )
  const worked = metrics.histogram('workqueue_work_duration_seconds', 'How long keys were worked on')
  const depth = metrics.gauge('workqueue_depth', 'Keys that are ready')
  const unfinished = metrics.gauge('workqueue_unfinished_work_seconds', 'Seconds of work under way, added up')
  const longest = metrics.gauge('workqueue_longest_running_processor_seconds', 'The longest work under way')
  return {
    observe: (queue) => {
      const running = (): number[] => [...queue.processing.values()].map((since) => (clock.now() - since) / 1000)
      depth.read(() => queue.depth, labels)
      unfinished.read(() => running().reduce((sum, seconds) => sum + seconds, 0), labels)
      longest.read(() => Math.max(0, ...running()), labels)
    },
    added: () => adds.inc(labels),
    retried: () => retries.inc(labels),
    taken: (ms) => waited.observe(ms / 1000, labels),
    finished: (ms) => worked.observe(ms / 1000, labels),
  }
}
