import type { Clock } from '../src/runtime/clock.ts'

/** The real time, which a test can move forward. */
export interface JumpingClock extends Clock {
  /** It is this much later at once; what has fallen due runs now, in its order. */
  jump(ms: number): void
}

/** For tests that need real servers and long times: everything goes on as usual, and an hour passes when the test says so. */
export const jumpingClock = (): JumpingClock => {
  let offset = 0
  const timers = new Set<{ due: number; run: () => void }>()
  const now = (): number => Date.now() + offset
  return {
    now,
    after: (ms, run) => {
      const timer = {
        due: now() + ms,
        run: (): void => {
          cancel()
          run()
        },
      }
      const handle = setTimeout(() => timer.run(), Math.min(ms, 2 ** 31 - 1))
      const cancel = (): void => {
        clearTimeout(handle)
        timers.delete(timer)
      }
      timers.add(timer)
      return cancel
    },
    jump: (ms) => {
      offset += ms
      for (const timer of [...timers].toSorted((a, b) => a.due - b.due)) if (timer.due <= now()) timer.run()
    },
  }
}
