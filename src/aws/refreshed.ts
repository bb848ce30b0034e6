import type { Clock } from './clock.ts'

/** Something that is good until a time, or for as long as nobody says otherwise. */
export interface Expiring {
  /** Milliseconds since 1970. */
  expiration?: number | undefined
}

export interface RefreshOptions<T> {
  /** Gets a new one. What it stands on is asked for here, each time. */
  obtain: (signal: AbortSignal) => Promise<T>
  clock: Clock
  /** At least 0, below 1. */
  random: () => number
  /** How long to leave it after this many failures in a row; `Infinity` until somebody forgets the failure. */
  backOff: (error: unknown, failures: number) => number
}

/** Nothing is handed out that has less than this left: a request signed with it has to arrive in time. */
const leastLeftMs = 60_000
/** A new one is got when this share of the lifetime is left, and up to `spread` of it earlier. */
const early = 0.1
const spread = 0.05

/**
 * A value that is renewed before it expires. From the first moment of its last tenth on (a bit earlier for some, so that not all
 * are renewed at once) a new one is got, by one call at a time, while the old one is still handed out: an outage that is
 * shorter than that tenth is noticed by nobody. A failure is remembered, and not tried again before its time.
 */
export class Refreshed<T extends Expiring> {
  readonly #options: RefreshOptions<T>
  readonly #stop = new AbortController()
  #held: { value: T; refreshAt: number; usableUntil: number } | undefined
  #flight: Promise<T> | undefined
  #failure: { error: unknown; count: number; at: number; until: number } | undefined

  constructor(options: RefreshOptions<T>) {
    this.#options = options
  }

  /** The one that is held, if there is nothing to do about it. */
  fresh(): T | undefined {
    return this.#held && this.#options.clock.now() < this.#held.refreshAt ? this.#held.value : undefined
  }

  /** One that is good now. Rejects with the failure that is remembered, if it is not yet time to try again. */
  async get(signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted()
    const now = this.#options.clock.now()
    const held = this.#held
    if (!held || now >= held.usableUntil) return this.#awaited(now, signal)
    if (now >= held.refreshAt && this.#mayTry(now)) this.#fly().catch(() => undefined) // still good: nobody waits
    return held.value
  }

  /**
   * One that is good for a call made now, and no renewal before it is needed: what is only a step to something else is renewed
   * when that is renewed, and may be older than what people hold.
   */
  async forOneCall(signal?: AbortSignal): Promise<T> {
    const now = this.#options.clock.now()
    if (this.#held && now < this.#held.usableUntil) return this.#held.value
    return this.#awaited(now, signal)
  }

  /** It was refused, whatever its expiration says: the next one who asks gets another. */
  refuse(value: T): void {
    if (this.#held?.value === value) this.#held = undefined
  }

  /** Ends what is under way. */
  close(): void {
    this.#stop.abort(new Error('closed'))
  }

  /** When the value goes, and what went wrong last; nothing of the value itself. */
  get state(): RefreshState<T> {
    const { refreshAt } = this.#held ?? {}
    const { error, at, until } = this.#failure ?? {}
    return { value: this.#held?.value, refreshAt, error, failedAt: at, nextTry: until, underWay: !!this.#flight }
  }

  #mayTry(now: number): boolean {
    return !this.#failure || now >= this.#failure.until
  }

  #awaited(now: number, signal: AbortSignal | undefined): Promise<T> {
    if (!this.#flight && !this.#mayTry(now)) return Promise.reject(this.#failure!.error)
    return orAborted(this.#fly(), signal)
  }

  #fly(): Promise<T> {
    this.#flight ??= this.#obtain().finally(() => (this.#flight = undefined))
    return this.#flight
  }

  async #obtain(): Promise<T> {
    const { obtain, clock, random, backOff } = this.#options
    try {
      const value = await obtain(this.#stop.signal)
      this.#failure = undefined
      this.#held = { value, ...schedule(value.expiration, clock.now(), random()) }
      return value
    } catch (error) {
      const now = clock.now()
      const count = (this.#failure?.count ?? 0) + 1
      this.#failure = { error, count, at: now, until: now + backOff(error, count) }
      throw error
    }
  }
}

export interface RefreshState<T> {
  value: T | undefined
  refreshAt: number | undefined
  error: unknown
  failedAt: number | undefined
  nextTry: number | undefined
  underWay: boolean
}

/** What does not say when it ends is read again each time: it comes from near by, and may have changed. */
const schedule = (
  expiration: number | undefined,
  now: number,
  random: number,
): { refreshAt: number; usableUntil: number } => {
  if (expiration === undefined) return { refreshAt: now, usableUntil: now }
  const lifetime = Math.max(expiration - now, 0)
  const left = Math.max(lifetime * early, leastLeftMs) + lifetime * spread * random
  // A source may hand out what has little left. Half of that is used, rather than nothing of it.
  const half = now + lifetime / 2
  return { refreshAt: Math.max(expiration - left, half), usableUntil: Math.max(expiration - leastLeftMs, half) }
}

/** The promise, or the reason of a signal that fires first. The work goes on for the others who wait for it. */
export const orAborted = async <T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> => {
  if (!signal) return promise
  const { promise: stopped, reject } = Promise.withResolvers<never>()
  const abort = (): void => reject(signal.reason as Error)
  signal.addEventListener('abort', abort, { once: true })
  if (signal.aborted) abort()
  try {
    return await Promise.race([promise, stopped])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}
