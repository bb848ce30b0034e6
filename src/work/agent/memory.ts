import type { ManifestWork } from '../../api/index.ts'
import type { KubeObject, ObjectMeta } from '../../kube/index.ts'
import type { ConditionState } from '../../runtime/index.ts'
import type { Contention } from './contention.ts'
import type { Plan } from './plan.ts'

export type ManifestStatus = NonNullable<
  NonNullable<NonNullable<ManifestWork['status']>['resourceStatus']>['manifests']
>[number]
export type FeedbackValue = NonNullable<NonNullable<ManifestStatus['statusFeedback']>['values']>[number]

/** What is said about one manifest. */
export interface Report {
  readonly states: readonly ConditionState[]
  readonly values?: readonly FeedbackValue[] | undefined
}

/** What the agent knows of one manifest since it last looked. Lost with the process; then it looks again. */
export interface Memory {
  /** Of the target: what was wanted. */
  hash: string
  /** The object as it was then; undefined when there was none. */
  seen: Pick<ObjectMeta, 'uid' | 'resourceVersion' | 'generation'> | undefined
  /** What the watch showed when we had just written: while it shows that, it is only behind. */
  behind: { resourceVersion: string | undefined } | undefined
  /** A fingerprint of the content that the server made of the manifest. */
  content: string | undefined
  /** Labels, annotations and owner that must still be there when only the version differs. */
  holds: (object: KubeObject) => boolean
  report: Report
  /** Its values are reported, so that every change matters. */
  reported: boolean
  /** When to look again though nothing was seen to change: after a failure, or where nothing can be watched. */
  lookAt: number
  failures: number
  contention: Contention
}

/** What the agent knows of one work. */
export interface WorkMemory {
  plan: Plan | undefined
  readonly manifests: Map<string, Memory>
  /** When values were last looked at; they are reported at most every few seconds. */
  reportedAt: number
}

export const newMemory = (): WorkMemory => ({ plan: undefined, manifests: new Map(), reportedAt: 0 })

/** What a change that the watch saw means: nothing, values to report, or something to look at now. */
export const meaningOf = (object: KubeObject, memory: Memory | undefined): 'nothing' | 'values' | 'look' => {
  const seen = memory?.seen
  if (!memory || !seen || seen.uid !== object.metadata.uid) return 'look'
  const { resourceVersion, generation, deletionTimestamp } = object.metadata
  if (resourceVersion === seen.resourceVersion) return 'nothing'
  if (deletionTimestamp) return 'look'
  // The generation counts changes of the content: while it stands still, only status and metadata changed.
  if (generation === undefined || generation !== seen.generation || !memory.holds(object)) return 'look'
  return memory.reported ? 'values' : 'nothing'
}
