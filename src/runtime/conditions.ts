import type { Condition, KubeObject } from '../kube/index.ts'

/** What a condition says, before it has a time. */
export type ConditionState = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>

type States = Record<string, Pick<Condition, 'status' | 'reason'> & { message?: string }>

/** A condition as data: its type and the states that it can have. Each state is a function that takes a better message. */
export const condition = <S extends States>(
  type: string,
  states: S,
): { type: string } & { [K in keyof S]: (message?: string) => ConditionState } => {
  const made = Object.entries(states).map(([name, state]) => [
    name,
    (message?: string): ConditionState => ({ type, ...state, message: message ?? state.message ?? '' }),
  ])
  return { type, ...Object.fromEntries(made) } as { type: string } & {
    [K in keyof S]: (message?: string) => ConditionState
  }
}

/** The API refuses longer messages. */
const longestMessage = 32_768

/**
 * The conditions with these states set. What does not differ keeps its time, and when nothing differs the same array comes
 * back, so that the caller knows that there is nothing to write.
 */
export const setConditions = (
  present: readonly Condition[] | undefined,
  states: readonly ConditionState[],
  at: { now: number; generation?: number | undefined },
): Condition[] => {
  const result = [...(present ?? [])]
  let changed = present === undefined
  for (const { type, status, reason, message: text } of states) {
    const message = text.slice(0, longestMessage)
    const index = result.findIndex((c) => c.type === type)
    const old = result[index]
    const same =
      old?.status === status &&
      old.reason === reason &&
      old.message === message &&
      old.observedGeneration === at.generation
    if (same) continue
    changed = true
    const lastTransitionTime = old?.status === status ? old.lastTransitionTime : timestamp(at.now)
    const next: Condition = { type, status, reason, message, lastTransitionTime }
    if (at.generation !== undefined) next.observedGeneration = at.generation
    if (index < 0) result.push(next)
    else result[index] = next
  }
  return changed ? result : (present as Condition[])
}

export const findCondition = (
  object: KubeObject & { status?: { conditions?: Condition[] | undefined } | undefined },
  type: string,
): Condition | undefined => object.status?.conditions?.find((c) => c.type === type)

/** True only when the condition is there and says so. */
export const isTrue = (
  object: KubeObject & { status?: { conditions?: Condition[] | undefined } | undefined },
  type: string,
): boolean => findCondition(object, type)?.status === 'True'

/** metav1.Time: seconds, no fraction. */
export const timestamp = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`

/** metav1.MicroTime: exactly six digits of fraction, or the API server refuses it. */
export const microTimestamp = (ms: number): string => `${new Date(ms).toISOString().slice(0, 23)}000Z`
