/** What the hub, the agent on a managed cluster, and those who use the tokens must agree on. */
import { createHash } from 'node:crypto'
import { defaultInstallNamespace } from '../addons/contract.ts'
import { conditionType, group, label, type ManagedServiceAccount } from '../api/index.ts'
import { resource, type KubeObject, type PolicyRule } from '../kube/index.ts'
import { condition } from '../runtime/index.ts'

/** The add-on that keeps the accounts, and where its agent lives unless the ManagedClusterAddOn says otherwise. */
export const addOnName = 'managed-serviceaccount'
export const defaultAgentNamespace = defaultInstallNamespace

/** The token Secret has the name and namespace of its ManagedServiceAccount and these two keys, no others. */
export const tokenKey = { ca: 'ca.crt', token: 'token' } as const
export const tokenSecretType = 'Opaque'

/** On token Secrets on the hub and on accounts on managed clusters. */
export const managedLabels: Readonly<Record<string, string>> = { [label.isManagedServiceAccount]: 'true' }
export const managedSelector = `${label.isManagedServiceAccount}=true`

export const mark = {
  /** On a token Secret: the digest of its content, written with it. Whoever edits one without the other is seen. */
  digest: `${group.authentication}/content-digest`,
  /** On an account: the UID of the ManagedServiceAccount that it is for. One that was made anew gets another account. */
  ownerUid: `${group.authentication}/managed-serviceaccount-uid`,
  /** On a ManagedServiceAccount in a cluster's namespace that the hub made: `namespace/name` of the one it is made for. */
  parent: `${group.authentication}/replicated-from`,
  /** On a ManagedServiceAccount that the hub mirrors: it is written in the `proxy.` group, by that UID. */
  mirrored: `${group.authentication}/mirrored-from`,
} as const

/** Children of a ManagedServiceAccount in a set's namespace: the UID of the parent. */
export const parentLabel = `${group.authentication}/parent-uid`

/** The agent's own account on the managed cluster. What it makes belongs to it, and goes when the add-on goes or moves. */
export const agentAccount = addOnName
/** Its Deployment, unless it runs in the cluster's one agent process. */
export const agentDeployment = 'managed-serviceaccount-addon-agent'

/** On the ManagedClusterAddOn, by an agent process that keeps the accounts itself: no Deployment is made for the add-on. */
export const RunsInAgent = condition('RunsInAgent', {
  yes: {
    status: 'True',
    reason: 'SingleAgent',
    message: 'the agent of the cluster keeps the accounts itself: the add-on has no Deployment of its own',
  },
})

/** Tells contents apart without giving them away: 64 bits say nothing about a token. */
export const digestOf = (...texts: readonly (string | undefined)[]): string =>
  createHash('sha256').update(JSON.stringify(texts)).digest('hex').slice(0, 16)

/** The digest that a token Secret carries. */
export const contentDigest = ({ ca, token }: { ca: string | undefined; token: string | undefined }): string =>
  digestOf(ca, token)

/** As the API server of the managed cluster names the account. */
export const userOf = (namespace: string, name: string): string => `system:serviceaccount:${namespace}:${name}`

/** By the agent in a cluster's namespace, by the hub elsewhere: whether the account is there, on every cluster meant. */
export const AllPresent = condition(conditionType.managedServiceAccount.allPresent, {
  present: { status: 'True', reason: 'ServiceAccountPresent' },
  allPresent: { status: 'True', reason: 'AllServiceAccountsPresent' },
  /** An account of that name is there that is not ours. It is never used. */
  taken: { status: 'False', reason: 'NameTaken' },
  failed: { status: 'False', reason: 'ServiceAccountFailed' },
  /** No agent has been heard: the add-on is not installed on the cluster, or has said nothing yet. */
  waiting: { status: 'False', reason: 'WaitingForAgent' },
  /** On some clusters of the set it is not there yet; the message names them. */
  missing: { status: 'False', reason: 'ServiceAccountsMissing' },
  /** The namespace is neither a cluster's nor bound to a set. */
  noPlace: { status: 'False', reason: 'NamespaceNotUsable' },
  /** The sets that the namespace is bound to have no cluster. */
  noClusters: { status: 'True', reason: 'NoClusters' },
})

