import { dirname } from 'node:path'
import type { Clock } from '../../runtime/index.ts'
import { CliError } from '../errors.ts'
import { prepareFolder, readEntry, sweep, writeEntry, type Entry } from './entry.ts'
import { thisProcess, tryLock, type Self } from './lock.ts'

export interface ReadToken {
  token: string
  /** Milliseconds. */
  expiresAt: number | undefined
}

export interface CacheOptions {
  /** Undefined: there is none, and the hub is asked each time. */
  file: string | undefined
  /** How long a token is used before the hub is asked for a newer one: so late is a revoked one noticed. */
  freshMs: number
  clock: Clock
  signal?: AbortSignal | undefined
  self?: Self | undefined
  /** Whether the hub gave no answer, so that the token from before is used on. */
  isOutage: (error: unknown) => Promise<boolean>
  /** Told when it is. */
  onOutage?: (error: unknown) => void
}

/** One that ends so soon is not handed out without asking. */
const marginMs = 60_000
/** How long an outage of the hub is believed. */
const retryMs = 10_000
const pauseMs = 40

/**
 * The token in the cache while it is fresh, else from the hub. Of many processes that want it at once one asks the hub, and the
 * others wait for what it is told, be it a token or a refusal. If that one dies, the next takes its place.
 */
export const throughCache = async (options: CacheOptions, read: () => Promise<ReadToken>): Promise<ReadToken> => {
  const { file, freshMs, clock, signal, self = thisProcess() } = options
  const now = (): number => clock.now()
  if (!file || !(await prepareFolder(dirname(file)))) return read()
  const began = now()
  for (;;) {
    const entry = await readEntry(file)
    const found = usable(entry, now(), freshMs)
    if (found) return found
    const { failure } = entry ?? {}
    if (failure && failure.at >= began) throw new CliError(failure.message, { next: failure.next })
    const unlock = await tryLock(`${file}.lock`, { self, now }).catch(() => 'impossible' as const)
    if (unlock === 'impossible') return read() // a disk that is full or knows no links: the cache is only to spare requests
    if (unlock) {
      try {
        // Somebody may have been quicker between our look and our lock.
        return usable(await readEntry(file), now(), freshMs) ?? (await refreshed(file, entry, options, read))
      } finally {
        await unlock()
      }
    }
    await pause(clock, signal)
  }
}

// Not sleep of ../../runtime: that would load the controllers, and most answers come from the cache.
const pause = async (clock: Clock, signal?: AbortSignal): Promise<void> => {
  await new Promise<void>((resolve) => clock.after(pauseMs, resolve))
  signal?.throwIfAborted()
}

/** Whether a token of the cache may be handed out without asking the hub. A clock that was set back makes it old. */
export const usable = (entry: Entry | undefined, now: number, freshMs: number): ReadToken | undefined => {
  const { token, expiresAt, readAt = Number.NaN, retryAt = 0 } = entry ?? {}
  if (!token || (expiresAt !== undefined && expiresAt <= now)) return undefined
  const isFresh = now >= readAt && now - readAt < freshMs && (expiresAt === undefined || expiresAt - now > marginMs)
  const isBridged = now < retryAt && retryAt - now <= retryMs
  return isFresh || isBridged ? { token, expiresAt } : undefined
}

const refreshed = async (
  file: string,
  old: Entry | undefined,
  { clock, isOutage, onOutage, signal }: CacheOptions,
  read: () => Promise<ReadToken>,
): Promise<ReadToken> => {
  const keep = (entry: Entry): Promise<unknown> => writeEntry(file, entry).catch(() => undefined) // as above
  try {
    const found = await read()
    await keep({ ...found, readAt: clock.now() })
    await sweep(file, clock.now())
    return found
  } catch (error) {
    const now = clock.now()
    if (signal?.aborted) throw error
    const { token, expiresAt } = old ?? {}
    if (token && (expiresAt ?? 0) > now && (await isOutage(error))) {
      await keep({ ...old, retryAt: now + retryMs, failure: undefined })
      onOutage?.(error)
      return { token, expiresAt }
    }
    // What may no longer be read is no longer kept.
    const { message, next } = error as CliError
    await keep({ failure: { at: now, message, next } })
    throw error
  }
}
