import type { KubeObject, WatchBatch, WatchEvent } from '../../../../kube/index.ts'

/** A watch of the store: what is told waits here until it is read. */
export class Watcher<T extends KubeObject> implements AsyncIterable<WatchBatch<T>> {
  readonly selects: (object: KubeObject) => boolean
  readonly #ended: () => void
  #waiting: WatchBatch<T> = []
  #failure: { error: unknown } | undefined
  #wake = (): void => {}

  constructor(selects: (object: KubeObject) => boolean, ended: () => void) {
    this.selects = selects
    this.#ended = ended
  }

  tell(...events: WatchEvent<T>[]): void {
    this.#waiting.push(...events)
    this.#wake()
  }

  /** Ends it; what was told before is read first. */
  fail(error: unknown): void {
    this.#failure ??= { error }
    this.#wake()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<WatchBatch<T>> {
    try {
      for (;;) {
        const batch = this.#waiting
        this.#waiting = []
        if (batch.length > 0) yield batch
        else if (this.#failure) throw this.#failure.error
        else await new Promise<void>((resolve) => (this.#wake = resolve))
      }
    } finally {
      this.#ended()
    }
  }
}
