import type { ClientOptions } from '../kube/index.ts'
import type { Metrics } from './metrics.ts'

/** Counts what a client asks of its API server; the answer is for `clientFor(connection, { onAnswer })`. */
export const clientMetrics = (metrics: Metrics): NonNullable<ClientOptions['onAnswer']> => {
  const requests = metrics.counter('rest_client_requests_total', 'Requests to API servers by code, method and host')
  const duration = metrics.histogram('rest_client_request_duration_seconds', 'How long requests took, watches excepted')
  return ({ method, status, durationMs, host }) => {
    requests.inc({ code: status ? String(status) : '<error>', method, host })
    duration.observe(durationMs / 1000, { verb: method, host })
  }
}
