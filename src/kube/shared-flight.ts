/** Work that many may wait for. */
export interface SharedFlight {
  /** Joins the run under way, or starts one. A caller whose signal fires stops waiting; the run goes on for the others. */
  (signal?: AbortSignal): Promise<void>
  underWay(): boolean
}

/** Runs `work` at most once at a time. It is told to stop when the last one waiting for it has left. */
export const sharedFlight = (work: (signal: AbortSignal) => Promise<void>): SharedFlight => {
  let flight: { done: Promise<void>; stop: AbortController; waiting: number } | undefined

  const start = (): NonNullable<typeof flight> => {
    const stop = new AbortController()
    const started = { done: work(stop.signal).finally(() => leave(started)), stop, waiting: 0 }
    started.done.catch(() => undefined) // told to whoever waits, if anyone still does
    return started
  }
  const leave = (left: typeof flight): void => {
    if (flight === left) flight = undefined
  }
  const join = async (signal?: AbortSignal): Promise<void> => {
    const joined = (flight ??= start())
    joined.waiting += 1
    try {
      await unlessAborted(joined.done, signal)
    } finally {
      joined.waiting -= 1
      if (joined.waiting === 0) {
        leave(joined)
        joined.stop.abort()
      }
    }
  }
  return Object.assign(join, { underWay: () => flight !== undefined })
}

const unlessAborted = (done: Promise<void>, signal: AbortSignal | undefined): Promise<void> => {
  if (!signal) return done
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    const settled = (settle: () => void): void => {
      signal.removeEventListener('abort', onAbort)
      settle()
    }
    done.then(
      () => settled(resolve),
      (error: unknown) => settled(() => reject(error)),
    )
  })
}
