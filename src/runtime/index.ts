/**
 * Controllers. A tour:
 *
 * An `Informer` keeps a local copy of one kind, by a list and a watch that go on through every failure. A `Controller` turns
 * changes that informers see into keys in a `WorkQueue`, and its workers call `reconcile(key)` for each. A `Manager` starts
 * both in order, waits for the lead if there are several replicas, answers for the process's health, and stops gracefully.
 *
 * What reconcilers use: `condition` and `setConditions`, `applySet`, finalizers and owners, `EventRecorder`, errors that say
 * what is to be done about them (`stalled`, `waiting`), and decisions as lists of pure checks (`firstOf`).
 */
export { applySet, contains, differs, equal, type ApplySetOptions, type ApplyTarget, type Change } from './apply-set.ts'
export { firstOf, type Check, type Reason } from './checks.ts'
export { clientMetrics } from './client-metrics.ts'
export { sleep, systemClock, type Clock } from './clock.ts'
export {
  condition,
  findCondition,
  isTrue,
  microTimestamp,
  setConditions,
  timestamp,
  type ConditionState,
} from './conditions.ts'
export {
  Controller,
  watching,
  type ControllerOptions,
  type Reconcile,
  type ReconcileResult,
  type Watch,
} from './controller.ts'
export { policyOf, ReconcileError, stalled, TerminalError, waiting, type ErrorPolicy } from './errors.ts'
export { EventRecorder, type EventText } from './events.ts'
export { Freshest } from './freshest.ts'
export { startHealthServer, type HealthServer } from './health-server.ts'
export { Informer, type Handler, type InformerOptions } from './informer.ts'
export { Informers } from './informers.ts'
export { LeaderElection, LeadershipLost, type LeaderOptions } from './leader.ts'
export { describeError, jsonLogger, silentLogger, type Logger, type LogLevel } from './log.ts'
export { Manager, type ManagerOptions, type Runnable } from './manager.ts'
export { controllerOf, hasFinalizer, ownerReference, withFinalizer, withoutFinalizer, withOwner } from './metadata.ts'
export { Metrics } from './metrics.ts'
export { inParallel } from './parallel.ts'
export { processMetrics } from './process-metrics.ts'
export { lowPriority, WorkQueue } from './queue.ts'
