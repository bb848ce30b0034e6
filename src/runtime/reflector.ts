import {
  ApiError,
  initialEventsEnd,
  isExpired,
  isInvalid,
  keyOf,
  type Api,
  type KubeObject,
  type Resource,
  type ObjectApi,
  type WatchBatch,
} from '../kube/index.ts'
import { sleep, systemClock, type Clock } from './clock.ts'
import { silentLogger, type Logger } from './log.ts'
import { Outages } from './outages.ts'

/** Where a reflector puts what it sees. */
export interface Sink<T extends KubeObject> {
  /** Everything that there is: what is not in it is gone. */
  replace(objects: T[]): void
  put(object: T): void
  remove(object: T): void
  /** Drops what will not be kept, as soon as an object arrives: of a long list only the rest is ever held. */
  slim(object: T): T
}

export interface Selection {
  namespace?: string | undefined
  labelSelector?: string | undefined
  fieldSelector?: string | undefined
  /** Names, labels and annotations only: for kinds whose bodies are large or secret. */
  metadataOnly?: boolean | undefined
}

export interface ReflectorOptions<T extends KubeObject> extends Selection {
  client: Api
  resource: Resource<T>
  sink: Sink<T>
  /** Streams the first list where the server offers it. */
  streamingList?: boolean | undefined
  /** Without an event or bookmark for this long, a watch that has had bookmarks is dead: they come every minute. */
  silenceMs?: number | undefined
  clock?: Clock | undefined
  random?: (() => number) | undefined
  log?: Logger | undefined
}

/** A server ends each watch by itself after 5 to 10 minutes; one that is silent for longer has died unnoticed. */
const longestWatchMs = 11 * 60_000
/** Initial events come at once; a server that does not know of them says something after a minute, with its first bookmark. */
const longestInitialMs = 90_000
const backoffMs = { first: 500, most: 30_000 }

/** Follows one kind: a list, then a watch from there on, for as long as the signal lets it, through every failure. */
export class Reflector<T extends KubeObject> {
  readonly #options: ReflectorOptions<T>
  readonly #resource: ObjectApi<T>
  readonly #clock: Clock
  readonly #random: () => number
  readonly #log: Logger
  readonly #silenceMs: number
  #streaming: boolean
  /** Where to go on; undefined when a list is needed. */
  #resourceVersion: string | undefined
  #sawBookmark = false
  /** Initial events were asked for, and have not ended. */
  #awaitsInitial = false
  #failures = 0
  readonly #outages = new Outages()
  /** The last event, bookmark or answer. */
  lastSign: number
  lastError: unknown

  constructor(options: ReflectorOptions<T>) {
    this.#options = options
    this.#resource = options.client.of(options.resource, options.namespace)
    this.#clock = options.clock ?? systemClock
    this.#random = options.random ?? Math.random
    this.#log = options.log ?? silentLogger
    this.#silenceMs = options.silenceMs ?? 180_000
    this.#streaming = options.streamingList ?? true
    this.lastSign = this.#clock.now()
  }

  /** How long the watch may be silent before it counts as dead. */
  get allowedSilenceMs(): number {
    return this.#sawBookmark ? this.#silenceMs : longestWatchMs
  }

