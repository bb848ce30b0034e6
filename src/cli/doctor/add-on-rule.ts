import type { ManagedClusterAddOn } from '../../api/index.ts'
import type { Condition } from '../../kube/index.ts'
import { findCondition } from '../../runtime/index.ts'
import { known, unseen, type Finding, type Rule } from './faults.ts'
import { hubOf, isLetIn, notLetIn, type Snapshot } from './snapshot.ts'

/** What one add-on is stuck with. */
export type AddOnRule = (addOn: ManagedClusterAddOn, s: Snapshot) => Finding | false | undefined

/** How long each part of a registration may take before it is called stuck. */
const settlingMs = 15_000

/** Whether something began so long ago that it should be done. */
export const isDue = (since: string | undefined, s: Snapshot, takesMs = settlingMs): boolean =>
  !(s.now - Date.parse(since ?? '') < takesMs)

/** The condition, where it is false for longer than it takes to become true. */
export const stuckFalse = (addOn: ManagedClusterAddOn, type: string, s: Snapshot): Condition | undefined => {
  const said = findCondition(addOn, type)
  return said?.status === 'False' && isDue(said.lastTransitionTime, s) ? said : undefined
}

/** A rule for each add-on of the cluster: the first that is stuck is shown, and others that are stuck alike are named with it. */
export const each =
  (rule: AddOnRule): Rule<Snapshot> =>
  (s) => {
    const all = known(hubOf(s).addOns.addOns).filter(({ metadata }) => metadata.namespace === s.name)
    if (all.length > 0 && !isLetIn(s)) return unseen(notLetIn)
    const [first, ...others] = all
      .filter(({ metadata }) => !metadata.deletionTimestamp)
      .toSorted((a, b) => (a.metadata.name! < b.metadata.name! ? -1 : 1))
      .flatMap((addOn) => {
        const finding = rule(addOn, s)
        return finding ? [{ finding, name: addOn.metadata.name! }] : []
      })
    if (!first) return undefined
    const alike = others.filter(({ finding }) => finding.fault === first.finding.fault).map(({ name }) => name)
    const more = alike.length > 0 ? `; add-ons that are stuck alike: ${alike.join(', ')}` : ''
    return { ...first.finding, why: `add-on ${first.name}: ${first.finding.why}${more}` }
  }
