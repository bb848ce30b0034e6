import type { ManifestWork } from '../../api/index.ts'
import {
  ApiError,
  ConnectionError,
  isConflict,
  isUnauthorized,
  type KubeObject,
  type Unstructured,
} from '../../kube/index.ts'
import { describeError } from '../../runtime/index.ts'
import { ManifestApplied, ManifestAvailable } from '../contract.ts'
import type { Agent } from './agent.ts'
import { refUid } from './applied-record.ts'
import { claimRefusal } from './claims.ts'
import { completeType, ruleConditions } from './condition-rules.ts'
import { contentionMessage, noContention, noteRepair, rivalOf } from './contention.ts'
import type { ExecutorCheck } from './executor.ts'
import { readFeedback } from './feedback.ts'
import { hashOf } from './manifest.ts'
import type { Memory, Report } from './memory.ts'
import { disown, isOwnedBy, otherWorks, ownerFor } from './ownership.ts'
import type { AppliedManifestWork } from '../../api/index.ts'
import type { Entry, Target } from './plan.ts'
import { ApplyProblem, contentOf, strategies, type Applied } from './strategies/index.ts'

/** One manifest to apply, and for whom. */
export interface Task {
  readonly agent: Agent
  readonly work: ManifestWork
  readonly record: AppliedManifestWork
  readonly entry: Entry
  readonly executor: ExecutorCheck
  readonly before: Memory | undefined
  /** Most likely it is not there yet. */
  readonly unseen: boolean
  /** Why it cannot be applied before something else of the work. */
  readonly waitsFor: string | undefined
  readonly signal: AbortSignal
}

/** A watch that is still behind after this long has seen something that we have not. */
const behindMs = 1000
const backoff = { firstMs: 500, mostMs: 60_000 }

/** Applies one manifest, and answers what is known of it now. Throws only when the cluster itself cannot be reached. */
export const applyEntry = async (task: Task): Promise<Memory> => {
  const { agent, entry, before } = task
  if (entry.problem !== undefined) return unappliable(task, entry.problem)
  if (!entry.target) return unappliable(task, notServed(entry))
  const done = completedReport(task.work, entry)
  if (done) return { ...memoryOf(task, entry.target, undefined), report: done, lookAt: Infinity }
  const started = agent.clock.now()
  try {
    if (task.waitsFor !== undefined) throw new ApplyProblem(task.waitsFor)
    const applied = await applied1(task, entry.target)
    agent.metrics.applied(entry.kind, (agent.clock.now() - started) / 1000)
    return succeeded(task, entry.target, applied)
  } catch (error) {
    if (task.signal.aborted || isOutage(error)) throw error
    agent.metrics.failed(entry.kind)
    return failed(task, entry.target, error, before)
  }
}

/** Others write the same object now and then: a conflict is tried again at once. */
const applied1 = async (task: Task, target: Target): Promise<Applied & { rival?: string | undefined }> => {
  const { agent, entry, record, executor, before, signal } = task
  const objects = agent.local.of<Unstructured>(target.resource, target.namespace)
  const { namespace: _, ...metadata } = entry.object.metadata
  const desired = {
    ...entry.object,
    metadata: { ...metadata, ...(target.namespace && { namespace: target.namespace }) },
  }
  const reference = ownerFor(record)
  const settings = target.config.updateStrategy ?? {}
  const known = before?.hash === target.hash ? before.content : undefined
  await executor.mayApply(target, entry.name)
  let rival: string | undefined
  for (let tries = 0; ; tries++) {
    try {
      const applied = await strategies[settings.type ?? 'Update']({
        objects,
        desired,
        unseen: task.unseen && tries === 0,
        owner: { reference, owned: !target.orphan },
        settings,
        isAsApplied: (present) => {
          rival =
            otherWorks(present, reference.uid)[0]?.name ??
            rivalOf(present, ['work-agent', settings.serverSideApply?.fieldManager ?? ''])
          return known !== undefined && known === hashOf(contentOf(present))
        },
        mayTake: (present) => {
          const wasOurs = (): boolean => refUid(record, target, entry.name) !== undefined
          const refusal = claimRefusal(desired, present, { record, hubHash: agent.hubHash, wasOurs })
          if (refusal !== undefined) throw new ApplyProblem(refusal, { foreign: true })
        },
        mayWrite: (next, present) => executor.mayWrite(target, next, present),
        signal,
      })
      const stray = !target.readOnly && target.orphan && isOwnedBy(applied.live, reference.uid)
      return stray
        ? { live: await disown(objects, applied.live, reference.uid, signal), change: 'updated' }
        : { ...applied, rival }
    } catch (error) {
      if (!isConflict(error) || error.details.causes?.length || tries >= 4) throw error
    }
  }
}

