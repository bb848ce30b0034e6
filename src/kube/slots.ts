/** Lets a limited number of things happen at a time. The others wait, in the order in which they came. */
export class Slots {
  #free: number
  readonly #line = new Set<() => void>()

  constructor(size: number) {
    this.#free = size
  }

  /** Does the work when it is its turn. The signal ends the wait for it, not the work. */
  async run<A>(work: () => Promise<A>, signal?: AbortSignal): Promise<A> {
    if (this.#free > 0) this.#free--
    else await this.#turn(signal)
    try {
      return await work()
    } finally {
      this.#leave()
    }
  }

  #turn(signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted()
    return new Promise((resolve, reject) => {
      const take = (): void => {
        signal?.removeEventListener('abort', giveUp)
        resolve()
      }
      const giveUp = (): void => {
        this.#line.delete(take)
        reject(signal!.reason as Error)
      }
      this.#line.add(take)
      signal?.addEventListener('abort', giveUp, { once: true })
    })
  }

  // A slot goes straight to the next in line: nobody who comes later can take it in between.
  #leave(): void {
    const [next] = this.#line
    if (!next) {
      this.#free++
      return
    }
    this.#line.delete(next)
    next()
  }
}
