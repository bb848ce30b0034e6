import { setImmediate } from 'node:timers/promises'
import { finalizer, ManifestWork, type AppliedManifestWork } from '../../api/index.ts'
import { ApiError, isConflict, isUnauthorized } from '../../kube/index.ts'
import {
  hasFinalizer,
  inParallel,
  setConditions,
  withFinalizer,
  type Reconcile,
  type ReconcileResult,
} from '../../runtime/index.ts'
import { WorkApplied } from '../contract.ts'
import type { Agent } from './agent.ts'
import { ensureRecord, refKey, refOf, writeRefs, type AppliedResource } from './applied-record.ts'
import { applyEntry, keyOfTarget } from './apply.ts'
import { roleToWaitFor } from './claims.ts'
import type { Interest } from './drift.ts'
import { executorCheck, type ExecutorCheck } from './executor.ts'
import type { WorkMemory } from './memory.ts'
import { inRanks } from './order.ts'
import { isCurrent, planFor, selectsNamespaces, targetOf, type Entry, type Plan } from './plan.ts'
import { disownRefs, lookAgainMs, removeRefs, troubleOf, withdraw, type Left } from './removal.ts'
import { statusFor, writeStatus, type Reported } from './status.ts'

/** One pass over a work. */
interface Pass {
  readonly agent: Agent
  readonly work: ManifestWork
  readonly plan: Plan
  readonly memory: WorkMemory
  readonly executor: ExecutorCheck
  readonly signal: AbortSignal
  /** Its newest state. */
  record: AppliedManifestWork
  /** Manifests that no pass before this one has seen: most likely nothing is there yet. */
  readonly unseen: Set<string>
}

const chunk = 1000
/** After so many turns the rest is left to the next pass: reports must not wait for ever either. */
const mostTurns = 5

/** Brings what a work wants to this cluster, takes away what it no longer wants, and reports. */
export const deliver =
  (agent: Agent): Reconcile =>
  async (name, signal) => {
    const known = agent.workOf(name)
    if (!known) return forget(agent, name)
    if (known.metadata.deletionTimestamp) return withdraw(agent, known, signal)

    const work = await hold(agent, known, signal)
    const memory = agent.memoryOf(name)
    agent.namespaces.usedBy(name, selectsNamespaces(work))
    if (selectsNamespaces(work)) await agent.namespaces.known(signal)
    const plan = (memory.plan = await currentPlan(agent, memory.plan, work))
    const executor = executorCheck(agent.local, work.spec.executor ?? agent.executorDefault, signal)
    const record = await orSay(agent, work, signal, () => ensureRecord(agent, work, signal))
    const pass: Pass = { agent, work, plan, memory, executor, signal, record, unseen: new Set() }

    const left = await orSay(agent, work, signal, async () => {
      await applyDue(pass)
      return removeUntracked(pass)
    })
    await report(pass, left)
    return lookAgain(pass, left)
  }

/** Without its record a work cannot be applied at all: that is said of the work as a whole. */
const orSay = async <T>(agent: Agent, work: ManifestWork, signal: AbortSignal, step: () => Promise<T>): Promise<T> => {
  try {
    return await step()
  } catch (error) {
    const passes = signal.aborted || isConflict(error) || isUnauthorized(error)
    if (passes || !(error instanceof ApiError)) throw error
    const message = `what the work leaves on this cluster cannot be recorded, so nothing is applied: ${error.message}`
    const conditions = setConditions(work.status?.conditions, [WorkApplied.failed(message)], {
      now: agent.clock.now(),
      generation: work.metadata.generation,
    })
    await writeStatus(agent, work, { ...work.status, conditions }, signal)
    throw error
  }
}

const forget = (agent: Agent, name: string): ReconcileResult => {
  agent.memories.delete(name)
  agent.written.forget(name)
  agent.drift.want(`work/${name}`, [])
  agent.newKinds.waits(name, false)
  agent.namespaces.usedBy(name, false)
  return {}
}

