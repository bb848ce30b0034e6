import type { AWSCluster } from '../api/index.ts'
import { AwsError, type Credentials } from '../aws/index.ts'
import { keyOf } from '../kube/index.ts'
import { sleep, type ConditionState } from '../runtime/index.ts'
import type { Chain } from './chain.ts'
import { describeRefusal } from './chain-checks.ts'
import { credentialRetrieved, usageAllowed } from './contract.ts'
import { chainOf, clustersNamed } from './records.ts'
import type { Room } from './room.ts'

/** What came of a cluster's identity: two conditions, the account that was reached, and when to look again. */
export interface Outcome {
  usage: ConditionState
  credential: ConditionState
  chain: Chain
  /** Present only when the cluster may act there. */
  account?: string | undefined
  requeueAfterMs?: number | undefined
  /** AWS has not answered yet; settles when it has. */
  pending?: Promise<unknown> | undefined
}

const usage = (status: ConditionState['status'], reason: string, message: string): ConditionState => ({
  type: usageAllowed,
  status,
  reason,
  message,
})
const credential = (status: ConditionState['status'], reason: string, message: string): ConditionState => ({
  type: credentialRetrieved,
  status,
  reason,
  message,
})

/** How often what cannot be watched, IAM, is asked about. */
const lookAgainMs = { least: 60_000, most: 3_600_000, failed: 15_000, failedMost: 300_000 }

/**
 * Everything that must hold before anybody acts in AWS for a cluster, in this order: every link of the chain allows the namespace,
 * credentials can be had, they are of the cluster's account, and nobody of the same name is there.
 */
export const preflight = async (room: Room, cluster: AWSCluster, signal: AbortSignal): Promise<Outcome> => {
  const chain = chainOf(room.records, cluster)
  if (!chain.recipe) return refused(chain)
  const region = cluster.spec?.region || room.records.defaultRegion
  const granted = usage(
    'True',
    'PrincipalUsageAllowed',
    `every identity of the chain allows the namespace: ${chain.path}`,
  )
  const asking = obtain(room, chain.recipe, region, signal)
  const answer = await inTime(room, asking)
  if (answer === 'late') {
    const message = `AWS has not answered for ${chain.path} in ${room.settings.patienceMs / 1000} s; it is waited for`
    return { chain, usage: granted, credential: credential('Unknown', 'WaitingForAWS', message), pending: asking }
  }
  if (answer instanceof Error) return failed(chain, granted, answer)
  const { credentials, account } = answer
  const stop = wrongAccount(cluster, account) ?? nameTaken(room, cluster, { account, region })
  const got = credential('True', 'PrincipalCredentialRetrieved', describeSuccess(chain, account))
  const requeueAfterMs = untilLook(room, credentials)
  if (stop) return { chain, usage: stop, credential: got, requeueAfterMs }
  return { chain, usage: granted, credential: got, account, requeueAfterMs }
}

const obtain = async (room: Room, recipe: NonNullable<Chain['recipe']>, region: string, signal: AbortSignal) => {
  const credentials = await room.credentials.get(recipe, signal)
  return { credentials, account: (await room.credentials.caller(recipe, region, signal)).account }
}

/** A slow account must not keep the workers from the clusters of others. */
const inTime = async <T>(room: Room, asking: Promise<T>): Promise<T | Error | 'late'> => {
  const over = new AbortController()
  const patience = sleep(room.clock, room.settings.patienceMs, over.signal).then(
    () => 'late' as const,
    () => 'late' as const,
  )
  try {
    return await Promise.race([asking.catch((error: unknown) => asError(error)), patience])
  } finally {
    over.abort()
  }
}

const asError = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)))

const refused = (chain: Chain): Outcome => {
  const refusal = chain.refusal!
  const message = describeRefusal(refusal)
  // A link that is missing or broken says nothing about permission; one that says no does.
  const allowed = refusal.denied ? usage('False', refusal.reason, message) : usage('Unknown', refusal.reason, message)
  return {
    chain,
    usage: allowed,
    credential: credential('False', 'PrincipalCredentialRetrievalFailed', `not asked for: ${message}`),
  }
}

/** Reasons that time mends, without anybody changing anything: the cluster is neither good nor bad until then. */
const passing = new Set<string>(['Throttled', 'Unavailable', 'Unreachable', 'TimedOut', 'WebIdentityUnreachable'])

const failed = (chain: Chain, granted: ConditionState, error: Error): Outcome => {
  if (!(error instanceof AwsError)) throw error
  const message = `${chain.path}: ${error.message}`
  const state = passing.has(error.reason)
    ? credential('Unknown', 'CredentialProviderBuildFailed', message)
    : credential('False', 'PrincipalCredentialRetrievalFailed', message)
  const wanted = error.policy.kind === 'wait' ? error.policy.afterMs : (error.retryAfterMs ?? lookAgainMs.failed)
  const requeueAfterMs = error.policy.kind === 'stall' ? undefined : Math.min(wanted, lookAgainMs.failedMost)
  return { chain, usage: granted, credential: state, requeueAfterMs }
}

const wrongAccount = (cluster: AWSCluster, account: string): ConditionState | undefined => {
  const pinned = cluster.spec?.accountID
  if (!pinned || pinned === account) return undefined
  return usage(
    'False',
    'AccountMismatch',
    `the cluster lives in account ${pinned} (spec.accountID) and its identity reaches account ${account}: nothing is done there; name an identity of account ${pinned} in spec.identityRef`,
  )
}

const nameTaken = (
  room: Room,
  cluster: AWSCluster,
  { account, region }: { account: string; region: string },
): ConditionState | undefined => {
  const name = cluster.metadata.name!
  const rival = room.claims.take(cluster, { account, region, name }, clustersNamed(room.records, name))
  if (!rival) return undefined
  return usage(
    'False',
    'ClusterNameTaken',
    `AWSClusters ${keyOf(rival)} and ${keyOf(cluster)} have the same name in account ${account} and region ${region}, where AWS cannot tell them apart: ${keyOf(rival)} was there first; create this one under another name`,
  )
}

const describeSuccess = ({ path, links }: Chain, account: string): string => {
  const notes = links.flatMap((link) => link.notes.map((note) => `; ${link.reference.name}: ${note}`))
  return `credentials for account ${account} by ${path}${notes.join('')}`
}

/** Sessions end, and whether there will be another one is for IAM to say. Keys have no end; a Secret that changes is news by itself. */
const untilLook = (room: Room, { expiration }: Credentials): number | undefined => {
  if (expiration === undefined) return undefined
  const left = expiration - room.clock.now()
  return Math.min(Math.max(left, lookAgainMs.least), lookAgainMs.most)
}
