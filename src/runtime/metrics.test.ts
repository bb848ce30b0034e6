import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Metrics } from './metrics.ts'

test('R0.22 metrics are written as Prometheus reads them', () => {
  const metrics = new Metrics()
  metrics.counter('requests_total', 'Requests').inc({ code: '200', host: 'a"b\\c\nd' }, 2)
  metrics.counter('requests_total', 'Requests').inc({ code: '200', host: 'a"b\\c\nd' })
  let depth = 1
  metrics.gauge('depth', 'Depth').read(() => depth)
  depth = 5
  const took = metrics.histogram('took_seconds', 'Took', [0.1, 1])
  for (const seconds of [0.05, 0.5, 3]) took.observe(seconds, { kind: 'x' })
  assert.equal(
    metrics.text(),
    `# HELP requests_total Requests
# TYPE requests_total counter
requests_total{code="200",host="a\\"b\\\\c\\nd"} 3
# HELP depth Depth
# TYPE depth gauge
depth 5
# HELP took_seconds Took
# TYPE took_seconds histogram
took_seconds_bucket{kind="x",le="0.1"} 1
took_seconds_bucket{kind="x",le="1"} 2
took_seconds_bucket{kind="x",le="+Inf"} 3
took_seconds_sum{kind="x"} 3.55
took_seconds_count{kind="x"} 3
`,
  )
})
