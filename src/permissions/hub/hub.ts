import {
  ClusterPermission,
  ClusterSetPermission,
  group,
  ManagedCluster,
  ManagedClusterAddOn,
  ManagedClusterSet,
  ManagedServiceAccount,
  ManifestWork,
  label,
} from '../../api/index.ts'
import { ClusterRole, Role, type Client, type KubeObject } from '../../kube/index.ts'
import { equal, Freshest, type Clock, type Informer, type Logger, type Manager } from '../../runtime/index.ts'
import { nameOfRef } from '../bindings.ts'
import { addOnName, defaultAgentNamespace } from '../../serviceaccounts/contract.ts'
import { permissionLabel } from '../contract.ts'
import { specOf } from '../grants.ts'
import { Verdicts } from './verdicts.ts'

/** What the parts of this room share. */
export interface Hub {
  readonly client: Client
  readonly manager: Manager
  readonly clock: Clock
  readonly log: Logger
  /** Whether admission says who writes permissions; without it nobody is asked. */
  readonly admission: boolean
  readonly permissions: Informer<ClusterPermission>
  readonly setPermissions: Informer<ClusterSetPermission>
  readonly clusters: Informer<ManagedCluster>
  readonly sets: Informer<ManagedClusterSet>
  readonly works: Informer<ManifestWork>
  readonly accounts: Informer<KubeObject>
  readonly addOns: Informer<ManagedClusterAddOn>
  readonly clusterRoles: Informer<ClusterRole>
  readonly roles: Informer<Role>
  /** The newest state of works that we know. */
  readonly written: Freshest<ManifestWork>
  readonly verdicts: Verdicts
}

/** Names of indexes. */
export const index = { roleRef: 'roleRef', owner: 'owner' } as const

const refsOf = (permission: ClusterPermission | ClusterSetPermission): string[] =>
  (specOf(permission).roleRefs ?? []).flatMap((ref) => [ref.kind, nameOfRef(ref)])

const nameAlone = ({
  metadata: { name, namespace, uid, resourceVersion, deletionTimestamp },
}: KubeObject): KubeObject => ({
  metadata: { name, namespace, uid, resourceVersion, deletionTimestamp },
})

export const hubFor = (
  manager: Manager,
  options: { client: Client; clock: Clock; log: Logger; admission: boolean },
): Hub => ({
  ...options,
  manager,
  permissions: manager.informer(ClusterPermission, { indexes: { [index.roleRef]: refsOf } }),
  setPermissions: manager.informer(ClusterSetPermission, { indexes: { [index.roleRef]: refsOf } }),
  clusters: manager.informer(ManagedCluster),
  sets: manager.informer(ManagedClusterSet),
  works: manager.informer(ManifestWork, {
    labelSelector: permissionLabel,
    indexes: { [index.owner]: ({ metadata }) => [metadata.labels?.[permissionLabel] ?? ''] },
  }),
  accounts: manager.informer<KubeObject>(ManagedServiceAccount, { metadataOnly: true, transform: nameAlone }),
  addOns: manager.informer(ManagedClusterAddOn, { fieldSelector: `metadata.name=${addOnName}` }),
  // Each cluster has a role of its own; nobody copies those, and a thousand of them would only fill the memory.
  clusterRoles: manager.informer(ClusterRole, { labelSelector: `!${label.clusterName}` }),
  roles: manager.informer(Role),
  written: new Freshest(),
  verdicts: new Verdicts(options.clock),
})

/** Where ManagedServiceAccounts of a cluster have their accounts. The agent says it: of its own cluster, so that only that one is concerned. */
export const accountNamespaceOf = (hub: Hub, cluster: string): string => {
  const said = hub.addOns.get(`${cluster}/${addOnName}`)?.status?.namespace
  return said && /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(said) ? said : defaultAgentNamespace
}

/** The same for one account; undefined when there is none. */
export const accountPlaces =
  (hub: Hub, cluster: string) =>
  (name: string): string | undefined => {
    const account = hub.accounts.get(`${cluster}/${name}`)
    return account && !account.metadata.deletionTimestamp ? accountNamespaceOf(hub, cluster) : undefined
  }

/** How a permission is called where its rights are looked up. */
export const rbacResource = {
  ClusterPermission: `clusterpermissions.${group.rbac}`,
  ClusterSetPermission: `clustersetpermissions.${group.rbac}`,
} as const

/** Whether a change of a cluster matters here: it came, went, or was accepted, denied or put into another set. */
export const isOtherCluster = (now: ManagedCluster, old?: ManagedCluster): boolean =>
  !old ||
  now.spec.hubAcceptsClient !== old.spec.hubAcceptsClient ||
  now.metadata.deletionTimestamp !== old.metadata.deletionTimestamp ||
  !equal(now.metadata.labels, old.metadata.labels)