  /** For how long, since then, there was no watch: what happened meanwhile was seen late or not at all. */
  missedMs(since: number): number {
    return this.#outages.missedMs(since, this.#clock.now())
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        if (this.#resourceVersion === undefined && !this.#streaming) await this.#list(signal)
        await this.#watch(signal)
      } catch (error) {
        if (signal.aborted) return
        await this.#recover(error, signal)
      }
    }
  }

  async #list(signal: AbortSignal): Promise<void> {
    const { labelSelector, fieldSelector, metadataOnly } = this.#options
    const list = await this.#resource.list({ labelSelector, fieldSelector, metadataOnly, signal })
    this.#sign()
    this.#options.sink.replace(list.items.map((item) => this.#options.sink.slim(item)))
    this.#resourceVersion = list.metadata.resourceVersion
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const { labelSelector, fieldSelector, metadataOnly } = this.#options
    const ending = new AbortController()
    const stop = (): void => ending.abort(signal.reason)
    signal.addEventListener('abort', stop, { once: true })
    const initial = (this.#awaitsInitial = this.#resourceVersion === undefined)
    const stopWatching = this.#endWhenSilent(ending)
    try {
      const batches = await this.#resource.watch({
        labelSelector,
        fieldSelector,
        metadataOnly,
        resourceVersion: this.#resourceVersion,
        sendInitialEvents: initial,
        timeoutSeconds: Math.round(300 + this.#random() * 300),
        signal: ending.signal,
      })
      await this.#follow(batches, initial)
    } catch (error) {
      throw ending.signal.reason instanceof StreamingIgnored ? ending.signal.reason : error
    } finally {
      stopWatching()
      signal.removeEventListener('abort', stop)
    }
  }

  async #follow(batches: AsyncIterable<WatchBatch<T>>, initial: boolean): Promise<void> {
    const { sink } = this.#options
    // Until the end of the initial events, what is known stays as it was: a reader never sees half a list.
    let snapshot: Map<string, T> | undefined = initial ? new Map() : undefined
    const opened = this.#clock.now()
    let events = 0
    this.#sign()
    for await (const batch of batches) {
      this.#sign()
      // Only live events are a success: a list that works and a watch that does not must still back off.
      if (!snapshot) this.#failures = 0
      events += batch.length
      for (const event of batch) {
        if (event.type === 'BOOKMARK') {
          this.#sawBookmark = true
          if (snapshot) {
            if (event.object.metadata.annotations?.[initialEventsEnd] !== 'true') throw new StreamingIgnored()
            sink.replace([...snapshot.values()])
            snapshot = undefined
            this.#awaitsInitial = false
          }
        } else if (snapshot) {
          if (event.type === 'DELETED') snapshot.delete(keyOf(event.object))
          else snapshot.set(keyOf(event.object), sink.slim(event.object))
        } else if (event.type === 'DELETED') sink.remove(sink.slim(event.object))
        else sink.put(sink.slim(event.object))
        // The initial events come in any order: only what follows them says where to go on.
        if (!snapshot) this.#resourceVersion = event.object.metadata.resourceVersion
      }
    }
    // Something between us and the server ends every watch: without a wait we would open them as fast as we can.
    if (events === 0 && this.#clock.now() - opened < 1000) throw new Error('the watch ended as soon as it began')
  }

  /** HTTP/2 pings notice a dead server; this notices the rest: a proxy that keeps a dead watch open, a server that forgot it. */
  #endWhenSilent(ending: AbortController): () => void {
    // A watch that is just being opened is measured from here, not from the end of the one before.
    const opened = this.#clock.now()
    let cancel = (): void => {}
    const look = (): void => {
      const allowedMs = this.#awaitsInitial ? longestInitialMs : this.allowedSilenceMs
      const left = Math.max(this.lastSign, opened) + allowedMs - this.#clock.now()
      // The first bookmark shortens what is allowed: look often enough to see that.
      if (left > 0) cancel = this.#clock.after(Math.min(left, this.#silenceMs), look)
      else if (this.#awaitsInitial) ending.abort(new StreamingIgnored())
      else ending.abort(new Error(`no event and no bookmark for ${this.allowedSilenceMs / 1000} s`))
    }
    look()
    return () => cancel()
  }

  async #recover(error: unknown, signal: AbortSignal): Promise<void> {
    this.lastError = error
    // A watch that died unnoticed was over when it was last heard of.
    const now = this.#clock.now()
    this.#outages.begin(now - this.lastSign >= this.#silenceMs ? this.lastSign : now)
    const { kind } = this.#options.resource
    if (isExpired(error)) {
      // What happened meanwhile cannot be had any more: list again, without waiting.
      this.#log.info('the watch is too old; listing again', { kind })
      this.#resourceVersion = undefined
      if (this.#failures++ === 0) return
    }
    if (this.#resourceVersion === undefined && this.#streaming && refusesStreaming(error)) {
      this.#log.info('the server does not stream lists; using pages', { kind })
      this.#streaming = false
      return
    }
    const wait = (error instanceof ApiError ? error.retryAfterMs : undefined) ?? this.#backoff()
    this.#log.warn('the watch failed; trying again', { kind, error, waitMs: Math.round(wait) })
    await sleep(this.#clock, wait, signal).catch(() => {})
  }

  #backoff(): number {
    const wait = Math.min(backoffMs.first * 2 ** Math.min(this.#failures++, 10), backoffMs.most)
    return wait * (0.5 + this.#random() / 2)
  }

  #sign(): void {
    this.lastSign = this.#clock.now()
    this.lastError = undefined
    this.#outages.end(this.lastSign)
  }
}

/** The first bookmark did not end the initial events: the server does not know the parameter. */
class StreamingIgnored extends Error {}

// Before 1.32, and with the feature off, the parameter is an error; before 1.27 it is unknown and ignored.
const refusesStreaming = (error: unknown): boolean =>
  error instanceof StreamingIgnored ||
  isInvalid(error) ||
  (error instanceof ApiError && (error.status === 400 || error.status === 405))
