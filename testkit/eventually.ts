import { setTimeout as sleep } from 'node:timers/promises'
import { inspect } from 'node:util'
import { initialEventsEnd, keyOf, type KubeObject, type ResourceClient } from '../src/kube/index.ts'

/** How long to wait, and what for, in words. */
export interface EventuallyOptions {
  timeoutMs?: number
  message?: string
}

/** What a check returns when it passes. */
type Passed<T> = Exclude<Awaited<T>, false>

const polling = <T>(check: () => T | Promise<T>, options?: EventuallyOptions): Promise<Passed<T>> =>
  bounded(options, async (saw, signal) => {
    for (let pauseMs = 10; ; pauseMs = Math.min(pauseMs * 1.5, 250)) {
      const began = performance.now()
      const outcome = await outcomeOf(check, saw)
      if (outcome) return outcome.value
      // A check that takes long, such as a list of everything, must not keep busy what it waits for.
      await sleep(Math.max(pauseMs, 2 * (performance.now() - began)), undefined, { signal })
    }
  })

const watching = <O extends KubeObject, T>(
  resources: ResourceClient<O>,
  check: (objects: O[]) => T | Promise<T>,
  options?: EventuallyOptions,
): Promise<Passed<T>> =>
  bounded(options, async (saw, signal) => {
    for (;;) {
      try {
        for await (const objects of statesOf(resources, signal)) {
          const outcome = await outcomeOf(() => check(objects), saw)
          if (outcome) return outcome.value
        }
      } catch (error) {
        saw(error) // the API server may be on its way down or up
      }
      await sleep(50, undefined, { signal })
    }
  })

/**
 * Waits until `check` passes, and returns what it returned. It does not pass while it throws or returns `false`.
 * When the time is up, the error says what was seen last.
 *
 * `eventually(check)` asks again and again; `eventually.watching(client.of(Kind, 'ns'), check)` hands the objects of one
 * kind to the check each time one of them changes.
 */
export const eventually = Object.assign(polling, { watching })

/** All objects of a kind, again after every change. */
async function* statesOf<O extends KubeObject>(resources: ResourceClient<O>, signal: AbortSignal): AsyncGenerator<O[]> {
  const objects = new Map<string, O>()
  let complete = false
  for await (const batch of await resources.watch({ sendInitialEvents: true, signal })) {
    for (const { type, object } of batch) {
      if (type === 'BOOKMARK') complete ||= initialEventsEnd in (object.metadata.annotations ?? {})
      else if (type === 'DELETED') objects.delete(keyOf(object))
      else objects.set(keyOf(object), object)
    }
    if (complete) yield [...objects.values()]
  }
}

const outcomeOf = async <T>(
  check: () => T | Promise<T>,
  saw: (what: unknown) => void,
): Promise<{ value: Passed<T> } | undefined> => {
  try {
    const value = await check()
    if (passed(value)) return { value }
    saw(value)
  } catch (error) {
    saw(error)
  }
  return undefined
}

const passed = <T>(value: T): value is Exclude<T, false> => value !== false

/** Runs until it returns or the time is up; `saw` remembers what the error is to tell. */
const bounded = async <T>(
  { timeoutMs = 30_000, message = 'the check did not pass' }: EventuallyOptions = {},
  run: (saw: (what: unknown) => void, signal: AbortSignal) => Promise<T>,
): Promise<T> => {
  const over = new AbortController()
  let seen: unknown = 'nothing: the check never finished'
  const givesUp = async (): Promise<never> => {
    await sleep(timeoutMs, undefined, { signal: over.signal })
    const last = seen instanceof Error ? seen.message : inspect(seen)
    throw new Error(`${message} within ${timeoutMs / 1000} s; last seen: ${last}`, { cause: seen })
  }
  const racers = [run((what) => (seen = what), over.signal), givesUp()]
  try {
    return await Promise.race(racers)
  } finally {
    over.abort()
    void Promise.allSettled(racers) // the loser ends with an abort that concerns nobody
  }
}
