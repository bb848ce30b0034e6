/** When a write can be seen; see `UnseenWrites`. */
export type Seen = () => boolean

interface Unseen {
  intent: string
  until: number
  seen: Seen[]
}

/** A watch that is behind for longer has its own troubles; then the caches are believed as they are. */
const longestMs = 5_000

/**
 * What was written and is not in the caches yet. A reconcile that comes too early would take its own work for missing and do
 * it again: it waits instead, since the event that it lacks brings the key back. What was written with another intent holds
 * nobody up: a denial does not wait for an acceptance to become visible.
 */
export class UnseenWrites {
  readonly #of = new Map<string, Unseen>()

  wrote(key: string, intent: string, now: number, seen: readonly Seen[]): void {
    if (seen.length === 0) return
    const before = this.#of.get(key)
    const earlier = before?.intent === intent ? before.seen : []
    this.#of.set(key, { intent, until: now + longestMs, seen: [...earlier, ...seen] })
  }

  /** How long to wait at most before the caches can be believed; 0 when they can. */
  waitMs(key: string, intent: string, now: number): number {
    const unseen = this.#of.get(key)
    if (!unseen) return 0
    unseen.seen = unseen.seen.filter((seen) => !seen())
    if (unseen.intent === intent && unseen.seen.length > 0 && now < unseen.until) return unseen.until - now
    this.#of.delete(key)
    return 0
  }
}

/** Whether a cache that shows `cached` has come to `written`. Resource versions of one kind grow (KEP-5504). */
export const hasReached = (cached: string | undefined, written: string | undefined): boolean => {
  if (cached === undefined || written === undefined || cached === written) return cached === written
  return isNumber.test(cached) && isNumber.test(written) && BigInt(cached) > BigInt(written)
}

const isNumber = /^[1-9][0-9]*$/
