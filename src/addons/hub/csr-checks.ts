import { signer, type ManagedCluster, type ManagedClusterAddOn } from '../../api/index.ts'
import type { CertificateSigningRequest, Requester } from '../../kube/index.ts'
import { firstOf, type Reason } from '../../runtime/index.ts'
import { excessive, requested, shown, unsound, type ReadRequest, type RequestError } from '../../runtime/pki/index.ts'
import { groupsOf } from '../../registration/contract.ts'
import { addOnDnsName, addOnGroup, defaultCustomUser, kubeClientOf } from '../contract.ts'
import type { AddOn, CertificateSubject, RegistrationRequest } from './definition.ts'
import { allowedGroups, isAddOnUser } from './subject.ts'

/** Everything that is looked at when an add-on asks for a certificate. */
export interface AddOnCsrState {
  csr: CertificateSigningRequest
  /** As the API server, or the hub itself over another wire, has authenticated it. */
  requester: Requester
  cluster: string
  addOn: string
  request: ReadRequest | RequestError
  managedCluster?: ManagedCluster | undefined
  managedAddOn?: ManagedClusterAddOn | undefined
  definition?: AddOn | undefined
}

/** The item of the definition that a request is for. */
export const wantedBy = ({ definition, csr }: AddOnCsrState): RegistrationRequest | undefined =>
  definition?.registrations.find((one) =>
    one.type === 'kubeClient'
      ? csr.spec.signerName === signer.kubeApiServerClient
      : csr.spec.signerName === one.signerName && one.authority !== undefined,
  )

/** Why a request is none of our business. Add-ons that others run have approvers of their own. */
export const notOurs = firstOf<AddOnCsrState>([
  ({ definition, addOn }) =>
    !definition && { reason: 'NotOurs', message: `add-on ${addOn} is not run by this process` },
  (state) =>
    !wantedBy(state) && {
      reason: 'OtherSigner',
      message: `add-on ${state.addOn} asks for no certificate of signer ${state.csr.spec.signerName} that is signed here`,
    },
])

/** The subject that a custom signer signs for: only the definition decides. */
export const customSubject = (
  state: Pick<AddOnCsrState, 'cluster' | 'addOn'>,
  wanted: Extract<RegistrationRequest, { type: 'customSigner' }>,
): CertificateSubject => wanted.subject?.(state.cluster) ?? { user: defaultCustomUser(state.cluster, state.addOn) }

const sameSet = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((one) => b.includes(one))

const wrongSubject = (request: ReadRequest, state: AddOnCsrState): Reason | false => {
  const { cluster, addOn } = state
  const { commonName = '', organizations, organizationalUnits } = request.subject
  const wanted = wantedBy(state)!
  if (wanted.type === 'kubeClient') {
    if (!isAddOnUser(cluster, addOn, commonName))
      return {
        reason: 'BadCommonName',
        message: `the common name ${shown([commonName])} is no user of add-on ${addOn} on cluster ${cluster}`,
      }
    const foreign = organizations.filter((one) => !allowedGroups(cluster, addOn).includes(one))
    if (foreign.length > 0)
      return {
        reason: 'ForeignOrganization',
        message: `it asks for groups that are not those of the add-on: ${shown(foreign)}`,
      }
    if (!organizations.includes(addOnGroup(cluster, addOn)))
      return { reason: 'MissingOrganization', message: `it does not ask for the group ${addOnGroup(cluster, addOn)}` }
    return (
      organizationalUnits.length > 0 && {
        reason: 'UnexpectedOrganizationalUnit',
        message: `the subject has organizational units: ${shown(organizationalUnits)}`,
      }
    )
  }
  const { user, groups = [], organizationUnits = [] } = customSubject(state, wanted)
  const same = commonName === user && sameSet(organizations, groups) && sameSet(organizationalUnits, organizationUnits)
  return (
    !same && {
      reason: 'WrongSubject',
      message: `it is for ${shown([commonName, ...organizations, ...organizationalUnits])}, and signer ${state.csr.spec.signerName} signs for ${shown([user, ...groups, ...organizationUnits])} here`,
    }
  )
}

/** Whether the requester is the cluster itself: by its groups, which the API server has authenticated, never by its name. */
const isCluster = ({ requester, cluster }: AddOnCsrState): boolean =>
  groupsOf(cluster).some((group) => requester.groups?.includes(group))

const isClusterIdentity = (name: string): boolean => /^(?:system:)?open-cluster-management:/.test(name)

/** Why the request can never be approved: it is malformed, or asks for more than the add-on's own identity, or for another's. */
export const malformed = firstOf<AddOnCsrState>([
  unsound,
  requested(wrongSubject),
  (state) => excessive([addOnDnsName(state.addOn)])(state),
  (state) => {
    const { username, groups = [] } = state.requester
    return (
      !isCluster(state) &&
      [username, ...groups].some(isClusterIdentity) && {
        reason: 'RequestedByAnotherIdentity',
        message: `a certificate of add-on ${state.addOn} on cluster ${state.cluster} was asked for by ${shown([username])}, which is not that cluster`,
      }
    )
  },
])

/** Why it is not approved now. */
export const waits = firstOf<AddOnCsrState>([
  (state) =>
    !isCluster(state) && {
      reason: 'RequesterNotTheCluster',
      message: `${shown([state.requester.username])} is not cluster ${state.cluster}; a person decides: kubectl certificate approve ${state.csr.metadata.name}`,
    },
  ({ managedAddOn, cluster, addOn }) =>
    !managedAddOn && { reason: 'AddOnMissing', message: `there is no ManagedClusterAddOn ${cluster}/${addOn}` },
  ({ managedCluster, cluster }) =>
    (!managedCluster || managedCluster.metadata.deletionTimestamp !== undefined) && {
      reason: 'ClusterGone',
      message: `ManagedCluster ${cluster} does not exist or is being deleted`,
    },
  ({ managedCluster, cluster }) =>
    !managedCluster!.spec.hubAcceptsClient && {
      reason: 'ClusterNotAccepted',
      message: `ManagedCluster ${cluster} is not accepted (hubAcceptsClient is false)`,
    },
  (state) =>
    wantedBy(state)!.type === 'kubeClient' &&
    kubeClientOf(state.managedAddOn!)?.kubeClient?.driver === 'token' && {
      reason: 'DriverIsToken',
      message: `add-on ${state.addOn} declares the token driver: it gets no certificate`,
    },
])
