import { isDeepStrictEqual } from 'node:util'
import { annotation, type AWSCluster } from '../api/index.ts'
import { AwsError, checkedRegion } from '../aws/index.ts'
import type { Cause, Denial, Mutate, Validate } from '../runtime/webhook/index.ts'
import { controllerReference } from './contract.ts'
import { fixedFields } from './infrastructure/fixed-fields.ts'
import { idleFields, unsupportedFields } from './infrastructure/subset.ts'
import { chainOf, type Records } from './records.ts'

const removed: Denial = {
  reason: 'Invalid',
  field: 'spec.identityRef',
  message: 'can be changed but not removed: name the identity that the cluster shall use',
}

/**
 * Names the controller's own identity where none is named. Whoever takes a reference away is told so, before it would come back.
 * What v1alpha3 said in other words is said in today's.
 */
export const defaultCluster: Mutate<AWSCluster> = ({ object: cluster, oldObject: old }) => {
  if (!cluster) return undefined
  if (cluster.spec !== undefined && (typeof cluster.spec !== 'object' || cluster.spec === null)) return undefined // for the schema
  const spec = inTodaysWords(cluster.spec)
  if (spec?.identityRef) return spec === cluster.spec ? undefined : { ...cluster, spec }
  if (old?.spec?.identityRef) return removed
  return { ...cluster, spec: { ...spec, identityRef: controllerReference } }
}

/** v1alpha3 called the network `networkSpec`, and wrote the scheme of a load balancer with a capital. */
const inTodaysWords = (spec: AWSCluster['spec']): AWSCluster['spec'] => {
  const scheme: unknown = spec?.controlPlaneLoadBalancer?.scheme
  const isOld = spec?.networkSpec !== undefined && spec.network === undefined
  if (!spec || (!isOld && scheme !== 'Internet-facing')) return spec
  const { networkSpec, ...rest } = spec
  return {
    ...(isOld ? { ...rest, network: networkSpec } : spec),
    ...(scheme === 'Internet-facing'
      ? { controlPlaneLoadBalancer: { ...spec.controlPlaneLoadBalancer, scheme: 'internet-facing' as const } }
      : {}),
  }
}

/** What can be said of a cluster's identity when it is written. Whether it may be used is said as a warning: that may still change. */
export const validateCluster =
  (records: Records): Validate<AWSCluster> =>
  ({ object: cluster, oldObject: old }) => {
    if (!cluster || cluster.metadata.deletionTimestamp) return undefined
    if (old?.spec?.identityRef && !cluster.spec?.identityRef) return removed
    const causes = [
      ...regionFaults(cluster, old),
      ...accountFaults(cluster, old),
      ...infrastructureFaults(cluster, old),
    ]
    if (causes.length > 0)
      return { reason: 'Invalid', message: causes.map((c) => `${c.field}: ${c.message}`).join('; '), causes }
    if (old && isDeepStrictEqual(cluster.spec, old.spec)) return undefined
    const warnings = [...identityWarnings(records, cluster, old), ...idleFields(cluster)]
    return warnings.length > 0 ? { warnings } : undefined
  }

const identityWarnings = (records: Records, cluster: AWSCluster, old: AWSCluster | undefined): string[] => {
  if (old && isDeepStrictEqual(cluster.spec?.identityRef, old.spec?.identityRef)) return []
  const { refusal } = chainOf(records, cluster)
  return refusal ? [`spec.identityRef: ${refusal.message}; ${refusal.next}`] : []
}

/** Whoever else builds the cluster has rules of its own. What was stored before is complained about by the controller, not at each write. */
const infrastructureFaults = (cluster: AWSCluster, old: AWSCluster | undefined): Cause[] => {
  if (Object.hasOwn(cluster.metadata.annotations ?? {}, annotation.managedBy)) return []
  const known = new Set((old ? unsupportedFields(old) : []).map(({ field, message }) => `${field} ${message}`))
  const faults = unsupportedFields(cluster).filter(({ field, message }) => !known.has(`${field} ${message}`))
  return [...faults, ...fixedFields(cluster, old)]
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
