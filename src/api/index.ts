/**
 * The nouns of the product. A kind is one file and one definition. `ManagedCluster` is at once a `Resource` for the client,
 * a TypeScript type, and the source of its CRD; `ManagedClusterAddOn.versions.v1alpha1` is the same kind at another version.
 */
import type { CustomResourceDefinition } from '../kube/index.ts'
import { AddOnDeploymentConfig } from './add-on-deployment-config.ts'
import { AddOnTemplate } from './add-on-template.ts'
import { AppliedManifestWork } from './applied-manifest-work.ts'
import { AWSCluster } from './aws-cluster.ts'
import { AWSClusterControllerIdentity } from './aws-cluster-controller-identity.ts'
import { AWSClusterRoleIdentity } from './aws-cluster-role-identity.ts'
import { AWSClusterStaticIdentity } from './aws-cluster-static-identity.ts'
import { AWSServiceAccountIdentity } from './aws-service-account-identity.ts'
import { Cluster } from './cluster.ts'
import { ClusterClaim } from './cluster-claim.ts'
import { ClusterManagementAddOn } from './cluster-management-add-on.ts'
import { ClusterManager } from './cluster-manager.ts'
import { ClusterPermission } from './cluster-permission.ts'
import { ClusterProfile } from './cluster-profile.ts'
import { ClusterSetPermission } from './cluster-set-permission.ts'
import type { CrdOptions, Kind } from './kind.ts'
import { Klusterlet } from './klusterlet.ts'
import { ManagedCluster } from './managed-cluster.ts'
import { ManagedClusterAddOn } from './managed-cluster-add-on.ts'
import { ManagedClusterSet } from './managed-cluster-set.ts'
import { ManagedClusterSetBinding } from './managed-cluster-set-binding.ts'
import { ManagedServiceAccount, ProxyManagedServiceAccount } from './managed-service-account.ts'
import { ManifestWork } from './manifest-work.ts'

export * from './add-on-deployment-config.ts'
export * from './add-on-template.ts'
export * from './applied-manifest-work.ts'
export * from './aws-cluster.ts'
export * from './aws-cluster-controller-identity.ts'
export * from './aws-cluster-role-identity.ts'
export * from './aws-cluster-static-identity.ts'
export * from './aws-service-account-identity.ts'
export * from './cluster.ts'
export * from './cluster-claim.ts'
export * from './cluster-management-add-on.ts'
export * from './cluster-manager.ts'
export { ClusterPermission, type PermissionSpec } from './cluster-permission.ts'
export * from './cluster-profile.ts'
export * from './cluster-set-permission.ts'
export { conversions, type Convert } from './conversion.ts'
export { isForgotten, remindOfDeletion } from './forgotten.ts'
export { installCrds } from './install.ts'
export * from './klusterlet.ts'
export * from './managed-cluster.ts'
export * from './managed-cluster-add-on.ts'
export * from './managed-cluster-set.ts'
export * from './managed-cluster-set-binding.ts'
export * from './managed-service-account.ts'
export { ManifestWork } from './manifest-work.ts'
export * from './names.ts'
export type { ConversionWebhook, CrdOptions, Kind, ObjectOf } from './kind.ts'

/** Every kind that we serve. */
export const allKinds: Kind[] = [
  ManagedCluster,
  ManagedClusterSet,
  ManagedClusterSetBinding,
  ClusterClaim,
  ManifestWork,
  AppliedManifestWork,
  ManagedClusterAddOn,
  ClusterManagementAddOn,
  AddOnDeploymentConfig,
  AddOnTemplate,
  Klusterlet,
  ClusterManager,
  ClusterPermission,
  ClusterSetPermission,
  ManagedServiceAccount,
  ProxyManagedServiceAccount,
  AWSCluster,
  AWSClusterControllerIdentity,
  AWSClusterStaticIdentity,
  AWSClusterRoleIdentity,
  AWSServiceAccountIdentity,
]

/** Those of them that live on a managed cluster; the others live on the hub. */
export const managedClusterKinds: Kind[] = [ClusterClaim, AppliedManifestWork]

/** Kinds that we read and others own: installing our CRD over theirs would break them. */
export const borrowedKinds: Kind[] = [Cluster, ClusterProfile]

/** The CRDs of every kind that we serve, and with `borrowed` of those that we only read. */
export const crds = ({ borrowed, ...options }: CrdOptions & { borrowed?: boolean }): CustomResourceDefinition[] =>
  (borrowed ? [...allKinds, ...borrowedKinds] : allKinds).map((kind) => kind.crd(options))
