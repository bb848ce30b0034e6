import { keyOf, type KubeObject } from '../kube/index.ts'
import { systemClock, type Clock } from './clock.ts'
import { policyOf } from './errors.ts'
import type { Informer } from './informer.ts'
import { silentLogger, type Logger } from './log.ts'
import { Metrics } from './metrics.ts'
import { lowPriority, WorkQueue, type QueueOptions } from './queue.ts'
import { queueMetrics } from './queue-metrics.ts'

/** Makes the world match one object. Called again until it succeeds; throws what it cannot handle. */
export type Reconcile = (key: string, signal: AbortSignal) => Promise<ReconcileResult>

export interface ReconcileResult {
  /** Look again then, whatever happens. */
  requeueAfterMs?: number | undefined
}

/** Something whose changes lead to keys. */
export type Watch = (enqueue: (key: string, options?: { priority?: number }) => void) => () => void

/** Changes of a kind, mapped to keys; without a mapping, to the object's own. Both the old and the new object are asked. */
export const watching =
  <T extends KubeObject>(
    informer: Pick<Informer<T>, 'on'>,
    keysOf: (object: T) => Iterable<string> = (object) => [keyOf(object)],
    when: (object: T, old?: T) => boolean = () => true,
  ): Watch =>
  (enqueue) => {
    const all = (objects: T[], initial: boolean): void => {
      const keys = new Set(objects.flatMap((object) => [...keysOf(object)]))
      for (const key of keys) enqueue(key, initial ? { priority: lowPriority } : {})
    }
    return informer.on({
      added: (object, { initial }) => when(object) && all([object], initial),
      updated: (object, old, { initial }) => when(object, old) && all([object, old], initial),
      deleted: (object) => when(object) && all([object], false),
    })
  }

export interface ControllerOptions {
  name: string
  reconcile: Reconcile
  watches: Watch[]
  /** Keys worked on at the same time. */
  workers?: number | undefined
  queue?: Omit<QueueOptions, 'metrics' | 'clock'> | undefined
  clock?: Clock | undefined
  log?: Logger | undefined
  metrics?: Metrics | undefined
  /** Asked before each key: a replica that lost the lead stops at once. */
  mayWork?: (() => boolean) | undefined
}

/** Watches, a queue, and workers that reconcile one key each. */
export class Controller {
  readonly name: string
  readonly #options: ControllerOptions
  readonly #queue: WorkQueue
  readonly #log: Logger
  readonly #clock: Clock
  readonly #results: ReturnType<typeof resultMetrics>

  constructor(options: ControllerOptions) {
    this.name = options.name
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.#log = (options.log ?? silentLogger).with({ controller: options.name })
    const metrics = options.metrics ?? new Metrics()
    this.#queue = new WorkQueue({
      ...options.queue,
      clock: this.#clock,
      metrics: queueMetrics(metrics, options.name, this.#clock),
    })
    this.#results = resultMetrics(metrics, options.name, this.workers)
  }

  get workers(): number {
    return this.#options.workers ?? 4
  }

  /** Adds a key by hand. */
  enqueue(key: string): void {
    this.#queue.add(key)
  }

  /** Works until the signal; then finishes what is under way, with `ending` to cut that short. */
  async run(signal: AbortSignal, ending: AbortSignal = signal): Promise<void> {
    const stops = this.#options.watches.map((watch) => watch((key, options) => this.#queue.add(key, options)))
    const close = (): void => this.#queue.close()
    signal.addEventListener('abort', close, { once: true })
    if (signal.aborted) close()
    try {
      await Promise.all(Array.from({ length: this.workers }, () => this.#work(ending)))
    } finally {
      for (const stop of stops) stop()
    }
  }

  async #work(ending: AbortSignal): Promise<void> {
    for (;;) {
      const key = await this.#queue.take()
      if (key === undefined) return
      if (this.#options.mayWork?.() ?? true) await this.#reconcile(key, ending)
      this.#queue.done(key)
    }
  }

  async #reconcile(key: string, ending: AbortSignal): Promise<void> {
    const started = this.#clock.now()
    try {
      const { requeueAfterMs } = await this.#options.reconcile(key, ending)
      this.#queue.forget(key)
      if (requeueAfterMs !== undefined) this.#queue.add(key, { afterMs: requeueAfterMs })
      this.#results.count(requeueAfterMs === undefined ? 'success' : 'requeue_after')
    } catch (error) {
      if (!ending.aborted) this.#failed(key, error)
    } finally {
      this.#results.took(this.#clock.now() - started)
    }
  }

  #failed(key: string, error: unknown): void {
    const policy = policyOf(error)
    if (policy.kind === 'wait') {
      this.#queue.forget(key)
      this.#queue.add(key, { afterMs: policy.afterMs })
      this.#results.count('requeue_after')
      this.#log.info('waiting', { key, error })
    } else if (policy.kind === 'stall') {
      this.#queue.forget(key)
      this.#results.count('error')
      this.#results.terminal()
      this.#log.error('stalled until something changes', { key, error })
    } else {
      this.#queue.retry(key)
      this.#results.count('error')
      this.#log.warn('failed; trying again', { key, error, failures: this.#queue.failures(key) })
    }
  }
}

const resultMetrics = (metrics: Metrics, controller: string, workers: number) => {
  const total = metrics.counter('controller_runtime_reconcile_total', 'Reconciles by result')
  const errors = metrics.counter('controller_runtime_reconcile_errors_total', 'Reconciles that failed')
  const terminal = metrics.counter('controller_runtime_terminal_reconcile_errors_total', 'Reconciles that gave up')
  const time = metrics.histogram('controller_runtime_reconcile_time_seconds', 'How long reconciles took')
  metrics.gauge('controller_runtime_max_concurrent_reconciles', 'Workers').set(workers, { controller })
  return {
    count: (result: 'success' | 'requeue_after' | 'error') => {
      total.inc({ controller, result })
      if (result === 'error') errors.inc({ controller })
    },
    terminal: () => terminal.inc({ controller }),
    took: (ms: number) => time.observe(ms / 1000, { controller }),
  }
}