/** Our finalizer comes before anything else: without it, the work could go and leave its objects behind. */
const hold = async (agent: Agent, work: ManifestWork, signal: AbortSignal): Promise<ManifestWork> => {
  if (hasFinalizer(work, finalizer.manifestWork)) return work
  const { name, uid, resourceVersion } = work.metadata
  const { finalizers } = withFinalizer(work, finalizer.manifestWork).metadata
  const merge = { metadata: { uid, resourceVersion, finalizers } }
  const written = await agent.hub.of(ManifestWork, agent.cluster).patch(name!, { merge }, { signal })
  return agent.written.wrote(name!, work, written)
}

const currentPlan = async (agent: Agent, plan: Plan | undefined, work: ManifestWork): Promise<Plan> =>
  plan && isCurrent(plan, work, agent.namespaces) ? plan : planFor(work, agent.namespaces, plan)

/** Applies what is not known to be right, and again what changed meanwhile: a repair does not wait for reports. */
const applyDue = async (pass: Pass): Promise<void> => {
  const { agent, work, plan, memory } = pass
  const ids = new Set(plan.entries.map(({ id }) => id))
  for (const id of memory.manifests.keys()) if (!ids.has(id)) memory.manifests.delete(id)
  for (let turn = 0; turn < mostTurns; turn++) {
    const due = await dueEntries(pass)
    if (due.length === 0) break
    await prepare(pass, due)
    await applyInOrder(pass, due)
    if (due.some(({ id }) => memory.manifests.get(id)?.reported)) memory.reportedAt = agent.clock.now()
  }
  agent.newKinds.waits(
    work.metadata.name!,
    plan.entries.some(({ target, problem }) => !target && problem === undefined),
  )
}

/** Rank by rank, and within a rank side by side. */
const applyInOrder = async (pass: Pass, due: readonly Entry[]): Promise<void> => {
  const { agent, work, memory, executor, signal } = pass
  let outage: { error: unknown } | undefined
  for (const rank of inRanks(due)) {
    // A kind that an earlier rank has just brought.
    const late = rank.filter(({ target, problem }) => !target && problem === undefined)
    if (late.length && late.length < due.length) await prepare(pass, late)
    await inParallel(
      agent.concurrency,
      rank.map((entry) => async () => {
        if (outage) return
        const before = memory.manifests.get(entry.id)
        const unseen = pass.unseen.delete(entry.id) || isMissing(agent, entry)
        const waitsFor = roleToWaitFor(entry, pass.plan, memory)
        const task = { agent, work, record: pass.record, entry, executor, before, unseen, waitsFor, signal }
        try {
          const now = await applyEntry(task)
          memory.manifests.set(entry.id, now)
        } catch (error) {
          outage ??= { error }
        }
      }),
    )
    if (outage) throw outage.error
  }
}

/** Whether the watch says that there is no such object: making it comes before looking. */
const isMissing = (agent: Agent, { target, name }: Entry): boolean => {
  if (!target) return false
  const { watched, object } = agent.drift.seen(target.resource, keyOfTarget(target, { name }))
  return watched && !object
}

/** The manifests that changed, whose objects changed, or that have to be looked at again. */
const dueEntries = async ({ agent, plan, memory }: Pass): Promise<Entry[]> => {
  const now = agent.clock.now()
  const due: Entry[] = []
  for (const [index, entry] of plan.entries.entries()) {
    if (index % chunk === chunk - 1) await setImmediate()
    const known = memory.manifests.get(entry.id)
    if (!known || known.hash !== (entry.target?.hash ?? entry.hash)) due.push(entry)
    else if (known.contention.until > now) continue
    else if (known.lookAt <= now) due.push(entry)
    else if (entry.target && known.seen) {
      const { watched, object } = agent.drift.seen(entry.target.resource, keyOfTarget(entry.target, entry))
      const shown = object?.metadata.resourceVersion
      const isBehind = known.behind && known.behind.resourceVersion === shown
      if (watched && shown !== known.seen.resourceVersion && !isBehind) due.push(entry)
    }
  }
  return due
}

