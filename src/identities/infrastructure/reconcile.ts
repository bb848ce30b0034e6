import type { AWSCluster, Cluster } from '../../api/index.ts'
import { AwsError, failedFor } from '../../aws/index.ts'
import { keyOf } from '../../kube/index.ts'
import { isTrue, ReconcileError, waiting, type Reconcile } from '../../runtime/index.ts'
import type { Chain } from '../chain.ts'
import { clusterOf, isPaused } from '../paused.ts'
import { chainOf } from '../records.ts'
import { build, chiefOf, statusOf, steps } from './build.ts'
import { removeInfrastructure } from './removal.ts'
import { readyType, report, severityOf, summary, type Severity, type State } from './report.ts'
import { PausedMeanwhile, Scope, type Infrastructure } from './scope.ts'
import { apiPortOf, fingerprint, isLeftAlone, notYet, standingOf } from './standing.ts'
import { refuseToForget } from './strangers.ts'
import { changeCluster, holdsMove } from './writes.ts'

/** Makes AWS match one cluster, or removes what it has there. Does nothing while the cluster is paused or may not act. */
export const reconcileInfrastructure =
  (infrastructure: Infrastructure): Reconcile =>
  async (key, signal) => {
    const { room, memory, written, settings } = infrastructure
    const cached = room.records.clusters.get(key)
    const cluster = written.of(key, cached)
    if (!cached || !cluster) {
      memory.forget(key)
      written.forget(key)
      return {}
    }
    if (isLeftAlone(cluster)) return {}
    memory.look(cluster)
    const chain = chainOf(room.records, cluster)
    const quietMs = memory.quietMs(key, fingerprint(cluster, chain))
    if (quietMs > 0) return { requeueAfterMs: quietMs }
    const owner = await clusterOf(room, cluster, signal)
    if (isPaused(cluster, owner)) {
      // A process that was killed in the middle may have left this behind; whoever moves the cluster waits for it.
      if (holdsMove(cluster)) await changeCluster(room, cluster, { holdMove: false }, signal)
      return { requeueAfterMs: settings.pausedMs }
    }
    const why = notYet(cluster, chain)
    if (why) {
      await report(room, cluster, { states: [{ type: readyType, status: 'False', ...why }] }, signal)
      return {}
    }
    return pass(infrastructure, { cluster, owner, chain, signal })
  }

interface Pass {
  cluster: AWSCluster
  owner: Cluster | undefined
  chain: Chain
  signal: AbortSignal
}

const pass = async (infrastructure: Infrastructure, { cluster, owner, chain, signal }: Pass): ReturnType<Reconcile> => {
  const { room, memory, settings } = infrastructure
  const standing = await standingOf(room, cluster, chain.recipe!, signal)
  const scope = new Scope(infrastructure, cluster, { ...standing, apiPort: apiPortOf(owner), signal })
  const isDeleting = cluster.metadata.deletionTimestamp !== undefined
  try {
    const busyMs = isDeleting ? await remove(scope) : await make(scope, severityOf(owner))
    if (scope.hasBegun) await scope.change({ holdMove: false })
    if (scope.isOvertaken) return { requeueAfterMs: settings.retryMs }
    const [least, spread] = busyMs === undefined ? [settings.driftMs * 0.75, settings.driftMs * 0.5] : [busyMs, 0]
    const forMs = least + infrastructure.random() * spread
    memory.quiet(keyOf(cluster), fingerprint(scope.cluster, chain), forMs)
    return { requeueAfterMs: forMs }
  } catch (error) {
    if (signal.aborted) throw error
    if (scope.hasBegun) await scope.change({ holdMove: false })
    if (error instanceof PausedMeanwhile) return { requeueAfterMs: settings.pausedMs }
    throw backedOff(scope, error, scope.isOvertaken ? '' : fingerprint(scope.cluster, chain))
  }
}

const longestBackOffMs = 300_000

/** Tried again after a pause that grows; or after the one that the error asks for. Nobody's news but the cluster's own shortens it. */
const backedOff = (scope: Scope, error: unknown, print: string): unknown => {
  if (!(error instanceof AwsError) && !(error instanceof ReconcileError)) return error
  if (error.policy.kind === 'stall') return error
  const { memory, settings, random } = scope.infrastructure
  const wanted = error.policy.kind === 'wait' ? error.policy.afterMs : undefined
  const afterMs = memory.failed(scope.key, print, (failures) => {
    const growing = Math.min(settings.retryMs * 2 ** Math.min(failures, 20), longestBackOffMs)
    return wanted ?? growing * (0.5 + random() / 2)
  })
  return wanted === undefined || error instanceof AwsError
    ? waiting(error.reason, { afterMs, message: error.message, cause: error })
    : error
}

