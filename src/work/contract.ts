/** What hub and agent must agree on when work is delivered. */
import { createHash } from 'node:crypto'
import { conditionType, type ManifestWork } from '../api/index.ts'
import { condition } from '../runtime/index.ts'

/** Conditions of a whole ManifestWork, with the words that other tools look for. */
export const WorkApplied = condition(conditionType.manifestWork.applied, {
  complete: { status: 'True', reason: 'AppliedManifestWorkComplete', message: 'Apply manifest work complete' },
  failed: { status: 'False', reason: 'AppliedManifestWorkFailed' },
})
export const WorkAvailable = condition(conditionType.manifestWork.available, {
  available: { status: 'True', reason: 'ResourcesAvailable', message: 'All resources are available' },
  missing: { status: 'False', reason: 'ResourcesNotAvailable' },
  unknown: { status: 'Unknown', reason: 'ResourcesStatusUnknown' },
})
export const WorkDeleting = condition(conditionType.manifestWork.deleting, {
  deleting: { status: 'True', reason: 'WorkDeleting', message: 'ManifestWork is being deleted' },
})

/** Conditions of one manifest of a work. */
export const ManifestApplied = condition(conditionType.manifest.applied, {
  complete: { status: 'True', reason: 'AppliedManifestComplete', message: 'Apply manifest complete' },
  failed: { status: 'False', reason: 'AppliedManifestFailed' },
  ignoreFieldFailed: { status: 'False', reason: 'AppliedManifestSSAIgnoreFieldError' },
})
export const ManifestAvailable = condition(conditionType.manifest.available, {
  available: { status: 'True', reason: 'ResourceAvailable', message: 'Resource is available' },
  missing: { status: 'False', reason: 'ResourceNotAvailable', message: 'Resource is not available' },
  unreadable: { status: 'Unknown', reason: 'FetchingResourceFailed' },
  unidentified: { status: 'Unknown', reason: 'IncompleteResourceMeta' },
})
export const FeedbackSynced = condition(conditionType.manifest.feedbackSynced, {
  synced: { status: 'True', reason: 'StatusFeedbackSynced' },
  nothing: { status: 'True', reason: 'NoStatusFeedbackSynced' },
  failed: { status: 'False', reason: 'StatusFeedbackSyncFailed' },
})

/** Reasons of the conditions that a work's own rules ask for. */
export const ruleReason = {
  evaluated: 'ConditionRuleEvaluated',
  invalid: 'ConditionRuleInvalid',
  /** On the whole work, from those of its manifests. */
  aggregated: 'ConditionRulesAggregated',
} as const

/** What marks a hub on its managed clusters: the server address exactly as the agent's kubeconfig has it. */
export const hubHashOf = (server: string): string => createHash('sha256').update(server).digest('hex')

/** The AppliedManifestWork of a work: several hubs may have works of one name. */
export const appliedName = (hubHash: string, work: string): string => `${hubHash}-${work}`

/** On objects that are applied with `ignoreFields` of the kind OnSpokeChange: what the manifest was when it was last applied whole. */
export const manifestHashAnnotation = 'open-cluster-management.io/config-spec-hash'

/** Who owns fields that are applied by the server, unless the work says otherwise. */
export const defaultFieldManager = 'work-agent'

/** As whom a work is executed. */
export type Executor = NonNullable<ManifestWork['spec']['executor']>

/**
 * The work agent itself, wherever it runs: hence no namespace. The hub writes it into works without an executor when the gate
 * NilExecutorValidating is on, and an agent takes it for what it is, its own account.
 */
export const workAgentExecutor: Executor = {
  subject: { type: 'ServiceAccount', serviceAccount: { namespace: '', name: 'klusterlet-work-sa' } },
}

/** The user and groups of the service account that executes a work; undefined when it names none, or the work agent itself. */
export const executorIdentity = (executor: Executor | undefined): { user: string; groups: string[] } | undefined => {
  const account = executor?.subject.serviceAccount
  if (!account || executorUser(account) === executorUser(workAgentExecutor.subject.serviceAccount!)) return undefined
  return {
    user: executorUser(account),
    groups: ['system:serviceaccounts', `system:serviceaccounts:${account.namespace}`, 'system:authenticated'],
  }
}

/** What the hub asks about with the verb `execute-as`, and the managed cluster knows as a user. */
export const executorUser = (account: { namespace: string; name: string }): string =>
  `system:serviceaccount:${account.namespace}:${account.name}`
