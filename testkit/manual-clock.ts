import type { Clock } from '../src/runtime/clock.ts'

/** A clock that a test moves. */
export interface ManualClock extends Clock {
  /** Moves on, running what falls due in its order. */
  advance(ms: number): void
  /** Timers that have not run. */
  readonly pending: number
}

/** Time stands still until `advance`. */
export const manualClock = (start = 0): ManualClock => {
  let now = start
  let serial = 0
  const timers = new Map<number, { due: number; run: () => void }>()
  const next = (until: number): [number, { due: number; run: () => void }] | undefined =>
    [...timers].filter(([, t]) => t.due <= until).toSorted(([a, x], [b, y]) => x.due - y.due || a - b)[0]
  return {
    now: () => now,
    after: (ms, run) => {
      const id = ++serial
      timers.set(id, { due: now + ms, run })
      return () => timers.delete(id)
    },
    advance: (ms) => {
      const until = now + ms
      for (let due = next(until); due; due = next(until)) {
        timers.delete(due[0])
        now = due[1].due
        due[1].run()
      }
      now = until
    },
    get pending() {
      return timers.size
    },
  }
}
