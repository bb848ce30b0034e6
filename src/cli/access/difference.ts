import type { Subject } from '../../kube/index.ts'
import { describeDeed, uncovered, type Place } from '../../permissions/contract.ts'
import { isGranted, type FleetGrant } from './fleet.ts'
import { placeText, roleText, subjectText } from './words.ts'

/** One right that somebody has on one side only. */
export interface Difference {
  readonly change: 'only-first' | 'only-second'
  readonly subject: Subject
  readonly place: Place
  /** `get pods`, or a role that only the cluster knows. */
  readonly right: string
  /** Through which permissions it is given there. */
  readonly through: readonly FleetGrant['through'][]
}

/**
 * What one side gives and the other does not. Rights are compared, not objects: `get pods` is no difference to `* pods`, a
 * right everywhere includes every namespace, and through which permission something is given does not matter.
 */
export const differenceOf = (first: readonly FleetGrant[], second: readonly FleetGrant[]): Difference[] => [
  ...onlyIn('only-first', first.filter(isGranted), second.filter(isGranted)),
  ...onlyIn('only-second', second.filter(isGranted), first.filter(isGranted)),
]

const onlyIn = (
  change: Difference['change'],
  grants: readonly FleetGrant[],
  others: readonly FleetGrant[],
): Difference[] => {
  const found = new Map<string, Difference>()
  for (const grant of grants) {
    const same = others.filter(
      (other) =>
        subjectText(other) === subjectText(grant) &&
        (other.place === 'cluster' || placeText(other.place) === placeText(grant.place)),
    )
    for (const right of rightsBeyond(grant, same)) {
      const key = `${subjectText(grant)}\n${placeText(grant.place)}\n${right}`
      const before = found.get(key)?.through ?? []
      const { subject, place, through } = grant
      found.set(key, { change, subject, place, right, through: [...before, through] })
    }
  }
  return [...found.values()]
}

const rightsBeyond = (grant: FleetGrant, held: readonly FleetGrant[]): string[] => {
  if (grant.rules) {
    const rules = held.flatMap((one) => one.rules ?? [])
    return [...new Set(uncovered(rules, grant.rules).map(describeDeed))]
  }
  // What a role of the cluster says is not known: it is the same when it has the same name.
  const role = roleText(grant)
  return held.some((one) => !one.rules && roleText(one) === role) ? [] : [`whatever ${role} of the cluster says`]
}
