import { firstOf, type Reason } from '../../runtime/index.ts'
import { shown } from '../../runtime/pki/index.ts'
import {
  accountName,
  accountNames,
  addOnEverywhereGroup,
  addOnGroup,
  addOnUserPrefix,
  defaultSubject,
  isAddOnName,
  serviceAccountUser,
  type Registration,
} from '../contract.ts'

/** Who an add-on's agent says that it is. Its cluster writes this, and may write anything. */
export interface Declared {
  cluster: string
  addOn: string
  registrations: readonly Registration[]
}

/** Groups that every authenticated user has anyway; add-ons in the field ask for it. */
const everybody = 'system:authenticated'

/** One plain word: no colon, which would let one add-on's agent be another's. */
const word = /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,251}[A-Za-z0-9])?$/

/** Whether a user name is one that this add-on may have with a certificate. */
export const isAddOnUser = (cluster: string, addOn: string, user: string): boolean => {
  const prefix = addOnUserPrefix(cluster, addOn)
  return user.startsWith(prefix) && word.test(user.slice(prefix.length))
}

/** The groups that an add-on's certificate may have. */
export const allowedGroups = (cluster: string, addOn: string): string[] => [
  addOnGroup(cluster, addOn),
  addOnEverywhereGroup(addOn),
  everybody,
]

/** The account that a declared user names, if it is one that this add-on may have. */
export const declaredAccount = (cluster: string, addOn: string, user: string): string | undefined =>
  accountNames(cluster, addOn).find((account) => user === serviceAccountUser(cluster, account))

/** What is wrong with an add-on's name or its items, whoever wrote them. */
export const invalid = firstOf<Declared>([
  ({ addOn }) =>
    !isAddOnName(addOn) && {
      reason: 'InvalidName',
      message: `the name ${shown([addOn])} cannot be used in labels and user names: delete it and create it with at most 63 small letters, digits and dashes`,
    },
  ({ registrations }) => {
    const items = registrations.filter(({ type }) => type === 'kubeClient').length
    return (
      items > 1 && {
        reason: 'InvalidRegistrations',
        message: `status.registrations has ${items} items of type kubeClient, and there is one secret for them: the first is used; the add-on's controller must ask for one`,
      }
    )
  },
  ({ registrations }) => {
    const signers = registrations.flatMap(({ customSigner }) => (customSigner ? [customSigner.signerName] : []))
    const twice = signers.find((one, at) => signers.indexOf(one) !== at)
    return (
      twice !== undefined && {
        reason: 'InvalidRegistrations',
        message: `status.registrations has two items of signer ${twice}, and there is one secret for them: the add-on's controller must ask for one`,
      }
    )
  },
])

/** Why the subject of an item for the API server is none that the add-on may have; undefined too while it has none. */
export const subjectRefusal = (cluster: string, addOn: string, item: Registration): Reason | undefined =>
  refusals({ cluster, addOn, driver: item.kubeClient?.driver, ...item.kubeClient?.subject })

const refusals = firstOf<{
  cluster: string
  addOn: string
  driver: string | undefined
  user?: string | undefined
  groups?: string[] | undefined
}>([
  ({ cluster, addOn, driver, user }) =>
    driver === 'token' &&
    user !== undefined &&
    declaredAccount(cluster, addOn, user) === undefined && {
      reason: 'SubjectRefused',
      message: `kubeClient.subject.user ${shown([user])} is no account of this add-on: the agent must declare ${defaultSubject('token', cluster, addOn).user} (account ${accountName(cluster, addOn)}), or leave it empty`,
    },
  ({ cluster, addOn, driver, user }) =>
    driver !== 'token' &&
    user !== undefined &&
    !isAddOnUser(cluster, addOn, user) && {
      reason: 'SubjectRefused',
      message: `kubeClient.subject.user ${shown([user])} is no user of this add-on: the agent must declare ${addOnUserPrefix(cluster, addOn)}<agent>, or leave it empty`,
    },
  ({ cluster, addOn, groups = [] }) => {
    const foreign = groups.filter((group) => !allowedGroups(cluster, addOn).includes(group))
    return (
      foreign.length > 0 && {
        reason: 'SubjectRefused',
        message: `kubeClient.subject.groups has groups that are not this add-on's: ${shown(foreign)}; allowed is ${addOnGroup(cluster, addOn)}`,
      }
    )
  },
])
