import { allKinds, ClusterManager, group, Klusterlet, managedClusterKinds } from '../../api/index.ts'
import {
  ClusterRoleBinding,
  Namespace,
  Role,
  RoleBinding,
  ServiceAccount,
  type CustomResourceDefinition,
  type KubeObject,
  type PolicyRule,
  type Subject,
} from '../../kube/index.ts'
import {
  bootstrapAccount,
  bootstrapRole,
  createdBy,
  hubAccount,
  namespace,
  operatorName,
  pullSecret,
  role,
  webhookService,
} from '../contract.ts'
import { clusterRole as identityRole } from '../../identities/contract.ts'
import { guard as serviceAccountGuard } from '../../serviceaccounts/contract.ts'
import { clusterRole, made, roleRef, rule, serviceAccount } from '../objects.ts'
import {
  awsAuthRules,
  awsIdentityRules,
  cleanupRules,
  clusterProfileRules,
  grpcRules,
  hubNamespaceRules,
  hubRules,
  webhookConfigurations,
} from './hub-rules.ts'
import { installedBy, operatorNamespace, operatorObjects } from './operator.ts'
import type { InstallOptions } from './options.ts'

const none = { conversion: 'none' } as const

/** The CRDs that the operator keeps for a hub. Its own are the installation's. */
export const hubCrds = (): CustomResourceDefinition[] => {
  const elsewhere = new Set([...managedClusterKinds, ClusterManager, Klusterlet].map(({ kind }) => kind))
  const service = { namespace: namespace.hub, name: webhookService, path: '/convert', port: 443 }
  return allKinds.filter(({ kind }) => !elsewhere.has(kind)).map((kind) => kind.crd({ conversion: { service } }))
}

const labels = installedBy(operatorName.hub)
const all = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete']

/**
 * The operator of a hub. It holds no right to write roles: those of the hub are in the installation, and it may bind them,
 * by name. So neither it nor whoever takes it over can widen what the hub may do.
 */
const operatorRules = (crdNames: string[]): PolicyRule[] => [
  rule([group.operator], ['clustermanagers'], ['get', 'list', 'watch', 'update', 'patch']),
  rule([group.operator], ['clustermanagers/status'], ['update', 'patch']),
  rule([group.operator], ['clustermanagers/finalizers'], ['update']),
  rule(['apiextensions.k8s.io'], ['customresourcedefinitions'], ['list', 'watch', 'create']),
  rule(['apiextensions.k8s.io'], ['customresourcedefinitions'], ['get', 'update', 'patch', 'delete'], crdNames),
  rule(['rbac.authorization.k8s.io'], ['clusterrolebindings'], ['list', 'watch', 'create']),
  rule(['rbac.authorization.k8s.io'], ['clusterrolebindings'], ['get', 'update', 'patch', 'delete'], boundEverywhere),
  rule(['rbac.authorization.k8s.io'], ['clusterroles'], ['bind'], [...boundEverywhere, role.awsAuth]),
  // What the hub leaves behind when it goes: the roles that all clusters share, and its webhook configurations.
  rule(['rbac.authorization.k8s.io'], ['clusterroles'], ['delete'], sharedRoles),
  rule(
    ['admissionregistration.k8s.io'],
    ['validatingwebhookconfigurations', 'mutatingwebhookconfigurations'],
    ['delete'],
    webhookConfigurations,
  ),
  rule(
    ['admissionregistration.k8s.io'],
    ['validatingadmissionpolicies', 'validatingadmissionpolicybindings'],
    ['delete'],
    [serviceAccountGuard.name],
  ),
  // As long as somebody's objects are there, the hub stays.
  rule(hubGroups, ['*'], ['list']),
  rule(['events.k8s.io'], ['events'], ['create', 'patch', 'update']),
]

const hubGroups = [...new Set(hubCrds().map(({ spec }) => spec.group))]

/** ClusterRoles that the hub makes by itself. */
export const sharedRoles: string[] = [
  ...['registration', 'work', 'leaving'].map((name) => `open-cluster-management:managedcluster:${name}`),
  ...Object.values(identityRole),
]

/** Roles that the operator may bind for the whole cluster. */
const boundEverywhere: string[] = [role.hub, role.cleanup, role.awsIdentities, role.clusterProfiles, role.grpc]

/** In `kube-system` the operator may do one thing: let the hub write `aws-auth`. */
const inKubeSystem = (operator: Subject): KubeObject[] => {
  const here = { name: role.hubOperator, namespace: awsAuthNamespace, labels }
  const rules = [
    rule(['rbac.authorization.k8s.io'], ['rolebindings'], ['create']),
    rule(
      ['rbac.authorization.k8s.io'],
      ['rolebindings'],
      all.filter((verb) => verb !== 'create'),
      [role.awsAuth],
    ),
  ]
  return [
    made(Role, here, { rules }),
    made(RoleBinding, here, { roleRef: roleRef('Role', role.hubOperator), subjects: [operator] }),
  ]
}

