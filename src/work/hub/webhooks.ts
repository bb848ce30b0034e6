import { isDeepStrictEqual } from 'node:util'
import { group, subject, type ManifestWork } from '../../api/index.ts'
import { mayAccess, type Api } from '../../kube/index.ts'
import {
  configurationsOf,
  guarding,
  mutating,
  validating,
  type Denial,
  type Mutate,
  type Route,
  type UserInfo,
  type Validate,
  type WebhookConfiguration,
  type WebhookServerAddress,
} from '../../runtime/webhook/index.ts'
import { groupsOf } from '../../registration/contract.ts'
import { executorUser, workAgentExecutor } from '../contract.ts'
import { manifestFaults } from './manifest-faults.ts'

/** Where the webhooks are on their server; as the field has them. */
export const webhookPath = {
  mutateWork: '/mutate-work-open-cluster-management-io-v1-manifestwork',
  validateWork: '/validate-work-open-cluster-management-io-v1-manifestwork',
} as const

export interface WorkWebhookOptions {
  client: Pick<Api, 'of'>
  gates: {
    /** Whoever makes a work without an executor needs the right to execute as the work agent. */
    nilExecutorValidating: boolean
  }
  /**
   * With the gate: whether the work agent is then written into such works; yes unless said otherwise. Work agents of Open
   * Cluster Management do not know the account without a namespace as their own, and refuse those works.
   */
  writeExecutor?: boolean | undefined
}

/** Routes for a webhook server: what a work may hold, and as whom it may be executed. */
export const workWebhooks = (options: WorkWebhookOptions): Record<string, Route> => ({
  [webhookPath.mutateWork]: mutating<ManifestWork>(nameExecutor(options)),
  [webhookPath.validateWork]: validating<ManifestWork>(validateWork(options)),
})

/** A work whose spec stays as it is needs nothing: agents write finalizers, and must not be asked for rights that they lack. */
const isUnchanged = (work: ManifestWork, old: ManifestWork | undefined): boolean =>
  old !== undefined && isDeepStrictEqual(work.spec, old.spec)

const nameExecutor =
  ({ gates, writeExecutor = true }: WorkWebhookOptions): Mutate<ManifestWork> =>
  ({ object: work, oldObject: old }) => {
    if (!gates.nilExecutorValidating || !writeExecutor) return undefined
    if (!work?.spec || work.spec.executor || isUnchanged(work, old)) return undefined
    work.spec.executor = workAgentExecutor
    return work
  }

const validateWork = (options: WorkWebhookOptions): Validate<ManifestWork> => {
  const judge = async (
    work: ManifestWork,
    old: ManifestWork | undefined,
    user: UserInfo,
    signal: AbortSignal,
  ): Promise<Denial | undefined> =>
    agentDenial(work, user) ?? manifestDenial(work, old) ?? (await executorDenial(options, work, user, signal))
  return ({ object: work, oldObject: old, userInfo }, { signal }) =>
    !work || isUnchanged(work, old) ? undefined : judge(work, old, userInfo, signal)
}

/** What a hub sends to a cluster is not for the cluster's agent to rewrite; it reports in the status. */
const agentDenial = (work: ManifestWork, { groups = [] }: UserInfo): Denial | undefined => {
  const cluster = work.metadata.namespace ?? ''
  const isAgent = [...groupsOf(cluster), subject.managedClusters].some((agents) => groups.includes(agents))
  if (!isAgent || groups.includes('system:masters')) return undefined
  return {
    reason: 'Forbidden',
    field: 'spec',
    message: `the agent of cluster ${cluster} may not change what it is sent: it may change metadata and status`,
  }
}

const manifestDenial = (work: ManifestWork, old: ManifestWork | undefined): Denial | undefined => {
  // Judged again only when it changes: what was stored before must not stand in the way of a new executor or a repair elsewhere.
  if (old && isDeepStrictEqual(work.spec.workload, old.spec.workload)) return undefined
  const causes = manifestFaults(work.spec.workload?.manifests)
  if (causes.length === 0) return undefined
  return { reason: 'Invalid', message: causes.map((c) => `${c.field} ${c.message}`).join('; '), causes }
}

/** Whoever says what is executed as somebody needs the right to; also who changes a work that somebody else has made. */
const executorDenial = async (
  { client, gates }: WorkWebhookOptions,
  work: ManifestWork,
  user: UserInfo,
  signal: AbortSignal,
): Promise<Denial | undefined> => {
  const executor = work.spec.executor ?? (gates.nilExecutorValidating ? workAgentExecutor : undefined)
  if (!executor) return undefined
  const field = 'spec.executor'
  const account = executor.subject.serviceAccount
  if (!account)
    return {
      reason: 'Invalid',
      field,
      message: 'names no account: set subject.serviceAccount to its namespace and name',
    }
  const { namespace } = work.metadata
  const name = executorUser(account)
  const access = { verb: 'execute-as', group: group.work, resource: 'manifestworks', namespace, name }
  if (await mayAccess(client, user, access, { signal })) return undefined
  const advice = work.spec.executor ? ', or name an executor that they may use' : ''
  return {
    reason: 'Forbidden',
    field,
    message: `user ${JSON.stringify(user.username)} may not execute work as ${name} on cluster ${namespace}: give them a role in namespace ${namespace} with verb execute-as on manifestworks of ${group.work}, for the name ${name}${advice}`,
  }
}

/** What tells the API server to ask us. Apply these when the server that is named answers: they refuse all writes before. */
export const workWebhookConfigurations = (where: WebhookServerAddress): WebhookConfiguration[] => {
  // Without these anybody who may write works could have them executed as anybody.
  const works = { group: group.work, version: 'v1', resources: ['manifestworks'] }
  return configurationsOf('lanyard-work', {
    mutating: [guarding(where, { name: 'manifestworks.default', path: webhookPath.mutateWork, ...works })],
    validating: [guarding(where, { name: 'manifestworks.validate', path: webhookPath.validateWork, ...works })],
  })
}
