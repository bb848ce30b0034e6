/** What hub and agent must agree on when an add-on joins. */
import { annotation, conditionType, signer, type ManagedCluster, type ManagedClusterAddOn } from '../api/index.ts'
import { condition } from '../runtime/index.ts'

/** How an add-on authenticates to the API server of the hub; the agent declares it in `kubeClient.driver`. */
export const addOnDrivers = ['csr', 'token'] as const
export type AddOnDriver = (typeof addOnDrivers)[number]

/** A credential that an add-on needs, as `status.registrations` has it. */
export type Registration = NonNullable<NonNullable<ManagedClusterAddOn['status']>['registrations']>[number]

/** User and groups of an add-on's agent on the hub. */
export interface AddOnSubject {
  readonly user: string
  readonly groups: readonly string[]
}

/** Service accounts are users of this form to the API server. */
export const serviceAccountUser = (namespace: string, name: string): string =>
  `system:serviceaccount:${namespace}:${name}`

/** The group of one add-on on one cluster, and the group of that add-on on all clusters: approvers in the field want both. */
export const addOnGroup = (cluster: string, addOn: string): string =>
  `system:open-cluster-management:cluster:${cluster}:addon:${addOn}`
export const addOnEverywhereGroup = (addOn: string): string => `system:open-cluster-management:addon:${addOn}`

/** Users of an add-on with a client certificate begin with this and end with one plain word, usually the add-on's name. */
export const addOnUserPrefix = (cluster: string, addOn: string): string => `${addOnGroup(cluster, addOn)}:agent:`

/** What an agent declares when the add-on's own controller has not said otherwise. With `token` there are no groups. */
export const defaultSubject = (driver: AddOnDriver, cluster: string, addOn: string): AddOnSubject =>
  driver === 'token'
    ? { user: serviceAccountUser(cluster, accountName(cluster, addOn)), groups: [] }
    : {
        user: `${addOnUserPrefix(cluster, addOn)}${addOn}`,
        groups: [addOnGroup(cluster, addOn), addOnEverywhereGroup(addOn)],
      }

/** The user of a `customSigner` item whose subject names none. It has no groups then. */
export const defaultCustomUser = (cluster: string, addOn: string): string =>
  `${addOnUserPrefix(cluster, addOn)}${addOn}`

/** The service account of a token add-on, in the cluster's namespace on the hub. */
export const accountName = (cluster: string, addOn: string): string => `${cluster}-${addOn}-agent`

/** The only accounts that the hub makes for an add-on: ours, and the one that other agents declare. */
export const accountNames = (cluster: string, addOn: string): readonly string[] => [
  accountName(cluster, addOn),
  `${addOn}-agent`,
]

/** Lifetimes that the TokenRequest API takes, in seconds. */
export const tokenLifetime = { least: 600, most: 2 ** 32 } as const

/** Role and RoleBinding that let a cluster request tokens for the account, in the cluster's namespace on the hub. */
export const tokenRoleName = (addOn: string): string => `${addOn}-token-role`

/** In every request for an add-on's certificate: approvers in the field expect it. */
export const addOnDnsName = (addOn: string): string => `${addOn}.addon.open-cluster-management.io`

/** Secrets on the managed cluster, in the add-on's install namespace. */
export const addOnSecretName = {
  /** Of the `kubeClient` item, whatever the driver. */
  kubeClient: (addOn: string): string => `${addOn}-hub-kubeconfig`,
  customSigner: (addOn: string, signerName: string): string =>
    `${addOn}-${signerName.replaceAll('/', '-')}-client-cert`,
} as const

/** Keys of these secrets. `tls.crt` and `tls.key` only with certificates; `token`, `expiration`, `uid` only with tokens. */
export const addOnSecretKey = {
  kubeconfig: 'kubeconfig',
  clusterName: 'cluster-name',
  certificate: 'tls.crt',
  key: 'tls.key',
  token: 'token',
  /** When the token ends, RFC 3339. */
  expiration: 'expiration',
  /** The UID of the service account that the token is for. */
  uid: 'uid',
} as const

/** Where add-ons are installed that say nothing else. */
export const defaultInstallNamespace = 'open-cluster-management-agent-addon'

/** Where the add-on lives on the managed cluster: as its controller decided, as its object asks, or where all go. */
export const installNamespaceOf = ({ metadata, status }: ManagedClusterAddOn): string =>
  status?.namespace || metadata.annotations?.[annotation.installNamespace] || defaultInstallNamespace

/** The signer of an item: the API server's own for `kubeClient`. */
export const signerOf = ({ customSigner }: Registration): string =>
  customSigner?.signerName ?? signer.kubeApiServerClient

