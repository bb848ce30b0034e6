/** Time as an argument: tests bring their own. */
export interface Clock {
  now(): number
  /** Runs later; the answer cancels it. */
  after(ms: number, run: () => void): () => void
}

// Node fires longer timers at once; 24 days are long enough for anybody to look again.
const longestTimer = 2 ** 31 - 1

export const systemClock: Clock = {
  now: Date.now,
  after: (ms, run) => {
    const timer = setTimeout(run, Math.min(ms, longestTimer))
    return () => clearTimeout(timer)
  },
}

/** Resolves when the time has passed; rejects with the signal's reason if that comes first. */
export const sleep = (clock: Clock, ms: number, signal?: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    const abort = (): void => {
      cancel()
      reject(signal!.reason as Error)
    }
    const cancel = clock.after(ms, () => {
      signal?.removeEventListener('abort', abort)
      resolve()
    })
    if (signal?.aborted) abort()
    else signal?.addEventListener('abort', abort, { once: true })
  })
