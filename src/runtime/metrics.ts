/** Prometheus metrics in the text format. Forty lines of need do not justify the 18 MB that prom-client costs (ADR 3). */

export type Labels = Record<string, string>

interface Family {
  name: string
  help: string
  type: 'counter' | 'gauge' | 'histogram'
  lines: () => string[]
}

export interface Counter {
  inc(labels?: Labels, by?: number): void
  /** For what is counted elsewhere. */
  read(value: () => number, labels?: Labels): void
}

export interface Gauge {
  set(value: number, labels?: Labels): void
  /** Read when somebody asks, so that nothing has to be kept up to date. */
  read(value: () => number, labels?: Labels): void
  /** The same for things that come and go: a later call takes the place of an earlier one. */
  readEach(values: () => Iterable<readonly [Labels, number]>): void
}

export interface Histogram {
  observe(value: number, labels?: Labels): void
}

/** client-go's buckets for queue and work durations: 10 ns to 10 s, and what controllers really take. */
const defaultBuckets = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]

/** All metrics of one process. */
export class Metrics {
  readonly #families = new Map<string, Family & { metric: unknown }>()

  counter(name: string, help: string): Counter {
    return this.#family(name, help, 'counter', () => {
      const values = new Map<string, number>()
      const read = new Map<string, () => number>()
      const metric: Counter = {
        inc: (labels = {}, by = 1) => {
          const key = labelText(labels)
          values.set(key, (values.get(key) ?? 0) + by)
        },
        read: (value, labels = {}) => read.set(labelText(labels), value),
      }
      const lines = (): string[] => [
        ...[...values].map(([labels, value]) => `${name}${labels} ${value}`),
        ...[...read].map(([labels, value]) => `${name}${labels} ${value()}`),
      ]
      return { metric, lines }
    })
  }

  gauge(name: string, help: string): Gauge {
    return this.#family(name, help, 'gauge', () => {
      const values = new Map<string, () => number>()
      let each: () => Iterable<readonly [Labels, number]> = () => []
      const metric: Gauge = {
        set: (value, labels = {}) => values.set(labelText(labels), () => value),
        read: (value, labels = {}) => values.set(labelText(labels), value),
        readEach: (read) => (each = read),
      }
      const lines = (): string[] => [
        ...[...values].map(([labels, value]) => `${name}${labels} ${value()}`),
        ...[...each()].map(([labels, value]) => `${name}${labelText(labels)} ${value}`),
      ]
      return { metric, lines }
    })
  }

  histogram(name: string, help: string, buckets: number[] = defaultBuckets): Histogram {
    return this.#family(name, help, 'histogram', () => {
      const values = new Map<string, { labels: Labels; counts: number[]; sum: number; count: number }>()
      const metric: Histogram = {
        observe: (value, labels = {}) => {
          const key = labelText(labels)
          let of = values.get(key)
          if (!of) values.set(key, (of = { labels, counts: buckets.map(() => 0), sum: 0, count: 0 }))
          buckets.forEach((bound, i) => {
            if (value <= bound) of.counts[i]! += 1
          })
          of.sum += value
          of.count++
        },
      }
      const lines = (): string[] =>
        [...values].flatMap(([key, of]) => [
          ...buckets.map(
            (bound, i) => `${name}_bucket${labelText({ ...of.labels, le: String(bound) })} ${of.counts[i]}`,
          ),
          `${name}_bucket${labelText({ ...of.labels, le: '+Inf' })} ${of.count}`,
          `${name}_sum${key} ${of.sum}`,
          `${name}_count${key} ${of.count}`,
        ])
      return { metric, lines }
    })
  }

  /** What /metrics answers. */
  text(): string {
    return [...this.#families.values()]
      .flatMap((family) => [
        `# HELP ${family.name} ${family.help}`,
        `# TYPE ${family.name} ${family.type}`,
        ...family.lines(),
      ])
      .join('\n')
      .concat('\n')
  }

  /** Asking twice for a name gives the same metric: several queues share one family. */
  #family<M>(name: string, help: string, type: Family['type'], make: () => { metric: M; lines: Family['lines'] }): M {
    let family = this.#families.get(name)
    if (!family) this.#families.set(name, (family = { name, help, type, ...make() }))
    return family.metric as M
  }
}

const labelText = (labels: Labels): string => {
  const names = Object.keys(labels)
  if (names.length === 0) return ''
  return `{${names.map((name) => `${name}="${escapeLabel(labels[name]!)}"`).join(',')}}`
}

const escapeLabel = (value: string): string =>
  value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
