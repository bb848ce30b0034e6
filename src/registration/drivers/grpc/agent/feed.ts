import { randomUUID } from 'node:crypto'
import {
  attribute,
  heartbeatType,
  readEvent,
  type CloudEvent,
  type DataType,
  type ReadEvent,
} from '../../../../events/index.ts'
import {
  initialEventsEnd,
  keyOf,
  type CallOptions,
  type KubeObject,
  type WatchBatch,
  type WatchOptions,
} from '../../../../kube/index.ts'
import { sleep } from '../../../../runtime/index.ts'
import type { Link } from './link.ts'
import { Listening } from './listening.ts'
import { nameIn, selection } from './selection.ts'
import { Watcher } from './watcher.ts'

/** What an event says of an object: how it is now, or that it is gone. */
export type Seen<T> = { object: T } | { gone: string } | undefined

/** How one kind travels. */
export interface Wire<T extends KubeObject> {
  readonly dataType: DataType
  /** `known` is what was known of the object before. */
  read(event: ReadEvent, known: T | undefined): Seen<T>
  /** What events and resyncs call it. A hub of the field takes what it does not know by this name for gone. */
  idOf(object: T): string
  /** What a resync says we have of it: the hub sends what is newer. */
  heldVersion(object: T): number
}

/** A hub that does not say when a resync is complete has told everything when it has been quiet for so long. */
const quietMs = 3000
const resyncMs = 30_000
/** How long the echo of a write is waited for before the hub is asked. */
const echoMs = 2000

/**
 * The objects of one kind, as the hub has told of them: a subscription, and a resync each time that it begins. Nothing is missed
 * in between: what was held is named in the resync, and the hub sends what has changed or gone since.
 */
export class Feed<T extends KubeObject> {
  readonly #link: Link
  readonly #wire: Wire<T>
  readonly #listening: Listening
  readonly #objects = new Map<string, T>()
  readonly #keys = new Map<string, string>()
  readonly #watchers = new Set<Watcher<T>>()
  readonly #resyncs = new Map<string, PromiseWithResolvers<void>>()
  readonly #changes = new Set<() => void>()
  #lastEvent = 0

