import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { Metrics } from './metrics.ts'

/** Memory, CPU and the delay of the event loop, under the names that Prometheus dashboards expect. */
export const processMetrics = (metrics: Metrics): void => {
  const started = Date.now() / 1000 - process.uptime()
  const delay = monitorEventLoopDelay({ resolution: 1000 })
  delay.enable()
  metrics.gauge('process_start_time_seconds', 'When the process started').set(started)
  metrics.gauge('process_resident_memory_bytes', 'Resident memory').read(() => process.memoryUsage.rss())
  metrics.counter('process_cpu_seconds_total', 'CPU time, user and system').read(() => {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1e6
  })
  metrics
    .gauge('nodejs_eventloop_delay_p99_seconds', 'How late timers run: above 0.1 the process is overloaded')
    .read(() => {
      const seconds = delay.percentile(99) / 1e9
      delay.reset()
      return seconds
    })
}
