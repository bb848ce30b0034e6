import { isForbidden, isUnauthorized, type CertificateSigningRequest, type ObjectApi } from '../../../kube/index.ts'
import { describeError, sleep, type Clock, type Logger } from '../../../runtime/index.ts'

export interface FollowOptions {
  csrs: ObjectApi<CertificateSigningRequest>
  clock: Clock
  random: () => number
  log: Logger
  signal: AbortSignal
}

type Judge<E> = (csr: CertificateSigningRequest) => E | undefined

const watchSeconds = 300
/** An API server that has just started refuses everybody until it has read its roles and tokens: about 15 seconds are granted. */
const refusalsBelieved = 5

/** The wait after so many failures: half a second at first, half a minute at most, varied so that a fleet does not knock in step. */
export const backoffMs = (failures: number, random: () => number): number =>
  Math.min(500 * 2 ** Math.min(failures, 10), 30_000) * (0.75 + random() / 4)

/**
 * Follows one CSR until `judge` finds something in it, or it is gone. Cut connections are mended without an end; only a
 * refusal (401, 403) that persists is thrown, and the signal's reason.
 */
export const follow = async <E>(
  csr: CertificateSigningRequest,
  judge: Judge<E>,
  options: FollowOptions,
): Promise<E | 'gone'> => {
  const { csrs, clock, random, log, signal } = options
  const { name, uid } = csr.metadata
  let seen = csr
  let failures = 0
  for (;;) {
    const judged = judge(seen)
    if (judged !== undefined) return judged
    try {
      const end = await watchOnce(seen, judge, options)
      if (end !== undefined) return end
      failures = 0
    } catch (error) {
      failures = await mendable(error, failures)
    }
    try {
      // The version that we saw may be too old to watch from by now.
      const now = await csrs.find(name!, { signal })
      if (now?.metadata.uid !== uid) return 'gone'
      seen = now!
    } catch (error) {
      failures = await mendable(error, failures)
    }
  }

  async function mendable(error: unknown, times: number): Promise<number> {
    signal.throwIfAborted()
    if (times >= refusalsBelieved && (isUnauthorized(error) || isForbidden(error))) throw error
    log.warn('the watch of our CSR failed; trying again', { csr: name, error: describeError(error) })
    await sleep(clock, backoffMs(times, random), signal)
    return times + 1
  }
}

const watchOnce = async <E>(
  seen: CertificateSigningRequest,
  judge: Judge<E>,
  { csrs, clock, signal }: FollowOptions,
): Promise<E | 'gone' | undefined> => {
  const ending = new AbortController()
  const stop = (): void => ending.abort(signal.reason)
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop()
  // The server ends it before that; this is for one that has died unnoticed.
  const cancel = clock.after((watchSeconds + 30) * 1000, () => ending.abort(new Error('the watch has gone silent')))
  try {
    const batches = await csrs.watch({
      fieldSelector: `metadata.name=${seen.metadata.name}`,
      resourceVersion: seen.metadata.resourceVersion,
      timeoutSeconds: watchSeconds,
      signal: ending.signal,
    })
    for await (const batch of batches) {
      for (const { type, object } of batch) {
        if (type === 'BOOKMARK') continue
        if (type === 'DELETED') return 'gone'
        const judged = judge(object)
        if (judged !== undefined) return judged
      }
    }
    return undefined
  } finally {
    cancel()
    signal.removeEventListener('abort', stop)
  }
}
