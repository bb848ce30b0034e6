/** The promise, or the reason of a signal that fires before it settles. What the promise stands for goes on. */
export const orAborted = async <T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> => {
  if (!signal) return promise
  const { promise: stop, reject } = Promise.withResolvers<never>()
  const abort = (): void => reject(signal.reason)
  signal.addEventListener('abort', abort, { once: true })
  if (signal.aborted) abort()
  try {
    return await Promise.race([promise, stop])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}