/** By the agent, and by the hub when somebody changes the Secret: whether it is there as the agent wrote it. */
export const SecretCreated = condition(conditionType.managedServiceAccount.secretCreated, {
  created: { status: 'True', reason: 'SecretCreated' },
  failed: { status: 'False', reason: 'SecretNotWritten' },
  /** By the hub, for the agent: it writes the Secret anew. */
  missing: { status: 'False', reason: 'SecretMissing' },
  changed: { status: 'False', reason: 'SecretChanged' },
  /** A Secret of that name is there that is not ours. It is left as it is. */
  taken: { status: 'False', reason: 'NameTaken' },
})

/** By the agent: whether the Secret has a token that works. */
export const TokenReported = condition(conditionType.managedServiceAccount.tokenReported, {
  reported: { status: 'True', reason: 'TokenReported' },
  /** It works, it is near its end, and `rotation.enabled` is false. */
  expiring: { status: 'True', reason: 'TokenExpiresSoon' },
  expired: { status: 'False', reason: 'TokenExpired' },
  failed: { status: 'False', reason: 'TokenReportFailed' },
  noAccount: { status: 'False', reason: 'NoServiceAccount' },
})

export type Status = NonNullable<ManagedServiceAccount['status']>

/** Whether consumers can use the token now: reported, and not past its end. */
export const isUsable = ({ status }: ManagedServiceAccount, now: number): boolean => {
  const is = (type: string): boolean => status?.conditions?.find((one) => one.type === type)?.status === 'True'
  const end = status?.expirationTimestamp
  return is(SecretCreated.type) && is(TokenReported.type) && (!end || Date.parse(end) > now)
}

/** Kubernetes' own admission rules, from 1.30 on: the API server decides by itself, and no webhook has to be up. */
const admission = { group: 'admissionregistration.k8s.io', version: 'v1', namespaced: false }

/** The rules by which the agents write token Secrets and no others. */
export const guard = {
  name: 'lanyard-serviceaccount-tokens',
  policy: resource<KubeObject>({
    ...admission,
    kind: 'ValidatingAdmissionPolicy',
    plural: 'validatingadmissionpolicies',
  }),
  binding: resource<KubeObject>({
    ...admission,
    kind: 'ValidatingAdmissionPolicyBinding',
    plural: 'validatingadmissionpolicybindings',
  }),
} as const

const read = ['get', 'list', 'watch']
const kinds = ['managedserviceaccounts']
const ofGuard = { apiGroups: [admission.group], resources: [guard.policy.plural, guard.binding.plural] }

/** What the controllers need on the hub: for the role of whoever runs them. */
export const controllerRules: readonly PolicyRule[] = [
  { apiGroups: [group.authentication], resources: kinds, verbs: [...read, 'create', 'update', 'patch', 'delete'] },
  { apiGroups: [group.authentication], resources: ['managedserviceaccounts/status'], verbs: ['patch'] },
  // For owner references, where the API server asks for it.
  {
    apiGroups: [group.authentication, group.proxy],
    resources: ['managedserviceaccounts/finalizers'],
    verbs: ['update'],
  },
  { apiGroups: [group.proxy], resources: kinds, verbs: read },
  { apiGroups: [group.proxy], resources: ['managedserviceaccounts/status'], verbs: ['patch'] },
  // Create and patch are also handed on to the agents, each in the namespace of its cluster.
  { apiGroups: [''], resources: ['secrets'], verbs: [...read, 'create', 'patch', 'delete'] },
  { apiGroups: [group.addon], resources: ['clustermanagementaddons'], verbs: ['create', 'patch'] },
  { ...ofGuard, verbs: ['create'] },
  { ...ofGuard, resourceNames: [guard.name], verbs: [...read, 'update', 'patch'] },
]