  constructor(link: Link, wire: Wire<T>) {
    this.#link = link
    this.#wire = wire
    this.#listening = new Listening(link, wire.dataType, {
      opened: (signal) => this.#resync({ signal }),
      heard: (event) => this.#heard(event),
      lost: (error) => this.#lost(error),
    })
  }

  /** What is known. Current after `live`, and as current as a read of the API server after `refresh`. */
  get(key: string): T | undefined {
    return this.#objects.get(key)
  }

  list(selects: (object: KubeObject) => boolean): T[] {
    return [...this.#objects.values()].filter(selects)
  }

  /** From here on everything that changes is heard. */
  async live(call: CallOptions): Promise<void> {
    await this.#listening.live(call)
  }

  /** Asks the hub, whatever is known: who reads wants to know how it is now, and whether we may. */
  async refresh(call: CallOptions): Promise<void> {
    if (!(await this.#listening.live(call))) await this.#resync(call)
  }

  /** As an API server's watch, from now on or from everything that there is. It ends as expired when the subscription is cut. */
  async watch(options: WatchOptions & { namespace?: string | undefined }): Promise<AsyncIterable<WatchBatch<T>>> {
    const { signal } = options
    const selects = selection(options)
    await this.live({ signal })
    const abort = (): void => watcher.fail(signal!.reason)
    const watcher = new Watcher<T>(selects, () => {
      this.#watchers.delete(watcher)
      signal?.removeEventListener('abort', abort)
    })
    signal?.addEventListener('abort', abort, { once: true })
    if (signal?.aborted) abort()
    const present = this.list(selects)
    if (options.sendInitialEvents) {
      for (const object of present) watcher.tell({ type: 'ADDED', object })
      const metadata = { resourceVersion: this.#newest(), annotations: { [initialEventsEnd]: 'true' } }
      watcher.tell({ type: 'BOOKMARK', object: { metadata } })
    } else if (options.resourceVersion === undefined) {
      for (const object of present) watcher.tell({ type: 'ADDED', object })
    } else {
      // Nobody keeps what was before: only somebody who follows one object can be told what has become of it.
      if (nameIn(options.fieldSelector) === undefined || present.length === 0) throw this.#expired()
      for (const object of present)
        if (object.metadata.resourceVersion !== options.resourceVersion) watcher.tell({ type: 'MODIFIED', object })
    }
    this.#watchers.add(watcher)
    return watcher
  }

  /** The object once it is newer than that version, which it is about to be: we wrote it. */
  async after(key: string, version: string | undefined, call: CallOptions): Promise<T | undefined> {
    const isNewer = (): boolean => {
      const now = this.#objects.get(key)
      return now !== undefined && (version === undefined || numberOf(now.metadata.resourceVersion) > numberOf(version))
    }
    if (isNewer()) return this.get(key)
    const over = new AbortController()
    const look = (): void => {
      if (isNewer()) over.abort()
    }
    const stop = (): void => over.abort()
    this.#changes.add(look)
    call.signal?.addEventListener('abort', stop, { once: true })
    await sleep(this.#link.clock, echoMs, over.signal).catch(() => {})
    this.#changes.delete(look)
    call.signal?.removeEventListener('abort', stop)
    call.signal?.throwIfAborted()
    if (!isNewer()) await this.refresh(call)
    return this.get(key)
  }

  /** Takes note of an object: from the hub, or as we have changed it ourselves. */
  put(object: T): void {
    const key = keyOf(object)
    const old = this.#objects.get(key)
    if (old && old.metadata.uid !== object.metadata.uid) this.remove(old.metadata.uid!)
    this.#objects.set(key, object)
    this.#keys.set(object.metadata.uid!, key)
    const before = old?.metadata.uid === object.metadata.uid ? old : undefined
    for (const watcher of this.#watchers) {
      const was = before !== undefined && watcher.selects(before)
      if (watcher.selects(object)) watcher.tell({ type: was ? 'MODIFIED' : 'ADDED', object })
      else if (was) watcher.tell({ type: 'DELETED', object: before })
    }
    for (const changed of this.#changes) changed()
  }

  /** By UID, or by name where a hub says no more. */
  remove(id: string): void {
    const key = this.#keyOf(id)
    const old = key === undefined ? undefined : this.#objects.get(key)
    if (!old) return
    this.#objects.delete(key!)
    this.#keys.delete(old.metadata.uid!)
    for (const watcher of this.#watchers) if (watcher.selects(old)) watcher.tell({ type: 'DELETED', object: old })
    for (const changed of this.#changes) changed()
  }

  close(): void {
    this.#listening.close()
    this.#lost(new Error('the connection to the hub was closed'))
  }

  #heard(event: CloudEvent): void {
    this.#lastEvent = this.#link.clock.now()
    if (event.type === heartbeatType) return this.#beat(event.attributes.get(attribute.resync))
    try {
      const read = readEvent(event)
      if (read?.dataType === this.#wire.dataType && read.side === 'spec') this.#take(read)
    } catch (error) {
      // One that cannot be read is no reason to hear nothing any more.
      this.#link.log.warn('the hub sent an event that cannot be read', { dataType: this.#wire.dataType, error })
    }
  }

  #take(event: ReadEvent): void {
    const key = this.#keyOf(event.resourceId)
    const seen = this.#wire.read(event, key === undefined ? undefined : this.#objects.get(key))
    if (!seen) return
    if ('gone' in seen) return this.remove(seen.gone)
    const { uid, resourceVersion } = seen.object.metadata
    const known = this.#objects.get(keyOf(seen.object))
    // Another replica of the hub may be behind the one that we heard before; of the same version, what we added stays.
    const isNews =
      known?.metadata.uid !== uid || numberOf(resourceVersion) > Math.floor(numberOf(known?.metadata.resourceVersion))
    if (isNews) this.put(seen.object)
  }

  #beat(resync: unknown): void {
    if (typeof resync === 'string') {
      this.#link.marksResyncs = true
      return this.#resyncs.get(resync)?.resolve()
    }
    const object = { metadata: { resourceVersion: this.#newest() } }
    for (const watcher of this.#watchers) watcher.tell({ type: 'BOOKMARK', object })
    void this.#listening.renewIfDue().catch(() => {}) // whoever needs the credential says what is wrong with it
  }

  async #resync(call: CallOptions): Promise<void> {
    const id = randomUUID()
    const done = Promise.withResolvers<void>()
    done.promise.catch(() => {})
    this.#resyncs.set(id, done)
    const resourceVersions = [...this.#objects.values()].map((object) => ({
      resourceID: this.#wire.idOf(object),
      resourceVersion: this.#wire.heldVersion(object),
    }))
    const { dataType } = this.#wire
    const over = new AbortController()
    try {
      await this.#link.publish(
        { dataType, side: 'spec', action: 'resync_request', id, data: { resourceVersions } },
        call,
      )
      const stop = (): void => over.abort(call.signal!.reason)
      call.signal?.addEventListener('abort', stop, { once: true })
      await Promise.race([done.promise, this.#complete(over.signal)])
      call.signal?.removeEventListener('abort', stop)
    } finally {
      over.abort()
      this.#resyncs.delete(id)
    }
  }

  /** Without a word from the hub: when it has been quiet, if it is one that never says so; else it has failed. */
  async #complete(signal: AbortSignal): Promise<void> {
    const { clock } = this.#link
    const until = clock.now() + resyncMs
    const begun = clock.now()
    while (clock.now() < until) {
      const quietAt = Math.max(begun, this.#lastEvent) + quietMs
      if (!this.#link.marksResyncs && clock.now() >= quietAt) return
      await sleep(clock, Math.max(Math.min(this.#link.marksResyncs ? until : quietAt, until) - clock.now(), 1), signal)
    }
    throw this.#link.refusal(504, 'the hub has not answered a resync in time', this.#wire.dataType)
  }

  #lost(error: unknown): void {
    for (const { reject } of this.#resyncs.values()) reject(error)
    for (const watcher of this.#watchers) watcher.fail(this.#expired(error))
    this.#watchers.clear()
  }

  #expired(error?: unknown): Error {
    const why = error instanceof Error ? `: ${error.message}` : ''
    return this.#link.refusal(410, `the subscription was cut${why}`, this.#wire.dataType, { reason: 'Expired' })
  }

  #keyOf(id: string): string | undefined {
    if (this.#keys.has(id)) return this.#keys.get(id)
    return [...this.#objects.keys()].find((key) => key === id || key.endsWith(`/${id}`))
  }

  #newest(): string {
    const versions = [...this.#objects.values()].map(({ metadata }) => Math.floor(numberOf(metadata.resourceVersion)))
    return String(Math.max(0, ...versions))
  }
}

/** Resource versions of one kind grow (KEP-5504). */
const numberOf = (version: string | undefined): number => Number(version ?? 0)
