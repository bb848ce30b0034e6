/** Why something has to be done, or must not be. */
export interface Reason {
  reason: string
  message: string
}

/** One rule of a decision. It reads as a sentence, and touches neither clock nor network. */
export type Check<S> = (state: S) => Reason | false | undefined

/** The decision: the first check that objects gives the reason. The order of the list is the policy. */
export const firstOf =
  <S>(checks: readonly Check<S>[]) =>
  (state: S): Reason | undefined => {
    for (const check of checks) {
      const reason = check(state)
      if (reason) return reason
    }
    return undefined
  }
