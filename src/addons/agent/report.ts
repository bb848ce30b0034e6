import { conditionType, type ManagedClusterAddOn } from '../../api/index.ts'
import type { ConditionState, Reason } from '../../runtime/index.ts'
import { RegistrationServed, type Registration } from '../contract.ts'
import { statusChanges, type Operation } from '../status-changes.ts'

/** Conditions that the agent owns: those that have no cause any more are taken away. */
const owned: ReadonlySet<string> = new Set([
  conditionType.addOn.tokenRefreshed,
  conditionType.addOn.tokenRefreshedElsewhere,
  conditionType.addOn.certificateRotated,
  conditionType.addOn.registrationServed,
])

/** What the items say about themselves; `undefined` is one that has nothing to tell yet. */
export interface Said {
  readonly secret: string
  readonly condition: ConditionState | undefined
}

/**
 * One condition of each type: several certificates share one, which is False while any of them fails. While an item has
 * nothing to tell, what was said of it before stays, unless its driver is another now.
 */
export const conditionsFrom = (said: readonly Said[], problems: readonly Reason[]): ConditionState[] => {
  const told = said.filter((one): one is Said & { condition: ConditionState } => one.condition !== undefined)
  const types = [...new Set(told.map(({ condition }) => condition.type))]
  const merged = types.map((type) => {
    const same = told.filter(({ condition }) => condition.type === type)
    const bad = same.filter(({ condition }) => condition.status !== 'True')
    const shown = bad.length ? bad : same
    const message =
      same.length === 1
        ? shown[0]!.condition.message
        : shown.map(({ secret, condition }) => `${secret}: ${condition.message}`).join('; ')
    return { ...shown[0]!.condition, message }
  })
  if (problems.length === 0) return merged
  const refused = RegistrationServed.refused(problems.map(({ message }) => message).join('; '))
  return [...merged, { ...refused, reason: problems[0]!.reason }]
}

/** The JSON patch that declares the items and tells how they stand; undefined when the hub has it all. */
export const statusPatch = (
  addOn: ManagedClusterAddOn,
  wanted: { registrations: readonly Registration[]; states: readonly ConditionState[]; silent: ReadonlySet<string> },
  now: number,
): Operation[] | undefined => {
  const { states, silent } = wanted
  const types = new Set(states.map(({ type }) => type))
  const cleared = [...owned].filter((type) => !types.has(type) && !silent.has(type))
  const fields = { registrations: [...wanted.registrations] }
  const json = statusChanges(addOn, { fields, states, cleared }, { now })
  return json.length > 0 ? json : undefined
}
