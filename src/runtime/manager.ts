import type { Api, KubeObject, Resource } from '../kube/index.ts'
import { sleep, systemClock, type Clock } from './clock.ts'
import { Controller, type ControllerOptions } from './controller.ts'
import { startHealthServer, type HealthServer } from './health-server.ts'
import type { Informer } from './informer.ts'
import { Informers, type SharedInformerOptions } from './informers.ts'
import { LeaderElection, type LeaderOptions } from './leader.ts'
import { silentLogger, type Logger } from './log.ts'
import { Metrics } from './metrics.ts'
import { processMetrics } from './process-metrics.ts'

/** Something with a life of its own: a webhook server, a sweeper. */
export interface Runnable {
  name: string
  run(signal: AbortSignal): Promise<void>
  /** Runs on every replica, not only on the leader. */
  everywhere?: boolean | undefined
}

export interface ManagerOptions {
  client: Api
  /** Without it, this process works as if it were the only one. */
  leaderElection?: Omit<LeaderOptions, 'client' | 'clock' | 'log' | 'metrics'> | undefined
  /** Where /healthz, /readyz and /metrics are served; port 0 takes a free one. */
  health?: { host?: string | undefined; port: number } | undefined
  /** How long work under way may take to finish after the signal. */
  gracePeriodMs?: number | undefined
  clock?: Clock | undefined
  log?: Logger | undefined
  metrics?: Metrics | undefined
}

/** Starts everything in order, and stops it in the reverse: health, caches, the lead, controllers. */
export class Manager {
  readonly informers: Informers
  readonly metrics: Metrics
  readonly #options: ManagerOptions
  readonly #clock: Clock
  readonly #log: Logger
  readonly #controllers: Controller[] = []
  readonly #runnables: Runnable[] = []
  readonly #leader: LeaderElection | undefined
  #health: HealthServer | undefined
  #stopping = false

  constructor(options: ManagerOptions) {
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.#log = options.log ?? silentLogger
    this.metrics = options.metrics ?? new Metrics()
    this.informers = new Informers(options.client, { clock: this.#clock, log: this.#log })
    const { client, leaderElection } = options
    if (leaderElection)
      this.#leader = new LeaderElection({
        ...leaderElection,
        client,
        clock: this.#clock,
        log: this.#log,
        metrics: this.metrics,
      })
    processMetrics(this.metrics)
  }

  /** Where the health endpoints are; known once it runs. */
  get healthAddress(): string | undefined {
    return this.#health?.address
  }

  /** The shared informer of a kind. */
  informer<T extends KubeObject>(resource: Resource<T>, options?: SharedInformerOptions<T>): Informer<T> {
    return this.informers.of(resource, options)
  }

  controller(options: Omit<ControllerOptions, 'clock' | 'log' | 'metrics' | 'mayWork'>): Controller {
    const controller = new Controller({
      ...options,
      clock: this.#clock,
      log: this.#log,
      metrics: this.metrics,
      mayWork: () => this.#leader?.leads() ?? true,
    })
    this.#controllers.push(controller)
    return controller
  }

  add(runnable: Runnable): void {
    this.#runnables.push(runnable)
  }

  /** Why this process should be restarted; empty when it is well. */
  unhealthy(): string[] {
    return this.informers.unhealthy()
  }

  /** Why this process is not ready yet; empty when it is. */
  unready(): string[] {
    if (this.#stopping) return ['stopping']
    return this.informers.unsynced.map((kind) => `the first list of ${kind} is not complete`)
  }

  /** Runs until the signal, then stops gracefully. Rejects when a part fails or the lead is lost: the process should end. */
  async run(signal: AbortSignal): Promise<void> {
    const stop = new AbortController()
    const caches = new AbortController()
    const forward = (): void => stop.abort(signal.reason)
    signal.addEventListener('abort', forward, { once: true })
    if (signal.aborted) forward()
    if (this.#options.health) this.#health = await startHealthServer(this, this.#options.health)

    const watching = this.informers.run(caches.signal)
    // One part that fails ends the others: a process that works in half is worse than one that is restarted.
    const part = async (running: Promise<void>): Promise<void> => {
      try {
        await running
      } finally {
        stop.abort()
      }
    }
    try {
      const results = await Promise.allSettled([
        ...this.#runnables.filter((r) => r.everywhere).map((r) => part(r.run(stop.signal))),
        part(this.#lead(stop.signal)),
      ])
      const failed = results.find((r) => r.status === 'rejected')
      if (failed) throw failed.reason
    } finally {
      this.#stopping = true
      signal.removeEventListener('abort', forward)
      caches.abort()
      await watching
      await this.#health?.stop()
    }
  }

  async #lead(signal: AbortSignal): Promise<void> {
    const synced = await Promise.race([this.informers.synced().then(() => true), aborted(signal).then(() => false)])
    if (!synced) return
    this.#log.info('caches are complete')
    if (this.#leader) await this.#leader.run(signal, (leading) => this.#work(leading))
    else await this.#work(signal)
  }

  /** Settles when every part has: whoever leads next must not meet us at work. */
  async #work(signal: AbortSignal): Promise<void> {
    const stop = new AbortController()
    const ending = new AbortController()
    const over = new AbortController()
    let failure: { error: unknown } | undefined
    const fail = (error: unknown): void => {
      failure ??= { error }
      stop.abort()
    }
    void aborted(signal).then(() => stop.abort())
    // What is under way may finish for a while; then it is cut.
    void aborted(stop.signal)
      .then(() => sleep(this.#clock, this.#options.gracePeriodMs ?? 20_000, over.signal))
      .then(
        () => ending.abort(new Error('the grace period is over')),
        () => {},
      )
    await Promise.all([
      ...this.#controllers.map((controller) => controller.run(stop.signal, ending.signal).catch(fail)),
      ...this.#runnables.filter((r) => !r.everywhere).map((r) => r.run(stop.signal).catch(fail)),
      aborted(stop.signal),
    ])
    over.abort()
    if (failure) throw failure.error
  }
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
