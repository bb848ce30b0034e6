import type { Clock } from '../../../../runtime/index.ts'

interface Entry<V> {
  value: Promise<V>
  until: number
}

/** Answers that count for a while. Who asks while an answer is on its way waits for that one. The oldest go when there are too many. */
export class Remembered<V> {
  readonly #clock: Clock
  readonly #most: number
  readonly #entries = new Map<string, Entry<V>>()

  constructor({ clock, most }: { clock: Clock; most: number }) {
    this.#clock = clock
    this.#most = most
  }

  get size(): number {
    return this.#entries.size
  }

  /** A failure to ask is nobody's answer: it is thrown to those who waited and forgotten. */
  async get(key: string, ask: () => Promise<{ value: V; forMs: number }>): Promise<V> {
    const known = this.#entries.get(key)
    if (known && this.#clock.now() < known.until) return known.value
    const { promise, resolve, reject } = Promise.withResolvers<V>()
    const entry = { value: promise, until: Infinity }
    promise.catch(() => {})
    this.#entries.delete(key)
    this.#entries.set(key, entry)
    if (this.#entries.size > this.#most) this.#entries.delete(this.#entries.keys().next().value!)
    try {
      const { value, forMs } = await ask()
      entry.until = this.#clock.now() + forMs
      resolve(value)
    } catch (error) {
      if (this.#entries.get(key) === entry) this.#entries.delete(key)
      reject(error)
    }
    return promise
  }
}
