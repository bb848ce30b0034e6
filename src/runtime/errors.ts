/** What a controller does after an error: `retry` backs off, `wait` looks again later, `stall` does nothing until the object changes. */
export type ErrorPolicy = { kind: 'retry' } | { kind: 'wait'; afterMs: number } | { kind: 'stall' }

export interface ErrorDetails {
  /** What happened, to which object, and why. */
  message: string
  /** What a person can do about it. */
  next?: string | undefined
  cause?: unknown
}

/** An error that knows what is to be done about it, and what to write into a condition. */
export class ReconcileError extends Error {
  override name = 'ReconcileError'
  readonly reason: string
  readonly policy: ErrorPolicy
  readonly next: string | undefined

  constructor(policy: ErrorPolicy, reason: string, details: ErrorDetails) {
    super(details.next ? `${details.message}; ${details.next}` : details.message, { cause: details.cause })
    this.policy = policy
    this.reason = reason
    this.next = details.next
  }
}

/** Trying again is of no use until something changes. */
export class TerminalError extends ReconcileError {
  override name = 'TerminalError'

  constructor(reason: string, details: ErrorDetails) {
    super({ kind: 'stall' }, reason, details)
  }
}

/** Nothing to be done until the object, or what it refers to, changes. */
export const stalled = (reason: string, details: ErrorDetails): TerminalError => new TerminalError(reason, details)

/** Something else has to happen first; look again after a fixed time, without alarm. */
export const waiting = (reason: string, details: ErrorDetails & { afterMs: number }): ReconcileError =>
  new ReconcileError({ kind: 'wait', afterMs: details.afterMs }, reason, details)

/** Every error has a policy: those that bring none are retried. */
export const policyOf = (error: unknown): ErrorPolicy =>
  error instanceof ReconcileError ? error.policy : { kind: 'retry' }
