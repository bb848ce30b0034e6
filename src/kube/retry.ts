import { setTimeout as wait } from 'node:timers/promises'

/** What decides whether a request is sent again. */
export interface RetryableAnswer {
  status: number
  headers: { 'retry-after'?: string | undefined }
}

/** Nobody keeps us waiting for longer than this. */
const longestMs = 60_000
/** Where the server does not say for how long. kube-apiserver always says 1 s. */
const usualMs = 1000

/**
 * How long the server wants us to wait; undefined when its answer is final. A 429 means "later" by itself. A 503 does so
 * only with Retry-After: without it, nobody knows whether the request was acted on.
 */
export const laterMs = (answer: RetryableAnswer, now: number): number | undefined => {
  const after = answer.headers['retry-after']?.trim()
  if (answer.status !== 429 && !(answer.status === 503 && after)) return undefined
  return Math.min(Math.max(after ? askedMs(after, now) : usualMs, 0), longestMs)
}

// Seconds or an HTTP date (RFC 9110, 10.2.3).
const askedMs = (after: string, now: number): number => {
  if (/^\d+$/.test(after)) return Number(after) * 1000
  const date = Date.parse(after)
  return Number.isNaN(date) ? usualMs : date - now
}

/** Up to a quarter more than asked, so that many clients do not return at once. */
export const spread = (ms: number, random: () => number): number => ms * (1 + random() / 4)

/** Waits, or rejects with the reason of the signal. */
export const pause = async (ms: number, signal?: AbortSignal): Promise<void> => {
  await wait(ms, undefined, signal ? { signal } : {}).catch(() => signal?.throwIfAborted())
}
