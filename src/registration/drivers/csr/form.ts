import { label, subject } from '../../../api/index.ts'
import { firstOf, type Check, type Reason } from '../../../runtime/index.ts'
import { RequestError, type ReadRequest } from '../../../runtime/pki/index.ts'
import { shown, type CsrState } from './checks.ts'

const requested = (check: (request: ReadRequest, state: CsrState) => Reason | false): Check<CsrState> => {
  return (state) => !(state.request instanceof RequestError) && check(state.request, state)
}

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
  ({ request }) => request instanceof RequestError && { reason: `Request${request.reason}`, message: request.message },
  requested(
    (request) =>
      !request.signatureValid && {
        reason: 'BadSignature',
        message: 'the request is not signed by its own key, or with an algorithm that is not accepted',
      },
  ),
  requested(
    ({ publicKey }) =>
      !isStrong(publicKey) && {
        reason: 'WeakKey',
        message: `the key (${publicKey.kind}, ${publicKey.bits} bits) is none of: ECDSA on P-256, P-384 or P-521, Ed25519, RSA of 2048 to 8192 bits`,
      },
  ),
  requested(
    (request) =>
      request.subject.others.length > 0 && {
        reason: 'UnexpectedSubject',
        message: `the subject has attributes besides O and CN: ${request.subject.others.join(', ')}`,
      },
  ),
  requested(
    (request) =>
      request.subject.organizationalUnits.length > 0 && {
        reason: 'UnexpectedOrganizationalUnit',
        message: `the subject has organizational units: ${shown(request.subject.organizationalUnits)}`,
      },
  ),
  requested(({ subject: { organizations } }) => {
    const double = organizations.filter((one, index) => organizations.indexOf(one) !== index)
    return (
      double.length > 0 && { reason: 'RepeatedOrganization', message: `an organization is repeated: ${shown(double)}` }
    )
  }),
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
  requested(
    (request) =>
      request.dnsNames.length + request.ipAddresses.length + request.emails.length + request.uris.length > 0 && {
        reason: 'UnexpectedAlternativeNames',
        message: `it asks for alternative names: ${shown([...request.dnsNames, ...request.ipAddresses, ...request.emails, ...request.uris].slice(0, 5))}`,
      },
  ),
  requested(
    (request) =>
      request.others > 0 && { reason: 'UnexpectedAlternativeNames', message: 'it asks for alternative names' },
  ),
  requested(({ otherExtensions, otherAttributes }) => {
    const asked = [...otherExtensions, ...otherAttributes]
    return (
      asked.length > 0 && {
        reason: 'UnexpectedExtensions',
        message: `it asks for extensions or attributes that an agent does not need: ${asked.slice(0, 5).join(', ')}`,
      }
    )
  }),
  ({ csr }) => {
    const foreign = (csr.spec.usages ?? []).filter((usage) => !allowedUsages.has(usage))
    return foreign.length > 0 && { reason: 'UnexpectedUsages', message: `it asks for the usages ${shown(foreign)}` }
  },
  ({ csr }) =>
    !csr.spec.usages?.includes('client auth') && {
      reason: 'NotForClients',
      message: 'it does not ask for the usage "client auth"',
    },
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

const allowedUsages: ReadonlySet<string> = new Set(['digital signature', 'key encipherment', 'client auth'])

const isClusterIdentity = (name: string): boolean => /^(?:system:)?open-cluster-management:/.test(name)

const isStrong = ({ kind, bits }: ReadRequest['publicKey']): boolean => {
  if (kind === 'rsa') return bits >= 2048 && bits <= 8192
  return (kind === 'ec' && bits > 0) || kind === 'ed25519'
}
