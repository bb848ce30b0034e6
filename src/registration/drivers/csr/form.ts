import { label, subject } from '../../../api/index.ts'
import { firstOf } from '../../../runtime/index.ts'
import { excessive, requested, RequestError, shown, unsound } from '../../../runtime/pki/index.ts'
import type { CsrState } from './checks.ts'

/** A name that is also a namespace. */
const dnsLabel = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/
/** One plain word: in particular no colon, which would let `c1:x` be an agent of `c1`. */
const agentWord = /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,251}[A-Za-z0-9])?$/

/** The agent that a common name speaks for; undefined unless it is exactly `system:open-cluster-management:<cluster>:<agent>`. */
export const agentOf = (cluster: string, commonName: string | undefined): string | undefined => {
  const prefix = subject.agentUser(cluster, '')
  const agent = commonName?.startsWith(prefix) ? commonName.slice(prefix.length) : ''
  return agentWord.test(agent) ? agent : undefined
}

/** Why the request itself can never be approved: it is malformed, or asks for more than an agent's own identity. */
export const malformed = firstOf<CsrState>([
  ({ cluster }) =>
    !dnsLabel.test(cluster) && {
      reason: 'BadClusterName',
      message: `the label ${label.clusterName} is no name that a cluster can have: ${shown([cluster])}`,
    },
  unsound,
  requested(
    (request) =>
      request.subject.organizationalUnits.length > 0 && {
        reason: 'UnexpectedOrganizationalUnit',
        message: `the subject has organizational units: ${shown(request.subject.organizationalUnits)}`,
      },
  ),
  requested((request, { cluster }) => {
    const allowed = new Set([subject.clusterGroup(cluster), subject.managedClusters])
    const foreign = request.subject.organizations.filter((one) => !allowed.has(one))
    return (
      foreign.length > 0 && {
        reason: 'ForeignOrganization',
        message: `it asks for groups that are not those of cluster ${cluster}: ${shown(foreign)}`,
      }
    )
  }),
  requested(
    (request, { cluster }) =>
      !request.subject.organizations.includes(subject.clusterGroup(cluster)) && {
        reason: 'MissingOrganization',
        message: `it does not ask for the group ${subject.clusterGroup(cluster)}`,
      },
  ),
  // A cluster named "managed-clusters" would have the group of all clusters as its own.
  ({ cluster }) =>
    subject.clusterGroup(cluster) === subject.managedClusters && {
      reason: 'ReservedClusterName',
      message: `a cluster cannot be called ${cluster}: ${subject.managedClusters} is the group of all clusters`,
    },
  requested(
    (request, { cluster }) =>
      agentOf(cluster, request.subject.commonName) === undefined && {
        reason: 'BadCommonName',
        message: `the common name ${shown([request.subject.commonName ?? ''])} is not ${subject.agentUser(cluster, '<agent>')}`,
      },
  ),
  excessive(),
  // The username of a managed cluster is that of its certificate, or its bare name with a group of its own on EKS.
  ({ requester, cluster, request }) => {
    if (request instanceof RequestError || requester.username === request.subject.commonName) return false
    const groups = [requester.username, ...(requester.groups ?? [])].filter(isClusterIdentity)
    return (
      groups.length > 0 && {
        reason: 'RequestedByAnotherIdentity',
        message: `a certificate of cluster ${cluster} was asked for by ${shown([requester.username])}, which is another managed cluster or agent`,
      }
    )
  },
])

const isClusterIdentity = (name: string): boolean => /^(?:system:)?open-cluster-management:/.test(name)
