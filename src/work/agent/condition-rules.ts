import type { Unstructured } from '../../kube/index.ts'
import type { ConditionState } from '../../runtime/index.ts'
import { ruleReason } from '../contract.ts'
import { jsonPath } from './json-path.ts'
import type { ManifestConfig } from './manifest.ts'

type Rule = NonNullable<ManifestConfig['conditionRules']>[number]

/** The condition that says that an object has done its work, and needs no protection any more. */
export const completeType = 'Complete'

const jobConditions = jsonPath('.status.conditions[?(@.status=="True")].type')

/** When a kind is complete, where that is known. */
const complete: Record<string, (object: Unstructured) => boolean> = {
  'batch/Job': (job) => jobConditions(job).some(({ value }) => value === 'Complete' || value === 'Failed'),
  '/Pod': (pod) => ['Succeeded', 'Failed'].includes((pod['status'] as { phase?: string } | undefined)?.phase ?? ''),
}

// What the API takes for the type of a condition; it would refuse the whole status for another.
const typePattern =
  /^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$/

/** The conditions that a work's rules derive from an object. A rule that isn't understood says so instead of being passed over. */
export const ruleConditions = (
  object: Unstructured,
  kind: { group: string; kind: string },
  rules: readonly Rule[],
): ConditionState[] => {
  const states = rules
    .filter(({ condition }) => typePattern.test(condition))
    .map((rule) => evaluate(object, kind, rule))
  return states.filter(({ type }, index) => states.findIndex((other) => other.type === type) === index)
}

const evaluate = (object: Unstructured, kind: { group: string; kind: string }, rule: Rule): ConditionState => {
  const invalid = (message: string): ConditionState => ({
    type: rule.condition,
    status: 'Unknown',
    reason: ruleReason.invalid,
    message,
  })
  if (rule.type === 'CEL')
    return invalid('rules of the type CEL are not supported: use WellKnownConditions or feedbackRules')
  const isComplete = complete[`${kind.group}/${kind.kind}`]
  if (!isComplete || rule.condition !== completeType)
    return invalid(`${rule.condition} is not a well-known condition of ${kind.kind}: there is Complete, of Job and Pod`)
  const done = isComplete(object)
  const message = rule.message ?? `${kind.kind} is ${done ? '' : 'not '}complete`
  return { type: rule.condition, status: done ? 'True' : 'False', reason: ruleReason.evaluated, message }
}

/** The conditions of the whole work from those of its manifests: False wins, then Unknown; of Progressing, True wins. */
export const aggregated = (states: readonly ConditionState[]): ConditionState[] =>
  [...Map.groupBy(states, ({ type }) => type)].map(([type, all]) => {
    const wins = type === 'Progressing' ? 'True' : 'False'
    const count = (status: string): number => all.filter((state) => state.status === status).length
    const status = count(wins) ? wins : count('Unknown') ? 'Unknown' : wins === 'True' ? 'False' : 'True'
    const message = `${count('True')} of ${all.length} manifests are ${type}`
    return { type, status, reason: ruleReason.aggregated, message }
  })
