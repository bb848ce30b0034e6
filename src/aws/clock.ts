/** Time as an argument; the shape is that of the clocks elsewhere, so one clock serves all. */
export interface Clock {
  now(): number
  /** Runs later; the answer cancels it. */
  after(ms: number, run: () => void): () => void
}

/** The real time. Its timers do not keep a process alive. */
export const realClock: Clock = {
  now: Date.now,
  after: (ms, run) => {
    const timer = setTimeout(run, Math.min(ms, 2 ** 31 - 1)).unref()
    return () => clearTimeout(timer)
  },
}
