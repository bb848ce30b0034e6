import { label, type ManagedClusterAddOn } from '../../api/index.ts'
import {
  apiVersionOf,
  isAlreadyExists,
  Role,
  RoleBinding,
  ServiceAccount,
  type KubeObject,
  type Resource,
  type Subject,
} from '../../kube/index.ts'
import { applySet, contains, equal, waiting } from '../../runtime/index.ts'
import { groupsOf } from '../../registration/contract.ts'
import { accountNames, kubeClientOf, TokenInfrastructureReady, tokenReadyMessage, tokenRoleName } from '../contract.ts'
import { fieldManager, index, targetsOf, type AddOnHub } from './hub.ts'
import type { Report } from './report.ts'
import { declaredAccount, invalid, subjectRefusal } from './subject.ts'

/** On the Role, which only the hub can write: the UID of the account that it made. Labels of the account may be lost, this is not. */
export const accountUidAnnotation = 'addon.open-cluster-management.io/service-account-uid'

interface Where {
  cluster: string
  addOn: string
}

/** Makes and repairs what a token add-on needs on the hub, or takes it away; and says which, with the account's UID. */
export const tokenInfrastructure = async (
  hub: AddOnHub,
  addOn: ManagedClusterAddOn,
  signal: AbortSignal,
): Promise<Report> => {
  const where = { cluster: addOn.metadata.namespace!, addOn: addOn.metadata.name! }
  const item = kubeClientOf(addOn)
  const user = item?.kubeClient?.subject?.user
  const refuse = async (condition: 'refused' | 'notAccepted', message: string): Promise<Report> => {
    await removeTokenInfrastructure(hub, where, signal)
    return { conditions: [TokenInfrastructureReady[condition](message)] }
  }
  if (item?.kubeClient?.driver !== 'token' || user === undefined) {
    await removeTokenInfrastructure(hub, where, signal)
    return { cleared: [TokenInfrastructureReady.type] }
  }
  const locked = lockedOut(hub, where.cluster)
  if (locked) return refuse('notAccepted', locked)
  const unusable = invalid({ ...where, registrations: [] })
  if (unusable) return refuse('refused', unusable.message)
  const refusal = subjectRefusal(where.cluster, where.addOn, item)
  if (refusal) return refuse('refused', refusal.message)

  const account = declaredAccount(where.cluster, where.addOn, user)!
  const uid = await makeTokenInfrastructure(hub, where, account, signal)
  return { conditions: [TokenInfrastructureReady.ready(tokenReadyMessage(where.cluster, account, uid))] }
}

/** Why the cluster must have no token at all; a deleted one keeps what its add-ons need to finish. */
export const lockedOut = (hub: AddOnHub, cluster: string): string | undefined => {
  const managed = hub.clusters.get(cluster)
  if (!managed) return `there is no ManagedCluster ${cluster}: its add-ons get no access to the hub`
  if (managed.metadata.deletionTimestamp || managed.spec.hubAcceptsClient) return undefined
  return `ManagedCluster ${cluster} is not accepted: its add-ons have no access to the hub; run clusteradm accept --clusters ${cluster}`
}

/** The account first: before it is known to be ours, nobody may request its tokens. */
const makeTokenInfrastructure = async (
  hub: AddOnHub,
  where: Where,
  account: string,
  signal: AbortSignal,
): Promise<string> => {
  const { uid } = (await ensureAccount(hub, where, account, signal)).metadata
  const desired = tokenAccess(where, account, uid!)
  const obsolete = partsInPlace(hub, where).filter(
    ({ kind, metadata }) => kind === 'ServiceAccount' && metadata.name !== account,
  )
  await applySet(desired, { client: hub.client, targets: targetsOf(hub), fieldManager, signal })
  await removeAccounts(hub, obsolete, signal)
  return uid!
}

const labelsOf = ({ addOn }: Where): Record<string, string> => ({
  [label.tokenInfrastructure]: 'true',
  [label.tokenAddOnName]: addOn,
})

/** Role and RoleBinding: tokens of this account alone, for the two groups that the cluster's credentials can have. */
export const tokenAccess = (where: Where, account: string, uid: string): KubeObject[] => {
  const metadata = { name: tokenRoleName(where.addOn), namespace: where.cluster, labels: labelsOf(where) }
  const subjects: Subject[] = groupsOf(where.cluster).map((name) => ({
    kind: 'Group',
    apiGroup: 'rbac.authorization.k8s.io',
    name,
  }))
  const tokens = { apiGroups: [''], resources: ['serviceaccounts/token'] }
  return [
    {
      apiVersion: apiVersionOf(Role),
      kind: Role.kind,
      metadata: { ...metadata, annotations: { [accountUidAnnotation]: uid } },
      rules: [
        { ...tokens, resourceNames: [account], verbs: ['create'] },
        // No verb of the API server: the gRPC endpoint asks for it before it listens for answers on the cluster's behalf.
        { ...tokens, verbs: ['subscribe'] },
      ],
    } as KubeObject,
    {
      apiVersion: apiVersionOf(RoleBinding),
      kind: RoleBinding.kind,
      metadata,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: metadata.name },
      subjects,
    } as KubeObject,
  ]
}

