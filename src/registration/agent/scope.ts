import { sleep, type Clock } from '../../runtime/index.ts'

/** Runs something whose parts end with it: the signal that they get is aborted when it settles, and when the outer one is. */
export const inScope = async <T>(outer: AbortSignal, run: (signal: AbortSignal) => Promise<T>): Promise<T> => {
  const scope = new AbortController()
  const stop = (): void => scope.abort(outer.reason)
  outer.addEventListener('abort', stop, { once: true })
  if (outer.aborted) stop()
  try {
    return await run(scope.signal)
  } finally {
    outer.removeEventListener('abort', stop)
    scope.abort(new Error('this phase is over'))
  }
}

/** Settles when the work has, however it ended, or after the time that it may take to end. */
export const ended = async (work: Promise<unknown> | undefined, clock: Clock, mostMs = 20_000): Promise<void> => {
  const over = new AbortController()
  await Promise.race([work?.catch(() => {}), sleep(clock, mostMs, over.signal).catch(() => {})])
  over.abort()
}

/** Settles when the signal comes. */
export const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })

/** The same, but rejects with the signal's reason when that comes first. */
export const unlessAborted = <T>(promise: Promise<T>, signal: AbortSignal): Promise<T> =>
  new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason as Error)
    if (signal.aborted) return abort()
    signal.addEventListener('abort', abort, { once: true })
    void promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
