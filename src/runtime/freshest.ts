import type { KubeObject } from '../kube/index.ts'

/**
 * The newest state that we know of objects: what the last write answered, until the watch brings something else.
 * Without it, a reconcile right after a write would run into a conflict with itself.
 */
export class Freshest<T extends KubeObject> {
  readonly #written = new Map<string, { object: T; older: Set<string | undefined> }>()

  /** Remembers what a write to `before` answered. */
  wrote(key: string, before: T | undefined, object: T): T {
    const older = this.#written.get(key)?.older ?? new Set()
    older.add(before?.metadata.resourceVersion)
    this.#written.set(key, { object, older })
    return object
  }

  /** The cached state, or ours where the cache is behind. */
  of(key: string, cached: T | undefined): T | undefined {
    const written = this.#written.get(key)
    if (!written) return cached
    const version = cached?.metadata.resourceVersion
    // A patch without a version may have come after somebody else's write, which the watch then brings first.
    if (written.older.has(version) || isBefore(version, written.object.metadata.resourceVersion)) return written.object
    this.#written.delete(key)
    return cached
  }

  forget(key: string): void {
    this.#written.delete(key)
  }
}

/** Resource versions of one kind grow (KEP-5504); what is no such number is not compared. */
const isBefore = (a: string | undefined, b: string | undefined): boolean =>
  a !== undefined && b !== undefined && isNumber.test(a) && isNumber.test(b) && BigInt(a) < BigInt(b)

const isNumber = /^[1-9][0-9]*$/