/** When to look again at what is not there yet; undefined when all of it is there. */
const make = async (scope: Scope, severity: Severity): Promise<number | undefined> => {
  const { room } = scope.infrastructure
  const { states, afterMs, failure } = await build(scope, severity)
  if (failure) {
    const error = advised(inItsTime(scope, failure.error))
    const state = failureState(scope, error, failure.step)
    if (state) {
      const all = [...states, { ...state, severity }]
      const said = { states: [...all, summary(withUnreached(scope.cluster, all))] }
      scope.adopt(await report(room, scope.cluster, said, scope.signal))
    }
    throw error
  }
  const said = { states: [...states, summary(states)], ...statusOf(scope) }
  const isComplete = afterMs === undefined
  scope.adopt(await report(room, scope.cluster, { ...said, ...(isComplete ? { ready: true } : {}) }, scope.signal))
  return afterMs
}

/** Those that were not reached count as they were. */
const withUnreached = (cluster: AWSCluster, states: readonly State[]): State[] => {
  const known = new Set(states.map(({ type }) => type))
  return [
    ...states,
    ...steps
      .filter(({ type }) => !known.has(type))
      .map(({ type }): State => {
        const status = isTrue(cluster, type) ? 'True' : 'Unknown'
        return { type, status, reason: 'NotReached', message: 'a step before it has to succeed first' }
      }),
  ]
}

/** Reasons that time mends. They say nothing about a thing that is there. */
const passing = ['Throttled', 'Unavailable', 'Unreachable', 'TimedOut'] as const

/** What a condition is to say; nothing where it would only unsay what still holds. */
const failureState = (scope: Scope, error: unknown, { type, failed }: (typeof steps)[number]): State | undefined => {
  if (error instanceof PausedMeanwhile || scope.signal.aborted) return undefined
  if (!(error instanceof AwsError) && !(error instanceof ReconcileError)) return undefined
  if (failedFor(error, ...passing) && isTrue(scope.cluster, type)) return undefined
  return { type, status: 'False', reason: failed, message: error.message }
}

/** What was made a moment ago may be unknown to the next call, or known to it only: that is looked at again soon, and is no failure. */
const inItsTime = (scope: Scope, error: unknown): unknown => {
  const { memory, settings } = scope.infrastructure
  const isEarly =
    failedFor(error, 'NotFound', 'AlreadyExists') || (failedFor(error, 'Conflict') && error.code === 'IncorrectState')
  if (!isEarly || (scope.isSettled && !memory.madeSomething(scope.key))) return error
  const message = `AWS does not show yet what was just made: ${error.message}`
  return waiting('NotVisibleYet', { afterMs: settings.pollMs, message, cause: error })
}

/** A limit of the account is for people to raise. */
const advised = (error: unknown): unknown =>
  failedFor(error, 'LimitExceeded') && !error.next
    ? error.with({
        next: 'ask for a higher limit in Service Quotas, or remove what the account does not need; it is tried again',
      })
    : error

/** Removes what it can, and the finalizer when nothing is left. */
const remove = async (scope: Scope): Promise<number | undefined> => {
  const { memory, settings } = scope.infrastructure
  try {
    await scope.look()
    await refuseToForget(scope)
    const left = await removeInfrastructure(scope)
    if (left.length === 0) {
      await scope.change({ finalizer: false, holdMove: false })
      return undefined
    }
    await reportRemoval(scope, 'Deleting', `left in AWS: ${left.join(', ')}`, 'Info')
    return Math.min(settings.pollMs, memory.unsettledMs(scope.key) || settings.pollMs)
  } catch (failure) {
    const error = chiefOf(failure)
    const isPassing: boolean = failedFor(error, ...passing)
    const isTold = error instanceof AwsError || error instanceof ReconcileError
    if (isTold && !isPassing && !scope.signal.aborted)
      await reportRemoval(scope, 'DeletingFailed', error.message, 'Warning')
    throw error
  }
}

const reportRemoval = async (scope: Scope, reason: string, message: string, severity: Severity): Promise<void> => {
  const types = [...steps.map(({ type }) => type), readyType]
  const states = types.map((type): State => ({ type, status: 'False', reason, message, severity }))
  scope.adopt(await report(scope.infrastructure.room, scope.cluster, { states }, scope.signal))
}