/** The one item that is for the API server of the hub. There is one secret for it, so a second one is an error. */
export const kubeClientOf = ({ status }: ManagedClusterAddOn): Registration | undefined =>
  status?.registrations?.find(({ type }) => type === 'kubeClient')

/** By the hub: whether tokens can be requested, and for which account. */
export const TokenInfrastructureReady = condition(conditionType.addOn.tokenInfrastructureReady, {
  ready: { status: 'True', reason: 'TokenInfrastructureReady' },
  /** Something is being made, or could not be. */
  failed: { status: 'False', reason: 'TokenInfrastructureApplyFailed' },
  /** The declared subject is none that this add-on may have. */
  refused: { status: 'False', reason: 'SubjectRefused' },
  /** The cluster has no access to the hub, so its add-ons have none. */
  notAccepted: { status: 'False', reason: 'ClusterNotAccepted' },
})

/** Other agents read the UID from between `UID: ` and `)`. */
export const tokenReadyMessage = (cluster: string, account: string, uid: string): string =>
  `ServiceAccount ${cluster}/${account} (UID: ${uid}) is ready`

/** What a True `TokenInfrastructureReady` says; undefined when its message is none that we know. */
export const readTokenReady = (message: string): { namespace: string; account: string; uid: string } | undefined => {
  const [, namespace, account, uid] = /^ServiceAccount ([^/\s]+)\/(\S+) \(UID: ([^)\s]+)\)/.exec(message) ?? []
  return namespace && account && uid ? { namespace, account, uid } : undefined
}

const tokenRefreshed = {
  refreshed: { status: 'True', reason: 'AddonTokenRefreshed' },
  /** The TokenRequest failed, or its answer could not be kept; the old token stays. */
  failed: { status: 'False', reason: 'TokenCreationFailed' },
  /** The hub has never heard of tokens. */
  unsupported: { status: 'False', reason: 'DriverUnsupported' },
  /** Nothing is wrong here: the hub has not said yet that tokens can be requested. */
  waiting: { status: 'False', reason: 'WaitingForTokenInfrastructure' },
} as const

/** By the agent, with the expiry in the message: `Addon token refreshed, expires at <RFC 3339>`. */
export const TokenRefreshed = condition(conditionType.addOn.tokenRefreshed, tokenRefreshed)

/** By the agent, for add-ons with certificates. */
export const AddOnCertificateRotated = condition(conditionType.addOn.certificateRotated, {
  rotated: { status: 'True', reason: 'ClientCertificateUpdated' },
  failed: { status: 'False', reason: 'ClientCertificateUpdateFailed' },
  /** For an approval or a signature: the message names the signer, and who has to serve it. */
  waiting: { status: 'False', reason: 'WaitingForCertificate' },
})

/** By the agent, only while an item cannot be served as it is; the reason names the rule, the message what to do. */
export const RegistrationServed = condition(conditionType.addOn.registrationServed, {
  refused: { status: 'False', reason: 'InvalidRegistration' },
})

/** On the agent's secrets with an add-on's credential: the namespace of the agent that keeps it. */
export const credentialOfLabel = 'addon.open-cluster-management.io/credential-of'

/** On these secrets: which hub the credential is for, and which token was written; short digests that give nothing away. */
export const credentialAnnotation = {
  hub: 'addon.open-cluster-management.io/hub-digest',
  token: 'addon.open-cluster-management.io/token-digest',
} as const

/** By the hub: whether the items of `status.registrations` are right and the add-on's permissions are bound to its subject. */
export const RegistrationApplied = condition(conditionType.addOn.registrationApplied, {
  applied: { status: 'True', reason: 'SetPermissionApplied' },
  none: { status: 'True', reason: 'NilRegistration', message: 'the add-on needs no credential' },
  pending: { status: 'False', reason: 'PermissionConfigPending', message: 'registration subject not ready' },
  failed: { status: 'False', reason: 'SetPermissionFailed' },
  /** The declared subject or the items themselves are wrong; nothing is bound. */
  refused: { status: 'False', reason: 'SubjectRefused' },
})

/** By the hub: whether the add-on's manifests are on the managed cluster. */
export const AddOnManifestApplied = condition(conditionType.addOn.manifestApplied, {
  applied: { status: 'True', reason: 'AddonManifestApplied' },
  failed: { status: 'False', reason: 'AddonManifestAppliedFailed' },
  /** The ManifestWork itself could not be written. */
  workFailed: { status: 'False', reason: 'ManifestWorkApplyFailed' },
  waiting: { status: 'False', reason: 'ManifestsNotApplied' },
})

/** By the hub, only on add-ons that should run on another cluster than the one they are for, which nothing here does. */
export const HostingClusterValidity = condition('HostingClusterValidity', {
  unsupported: { status: 'False', reason: 'HostingClusterInvalid' },
})

