import type { ManagedClusterAddOn } from '../api/index.ts'
import { isInvalid, type Condition } from '../kube/index.ts'
import { equal, setConditions, type ConditionState } from '../runtime/index.ts'

type Status = NonNullable<ManagedClusterAddOn['status']>

/** One step of a JSON patch. */
export type Operation = { op: 'test' | 'add' | 'replace' | 'remove'; path: string; value?: unknown }

/** What a status should say where it differs; all else stays as others wrote it. */
export interface StatusChange {
  readonly fields: Partial<Pick<Status, 'namespace' | 'healthCheck' | 'registrations' | 'configReferences'>>
  readonly states: readonly ConditionState[]
  /** Types of conditions that mean nothing any more. */
  readonly cleared: readonly string[]
}

/**
 * The JSON patch that brings a status there; empty when nothing differs. Hub and agent write the same status at the same
 * time: each tests only what it relies on, since a resourceVersion would make each start again because of the other.
 */
export const statusChanges = (
  addOn: ManagedClusterAddOn,
  { fields, states, cleared }: StatusChange,
  at: { now: number; generation?: number | undefined },
): Operation[] => {
  const changes = [...fieldChanges(addOn.status, fields), ...conditionChanges(addOn.status, states, cleared, at)]
  if (changes.length === 0) return []
  const same: Operation = { op: 'test', path: '/metadata/uid', value: addOn.metadata.uid }
  const root: Operation[] = addOn.status
    ? []
    : [
        { op: 'test', path: '/status', value: null },
        { op: 'add', path: '/status', value: {} },
      ]
  return [same, ...root, ...changes]
}

/** Whether a patch was refused because a test in it failed: the API names a field for everything else that it finds invalid. */
export const isOutdated = (error: unknown): boolean => isInvalid(error) && !error.details.causes?.length

const fieldChanges = (present: Status | undefined, wanted: StatusChange['fields']): Operation[] =>
  Object.entries(wanted).flatMap(([field, value]): Operation[] => {
    const old = present?.[field as keyof Status]
    if (equal(old, value)) return []
    return [
      // `test` with null holds where there is nothing.
      ...(present ? [{ op: 'test' as const, path: `/status/${field}`, value: old ?? null }] : []),
      { op: 'add', path: `/status/${field}`, value },
    ]
  })

const conditionChanges = (
  status: Status | undefined,
  states: readonly ConditionState[],
  cleared: readonly string[],
  at: { now: number; generation?: number | undefined },
): Operation[] => {
  const path = '/status/conditions'
  const present = status?.conditions
  const next = setConditions(present ?? [], states, at)
  if (!present) return next.length > 0 ? [...absent(status, path), { op: 'add', path, value: next }] : []
  const asSeen = (i: number): Operation => ({ op: 'test', path: `${path}/${i}`, value: present[i] })
  const replaced = present.flatMap((old, i): Operation[] =>
    next[i] === old ? [] : [asSeen(i), { op: 'replace', path: `${path}/${i}`, value: next[i] }],
  )
  // From the end, so that the places of the others stay; before anything is added at the end.
  const removed = indexesOf(present, cleared).flatMap((i): Operation[] => [
    asSeen(i),
    { op: 'remove', path: `${path}/${i}` },
  ])
  const added = next.slice(present.length).map((value): Operation => ({ op: 'add', path: `${path}/-`, value }))
  return [...replaced, ...removed, ...added]
}

const absent = (status: Status | undefined, path: string): Operation[] =>
  status ? [{ op: 'test', path, value: null }] : []

const indexesOf = (conditions: readonly Condition[], types: readonly string[]): number[] =>
  conditions.flatMap(({ type }, i) => (types.includes(type) ? [i] : [])).toReversed()
