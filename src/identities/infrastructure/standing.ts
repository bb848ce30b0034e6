import { annotation, finalizer, type AWSCluster, type Cluster } from '../../api/index.ts'
import { AwsError, recipeKey, type Recipe } from '../../aws/index.ts'
import { findCondition, hasFinalizer, isTrue, type Reason } from '../../runtime/index.ts'
import type { Chain } from '../chain.ts'
import { accountRecorded, credentialRetrieved, usageAllowed } from '../contract.ts'
import { clusterReference } from '../paused.ts'
import type { Room } from '../room.ts'
import { readyType } from './report.ts'
import { unsupportedFields } from './subset.ts'

/** Nothing of it is ours to touch: somebody else builds it, or it goes and nothing was ever made for it. */
export const isLeftAlone = (cluster: AWSCluster): boolean =>
  Object.hasOwn(cluster.metadata.annotations ?? {}, annotation.managedBy) ||
  (cluster.metadata.deletionTimestamp !== undefined && !hasFinalizer(cluster, finalizer.awsCluster))

/** Everything that decides what is to be done, in one text. While it is the same, and AWS was looked at lately, there is nothing to do. */
export const fingerprint = (cluster: AWSCluster, { recipe }: Chain): string => {
  const { generation, deletionTimestamp, annotations, uid } = cluster.metadata
  const says = (type: string): string | undefined => findCondition(cluster, type)?.status
  return JSON.stringify([
    uid,
    generation,
    deletionTimestamp,
    Object.hasOwn(annotations ?? {}, annotation.paused),
    clusterReference(cluster)?.uid,
    recipe && recipeKey(recipe),
    [usageAllowed, credentialRetrieved, accountRecorded, readyType].map(says),
  ])
}

/** Who acts, and where. */
export interface Standing {
  recipe: Recipe
  account: string
  region: string
}

/** Why nothing is done for a cluster yet. The order is the policy: what people must write comes before what they must wait for. */
export const notYet = (cluster: AWSCluster, chain: Chain): Reason | undefined => {
  const isDeleting = cluster.metadata.deletionTimestamp !== undefined
  if (!isDeleting && !clusterReference(cluster))
    return {
      reason: 'WaitingForCluster',
      message: `no Cluster owns it yet: nothing is built before one names AWSCluster ${cluster.metadata.name} in spec.infrastructureRef`,
    }
  const [fault, ...more] = isDeleting ? [] : unsupportedFields(cluster)
  if (fault)
    return {
      reason: 'UnsupportedField',
      message: `${fault.field}: ${fault.message}${more.length > 0 ? ` (and ${more.length} more)` : ''}`,
    }
  if (!isTrue(cluster, usageAllowed) || !isTrue(cluster, credentialRetrieved) || !chain.recipe)
    return {
      reason: 'WaitingForIdentity',
      message: `nothing is done in AWS while ${usageAllowed} and ${credentialRetrieved} are not both True: see there`,
    }
  if (!cluster.spec?.accountID || !isTrue(cluster, accountRecorded))
    return { reason: 'WaitingForIdentity', message: 'the account that the cluster lives in is not recorded yet' }
  return undefined
}

/** The credentials that are used from here on are those of the account that was recorded: looked at now, not when the condition was written. */
export const standingOf = async (
  room: Room,
  cluster: AWSCluster,
  recipe: Recipe,
  signal: AbortSignal,
): Promise<Standing> => {
  const region = cluster.spec?.region || room.records.defaultRegion
  const account = cluster.spec!.accountID!
  const reached = await room.credentials.caller(recipe, region, signal)
  if (reached.account === account) return { recipe, account, region }
  throw new AwsError({
    reason: 'AccessDenied',
    message: `the identity reaches account ${reached.account}, and the cluster lives in ${account}: nothing is done there`,
    next: `name an identity of account ${account} in spec.identityRef`,
  })
}

export const apiPortOf = (cluster: Cluster | undefined): number => {
  const { clusterNetwork } = (cluster?.spec ?? {}) as { clusterNetwork?: { apiServerPort?: number } }
  return clusterNetwork?.apiServerPort || 6443
}