/** What has to be true before anything is written: kinds are known, the record names what is to come, and somebody watches. */
const prepare = async (pass: Pass, due: readonly Entry[]): Promise<void> => {
  if (due.length === 0) return
  const { agent, work, plan, record, signal } = pass
  const kinds = new Map<string, Awaited<ReturnType<typeof agent.kinds.ofKind>>>()
  for (const entry of due) {
    if (entry.problem !== undefined || entry.target) continue
    const kind = `${entry.group}/${entry.version}/${entry.kind}`
    if (!kinds.has(kind)) kinds.set(kind, await agent.kinds.ofKind(entry, signal))
    const resource = kinds.get(kind)
    if (!resource) continue
    const target = targetOf(work, entry, resource)
    if (typeof target === 'string') Object.assign(entry, { problem: target })
    else entry.target = target
  }
  const refs = new Map(record.status?.appliedResources?.map((ref) => [refKey(ref), ref]))
  for (const { target, name, id } of plan.entries) {
    if (!target || target.readOnly) continue
    const intent = refOf(target, name)
    if (refs.has(refKey(intent))) continue
    refs.set(refKey(intent), intent)
    pass.unseen.add(id)
  }
  pass.record = await writeRefs(agent, record, [...refs.values()], signal)
  agent.drift.want(`work/${work.metadata.name}`, interestsOf(plan))
}

const interestsOf = (plan: Plan): Interest[] =>
  plan.entries.flatMap((entry) =>
    entry.target ? [{ resource: entry.target.resource, key: keyOfTarget(entry.target, entry), id: entry.id }] : [],
  )

/** Removes what is no longer in the work. What cannot be told apart from a manifest that is not understood stays. */
const removeUntracked = async (pass: Pass): Promise<Left[]> => {
  const { agent, work, plan, memory, record, signal } = pass
  const wanted = new Map<string, AppliedResource>()
  const readOnly = new Set<string>()
  const unclear = new Set<string>()
  for (const entry of plan.entries) {
    const { target, name, id, group, namespace } = entry
    if (!target) unclear.add(JSON.stringify([group, namespace ?? '', name]))
    else if (target.readOnly) readOnly.add(refKey(refOf(target, name)))
    else wanted.set(refKey(refOf(target, name)), refOf(target, name, memory.manifests.get(id)?.seen?.uid))
  }
  const nameless = plan.entries.some(({ problem, name }) => problem !== undefined && !name)
  const refs = record.status?.appliedResources ?? []
  const others = refs.filter((ref) => !wanted.has(refKey(ref)))
  const isUnclear = ({ group = '', namespace = '', name }: AppliedResource): boolean =>
    nameless || unclear.has(JSON.stringify([group, namespace, name]))
  const handedOver = others.filter((ref) => readOnly.has(refKey(ref)))
  const waiting = others.filter((ref) => !readOnly.has(refKey(ref)) && isUnclear(ref))
  const gone = others.filter((ref) => !readOnly.has(refKey(ref)) && !isUnclear(ref))
  await disownRefs(agent, record.metadata.uid!, handedOver, signal)
  const left = await removeRefs(agent, record.metadata.uid!, gone, signal)
  if (left.length || gone.length)
    agent.drift.want(`work/${work.metadata.name}`, [
      ...interestsOf(plan),
      ...left.flatMap(({ interest }) => interest ?? []),
    ])
  pass.record = await writeRefs(agent, record, [...wanted.values(), ...waiting, ...left.map(({ ref }) => ref)], signal)
  return left
}

const report = async ({ agent, work, plan, memory, signal }: Pass, left: readonly Left[]): Promise<void> => {
  const reported: Reported[] = plan.entries.map((entry) => ({
    entry,
    report: memory.manifests.get(entry.id)?.report ?? { states: [] },
  }))
  reported.push(...plan.selections)
  const trouble = left.length ? `what left the work could not be removed yet: ${troubleOf(left)}` : undefined
  await writeStatus(agent, work, statusFor(work, reported, { now: agent.clock.now(), trouble }), signal)
}

const lookAgain = ({ agent, memory }: Pass, left: readonly Left[]): ReconcileResult => {
  const now = agent.clock.now()
  let next = left.length ? now + lookAgainMs : Infinity
  for (const { lookAt, contention } of memory.manifests.values())
    next = Math.min(next, Math.max(lookAt, contention.until))
  return next === Infinity ? {} : { requeueAfterMs: Math.max(1, next - now) }
}
