/** What hub and agent must agree on when work is delivered. */
import { createHash } from 'node:crypto'
import { conditionType, type ManifestWork } from '../api/index.ts'
import type { LabelSelector, Unstructured } from '../kube/index.ts'
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

/** All manifests of a work together, in bytes. etcd takes 1.5 MiB with status and metadata; the agent's applied record needs room too. */
export const manifestBytesLimit = 500 * 1024

/**
 * A manifest that stands for objects in each namespace of the managed cluster that a selector matches, now and later:
 *
 *     apiVersion: work.lanyard.io/v1alpha1
 *     kind: PerNamespace
 *     metadata: { name: readers }
 *     spec: { namespaceSelector: { matchLabels: { team: a } }, manifests: [ a Role, a RoleBinding, without metadata.namespace ] }
 *
 * There is no such kind on any API server. Our agent takes it apart; an agent that does not know it reports that the managed
 * cluster does not serve the kind, writes nothing for it, and applies the other manifests of the work.
 */
export const perNamespace = { group: 'work.lanyard.io', version: 'v1alpha1', kind: 'PerNamespace' } as const

/** The `spec` of a `PerNamespace`. */
export interface PerNamespaceSpec {
  namespaceSelector: LabelSelector
  manifests: Unstructured[]
}

/**
 * On a manifest: the object is made only where nobody else has one of that name. What is there already and does not carry the
 * same claim is left alone, and the manifest fails. A binding with a claim is applied only while the role of the same work
 * that it names is: otherwise it would give whatever a foreign role of that name says.
 */
export const claimAnnotation = 'work.lanyard.io/claim'
