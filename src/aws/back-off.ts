import { AwsError, type FailureReason } from './errors.ts'
import { describeLink, type Recipe } from './recipe.ts'

/** How long a failure is left alone: the first time, and at most. Where a reason is not here, it is `usual`. */
const pauses: Partial<Record<FailureReason, [firstMs: number, mostMs: number]>> = {
  AccessDenied: [5000, 300_000],
  InvalidRequest: [5000, 300_000],
  WebIdentityRefused: [5000, 300_000],
  LimitExceeded: [5000, 300_000],
  RegionDisabled: [30_000, 600_000],
}
const usual: [number, number] = [1000, 60_000]

/** How long to leave a recipe alone that has failed so often in a row. */
export const backOffMs = (error: unknown, failures: number, recipe: Recipe): number => {
  if (!(error instanceof AwsError)) return 0
  // The link that failed waits, for all that stand on it.
  if (error.link !== undefined && error.link !== describeLink(recipe)) return 0
  // A Secret is read near by, each time it is asked for.
  if (recipe.kind === 'static' && error.reason === 'SourceFailed') return 0
  if (error.policy.kind === 'stall') return recipe.kind === 'static' ? 0 : Number.POSITIVE_INFINITY
  const [first, most] = pauses[error.reason] ?? usual
  return Math.max(Math.min(first * 2 ** Math.min(failures - 1, 20), most), error.retryAfterMs ?? 0)
}

/** The failure with the time that is left until it is tried again. */
export const timely = (error: unknown, nextTry: number, now: number): unknown => {
  if (!(error instanceof AwsError) || error.policy.kind === 'stall' || nextTry <= now) return error
  return error.with({ policy: { kind: 'wait', afterMs: nextTry - now } })
}
