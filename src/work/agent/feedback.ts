import type { Unstructured } from '../../kube/index.ts'
import type { ConditionState } from '../../runtime/index.ts'
import { FeedbackSynced } from '../contract.ts'
import { jsonPath } from './json-path.ts'
import type { ManifestConfig } from './manifest.ts'
import type { FeedbackValue } from './memory.ts'

type FeedbackRule = NonNullable<ManifestConfig['feedbackRules']>[number]
type Path = NonNullable<FeedbackRule['jsonPaths']>[number]

/** The values that everybody wants of a kind. */
const wellKnown: Record<string, readonly Path[]> = {
  'apps/Deployment': [
    { name: 'ReadyReplicas', path: '.status.readyReplicas' },
    { name: 'Replicas', path: '.status.replicas' },
    { name: 'AvailableReplicas', path: '.status.availableReplicas' },
  ],
  'apps/DaemonSet': [
    { name: 'NumberReady', path: '.status.numberReady' },
    { name: 'DesiredNumberScheduled', path: '.status.desiredNumberScheduled' },
    { name: 'NumberAvailable', path: '.status.numberAvailable' },
  ],
  'batch/Job': [
    { name: 'JobComplete', path: '.status.conditions[?(@.type=="Complete")].status' },
    { name: 'JobSucceeded', path: '.status.succeeded' },
  ],
  '/Pod': [
    { name: 'PodReady', path: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'PodPhase', path: '.status.phase' },
  ],
}

/** The API refuses longer ones. */
const longestText = 1024

export interface FeedbackOptions {
  /** Lists and maps are reported as JSON text, too. */
  rawJson?: boolean | undefined
}

/** Reads what the rules ask for. What goes wrong with one path does not hinder the others. */
export const readFeedback = (
  object: Unstructured,
  kind: { group: string; kind: string },
  rules: readonly FeedbackRule[],
  options: FeedbackOptions = {},
): { values: FeedbackValue[]; state: ConditionState } => {
  const values: FeedbackValue[] = []
  const problems: string[] = []
  const known = wellKnown[`${kind.group}/${kind.kind}`]
  for (const rule of rules) {
    if (rule.type === 'WellKnownStatus' && !known)
      problems.push(`there are no well-known values of ${kind.kind}: use the type JSONPaths`)
    const paths = rule.type === 'WellKnownStatus' ? (known ?? []) : (rule.jsonPaths ?? [])
    for (const path of paths) {
      // The API keeps values by name, and would refuse the whole status.
      if (values.some(({ name }) => name === path.name)) problems.push(`${path.name}: another value has this name`)
      else read(object, path, options, values, problems)
    }
  }
  return { values, state: stateOf(values, problems) }
}

const stateOf = (values: FeedbackValue[], problems: string[]): ConditionState => {
  if (problems.length) return FeedbackSynced.failed(problems.join('; '))
  return values.length
    ? FeedbackSynced.synced('All values are reported')
    : FeedbackSynced.nothing('There are no values yet')
}

const read = (
  object: Unstructured,
  path: Path,
  options: FeedbackOptions,
  values: FeedbackValue[],
  problems: string[],
): void => {
  if (path.version && path.version !== (object.apiVersion ?? '').split('/').at(-1)) return
  try {
    const found = jsonPath(path.path)(object).filter(({ value }) => value !== null && value !== undefined)
    if (found.length === 0) return // not there yet: no value, and no problem
    if (found.length > 1) throw new Error(`${path.path} gives ${found.length} values; it must give one`)
    values.push({ name: path.name, fieldValue: typed(found[0]!.value, options) })
  } catch (error) {
    problems.push(`${path.name}: ${(error as Error).message}`)
  }
}

const typed = (value: unknown, { rawJson }: FeedbackOptions): FeedbackValue['fieldValue'] => {
  if (typeof value === 'boolean') return { type: 'Boolean', boolean: value }
  if (typeof value === 'number' && Number.isSafeInteger(value)) return { type: 'Integer', integer: value }
  if (typeof value === 'object' && !rawJson) throw new Error('the value is a list or a map; choose one field of it')
  const text = typeof value === 'object' ? JSON.stringify(value) : `${value as string | number}`
  if (text.length > longestText) throw new Error(`the value has ${text.length} characters; at most ${longestText} fit`)
  return typeof value === 'object' ? { type: 'JsonRaw', jsonRaw: text } : { type: 'String', string: text }
}
