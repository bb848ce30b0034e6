import { group, signer } from '../../api/index.ts'
import type { PolicyRule } from '../../kube/index.ts'
import { webhookService } from '../contract.ts'
import { grpcSecret } from '../../registration/contract.ts'
import { controllerRules as permissionRules } from '../../permissions/contract.ts'
import { controllerRules as serviceAccountRules } from '../../serviceaccounts/contract.ts'
import { rule } from '../objects.ts'

/** Configurations of the hub's webhooks; `lanyard-` and the name of the room. */
export const webhookConfigurations = [
  'lanyard-registration',
  'lanyard-work',
  'lanyard-addons',
  'lanyard-permissions',
  'lanyard-serviceaccounts',
  'lanyard-identities',
]

const read = ['get', 'list', 'watch']
const rbacGroup = 'rbac.authorization.k8s.io'

/**
 * What `lanyard hub` does, and nothing more. It has neither `escalate` nor `bind`: the API server lets it write a role for a
 * cluster because it holds each right in that role itself, so it can never hand out more than is written here.
 */
export const hubRules = (crdNames: string[]): PolicyRule[] => [
  // Clusters: it accepts, reports, taints and removes them.
  rule([group.cluster], ['managedclusters'], [...read, 'update', 'patch']),
  rule(
    [group.cluster],
    ['managedclusters/status', 'managedclustersets/status', 'managedclustersetbindings/status'],
    ['update', 'patch'],
  ),
  rule([group.cluster], ['managedclustersets'], [...read, 'create', 'update']),
  rule([group.cluster], ['managedclustersetbindings'], read),
  // Accepting needs this right of whoever does it, and the hub does it for those that need no person.
  rule(['register.open-cluster-management.io'], ['managedclusters/accept'], ['update']),
  // Moving a cluster to the default set counts as joining that set.
  rule([group.cluster], ['managedclustersets/join'], ['create']),
  // What a cluster's agent may do in its namespace, and the hub when it cleans up after one.
  rule([group.work], ['manifestworks'], [...read, 'update', 'patch', 'delete']),
  rule([group.work], ['manifestworks/status'], ['update', 'patch']),
  rule([group.addon], ['managedclusteraddons'], [...read, 'update', 'patch', 'delete']),
  rule([group.addon], ['managedclusteraddons/status'], ['update', 'patch']),
  rule(['coordination.k8s.io'], ['leases'], [...read, 'create', 'update', 'delete']),
  rule(['', 'events.k8s.io'], ['events'], ['create', 'patch', 'update']),
  // Add-ons: it installs them, gives their agents accounts and roles, and delivers their manifests.
  rule([group.addon], ['clustermanagementaddons', 'addondeploymentconfigs', 'addontemplates'], read),
  rule([group.addon], ['clustermanagementaddons/status'], ['update', 'patch']),
  rule([group.addon], ['managedclusteraddons'], ['create']),
  rule([group.addon], ['managedclusteraddons/finalizers'], ['update']),
  rule([group.work], ['manifestworks'], ['create']),
  rule([''], ['serviceaccounts'], [...read, 'create', 'update', 'patch', 'delete']),
  rule([''], ['serviceaccounts/token'], ['create', 'subscribe']), // only handed on
  rule([rbacGroup], ['roles'], [...read, 'create', 'update', 'patch', 'delete']),
  // Permissions: it turns them into works.
  ...permissionRules,
  // Service accounts: it watches over their tokens for agents that cannot read them.
  ...serviceAccountRules,
  // Certificate requests of agents; `create` and `renew` are only handed on.
  rule(['certificates.k8s.io'], ['certificatesigningrequests'], [...read, 'create', 'delete']),
  rule(['certificates.k8s.io'], ['certificatesigningrequests/approval'], ['update']),
  rule(['certificates.k8s.io'], ['signers'], ['approve'], ['kubernetes.io/kube-apiserver-client']),
  rule(['register.open-cluster-management.io'], ['managedclusters/clientcertificates'], ['renew']),
  // A namespace for each cluster, and RBAC for it.
  rule([''], ['namespaces'], [...read, 'create', 'update', 'patch', 'delete']),
  rule(
    [rbacGroup],
    ['clusterroles', 'clusterrolebindings', 'rolebindings'],
    [...read, 'create', 'update', 'patch', 'delete'],
  ),
  // With aws-irsa: whom the authenticator of an EKS hub takes a role for. Where there is none yet, a person makes an empty one.
  rule([''], ['configmaps'], ['get', 'watch', 'update'], ['aws-auth']),
  // Before a namespace is deleted or taken, it is looked through for what people made: that asks for every kind there is.
  rule(['*'], ['*'], ['list']),
  // Who may accept, set or bind is asked of the API server.
  rule(['authorization.k8s.io'], ['subjectaccessreviews'], ['create']),
  // The webhooks' certificate authority is its own, and it says so where the API server looks.
  rule(
    ['admissionregistration.k8s.io'],
    ['validatingwebhookconfigurations', 'mutatingwebhookconfigurations'],
    ['create'],
  ),
  rule(
    ['admissionregistration.k8s.io'],
    ['validatingwebhookconfigurations', 'mutatingwebhookconfigurations'],
    ['get', 'list', 'update', 'patch'],
    webhookConfigurations,
  ),
  rule(['apiextensions.k8s.io'], ['customresourcedefinitions'], ['get', 'list', 'update'], crdNames),
]

