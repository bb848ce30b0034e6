import { isDeepStrictEqual } from 'node:util'
import type { AWSCluster } from '../api/index.ts'
import { AwsError, checkedRegion } from '../aws/index.ts'
import type { Cause, Denial, Mutate, Validate } from '../runtime/webhook/index.ts'
import { controllerReference } from './contract.ts'
import { chainOf, type Records } from './records.ts'

const removed: Denial = {
  reason: 'Invalid',
  field: 'spec.identityRef',
  message: 'can be changed but not removed: name the identity that the cluster shall use',
}

/** Names the controller's own identity where none is named. Whoever takes a reference away is told so, before it would come back. */
export const defaultCluster: Mutate<AWSCluster> = ({ object: cluster, oldObject: old }) => {
  if (!cluster || cluster.spec?.identityRef) return undefined
  if (old?.spec?.identityRef) return removed
  if (cluster.spec !== undefined && (typeof cluster.spec !== 'object' || cluster.spec === null)) return undefined // for the schema
  return { ...cluster, spec: { ...cluster.spec, identityRef: controllerReference } }
}

/** What can be said of a cluster's identity when it is written. Whether it may be used is said as a warning: that may still change. */
export const validateCluster =
  (records: Records): Validate<AWSCluster> =>
  ({ object: cluster, oldObject: old }) => {
    if (!cluster || cluster.metadata.deletionTimestamp) return undefined
    if (old?.spec?.identityRef && !cluster.spec?.identityRef) return removed
    const causes = [...regionFaults(cluster, old), ...accountFaults(cluster, old)]
    if (causes.length > 0)
      return { reason: 'Invalid', message: causes.map((c) => `${c.field}: ${c.message}`).join('; '), causes }
    if (old && isDeepStrictEqual(cluster.spec?.identityRef, old.spec?.identityRef)) return undefined
    const { refusal } = chainOf(records, cluster)
    return refusal ? { warnings: [`spec.identityRef: ${refusal.message}; ${refusal.next}`] } : undefined
  }

const regionFaults = (cluster: AWSCluster, old: AWSCluster | undefined): Cause[] => {
  const region = cluster.spec?.region
  if (!region || region === old?.spec?.region) return []
  try {
    checkedRegion(region)
    return []
  } catch (error) {
    if (!(error instanceof AwsError)) throw error
    return [{ field: 'spec.region', message: error.message }]
  }
}

// The schema says the same, where it is ours.
const accountFaults = (cluster: AWSCluster, old: AWSCluster | undefined): Cause[] => {
  const pinned = old?.spec?.accountID
  if (!pinned || cluster.spec?.accountID === pinned) return []
  return [
    { field: 'spec.accountID', message: `a cluster stays in its account: ${pinned} cannot be changed or removed` },
  ]
}
