import type { AWSServiceAccountIdentity } from '../api/index.ts'
import { AwsError, checkedRegion, parseRoleArn, partitionOf } from '../aws/index.ts'
import { firstOf, type Check, type Reason } from '../runtime/index.ts'
import type { Asked, Directory } from './chain.ts'
import {
  describeReference,
  identityResources,
  longestChain,
  singleton,
  type Identity,
  type IdentityReference,
} from './contract.ts'
import { allowedNamespacesOf, allows, describeAllowed } from './permission.ts'

/** Why a cluster does not get credentials by this link, and what to change. */
export interface Refusal extends Reason {
  next: string
  /** The link, counted from the cluster's own identity. */
  index: number
  /** A rule says no. The others are faults: something is missing or wrong. */
  denied: boolean
}

interface State {
  directory: Directory
  asked: Asked
  reference: IdentityReference
  identity: Identity | undefined
  index: number
  looped: boolean
  /** The chain so far. */
  before: string
}

type Verdict = Reason & { next: string; denied?: boolean }

const fault = (reason: string, message: string, next: string): Verdict => ({ reason, message, next })
const denial = (reason: string, message: string, next: string): Verdict => ({ reason, message, next, denied: true })

const kinds = Object.keys(identityResources)
const isIdentityKind = (kind: string): boolean => Object.hasOwn(identityResources, kind)

/** The order is the policy: what is wrong with the reference comes before what is wrong with the identity. */
const checks: Check<State>[] = [
  ({ asked }) => {
    // It becomes part of a host name that signed requests are sent to.
    const wrong = wrongInput(() => checkedRegion(asked.region))
    return wrong && fault('RegionInvalid', `spec.region: ${wrong.what}`, wrong.next)
  },
  ({ reference }) =>
    !isIdentityKind(reference.kind) &&
    fault('IdentityKindUnknown', `there is no identity kind ${reference.kind}`, `use one of ${kinds.join(', ')}`),
  ({ reference, index }) =>
    index > 0 &&
    reference.kind === 'AWSServiceAccountIdentity' &&
    denial(
      'SourcePrincipalUsageUnauthorized',
      `${describeReference(reference)} cannot be the source of a role: its namespace's users make it themselves`,
      'name a cluster-scoped identity in sourceIdentityRef',
    ),
  ({ reference }) =>
    reference.kind === 'AWSClusterControllerIdentity' &&
    reference.name !== singleton &&
    fault(
      'IdentityNotFound',
      `there is no AWSClusterControllerIdentity ${reference.name}: the only one is ${singleton}`,
      `write name: ${singleton}`,
    ),
  ({ looped, reference, before }) =>
    looped &&
    fault(
      'IdentityLoop',
      `the chain comes back to ${describeReference(reference)}: ${before} ← ${describeReference(reference)}`,
      'let one of these roles begin with a static or controller identity in sourceIdentityRef',
    ),
  ({ index, before }) =>
    index >= longestChain &&
    fault(
      'IdentityChainTooLong',
      `the chain has more than ${longestChain} links: ${before}`,
      'trust an identity that is nearer to the role',
    ),
  ({ identity, reference, asked, index }) =>
    !identity &&
    fault(
      'IdentityNotFound',
      `${describeReference(reference)} does not exist${inNamespace(reference, asked)}`,
      index === 0
        ? 'create it, or name another one in spec.identityRef'
        : 'create it, or name another one in sourceIdentityRef of the role before it',
    ),
  ({ reference, asked, directory }) =>
    reference.kind === 'AWSServiceAccountIdentity' &&
    asked.namespace === directory.controllerNamespace &&
    denial(
      'PrincipalUsageUnauthorized',
      `${describeReference(reference)} is in namespace ${asked.namespace} of the controller, whose own service account it could name`,
      'put cluster and identity into a namespace of their own',
    ),
  permission,
  ({ identity, asked, reference }) =>
    !!identity?.metadata.deletionTimestamp &&
    !asked.established &&
    fault(
      'IdentityDeleting',
      `${describeReference(reference)} is being deleted and takes no new clusters`,
      'name another identity, or create this one anew when it is gone',
    ),
  ({ reference, identity }) => {
    if (reference.kind !== 'AWSClusterStaticIdentity') return undefined
    const ref: unknown = (identity as { spec?: { secretRef?: unknown } }).spec?.secretRef
    const isNamed = typeof ref === 'string' || (typeof ref === 'object' && ref !== null && 'name' in ref)
    return (
      !isNamed &&
      fault(
        'IdentityInvalid',
        `${describeReference(reference)} names no secret`,
        'set spec.secretRef to its namespace and name',
      )
    )
  },
  ({ reference, identity, asked }) => {
    const arn = roleOf(reference, identity)
    if (arn === undefined) return undefined
    const wrong = wrongInput(() => parseRoleArn(arn))
    if (wrong)
      return fault('IdentityInvalid', `${describeReference(reference)}: spec.roleARN: ${wrong.what}`, wrong.next)
    const { partition } = parseRoleArn(arn)
    const wanted = asked.partition || partitionOf(asked.region)
    return (
      partition !== wanted &&
      fault(
        'PartitionMismatch',
        `${describeReference(reference)} has a role of partition ${partition}, and region ${asked.region} is in ${wanted}: credentials of one are unknown in the other`,
        `use a role of ${wanted}, or a region of ${partition}`,
      )
    )
  },
]

function permission({ reference, identity, asked, directory, index }: State): Verdict | false {
  if (reference.kind === 'AWSServiceAccountIdentity') return false // it was looked for in the cluster's own namespace
  const allowed = allowedNamespacesOf(identity as Exclude<Identity, AWSServiceAccountIdentity>)
  const namespace = directory.namespace(asked.namespace) ?? { name: asked.namespace }
  if (allows(allowed, namespace)) return false
  const isSource = index > 0
  return denial(
    isSource ? 'SourcePrincipalUsageUnauthorized' : 'PrincipalUsageUnauthorized',
    `Namespace is not permitted to use ${reference.kind}: ${reference.name}: namespace ${asked.namespace} is not among those it allows (${describeAllowed(allowed)})`,
    `ask whoever manages ${describeReference(reference)} to add ${asked.namespace} to spec.allowedNamespaces${isSource ? '; every link of a chain must allow the namespace' : ''}`,
  )
}

const roleOf = (reference: IdentityReference, identity: Identity | undefined): string | undefined =>
  reference.kind === 'AWSClusterRoleIdentity' || reference.kind === 'AWSServiceAccountIdentity'
    ? ((identity as { spec?: { roleARN?: string } }).spec?.roleARN ?? '')
    : undefined

/** What is wrong with something that a person wrote; undefined when it can be read. */
const wrongInput = (read: () => unknown): { what: string; next: string } | undefined => {
  try {
    read()
    return undefined
  } catch (error) {
    if (!(error instanceof AwsError)) throw error
    return { what: error.what, next: error.next ?? '' }
  }
}

const inNamespace = ({ kind }: IdentityReference, { namespace }: Asked): string =>
  kind === 'AWSServiceAccountIdentity' ? ` in namespace ${namespace}` : ''

const firstReason = firstOf(checks)

/** Why a link is refused; undefined when it may be used. */
export const judgeLink = (state: State): Refusal | undefined => {
  const verdict = firstReason(state) as Verdict | undefined
  return verdict && { ...verdict, denied: verdict.denied ?? false, index: state.index }
}

/** A refusal as one text, for conditions and events. */
export const describeRefusal = ({ message, next }: { message: string; next: string }): string => `${message}; ${next}`
