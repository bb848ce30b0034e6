import { isForbidden, isNotFound, type Client } from '../../kube/index.ts'
import { describeError, type Clock } from '../../runtime/index.ts'

/** How the managed cluster's own API server is. `unsure`: it failed, but not for long enough to say so. */
export type Health = { state: 'ok'; version: string } | { state: 'unsure' } | { state: 'failed'; why: string }

/** A single failure is no outage: it has to go on for this long. */
const persistMs = 20_000
const recheckMs = 5000

/** Asks when the last answer is older than the period, and more often while the answer is bad. */
export const healthCheck = (local: Client, clock: Clock, periodMs: number) => {
  let last: { at: number; health: Health } | undefined
  let failingSince: number | undefined
  const waitMs = (): number => (last?.health.state === 'ok' ? periodMs : Math.min(recheckMs, periodMs))
  return {
    /** When to ask again, from now. */
    dueInMs: (): number => (last ? Math.max(last.at + waitMs() - clock.now(), 0) : 0),
    async current(signal: AbortSignal): Promise<Health> {
      if (last && clock.now() < last.at + waitMs()) return last.health
      let health: Health
      try {
        health = { state: 'ok', version: await ask(local, signal) }
        failingSince = undefined
      } catch (error) {
        signal.throwIfAborted()
        failingSince ??= clock.now()
        const persists = clock.now() - failingSince >= persistMs
        health = persists ? { state: 'failed', why: describeError(error) } : { state: 'unsure' }
      }
      last = { at: clock.now(), health }
      return health
    },
  }
}

const ask = async (local: Client, signal: AbortSignal): Promise<string> => {
  const call = { method: 'GET', signal, timeoutMs: 10_000 } as const
  await local.text({ ...call, path: '/livez' }).catch((error: unknown) => {
    // Before 1.16, and where RBAC for it is missing.
    if (isNotFound(error) || isForbidden(error)) return local.text({ ...call, path: '/healthz' })
    throw error
  })
  return (await local.json<{ gitVersion: string }>({ ...call, path: '/version' })).gitVersion
}