/** The same in the hub's own namespace: who leads, and the certificate of the webhooks. */
export const hubNamespaceRules: PolicyRule[] = [
  // With aws-irsa: what each cluster was given, written down where no agent can edit it.
  rule([''], ['configmaps'], [...read, 'create', 'update', 'delete']),
  rule([''], ['secrets'], ['create']),
  rule([''], ['secrets'], [...read, 'update', 'patch', 'delete'], [webhookService, grpcSecret]),
  // What clusters were given on AWS, and whether an identity was made by itself.
  rule([''], ['configmaps'], [...read, 'create', 'update', 'patch', 'delete']),
]

/** For a hub that lets clusters in by AWS IAM, in `kube-system`: bound only then. */
export const awsAuthRules: PolicyRule[] = [
  rule([''], ['configmaps'], ['create']),
  rule([''], ['configmaps'], [...read, 'update'], ['aws-auth']),
]

/** For a hub that looks after AWS identities: bound only then, because it has to read secrets wherever they name them. */
export const awsIdentityRules: PolicyRule[] = [
  rule([group.infrastructure], ['*'], [...read, 'create', 'update', 'patch', 'delete']),
  rule([group.clusterApi], ['clusters'], [...read, 'create', 'update', 'patch', 'delete']), // most of it only handed on
  rule([''], ['secrets'], ['get']),
]

/** For a hub that keeps ClusterProfiles: bound only then, because the kind is the cluster inventory API's. */
export const clusterProfileRules: PolicyRule[] = [
  rule([group.inventory], ['clusterprofiles'], [...read, 'create', 'patch', 'delete']),
  rule([group.inventory], ['clusterprofiles/status'], ['patch']),
]

/** For a hub with a gRPC endpoint: bound only then. The endpoint writes for agents, each time after it asked whether they may. */
export const grpcRules: PolicyRule[] = [
  rule(['authentication.k8s.io'], ['tokenreviews'], ['create']),
  rule([group.cluster], ['managedclusters'], ['create']),
  rule(['coordination.k8s.io'], ['leases'], ['patch']),
  rule(['certificates.k8s.io'], ['certificatesigningrequests/status'], ['update']),
  rule(['certificates.k8s.io'], ['signers'], ['approve', 'sign'], [signer.grpc]),
]

/** What the job needs that removes the ManagedClusters of clusters that have left. */
export const cleanupRules: PolicyRule[] = [
  rule([group.cluster], ['managedclusters'], ['list', 'delete']),
  rule(['coordination.k8s.io'], ['leases'], ['get'], ['managed-cluster-lease']),
  // Where the hub remembers that it has cleaned up.
  rule([rbacGroup], ['clusterroles'], ['get']),
]
