import { randomUUID } from 'node:crypto'
import type { ServerHttp2Stream } from 'node:http2'
import type { Clock } from '../runtime/index.ts'
import { trailersOf, type GrpcError } from './status.ts'

/** Makes the bytes when there is room for them; undefined when there is nothing to say any more. */
export type FrameMaker = () => Buffer | undefined

/**
 * What a subscriber is to be sent. It holds which objects have news, not the news: the bytes are made from the present state when
 * the subscriber has room for them. A slow reader costs one small entry for each of its objects, however often they change, and
 * gets the latest state of each in the order in which they first changed.
 */
export class Outbox {
  readonly id = randomUUID()
  readonly #stream: ServerHttp2Stream
  readonly #clock: Clock
  readonly #waiting = new Map<string, FrameMaker>()
  #open = false
  /** Since when it has had no room. */
  #fullSince: number | undefined
  #ending: GrpcError | undefined

  constructor(stream: ServerHttp2Stream, clock: Clock) {
    this.#stream = stream
    this.#clock = clock
    stream.on('drain', () => this.#pump())
    stream.once('wantTrailers', () =>
      stream.sendTrailers(this.#ending ? trailersOf(this.#ending) : { 'grpc-status': '0' }),
    )
  }

  get closed(): boolean {
    return this.#stream.destroyed || this.#ending !== undefined
  }

  /** How many objects wait. */
  get waiting(): number {
    return this.#waiting.size
  }

  /** How long the reader has not taken what was sent to it. */
  stalledMs(now: number): number {
    return this.#fullSince === undefined ? 0 : now - this.#fullSince
  }

  /** There is news under this key. What waits under it already is replaced, and keeps its place. */
  put(key: string, make: FrameMaker): void {
    if (this.closed) return
    this.#waiting.set(key, make)
    this.#pump()
  }

  /** For what is worth nothing later, such as a sign of life: sent if there is room, else dropped. */
  offer(frame: Buffer): void {
    if (this.#open && !this.closed && this.#fullSince === undefined && this.#waiting.size === 0) this.#write(frame)
  }

  /** Told when the subscriber is gone. */
  onClose(run: () => void): void {
    if (this.#stream.destroyed) run()
    else this.#stream.once('close', run)
  }

  /** From now on things may be sent. */
  open(): void {
    this.#open = true
    this.#pump()
  }

  /** Ends the stream with a status; what waits is not sent. A reader that takes nothing is cut off. */
  end(error: GrpcError): void {
    if (this.closed) return
    this.#ending = error
    this.#waiting.clear()
    if (this.#fullSince !== undefined) this.#stream.close()
    else this.#stream.end()
  }

  #pump(): void {
    if (!this.#open || this.closed) return
    if (!this.#stream.writableNeedDrain) this.#fullSince = undefined
    for (const [key, make] of this.#waiting) {
      if (this.#fullSince !== undefined) return
      this.#waiting.delete(key)
      const frame = make()
      if (frame) this.#write(frame)
    }
  }

  #write(frame: Buffer): void {
    if (!this.#stream.write(frame)) this.#fullSince ??= this.#clock.now()
  }
}