const succeeded = (
  task: Task,
  target: Target,
  { live, change, rival }: Applied & { rival?: string | undefined },
): Memory => {
  const { agent, entry, before } = task
  const now = agent.clock.now()
  const wasRight = before?.hash === target.hash && before.failures === 0 && before.seen !== undefined
  const repaired = change !== undefined && wasRight
  if (repaired) {
    agent.metrics.repaired(entry.kind)
    agent.log.info('repaired a delivered object', {
      work: task.work.metadata.name,
      kind: entry.kind,
      name: entry.name,
      change,
    })
  }
  const calm = before?.contention ?? noContention()
  const contention = repaired ? noteRepair(calm, now, agent.limits) : calm
  const fights = contention.until > now
  const memory = memoryOf(task, target, live)
  const { watched, object } = agent.drift.seen(target.resource, keyOfTarget(target, entry))
  const shown = object?.metadata.resourceVersion
  const isBehind = watched && shown !== live.metadata.resourceVersion
  const lookAt = watched ? (isBehind ? now + behindMs : Infinity) : now + agent.resyncMs * (1 + agent.random() / 2)
  return {
    ...memory,
    behind: isBehind ? { resourceVersion: shown } : undefined,
    contention,
    report: reportOf(task, target, live, fights ? contentionMessage(rival, agent.limits) : undefined),
    lookAt: fights ? contention.until : lookAt,
  }
}

const failed = async (task: Task, target: Target, error: unknown, before: Memory | undefined): Promise<Memory> => {
  const { agent, entry, signal } = task
  const objects = agent.local.of<Unstructured>(target.resource, target.namespace)
  if (isKindGone(error)) {
    agent.kinds.forget()
    entry.target = undefined // to be found anew
  }
  const ignoreFields = error instanceof ApplyProblem && error.ignoreFields
  const foreign = error instanceof ApplyProblem && error.foreign
  const applied = (ignoreFields ? ManifestApplied.ignoreFieldFailed : ManifestApplied.failed)(wordsFor(error))
  let live: Unstructured | undefined
  let available = ManifestAvailable.missing()
  try {
    // What is somebody else's must not be remembered as ours.
    live = foreign ? undefined : await objects.find(entry.name, { signal })
    if (live) available = ManifestAvailable.available()
  } catch (problem) {
    if (signal.aborted || isOutage(problem)) throw problem
    available = ManifestAvailable.unreadable(wordsFor(problem))
  }
  const failures = before?.hash === target.hash ? before.failures + 1 : 1
  const observed = live ? observe(task, target, live) : { states: [] }
  return {
    ...memoryOf(task, target, live),
    content: undefined,
    failures,
    contention: before?.contention ?? noContention(),
    report: { states: [applied, available, ...observed.states], values: observed.values },
    lookAt: agent.clock.now() + retryMs(failures, agent.random),
  }
}

/** A manifest that has no place on this cluster, now or ever. */
const unappliable = ({ agent, entry, before }: Task, why: string): Memory => {
  const isBroken = entry.problem !== undefined
  const failures = before?.hash === entry.hash ? before.failures + 1 : 1
  return {
    hash: entry.hash,
    seen: undefined,
    behind: undefined,
    content: undefined,
    holds: () => false,
    reported: false,
    failures,
    contention: noContention(),
    report: { states: [ManifestApplied.failed(why), ManifestAvailable.unidentified(why)] },
    lookAt: isBroken ? Infinity : agent.clock.now() + retryMs(failures, agent.random),
  }
}

