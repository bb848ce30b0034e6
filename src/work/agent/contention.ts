import type { Unstructured } from '../../kube/index.ts'

/** How often an object was put right lately, and until when it is left alone. */
export interface Contention {
  repairs: number[]
  until: number
  rounds: number
}

export const noContention = (): Contention => ({ repairs: [], until: 0, rounds: 0 })

export interface ContentionLimits {
  /** Repairs in a minute after which somebody else must be at it. */
  repairsPerMinute: number
}

const minute = 60_000
const longestPause = 10 * minute

/** Notes a repair. From the limit on, the object is left alone: a minute at first, and longer each time that it goes on. */
export const noteRepair = (of: Contention, now: number, limits: ContentionLimits): Contention => {
  const repairs = [...of.repairs.filter((at) => at > now - minute), now]
  if (repairs.length < limits.repairsPerMinute) return { ...of, repairs }
  const calm = now - of.until > longestPause
  const rounds = calm ? 0 : of.rounds
  return { repairs: [], until: now + Math.min(minute * 2 ** rounds, longestPause), rounds: rounds + 1 }
}

/** What to say about it: who is on the other side, and what can be done. */
export const contentionMessage = (rival: string | undefined, limits: ContentionLimits): string => {
  const who = rival ? `${rival} changes it back` : 'somebody changes it back'
  return `${who}: it was repaired ${limits.repairsPerMinute} times in a minute and is now left alone for a while; take the object out of the work, stop the other side, or use ServerSideApply with ignoreFields or CreateOnly`
}

/** Who else writes the object, from its managed fields: the last one who is not us. */
export const rivalOf = (object: Unstructured, ours: readonly string[]): string | undefined => {
  const entries = (object.metadata.managedFields ?? []) as { manager?: string; time?: string; subresource?: string }[]
  return entries
    .filter(({ manager, subresource }) => manager && !subresource && !ours.includes(manager))
    .toSorted((a, b) => (a.time ?? '').localeCompare(b.time ?? ''))
    .at(-1)?.manager
}