/** The add-on's account, made if it is missing. One that somebody else made is never handed out: its tokens may mean more. */
const ensureAccount = async (
  hub: AddOnHub,
  where: Where,
  name: string,
  signal: AbortSignal,
): Promise<ServiceAccount> => {
  const accounts = hub.client.of(ServiceAccount, where.cluster)
  const labels = labelsOf(where)
  let present = hub.accounts.get(`${where.cluster}/${name}`)
  if (!present) {
    try {
      // Nobody runs a pod with it: a token is only ever requested.
      const account = { metadata: { name, namespace: where.cluster, labels }, automountServiceAccountToken: false }
      return await accounts.create(account, { fieldManager, signal })
    } catch (error) {
      if (!isAlreadyExists(error)) throw error
      present = await accounts.get(name, { signal })
    }
  }
  const owner = present.metadata.labels?.[label.tokenAddOnName]
  const isOurs = contains(present.metadata.labels, labels)
  if (!isOurs && !(await madeByUs(hub, where, present, signal)))
    throw waiting('ForeignAccount', {
      afterMs: 15_000, // what others make has no label of ours, so that nobody tells when it goes
      message: `ServiceAccount ${where.cluster}/${name} exists and ${owner && owner !== where.addOn ? `belongs to add-on ${owner}` : 'was not made for this add-on'}`,
      next: `delete or rename it: kubectl delete serviceaccount --namespace ${where.cluster} ${name}`,
    })
  if (isOurs && equal(present.automountServiceAccountToken ?? true, false)) return present
  const mended = { metadata: { uid: present.metadata.uid, labels }, automountServiceAccountToken: false }
  return accounts.patch(name, { merge: mended }, { fieldManager, signal })
}

/** Whether an account whose labels were taken off is the one that the Role remembers. */
const madeByUs = async (
  hub: AddOnHub,
  { cluster, addOn }: Where,
  account: ServiceAccount,
  signal: AbortSignal,
): Promise<boolean> => {
  const other = account.metadata.labels?.[label.tokenAddOnName]
  if (other !== undefined && other !== addOn) return false
  const role =
    hub.tokenRoles.get(`${cluster}/${tokenRoleName(addOn)}`) ??
    (await hub.client.of(Role, cluster).find(tokenRoleName(addOn), { signal }))
  return role?.metadata.annotations?.[accountUidAnnotation] === account.metadata.uid
}

/** What the caches show, by the names that we give and no others: a label alone makes nothing ours to delete. */
const partsInPlace = (hub: AddOnHub, { cluster, addOn }: Where): KubeObject[] => {
  const key = `${cluster}/${addOn}`
  const named = (objects: KubeObject[], of: Resource<KubeObject>, names: readonly string[]): KubeObject[] =>
    objects
      .filter(({ metadata }) => names.includes(metadata.name!))
      .map((object) => ({ ...object, apiVersion: apiVersionOf(of), kind: of.kind }))
  return [
    ...named(hub.tokenBindings.by(index.addOn, key), RoleBinding, [tokenRoleName(addOn)]),
    ...named(hub.tokenRoles.by(index.addOn, key), Role, [tokenRoleName(addOn)]),
    ...named(hub.accounts.by(index.addOn, key), ServiceAccount, accountNames(cluster, addOn)),
  ]
}

const removeAccounts = async (hub: AddOnHub, accounts: readonly KubeObject[], signal: AbortSignal): Promise<void> => {
  for (const { metadata } of accounts)
    await hub.client
      .of(ServiceAccount, metadata.namespace)
      .delete(metadata.name!, { preconditions: { uid: metadata.uid }, signal })
}

/** Takes everything away; nothing is sent when nothing is there. With the account every token of it ends. */
export const removeTokenInfrastructure = async (hub: AddOnHub, where: Where, signal: AbortSignal): Promise<void> => {
  const parts = partsInPlace(hub, where)
  if (parts.length === 0) return
  const accounts = parts.filter(({ kind }) => kind === 'ServiceAccount')
  const access = parts.filter(({ kind }) => kind !== 'ServiceAccount')
  await removeAccounts(hub, accounts, signal)
  await applySet([], { client: hub.client, targets: targetsOf(hub), fieldManager, obsolete: access, signal })
}