const notServed = ({ kind, group, version }: Entry): string =>
  `this cluster does not serve ${kind} of ${group ? `${group}/` : ''}${version}; install its CRD, or check the spelling: it is applied when the kind appears`

const memoryOf = (task: Task, target: Target, live: Unstructured | undefined): Memory => {
  const { config } = target
  return {
    hash: target.hash,
    seen: live && {
      uid: live.metadata.uid,
      resourceVersion: live.metadata.resourceVersion,
      generation: live.metadata.generation,
    },
    behind: undefined,
    content: live && hashOf(contentOf(live)),
    holds: holdsFor(task, target),
    report: { states: [] },
    reported: Boolean(config.feedbackRules?.length || config.conditionRules?.length),
    lookAt: Infinity,
    failures: 0,
    contention: noContention(),
  }
}

/** Whether the shared part of an object still has what is ours. */
const holdsFor = ({ entry, record }: Task, { orphan, readOnly, config }: Target): ((object: KubeObject) => boolean) => {
  const { labels = {}, annotations = {} } = config.updateStrategy?.type === 'CreateOnly' ? {} : entry.object.metadata
  const uid = record.metadata.uid!
  return ({ metadata }) =>
    readOnly ||
    (isOwnedBy({ metadata }, uid) === !orphan &&
      Object.entries(labels).every(([key, value]) => metadata.labels?.[key] === value) &&
      Object.entries(annotations).every(([key, value]) => metadata.annotations?.[key] === value))
}

const reportOf = (task: Task, target: Target, live: Unstructured, fight: string | undefined): Report => {
  const { states, values } = observe(task, target, live)
  const applied = fight === undefined ? ManifestApplied.complete() : ManifestApplied.failed(fight)
  return { states: [applied, ManifestAvailable.available(), ...states], values }
}

const observe = ({ agent, entry }: Task, { config }: Target, live: Unstructured): Report => {
  const { feedbackRules = [], conditionRules = [] } = config
  const rules = ruleConditions(live, entry, conditionRules)
  if (feedbackRules.length === 0) return { states: rules }
  const { values, state } = readFeedback(live, entry, feedbackRules, { rawJson: agent.rawFeedbackJson })
  return { states: [state, ...rules], values }
}

/** What was said of an object that had done its work: it isn't made anew when somebody clears it away. */
const completedReport = (work: ManifestWork, { kind, name, target }: Entry): Report | undefined => {
  if (!target?.config.conditionRules?.some(({ condition }) => condition === completeType)) return undefined
  const status = work.status?.resourceStatus?.manifests?.find(
    ({ resourceMeta: meta }) =>
      meta.kind === kind &&
      meta.name === name &&
      (meta.namespace || undefined) === target.namespace &&
      meta.resource === target.resource.plural,
  )
  const complete = status?.conditions?.find(({ type }) => type === completeType)
  if (complete?.status !== 'True' || complete.observedGeneration !== work.metadata.generation) return undefined
  return { states: status!.conditions!, values: status!.statusFeedback?.values }
}

/** How objects are named in caches. */
export const keyOfTarget = ({ namespace }: Target, { name }: { name: string }): string =>
  namespace ? `${namespace}/${name}` : name

const retryMs = (failures: number, random: () => number): number =>
  Math.min(backoff.firstMs * 2 ** Math.min(failures, 10), backoff.mostMs) * (0.75 + random() / 4)

/** The cluster cannot be reached, or knows us no more: that is no manifest's fault. */
const isOutage = (error: unknown): boolean => error instanceof ConnectionError || isUnauthorized(error)

// A 404 that names no object means that the path itself is not served.
const isKindGone = (error: unknown): boolean => error instanceof ApiError && error.status === 404 && !error.details.name

/** An error as a person should read it: what the server said, without the path and the address. */
const wordsFor = (error: unknown): string => {
  if (error instanceof ApplyProblem) return error.message
  if (!(error instanceof ApiError)) return describeError(error)
  const next =
    error.status === 403 ? '; give the agent that right on the managed cluster, or name an executor that has it' : ''
  return `${error.reason}: ${error.serverMessage}${next}`
}