/** By the hub: whether configurations are found and taken into account. */
export const Configured = condition(conditionType.addOn.configured, {
  configured: { status: 'True', reason: 'ConfigurationsConfigured' },
  failed: { status: 'False', reason: 'ConfigurationsNotConfigured' },
})

/** By the hub, while the add-on is being deleted: whether its last jobs on the managed cluster are done. */
export const HookCompleted = condition('HookManifestCompleted', {
  completed: { status: 'True', reason: 'HookManifestIsCompleted', message: 'the pre-delete jobs are done' },
  waiting: { status: 'False', reason: 'HookManifestIsNotCompleted' },
})

/** By the hub: whether a change is on its way to the managed cluster. */
export const Progressing = condition(conditionType.addOn.progressing, {
  progressing: { status: 'True', reason: 'Progressing' },
  completed: { status: 'False', reason: 'Completed' },
  failed: { status: 'False', reason: 'Failed' },
  unsupported: { status: 'False', reason: 'ConfigurationUnsupported' },
})

/** By the hub: whether somebody has to look at it. The message says at what. */
export const Degraded = condition(conditionType.addOn.degraded, {
  no: { status: 'False', reason: 'AsExpected', message: 'nothing is wrong that the hub knows of' },
  invalid: { status: 'True', reason: 'InvalidRegistrations' },
  name: { status: 'True', reason: 'InvalidName' },
  failing: { status: 'True', reason: 'ManifestsFailing' },
})

/** By the agent for add-ons with a lease, by the hub for those whose health is seen in their works. */
export const AddOnAvailable = condition(conditionType.addOn.available, {
  leaseUpdated: { status: 'True', reason: 'ManagedClusterAddOnLeaseUpdated' },
  leaseStopped: { status: 'False', reason: 'ManagedClusterAddOnLeaseUpdateStopped' },
  leaseNotFound: { status: 'Unknown', reason: 'ManagedClusterAddOnLeaseNotFound' },
  workNotFound: { status: 'Unknown', reason: 'WorkNotFound' },
  workNotApplied: { status: 'False', reason: 'WorkNotApplied' },
  workApplied: { status: 'True', reason: 'WorkApplied' },
  noProbe: { status: 'Unknown', reason: 'NoProbeResult' },
  probeUnavailable: { status: 'False', reason: 'ProbeUnavailable' },
  probeAvailable: { status: 'True', reason: 'ProbeAvailable' },
})

/** The lease of an add-on: its own name, in its install namespace on the managed cluster; stale after five times this. */
export const addOnLease = { durationSeconds: 60, graceMs: 5 * 60_000, name: (addOn: string): string => addOn } as const

/** Values of the ManagedCluster's label `feature.open-cluster-management.io/addon-<name>`. */
export const feature = { available: 'available', unhealthy: 'unhealthy', unreachable: 'unreachable' } as const

/** The longest name of an add-on: it is the value of labels. */
export const longestAddOnName = 63

/** An add-on's name that can be used everywhere: in labels, names of objects and users. No dot, so that no two names make one user. */
export const isAddOnName = (name: string): boolean => /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(name)

/** ManifestWorks of an add-on, in the cluster's namespace on the hub. */
export const workName = {
  deploy: (addOn: string, index: number): string => `addon-${addOn}-deploy-${index}`,
  preDelete: (addOn: string): string => `addon-${addOn}-pre-delete`,
} as const

/**
 * On a ClusterManagementAddOn: the add-on is installed on clusters with these labels (`env=prod,region=eu`), or on all with `*`.
 * Placements are chosen by another system, which this hub does not have.
 */
export const installOnAnnotation = 'addon.open-cluster-management.io/install-on'

/** The labels that a rule names; undefined when there is no rule, and an error in words when it cannot be read. */
export const installRule = (
  text: string | undefined,
): { labels: Record<string, string> } | { fault: string } | undefined => {
  if (text === undefined) return undefined
  if (text.trim() === '*') return { labels: {} }
  const pairs = text.split(',').map((part) => part.trim().split('='))
  if (pairs.some((pair) => pair.length !== 2 || !pair[0]))
    return {
      fault: `annotation ${installOnAnnotation} is ${JSON.stringify(text.slice(0, 80))}: write key=value,key=value or *`,
    }
  return { labels: Object.fromEntries(pairs) as Record<string, string> }
}

/** Whether a rule with these labels is for a cluster. */
export const fitsRule = (
  { spec, metadata }: Pick<ManagedCluster, 'spec' | 'metadata'>,
  labels: Readonly<Record<string, string>>,
): boolean =>
  spec.hubAcceptsClient === true &&
  !metadata.deletionTimestamp &&
  Object.entries(labels).every(([key, value]) => metadata.labels?.[key] === value)
