import { group, Klusterlet, managedClusterKinds } from '../../api/index.ts'
import type { ClusterRole, CustomResourceDefinition, KubeObject, PolicyRule } from '../../kube/index.ts'
import { externalKubeconfigSecret, operatorName, pullSecret, role } from '../contract.ts'
import { clusterRole, rule } from '../objects.ts'
import { installedBy, operatorNamespace, operatorObjects } from './operator.ts'
import type { ManagedInstallOptions } from './options.ts'

const none = { conversion: 'none' } as const
const read = ['get', 'list', 'watch']
const all = [...read, 'create', 'update', 'patch', 'delete']
const labels = installedBy(operatorName.managed)

/** The CRDs that the operator keeps on a managed cluster. Its own is the installation's. */
export const managedCrds = (): CustomResourceDefinition[] => managedClusterKinds.map((kind) => kind.crd(none))

/** What the agent does on its own cluster beside applying works: it reports, and remembers what it applied. */
const agentRules: PolicyRule[] = [
  rule([''], ['nodes', 'namespaces'], read),
  rule([group.cluster], ['clusterclaims'], read),
  rule([group.work], ['appliedmanifestworks'], all),
  rule([group.work], ['appliedmanifestworks/status', 'appliedmanifestworks/finalizers'], ['update', 'patch']),
  // Works may name an executor: the API server is asked what it may do.
  rule(['authorization.k8s.io'], ['subjectaccessreviews'], ['create']),
]

/** In its own namespace: its credentials, and who of two agents works. */
const agentNamespaceRules: PolicyRule[] = [
  rule([''], ['secrets'], all),
  rule(['coordination.k8s.io'], ['leases'], all),
  rule(['', 'events.k8s.io'], ['events'], ['create', 'patch', 'update']),
]

/** The roles that Klusterlets are given by binding. In a cluster that is managed from another, the operator brings them. */
export const agentRoles = (): ClusterRole[] => [
  clusterRole(role.agent, agentRules, labels),
  clusterRole(role.agentNamespace, agentNamespaceRules, labels),
]

/** The secrets that the operator reads, in whatever namespace agents run. */
const readSecrets = ['bootstrap-hub-kubeconfig', 'hub-kubeconfig-secret', externalKubeconfigSecret, pullSecret]

/**
 * The operator of a managed cluster. It writes no roles either; it may bind the agent's own, and the one for works. With the
 * default for that, `cluster-admin`, it is as powerful as what it installs: name a smaller one to make both smaller.
 */
const operatorRules = (workRole: string): PolicyRule[] => [
  rule([group.operator], ['klusterlets'], [...read, 'update', 'patch']),
  rule([group.operator], ['klusterlets/status', 'klusterlets/finalizers'], ['update', 'patch']),
  rule(['apiextensions.k8s.io'], ['customresourcedefinitions'], ['list', 'watch', 'create']),
  rule(
    ['apiextensions.k8s.io'],
    ['customresourcedefinitions'],
    ['get', 'update', 'patch', 'delete'],
    managedCrds().map(({ metadata }) => metadata.name!),
  ),
  rule([''], ['namespaces', 'serviceaccounts'], all),
  rule(['apps'], ['deployments'], all),
  rule(['batch'], ['jobs'], all),
  rule(['rbac.authorization.k8s.io'], ['rolebindings', 'clusterrolebindings'], all),
  rule(['rbac.authorization.k8s.io'], ['clusterroles'], ['bind'], [role.agent, role.agentNamespace, workRole]),
  rule([''], ['secrets'], ['create']),
  rule([''], ['secrets'], read, readSecrets),
  rule([''], ['secrets'], ['update', 'patch', 'delete'], [pullSecret, 'hub-kubeconfig-secret']),
  // An agent that is gone cannot let go of what it remembered.
  rule([group.work], ['appliedmanifestworks'], [...read, 'update', 'patch', 'delete']),
  rule(['events.k8s.io'], ['events'], ['create', 'patch', 'update']),
]

/** Everything that a managed cluster needs before there is a Klusterlet, in the order in which it is to be applied. */
export const managedInstall = (options: ManagedInstallOptions = {}): KubeObject[] => {
  const workRole = options.workRole ?? role.work
  return [
    Klusterlet.crd(none),
    operatorNamespace,
    ...agentRoles(),
    ...operatorObjects(
      {
        name: operatorName.managed,
        kind: 'Klusterlet',
        role: role.managedOperator,
        rules: operatorRules(workRole),
        args: [`--work-role=${workRole}`],
      },
      options,
    ),
  ]
}
