import {
  AwsError,
  creatorRoleArn,
  eksClusterArn,
  managedRoleArn,
  type ClusterPair,
  type EksCluster,
  type FailureReason,
} from '../../../aws/index.ts'
import { isConflict } from '../../../kube/index.ts'
import { ReconcileError, waiting } from '../../../runtime/index.ts'

export interface Deed {
  cluster: string
  /** Such as `make role …`. */
  deed: string
  hub: EksCluster
  pair?: ClusterPair | undefined
}

const noRights = new Set<FailureReason>([
  'AccessDenied',
  'SourceFailed',
  'InvalidCredentials',
  'ExpiredToken',
  'WebIdentityRefused',
])

/** An error as a person needs it: which cluster, what was tried, why not, and what to do; with what AWS's own errors say of trying again. */
export const explained = (error: unknown, about: Deed): unknown => {
  // Somebody else wrote the record: look again, without alarm.
  if (isConflict(error)) return waiting('RecordChanged', { message: error.message, afterMs: 500, cause: error })
  if (!(error instanceof AwsError)) return error
  const { cluster, deed } = about
  const message = `cluster ${cluster}: AWS does not let us ${deed}: ${error.what}`
  const next = adviceFor(error, about) ?? error.next ?? 'it is tried again'
  return new ReconcileError(policyFor(error), `Aws${error.reason}`, { message, next, cause: error })
}

const adviceFor = (error: AwsError, { cluster, hub, pair }: Deed): string | undefined => {
  if (noRights.has(error.reason))
    return `give the hub the role ${nameOf(hub)} (lanyard aws prerequisites hub --hub-cluster-arn ${eksClusterArn(hub)}), or let somebody do it who may: clusteradm accept --clusters ${cluster}`
  // IAM takes no trust in a role that does not exist, and says so in the words of a malformed policy.
  if (error.reason === 'MalformedPolicy' && pair)
    return `see that ${managedRoleArn(pair)} exists in account ${pair.managed.account} (lanyard aws prerequisites managed); it is looked for again`
  if (error.reason === 'LimitExceeded')
    return `ask AWS for a larger quota of roles in account ${hub.account}, or remove roles`
  return undefined
}

const nameOf = (hub: EksCluster): string => {
  try {
    return creatorRoleArn(hub)
  } catch {
    return 'that creates identities' // its name would be too long
  }
}

/** What may be put right in IAM is looked at again after a while: IAM sends no events. */
const policyFor = (error: AwsError): ReconcileError['policy'] => {
  if (error.reason === 'MalformedPolicy') return { kind: 'wait', afterMs: 30_000 }
  if (noRights.has(error.reason)) return { kind: 'wait', afterMs: 60_000 }
  return error.policy
}
