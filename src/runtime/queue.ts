import { systemClock, type Clock } from './clock.ts'
import type { QueueMetrics } from './queue-metrics.ts'

/** For keys that nobody waits for: those of a first list or a re-list. */
export const lowPriority = -100
/** One key in so many is the one that has waited longest, whatever its priority: nobody waits for ever. */
const fairTurn = 8

export interface AddOptions {
  /** Not before this long from now. */
  afterMs?: number | undefined
  /** Higher comes first; 0 unless told. */
  priority?: number | undefined
}

export interface QueueOptions {
  clock?: Clock | undefined
  /** The first wait after a failure; it doubles with each. */
  baseDelayMs?: number | undefined
  maxDelayMs?: number | undefined
  random?: (() => number) | undefined
  metrics?: QueueMetrics | undefined
}

interface Waiting {
  due: number
  priority: number
  cancel: () => void
}

/**
 * Keys that wait to be worked on. A key is there once however often it is added, is worked on by one worker at a time, and
 * comes again if it was added meanwhile.
 */
export class WorkQueue {
  readonly #clock: Clock
  readonly #baseDelayMs: number
  readonly #maxDelayMs: number
  readonly #random: () => number
  readonly #metrics: QueueMetrics | undefined

  /** By priority; within one, first come first served. The value is when the key became ready. */
  readonly #ready = new Map<number, Map<string, number>>()
  readonly #priorityOf = new Map<string, number>()
  readonly #waiting = new Map<string, Waiting>()
  /** The keys being worked on, and since when. */
  readonly #processing = new Map<string, number>()
  /** Added while being worked on, with the priority to return with. */
  readonly #dirty = new Map<string, number>()
  readonly #failures = new Map<string, number>()
  #taken = 0
  readonly #takers: ((key: string | undefined) => void)[] = []
  #closed = false

  constructor(options: QueueOptions = {}) {
    this.#clock = options.clock ?? systemClock
    this.#baseDelayMs = options.baseDelayMs ?? 10
    this.#maxDelayMs = options.maxDelayMs ?? 300_000
    this.#random = options.random ?? Math.random
    this.#metrics = options.metrics
    this.#metrics?.observe(this)
  }

  /** Keys that are ready. */
  get depth(): number {
    return this.#priorityOf.size
  }

  /** Since when each key is being worked on. */
  get processing(): ReadonlyMap<string, number> {
    return this.#processing
  }

  add(key: string, options: AddOptions = {}): void {
    if (this.#closed) return
    const { afterMs = 0, priority = 0 } = options
    this.#metrics?.added()
    if (afterMs > 0) this.#wait(key, afterMs, priority)
    else this.#makeReady(key, priority)
  }

  /** Adds the key after a wait that doubles with each failure until `forget`. */
  retry(key: string, options: { priority?: number } = {}): void {
    const failures = this.#failures.get(key) ?? 0
    this.#failures.set(key, failures + 1)
    this.#metrics?.retried()
    const delay = Math.min(this.#baseDelayMs * 2 ** Math.min(failures, 40), this.#maxDelayMs)
    // Half of the wait is random, so that what failed together does not return together.
    this.add(key, { afterMs: delay * (0.5 + this.#random() / 2), ...options })
  }

  /** The key has been worked on with success: the next failure waits briefly again. */
  forget(key: string): void {
    this.#failures.delete(key)
  }

  failures(key: string): number {
    return this.#failures.get(key) ?? 0
  }

  /** The next key to work on; undefined when the queue is closed. Whoever takes one calls `done`. */
  take(): Promise<string | undefined> {
    if (this.#closed) return Promise.resolve(undefined)
    const key = this.#shift()
    if (key !== undefined) return Promise.resolve(key)
    return new Promise((resolve) => this.#takers.push(resolve))
  }

  done(key: string): void {
    const since = this.#processing.get(key)
    if (since === undefined) return
    this.#processing.delete(key)
    this.#metrics?.finished(this.#clock.now() - since)
    const again = this.#dirty.get(key)
    if (again === undefined) return
    this.#dirty.delete(key)
    this.#makeReady(key, again)
  }

  /** Nobody gets another key; those being worked on finish. */
  close(): void {
    this.#closed = true
    for (const waiting of this.#waiting.values()) waiting.cancel()
    this.#waiting.clear()
    for (const take of this.#takers.splice(0)) take(undefined)
  }

  #wait(key: string, afterMs: number, priority: number): void {
    if (this.#priorityOf.has(key) || this.#dirty.has(key)) return // it comes sooner than that
    const due = this.#clock.now() + afterMs
    const earlier = this.#waiting.get(key)
    if (earlier && earlier.due <= due) {
      earlier.priority = Math.max(earlier.priority, priority)
      return
    }
    earlier?.cancel()
    const waiting: Waiting = {
      due,
      priority: Math.max(priority, earlier?.priority ?? priority),
      cancel: this.#clock.after(afterMs, () => this.#makeReady(key, waiting.priority)),
    }
    this.#waiting.set(key, waiting)
  }

  #makeReady(key: string, priority: number): void {
    if (this.#closed) return
    this.#waiting.get(key)?.cancel()
    this.#waiting.delete(key)
    if (this.#processing.has(key)) {
      this.#dirty.set(key, Math.max(priority, this.#dirty.get(key) ?? priority))
      return
    }
    const present = this.#priorityOf.get(key)
    if (present !== undefined && present >= priority) return
    const since = present === undefined ? this.#clock.now() : this.#remove(key, present)
    this.#insert(key, priority, since)
    const take = this.#takers.shift()
    if (take) take(this.#shift())
  }

  #insert(key: string, priority: number, since: number): void {
    let lane = this.#ready.get(priority)
    if (!lane) this.#ready.set(priority, (lane = new Map()))
    lane.set(key, since)
    this.#priorityOf.set(key, priority)
  }

  #remove(key: string, priority: number): number {
    const lane = this.#ready.get(priority)!
    const since = lane.get(key)!
    lane.delete(key)
    if (lane.size === 0) this.#ready.delete(priority)
    this.#priorityOf.delete(key)
    return since
  }

  #shift(): string | undefined {
    if (this.#ready.size === 0) return undefined
    const priority = ++this.#taken % fairTurn === 0 ? this.#longestWaiting() : Math.max(...this.#ready.keys())
    const key = this.#ready.get(priority)!.keys().next().value!
    const since = this.#remove(key, priority)
    this.#processing.set(key, this.#clock.now())
    this.#metrics?.taken(this.#clock.now() - since)
    return key
  }

  #longestWaiting(): number {
    const heads = [...this.#ready].map(([priority, lane]) => ({ priority, since: lane.values().next().value! }))
    return heads.reduce((oldest, head) => (head.since < oldest.since ? head : oldest)).priority
  }
}
