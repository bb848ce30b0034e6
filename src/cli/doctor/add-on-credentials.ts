/** What keeps an add-on from its credential, in the order of its registration. */
import { label, signer, type ManagedClusterAddOn } from '../../api/index.ts'
import {
  AddOnCertificateRotated,
  addOnSecretKey,
  addOnSecretName,
  accountNames,
  installNamespaceOf,
  kubeClientOf,
  RegistrationServed,
  serviceAccountUser,
  signerOf,
  TokenInfrastructureReady,
  tokenLifetime,
  TokenRefreshed,
} from '../../addons/contract.ts'
import type { CertificateSigningRequest } from '../../kube/index.ts'
import { findCondition } from '../../runtime/index.ts'
import { isDue, stuckFalse, type AddOnRule } from './add-on-rule.ts'
import { klusterletName, kubectl, startAgentAgain, startHubAgain } from './advice.ts'
import { known, perhaps, type Advice } from './faults.ts'
import { saysOf } from './requests.ts'
import { hubOf, managedOf, type Snapshot } from './snapshot.ts'

/** Gives the add-ons of the cluster credentials of another kind, as its Klusterlet says. */
const useDriver = (s: Snapshot, authType: 'csr' | 'token'): Advice => {
  const change = { spec: { registrationConfiguration: { addOnKubeClientRegistrationDriver: { authType } } } }
  const patch = JSON.stringify(change)
  return kubectl(s, 'managed', 'patch', 'klusterlet', klusterletName(s), '--type=merge', '-p', patch)
}

/** Agent and hub have to know the driver, and the items have to be such that they can be served. */
const canBeServed: AddOnRule = (addOn, s) => {
  const served = findCondition(addOn, RegistrationServed.type)
  const token = findCondition(addOn, TokenRefreshed.type)
  if (token?.reason === TokenRefreshed.unsupported('').reason)
    return { fault: 'addon-driver-unsupported', why: token.message, ...useDriver(s, 'csr') }
  if (served?.status !== 'False') return undefined
  if (served.reason === 'UnknownDriver')
    return { fault: 'addon-driver-unsupported', why: served.message, ...useDriver(s, 'csr') }
  const edit = ['edit', 'managedclusteraddon', addOn.metadata.name!, '--subresource=status']
  return { fault: 'addon-invalid', why: served.message, ...kubectl(s, 'hub', '-n', s.name, ...edit) }
}

/** The account that the agent declared, where somebody else made one of that name. */
const foreignAccount = (addOn: ManagedClusterAddOn, s: Snapshot): string | undefined => {
  const user = kubeClientOf(addOn)?.kubeClient?.subject?.user
  const name = accountNames(s.name, addOn.metadata.name!).find((one) => serviceAccountUser(s.name, one) === user)
  return perhaps(s.hub?.addOns.accounts)?.find(
    ({ metadata }) =>
      metadata.namespace === s.name &&
      metadata.name === name &&
      metadata.labels?.[label.tokenAddOnName] !== addOn.metadata.name,
  )?.metadata.name
}

/** With `token`: the hub makes the account whose tokens the agent may request. */
const hasAccount: AddOnRule = (addOn, s) => {
  if (kubeClientOf(addOn)?.kubeClient?.driver !== 'token') return undefined
  const said = findCondition(addOn, TokenInfrastructureReady.type)
  if (said?.status === 'True' || !isDue(said?.lastTransitionTime ?? addOn.metadata.creationTimestamp, s))
    return undefined
  const fault = 'addon-account-missing'
  if (!said)
    return {
      fault,
      why: 'the hub has not made a service account for it (TokenInfrastructureReady): its add-on manager does not run',
      ...startHubAgain(s),
    }
  const foreign = foreignAccount(addOn, s)
  if (foreign)
    return { fault, why: said.message, ...kubectl(s, 'hub', '-n', s.name, 'delete', 'serviceaccount', foreign) }
  const refused = said.reason === TokenInfrastructureReady.refused('').reason
  return { fault, why: said.message, ...(refused ? startAgentAgain(s) : startHubAgain(s)) }
}

const placeExists: AddOnRule = (addOn, s) => {
  if (!addOn.status?.registrations?.length) return undefined
  const place = installNamespaceOf(addOn)
  return (
    !known(managedOf(s).namespaces).has(place) && {
      fault: 'addon-namespace-missing',
      why: `namespace ${place}, where it is installed and its credential belongs, is not on the managed cluster`,
      ...kubectl(s, 'managed', 'create', 'namespace', place),
    }
  )
}

