import { keyOf, type Api, type KubeObject, type Resource } from '../kube/index.ts'
import { systemClock, type Clock } from './clock.ts'
import { silentLogger, type Logger } from './log.ts'
import { Reflector, type Selection } from './reflector.ts'
import { byNamespace, Store, type IndexBy } from './store.ts'

/** Told of every change, in order, each object with what it was before. Handlers are quick and never throw: they add keys to queues. */
export interface Handler<T> {
  /** `initial`: it was in a list, not news. */
  added?(object: T, about: { initial: boolean }): void
  updated?(object: T, old: T, about: { initial: boolean }): void
  /** The last state that was seen. */
  deleted?(object: T): void
}

export interface InformerOptions<T extends KubeObject> extends Selection {
  client: Api
  resource: Resource<T>
  /** Ways to look objects up besides their key. */
  indexes?: Record<string, IndexBy<T>> | undefined
  /** Drops what is not needed before it is kept. managedFields always go. */
  transform?: ((object: T) => T) | undefined
  streamingList?: boolean | undefined
  silenceMs?: number | undefined
  clock?: Clock | undefined
  log?: Logger | undefined
}

/** A local copy of one kind, kept current by a watch, shared by everybody in the process who reads it. */
export class Informer<T extends KubeObject> {
  readonly resource: Resource<T>
  /** Settles when the first list is complete. */
  readonly synced: Promise<void>
  readonly #store: Store<T>
  readonly #handlers = new Set<Handler<T>>()
  readonly #transform: (object: T) => T
  readonly #reflector: Reflector<T>
  readonly #clock: Clock
  readonly #log: Logger
  #hasSynced = false
  #declareSynced!: () => void
  #running: Promise<void> | undefined

  constructor(options: InformerOptions<T>) {
    const { indexes, transform, ...reflect } = options
    this.resource = options.resource
    this.#store = new Store(indexes)
    this.#transform = transform ?? ((object) => object)
    this.#clock = options.clock ?? systemClock
    this.#log = (options.log ?? silentLogger).with({ informer: options.resource.plural })
    this.synced = new Promise((resolve) => (this.#declareSynced = resolve))
    this.#reflector = new Reflector({
      ...reflect,
      log: this.#log,
      sink: {
        replace: (objects) => this.#replace(objects),
        put: (object) => this.#put(object, false),
        remove: (object) => this.#remove(keyOf(object), object),
        slim: (object) => this.#slim(object),
      },
    })
  }

  get hasSynced(): boolean {
    return this.#hasSynced
  }

  get size(): number {
    return this.#store.size
  }

  /** By `namespace/name`, or `name` for cluster-scoped kinds. What is returned is shared: never change it. */
  get(key: string): T | undefined {
    return this.#store.get(key)
  }

  list(namespace?: string): T[] {
    return namespace === undefined ? this.#store.list() : this.#store.by(byNamespace, namespace)
  }

  by(index: string, value: string): T[] {
    return this.#store.by(index, value)
  }

  addIndex(name: string, by: IndexBy<T>): void {
    this.#store.addIndex(name, by)
  }

  /** Registers a handler, which is told of all that is known already. The answer takes it out again. */
  on(handler: Handler<T>): () => void {
    this.#handlers.add(handler)
    for (const object of this.#store.list()) this.#tell(() => handler.added?.(object, { initial: true }))
    return () => this.#handlers.delete(handler)
  }

  /** Starts to follow; calling it again changes nothing. Settles when the signal has ended it. */
  run(signal: AbortSignal): Promise<void> {
    this.#running ??= this.#reflector.run(signal)
    return this.#running
  }

  /** Why the watch counts as dead; undefined while it lives. */
  unhealthy(): string | undefined {
    const silentMs = this.#clock.now() - this.#reflector.lastSign
    if (silentMs <= this.#reflector.allowedSilenceMs) return undefined
    const error = this.#reflector.lastError
    const because = error instanceof Error ? `: ${error.message}` : ''
    return `the watch of ${this.resource.plural} has been silent for ${Math.round(silentMs / 1000)} s${because}`
  }

  /** For how long, since then, the watch was cut. Who waits for somebody's sign of life must not count that time. */
  missedMs(since: number): number {
    return this.#reflector.missedMs(since)
  }

  #slim(object: T): T {
    delete object.metadata.managedFields
    return this.#transform(object)
  }

  #replace(objects: T[]): void {
    const gone = new Set(this.#store.keys())
    for (const object of objects) {
      gone.delete(keyOf(object))
      this.#put(object, true)
    }
    for (const key of gone) this.#remove(key)
    this.#hasSynced = true
    this.#declareSynced()
  }

  #put(object: T, initial: boolean): void {
    const old = this.#store.get(keyOf(object))
    // A list after a cut repeats what is known: that is no news for anybody.
    if (old && old.metadata.resourceVersion === object.metadata.resourceVersion) return
    // Deleted and made again while nobody watched: two objects, not one that changed.
    if (old && old.metadata.uid !== object.metadata.uid) this.#remove(keyOf(old))
    const before = this.#store.put(object)
    for (const handler of this.#handlers) {
      this.#tell(() => (before ? handler.updated?.(object, before, { initial }) : handler.added?.(object, { initial })))
    }
  }

  #remove(key: string, last?: T): void {
    const old = this.#store.remove(key)
    if (!old) return
    for (const handler of this.#handlers) this.#tell(() => handler.deleted?.(last ?? old))
  }

  // One handler's mistake must not stop the others, nor the watch.
  #tell(tell: () => void): void {
    try {
      tell()
    } catch (error) {
      this.#log.error('a handler failed', { error })
    }
  }
}
