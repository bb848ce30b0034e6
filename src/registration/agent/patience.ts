import { sleep, type Clock } from '../../runtime/index.ts'

export interface Patience {
  clock: Clock
  random: () => number
  signal: AbortSignal
  /** Told of each failure, and how often it has failed by now. */
  failed: (error: unknown, times: number) => void
  firstMs?: number | undefined
  mostMs?: number | undefined
}

/** The wait before try number `times + 1`: it doubles, and varies by half, so that a fleet does not knock in step. */
export const backoffMs = (times: number, random: () => number, firstMs = 500, mostMs = 30_000): number =>
  Math.min(firstMs * 2 ** Math.min(times - 1, 20), mostMs) * (0.5 + random() / 2)

/** Tries until it works, and rejects only when the signal ends it. */
export const patiently = async <T>(attempt: () => Promise<T>, patience: Patience): Promise<T> => {
  const { clock, random, signal, failed, firstMs, mostMs } = patience
  for (let times = 1; ; times++) {
    signal.throwIfAborted()
    try {
      return await attempt()
    } catch (error) {
      signal.throwIfAborted()
      failed(error, times)
    }
    await sleep(clock, backoffMs(times, random, firstMs, mostMs), signal)
  }
}

/** Waits until a moment, however far away; for ever if it is Infinity. */
export const sleepUntil = async (clock: Clock, at: number, signal: AbortSignal): Promise<void> => {
  const day = 86_400_000
  for (let left = at - clock.now(); left > 0; left = at - clock.now()) await sleep(clock, Math.min(left, day), signal)
}
