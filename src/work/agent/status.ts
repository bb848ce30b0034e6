import { ManifestWork } from '../../api/index.ts'
import type { Condition } from '../../kube/index.ts'
import { equal, setConditions, type ConditionState } from '../../runtime/index.ts'
import { ManifestApplied, ManifestAvailable, ruleReason, WorkApplied, WorkAvailable } from '../contract.ts'
import type { Agent } from './agent.ts'
import { aggregated } from './condition-rules.ts'
import { nameOf } from './manifest.ts'
import type { ManifestStatus, Report } from './memory.ts'
import type { Entry } from './plan.ts'

type Status = NonNullable<ManifestWork['status']>

/** One manifest and what is to be said about it. */
export interface Reported {
  readonly entry: Entry
  readonly report: Report
}

/** etcd takes 1.5 MiB for an object, with its managed fields. */
const mostBytes = 1_400_000
const mostNamed = 3

/** The status of a work from that of its manifests. What does not differ keeps its times. */
export const statusFor = (
  work: ManifestWork,
  reported: readonly Reported[],
  at: { now: number; trouble?: string | undefined },
): Status => {
  const { generation } = work.metadata
  const before = new Map(work.status?.resourceStatus?.manifests?.map((one) => [metaKey(one.resourceMeta), one]))
  const manifests = reported.map(({ entry, report }): ManifestStatus => {
    const resourceMeta = metaOf(entry)
    const types = new Set(report.states.map(({ type }) => type))
    const old = before.get(metaKey(resourceMeta))?.conditions?.filter(({ type }) => types.has(type))
    return {
      resourceMeta,
      ...(report.values?.length ? { statusFeedback: { values: [...report.values] } } : {}),
      conditions: setConditions(old ?? [], report.states, { now: at.now, generation }),
    }
  })
  const shown = fitting(work, manifests)
  const rest =
    shown.length < manifests.length
      ? `; ${shown.length} of ${manifests.length} manifests are listed, the failed ones first: more would not fit`
      : ''
  const states = [appliedState(reported, at.trouble, rest), availableState(reported), ...ruleStates(reported)]
  const present = (work.status?.conditions ?? []).filter(
    ({ type, reason }) => reason !== ruleReason.aggregated || states.some((state) => state.type === type),
  )
  return {
    conditions: setConditions(present, states, { now: at.now, generation }),
    resourceStatus: { manifests: shown },
  }
}

/** Writes a status; nothing is sent when it is the same. With uid and resourceVersion: arrays are replaced whole. */
export const writeStatus = async (
  agent: Agent,
  work: ManifestWork,
  status: Status,
  signal: AbortSignal,
): Promise<void> => {
  if (equal(work.status?.conditions, status.conditions) && equal(work.status?.resourceStatus, status.resourceStatus))
    return
  const { name, uid, resourceVersion } = work.metadata
  const written = await agent.hub
    .of(ManifestWork, agent.cluster)
    .patch(name!, { merge: { metadata: { uid, resourceVersion }, status } }, { subresource: 'status', signal })
  agent.written.wrote(name!, work, written)
}

const stateOf = ({ report }: Reported, type: string): ConditionState | undefined =>
  report.states.find((state) => state.type === type)

const appliedState = (reported: readonly Reported[], trouble: string | undefined, rest: string): ConditionState => {
  const failed = reported.filter((one) => stateOf(one, ManifestApplied.type)?.status !== 'True')
  if (failed.length === 0 && trouble === undefined)
    return rest ? WorkApplied.complete(`Apply manifest work complete${rest}`) : WorkApplied.complete()
  const named = failed
    .slice(0, mostNamed)
    .map((one) => `${nameOf(one.entry)}: ${stateOf(one, ManifestApplied.type)?.message ?? 'not applied yet'}`)
  const more = failed.length > mostNamed ? ['and others'] : []
  const summary = failed.length
    ? [`${failed.length} of ${reported.length} manifests failed: ${[...named, ...more].join('; ')}`]
    : []
  return WorkApplied.failed([...summary, ...(trouble === undefined ? [] : [trouble])].join('; ') + rest)
}

const availableState = (reported: readonly Reported[]): ConditionState => {
  const count = (status: string): number =>
    reported.filter((one) => (stateOf(one, ManifestAvailable.type)?.status ?? 'Unknown') === status).length
  const [missing, unknown] = [count('False'), count('Unknown')]
  if (missing) return WorkAvailable.missing(`${missing} of ${reported.length} resources are not available`)
  if (unknown) return WorkAvailable.unknown(`${unknown} of ${reported.length} resources have unknown status`)
  return WorkAvailable.available()
}

const ruleStates = (reported: readonly Reported[]): ConditionState[] =>
  aggregated(
    reported.flatMap(({ report }) =>
      report.states.filter(({ reason }) => reason === ruleReason.evaluated || reason === ruleReason.invalid),
    ),
  )

const metaOf = (entry: Entry): ManifestStatus['resourceMeta'] => {
  const { ordinal, group, version, kind, name, namespace, target } = entry
  const meta = {
    group,
    version,
    kind,
    resource: target?.resource.plural,
    name,
    namespace: target ? target.namespace : namespace,
  }
  return { ordinal, ...Object.fromEntries(Object.entries(meta).filter(([, value]) => value)) }
}

const metaKey = (meta: ManifestStatus['resourceMeta']): string =>
  meta.kind && meta.name
    ? JSON.stringify([meta.group ?? '', meta.kind, meta.namespace ?? '', meta.name])
    : `#${meta.ordinal ?? 0}`

/** As many as an object can hold, those with trouble first. */
const fitting = (work: ManifestWork, manifests: ManifestStatus[]): ManifestStatus[] => {
  if (manifests.length < 500) return manifests
  const { status: _, ...bare } = work
  let left = mostBytes - JSON.stringify(bare).length - 10_000
  const isTroubled = ({ conditions }: ManifestStatus): boolean =>
    conditions?.some((c: Condition) => c.status !== 'True') ?? true
  const kept = new Set<ManifestStatus>()
  for (const one of [...manifests.filter(isTroubled), ...manifests.filter((m) => !isTroubled(m))]) {
    left -= JSON.stringify(one).length + 1
    if (left < 0) break
    kept.add(one)
  }
  return manifests.filter((one) => kept.has(one))
}
