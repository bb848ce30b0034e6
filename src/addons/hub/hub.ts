import {
  AddOnDeploymentConfig,
  AddOnTemplate,
  ClusterManagementAddOn,
  label,
  ManagedCluster,
  ManagedClusterAddOn,
  ManifestWork,
} from '../../api/index.ts'
import {
  ClusterRoleBinding,
  keyOf,
  Role,
  RoleBinding,
  ServiceAccount,
  type Api,
  type KubeObject,
} from '../../kube/index.ts'
import {
  Freshest,
  type ApplyTarget,
  type Clock,
  type EventRecorder,
  type Informer,
  type Logger,
  type Manager,
} from '../../runtime/index.ts'
import type { AddOn } from './definition.ts'

/** What the controllers of add-ons share. */
export interface AddOnHub {
  readonly client: Api
  readonly manager: Manager
  readonly clock: Clock
  readonly log: Logger
  readonly events: Pick<EventRecorder, 'record'>
  /** Add-ons that are written in code. */
  readonly defined: ReadonlyMap<string, AddOn>
  /** Whether this process is the hub's own manager: token infrastructure, installation, templates. Others only run their add-ons. */
  readonly isManager: boolean
  readonly clusters: Informer<ManagedCluster>
  readonly addOns: Informer<ManagedClusterAddOn>
  readonly catalogue: Informer<ClusterManagementAddOn>
  readonly configs: Informer<AddOnDeploymentConfig>
  readonly templates: Informer<AddOnTemplate>
  readonly works: Informer<ManifestWork>
  readonly accounts: Informer<ServiceAccount>
  readonly tokenRoles: Informer<Role>
  readonly tokenBindings: Informer<RoleBinding>
  readonly roles: Informer<Role>
  readonly bindings: Informer<RoleBinding>
  readonly hubBindings: Informer<ClusterRoleBinding>
  /** ManagedClusterAddOns as we wrote them, where the cache is behind. */
  readonly written: Freshest<ManagedClusterAddOn>
}

/** Indexes of the caches. */
export const index = { addOn: 'addOn', name: 'addOnName' } as const

/** `cluster/addOn` of what is made for one add-on on one cluster, wherever it lies. */
export const ownerKey = ({ metadata }: KubeObject): string =>
  `${metadata.labels?.[label.clusterName] ?? metadata.namespace}/${metadata.labels?.[label.addOnName]}`

/** The same for token infrastructure, which has labels of its own. */
export const tokenOwnerKey = ({ metadata }: KubeObject): string =>
  `${metadata.namespace}/${metadata.labels?.[label.tokenAddOnName]}`

export interface AddOnHubOptions {
  client: Api
  clock: Clock
  log: Logger
  events: Pick<EventRecorder, 'record'>
  addOns: readonly AddOn[]
  isManager: boolean
}

export const addOnHub = (manager: Manager, options: AddOnHubOptions): AddOnHub => {
  const { addOns, ...rest } = options
  const token = { labelSelector: `${label.tokenInfrastructure}=true`, indexes: { [index.addOn]: own(tokenOwnerKey) } }
  // Both labels: RBAC that Go add-ons make for themselves has one of them at most, and is none of our business.
  const ofAddOns = {
    labelSelector: `${label.clusterName},${label.addOnName}`,
    indexes: { [index.addOn]: own(ownerKey) },
  }
  return {
    ...rest,
    manager,
    defined: new Map(addOns.map((addOn) => [addOn.name, addOn])),
    clusters: manager.informer(ManagedCluster),
    addOns: manager.informer(ManagedClusterAddOn, { indexes: { [index.name]: ({ metadata }) => [metadata.name!] } }),
    catalogue: manager.informer(ClusterManagementAddOn),
    configs: manager.informer(AddOnDeploymentConfig),
    templates: manager.informer(AddOnTemplate),
    works: manager.informer(ManifestWork, {
      labelSelector: label.addOnName,
      indexes: { [index.addOn]: own(ownerKey) },
    }),
    accounts: manager.informer(ServiceAccount, token),
    tokenRoles: manager.informer(Role, token),
    tokenBindings: manager.informer(RoleBinding, token),
    roles: manager.informer(Role, ofAddOns),
    bindings: manager.informer(RoleBinding, ofAddOns),
    hubBindings: manager.informer(ClusterRoleBinding, ofAddOns),
    written: new Freshest(),
  }
}

const own =
  (keyFor: (object: KubeObject) => string) =>
  (object: KubeObject): string[] => [keyFor(object)]

/** Where `applySet` finds what there is. */
export const targetsOf = (hub: AddOnHub): ApplyTarget[] => [
  { resource: Role, cache: either(hub.tokenRoles, hub.roles) },
  { resource: RoleBinding, cache: either(hub.tokenBindings, hub.bindings) },
  { resource: ClusterRoleBinding, cache: hub.hubBindings },
  { resource: ManifestWork, cache: hub.works },
]

const either = (...caches: { get(key: string): KubeObject | undefined }[]): ApplyTarget['cache'] => ({
  get: (key) => caches.map((cache) => cache.get(key)).find((object) => object !== undefined),
})

/** The add-on as it is now, ours where the cache is behind. */
export const currentAddOn = (hub: AddOnHub, key: string): ManagedClusterAddOn | undefined =>
  hub.written.of(key, hub.addOns.get(key))

/** Every add-on on a cluster, or of a name. */
export const keysOn = (hub: AddOnHub, cluster: string): string[] => hub.addOns.list(cluster).map(keyOf)
export const keysNamed = (hub: AddOnHub, name: string): string[] => hub.addOns.by(index.name, name).map(keyOf)

/** Everything that an add-on writes carries this name. */
export const fieldManager = 'lanyard-addons'