/** The newest request of each signer that the add-on has an item for, unless its certificate is there. */
const openRequests = (addOn: ManagedClusterAddOn, s: Snapshot): CertificateSigningRequest[] => {
  const items = (addOn.status?.registrations ?? []).filter(({ kubeClient }) => kubeClient?.driver !== 'token')
  const signers = new Set(items.map(signerOf))
  const newest = new Map<string, CertificateSigningRequest>()
  for (const csr of known(hubOf(s).addOns.requests)) {
    const { labels, creationTimestamp = '' } = csr.metadata
    if (labels?.[label.clusterName] !== s.name || labels[label.addOnName] !== addOn.metadata.name) continue
    const { signerName } = csr.spec
    const other = newest.get(signerName)
    if (signers.has(signerName) && !((other?.metadata.creationTimestamp ?? '') > creationTimestamp))
      newest.set(signerName, csr)
  }
  return [...newest.values()].filter(({ status }) => !status?.certificate)
}

/** With `csr`: somebody approves the request, and somebody signs it. */
const isAnswered: AddOnRule = (addOn, s) => {
  for (const csr of openRequests(addOn, s)) {
    const { name = '', creationTimestamp } = csr.metadata
    const { signerName } = csr.spec
    const [no, approved] = [saysOf(csr, 'Denied') ?? saysOf(csr, 'Failed'), saysOf(csr, 'Approved')]
    if (no)
      return {
        fault: 'addon-csr-denied',
        why: `its certificate request ${name} was refused (${[no.reason, no.message].filter(Boolean).join(': ') || 'no reason was given'}); when it is gone, the agent asks anew`,
        ...kubectl(s, 'hub', 'delete', 'csr', name),
      }
    if (!approved && isDue(creationTimestamp, s))
      return {
        fault: 'addon-csr-pending',
        why: `nobody has approved its certificate request ${name} for signer ${signerName}: the controller of the add-on does that, and does not run or does not want to. If the request is right:`,
        ...kubectl(s, 'hub', 'certificate', 'approve', name),
      }
    if (approved && isDue(approved.lastUpdateTime ?? approved.lastTransitionTime, s))
      return {
        fault: 'addon-signer-missing',
        why: `its certificate request ${name} is approved, and nobody on the hub signs for ${signerName}`,
        // A hub that signs no client certificates, such as EKS, still issues tokens.
        ...(signerName === signer.kubeApiServerClient
          ? useDriver(s, 'token')
          : kubectl(s, 'hub', 'describe', 'csr', name)),
      }
  }
  return undefined
}

/** Where the Klusterlet asks for tokens of a lifetime that no hub issues, how it asks for the usual one. */
const usualLifetime = (s: Snapshot): Advice | undefined => {
  const { registrationConfiguration } = perhaps(s.managed?.klusterlet)?.spec ?? {}
  const { expirationSeconds } = registrationConfiguration?.addOnKubeClientRegistrationDriver?.token ?? {}
  if (!expirationSeconds) return undefined
  if (expirationSeconds >= tokenLifetime.least && expirationSeconds <= tokenLifetime.most) return undefined
  const path = '/spec/registrationConfiguration/addOnKubeClientRegistrationDriver/token'
  const patch = JSON.stringify([{ op: 'remove', path }])
  return kubectl(s, 'managed', 'patch', 'klusterlet', klusterletName(s), '--type=json', '-p', patch)
}

/** The condition that tells of an add-on's credential for the hub. */
const conditionType = (addOn: ManagedClusterAddOn): string =>
  kubeClientOf(addOn)?.kubeClient?.driver === 'token' ? TokenRefreshed.type : AddOnCertificateRotated.type

/** What the agent said when it last tried. */
const isKept: AddOnRule = (addOn, s) => {
  const said = addOn.status?.registrations?.length ? stuckFalse(addOn, conditionType(addOn), s) : undefined
  return (
    said && {
      fault: 'addon-credential-failing',
      why: said.message,
      ...((said.type === TokenRefreshed.type && usualLifetime(s)) || startAgentAgain(s)),
    }
  )
}

/** The agent writes the secret, and a new one when that is gone; it renews tokens when 80 to 84 % of their time are over. */
const isThere: AddOnRule = (addOn, s) => {
  if (!kubeClientOf(addOn) || findCondition(addOn, conditionType(addOn))?.status !== 'True') return undefined
  const [namespace, name] = [installNamespaceOf(addOn), addOnSecretName.kubeClient(addOn.metadata.name!)]
  const secret = known(managedOf(s).addOnCredentials).find((one) => one.namespace === namespace && one.name === name)
  if (!secret?.data[addOnSecretKey.kubeconfig])
    return {
      fault: 'addon-secret-missing',
      why: `secret ${namespace}/${name} with its credential is gone from the managed cluster, and the agent has not written another`,
      ...startAgentAgain(s),
    }
  const until = secret.data[addOnSecretKey.expiration]
  return (
    until !== undefined &&
    s.now >= Date.parse(until) && {
      fault: 'addon-token-expired',
      why: `its token in secret ${namespace}/${name} ended at ${until}, and was not refreshed`,
      ...startAgentAgain(s),
    }
  )
}

export const credentialRules: readonly AddOnRule[] = [canBeServed, hasAccount, placeExists, isAnswered, isKept, isThere]