/** Where EKS keeps `aws-auth`. */
export const awsAuthNamespace = 'kube-system'

/** In the hub's namespace the operator runs the hub. */
const inHubNamespace: PolicyRule[] = [
  rule(['apps'], ['deployments'], all),
  rule(['batch'], ['cronjobs'], all),
  rule([''], ['services', 'serviceaccounts'], all),
  rule(['rbac.authorization.k8s.io'], ['rolebindings'], all),
  rule(['rbac.authorization.k8s.io'], ['roles'], ['bind'], [role.hub]),
  rule([''], ['secrets'], ['create']),
  rule([''], ['secrets'], ['get', 'list', 'watch', 'update', 'patch', 'delete'], [pullSecret, webhookService]),
  rule(['coordination.k8s.io'], ['leases'], ['delete'], ['lanyard-hub']),
]

/** What lets new clusters ask to join: create a ManagedCluster and a certificate request, and see what comes of them. */
const bootstrapRules: PolicyRule[] = [
  rule([''], ['configmaps'], ['get'], ['cluster-info', 'kube-root-ca.crt']),
  rule(['certificates.k8s.io'], ['certificatesigningrequests'], ['create', 'get', 'list', 'watch']),
  rule([group.cluster], ['managedclusters'], ['create', 'get', 'list', 'watch']),
  rule([group.cluster], ['managedclustersets/join'], ['create']),
]

const bootstrap = (): KubeObject[] => [
  made(ServiceAccount, { name: bootstrapAccount, namespace: namespace.operator, labels }),
  clusterRole(bootstrapRole, bootstrapRules, labels),
  made(
    ClusterRoleBinding,
    { name: `${bootstrapRole}:agent-registration`, labels },
    {
      roleRef: roleRef('ClusterRole', bootstrapRole),
      subjects: [serviceAccount(namespace.operator, bootstrapAccount)],
    },
  ),
]

/** Everything that a hub needs before there is a ClusterManager, in the order in which it is to be applied. */
export const hubInstall = (options: InstallOptions = {}): KubeObject[] => {
  const crdNames = hubCrds().map(({ metadata }) => metadata.name!)
  const here = { namespace: namespace.hub, labels }
  const operator = serviceAccount(namespace.operator, operatorName.hub)
  return [
    ClusterManager.crd(none),
    operatorNamespace,
    made(Namespace, { name: namespace.hub, labels }),
    clusterRole(role.hub, hubRules(crdNames), labels),
    clusterRole(role.cleanup, cleanupRules, labels),
    clusterRole(role.awsAuth, awsAuthRules, labels),
    clusterRole(role.awsIdentities, awsIdentityRules, labels),
    clusterRole(role.clusterProfiles, clusterProfileRules, labels),
    clusterRole(role.grpc, grpcRules, labels),
    ...inKubeSystem(operator),
    made(Role, { name: role.hub, ...here }, { rules: hubNamespaceRules }),
    made(Role, { name: role.hubOperator, ...here }, { rules: inHubNamespace }),
    made(
      RoleBinding,
      { name: role.hubOperator, ...here },
      { roleRef: roleRef('Role', role.hubOperator), subjects: [operator] },
    ),
    ...bootstrap(),
    ...operatorObjects(
      { name: operatorName.hub, kind: 'ClusterManager', role: role.hubOperator, rules: operatorRules(crdNames) },
      options,
    ),
  ]
}

/** The bindings that the operator makes for the hub; some only for what it is to do. */
export const hubBindings = (
  clusterManager: string,
  does: { awsIrsa: boolean; awsIdentities: boolean; clusterProfiles: boolean; grpc: boolean },
): KubeObject[] => {
  const own = { [createdBy.clusterManager]: clusterManager }
  const hub = serviceAccount(namespace.hub, hubAccount.hub)
  const bound = (name: string, subject: Subject): KubeObject =>
    made(ClusterRoleBinding, { name, labels: own }, { roleRef: roleRef('ClusterRole', name), subjects: [subject] })
  const within = (name: string, where: string, kind: 'Role' | 'ClusterRole'): KubeObject =>
    made(RoleBinding, { name, namespace: where, labels: own }, { roleRef: roleRef(kind, name), subjects: [hub] })
  return [
    bound(role.hub, hub),
    bound(role.cleanup, serviceAccount(namespace.hub, hubAccount.cleanup)),
    within(role.hub, namespace.hub, 'Role'),
    ...(does.awsIrsa ? [within(role.awsAuth, awsAuthNamespace, 'ClusterRole')] : []),
    ...(does.awsIdentities ? [bound(role.awsIdentities, hub)] : []),
    ...(does.clusterProfiles ? [bound(role.clusterProfiles, hub)] : []),
    ...(does.grpc ? [bound(role.grpc, hub)] : []),
  ]
}
