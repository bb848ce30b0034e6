import { systemClock, type Clock } from '../src/runtime/clock.ts'

/** Real time that a test can move on. */
export interface MovableClock extends Clock {
  /** It is so much later from now on; what falls due is run. */
  skip(ms: number): void
}

/** The system's clock, until `skip`. For tests with a real API server, where time cannot stand still. */
export const movableClock = (): MovableClock => {
  let ahead = 0
  const timers = new Map<symbol, { due: number; run: () => void; cancel: () => void }>()
  const now = (): number => systemClock.now() + ahead
  return {
    now,
    after: (ms, run) => {
      const id = Symbol()
      const fire = (): void => {
        if (timers.delete(id)) run()
      }
      timers.set(id, { due: now() + ms, run: fire, cancel: systemClock.after(ms, fire) })
      return () => {
        timers.get(id)?.cancel()
        timers.delete(id)
      }
    },
    skip: (ms) => {
      ahead += ms
      const due = [...timers.values()].filter((timer) => timer.due <= now())
      for (const timer of due.toSorted((a, b) => a.due - b.due)) {
        timer.cancel()
        timer.run()
      }
    },
  }
}
