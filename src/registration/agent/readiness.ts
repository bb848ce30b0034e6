import { describeError, ReconcileError, type Clock, type Logger } from '../../runtime/index.ts'

/** What the agent is doing and waits for, for logs and /readyz. */
export interface Readiness {
  /** Says what is waited for. Repeating it changes nothing. */
  waitFor: (what: string) => void
  /** Nothing is waited for any more. */
  ready: () => void
  waitingFor: () => { what: string; since: number } | undefined
  /** For /readyz: empty when there is nothing to wait for. */
  unready: () => string[]
}

/** Keeps the one thing that is waited for, and logs each once. */
export const newReadiness = (clock: Clock, log: Logger): Readiness => {
  let waiting: { what: string; since: number } | undefined = { what: 'the agent to start', since: clock.now() }
  return {
    waitFor: (what) => {
      if (waiting?.what === what) return
      waiting = { what, since: clock.now() }
      log.info('waiting', { for: what })
    },
    ready: () => {
      if (waiting) log.info('ready', { waitedMs: clock.now() - waiting.since })
      waiting = undefined
    },
    waitingFor: () => waiting,
    unready: () => {
      if (!waiting) return []
      return [`waiting for ${waiting.what} (${Math.round((clock.now() - waiting.since) / 1000)} s)`]
    },
  }
}

/** An error for the person who waits: one that says what to do next needs no causes behind it. */
export const inWords = (error: unknown): string =>
  error instanceof ReconcileError ? error.message : describeError(error)
