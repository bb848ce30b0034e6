import type { Condition, KubeObject, LabelSelector } from './objects.ts'
import { resource } from './resource.ts'

/** The built-in kinds that Lanyard reads or writes, with the fields that it uses. */

export interface Namespace extends KubeObject {
  spec?: { finalizers?: string[] }
  status?: { phase?: 'Active' | 'Terminating' }
}
export const Namespace = resource<Namespace>({
  group: '',
  version: 'v1',
  kind: 'Namespace',
  plural: 'namespaces',
  namespaced: false,
})

export interface ConfigMap extends KubeObject {
  data?: Record<string, string>
  binaryData?: Record<string, string>
  immutable?: boolean
}
export const ConfigMap = resource<ConfigMap>({
  group: '',
  version: 'v1',
  kind: 'ConfigMap',
  plural: 'configmaps',
  namespaced: true,
})

export interface Secret extends KubeObject {
  type?: string
  /** Base64. */
  data?: Record<string, string>
  stringData?: Record<string, string>
  immutable?: boolean
}
export const Secret = resource<Secret>({
  group: '',
  version: 'v1',
  kind: 'Secret',
  plural: 'secrets',
  namespaced: true,
})

export interface ServiceAccount extends KubeObject {
  secrets?: { name?: string }[]
  imagePullSecrets?: { name?: string }[]
  automountServiceAccountToken?: boolean
}
export const ServiceAccount = resource<ServiceAccount>({
  group: '',
  version: 'v1',
  kind: 'ServiceAccount',
  plural: 'serviceaccounts',
  namespaced: true,
})

export interface Node extends KubeObject {
  spec?: { unschedulable?: boolean | undefined } | undefined
  status?:
    | { capacity?: Record<string, string> | undefined; allocatable?: Record<string, string> | undefined }
    | undefined
}
export const Node = resource<Node>({ group: '', version: 'v1', kind: 'Node', plural: 'nodes', namespaced: false })

/** events.k8s.io/v1; `kubectl get events` shows it as well. */
export interface Event extends KubeObject {
  eventTime: string | null
  series?: { count: number; lastObservedTime: string } | undefined
  reportingController: string
  reportingInstance: string
  action: string
  reason: string
  regarding: ObjectReference
  related?: ObjectReference | undefined
  note: string
  type: 'Normal' | 'Warning'
}
export const Event = resource<Event>({
  group: 'events.k8s.io',
  version: 'v1',
  kind: 'Event',
  plural: 'events',
  namespaced: true,
})

export interface ObjectReference {
  apiVersion?: string | undefined
  kind?: string | undefined
  namespace?: string | undefined
  name?: string | undefined
  uid?: string | undefined
  resourceVersion?: string | undefined
}

export interface Lease extends KubeObject {
  spec: {
    holderIdentity?: string | undefined
    leaseDurationSeconds?: number | undefined
    /** MicroTime: exactly six digits after the second. */
    acquireTime?: string | undefined
    renewTime?: string | undefined
    leaseTransitions?: number | undefined
  }
}
export const Lease = resource<Lease>({
  group: 'coordination.k8s.io',
  version: 'v1',
  kind: 'Lease',
  plural: 'leases',
  namespaced: true,
})

export interface PolicyRule {
  verbs: string[]
  apiGroups?: string[] | undefined
  resources?: string[] | undefined
  resourceNames?: string[] | undefined
  nonResourceURLs?: string[] | undefined
}
export interface Subject {
  kind: string
  name: string
  namespace?: string | undefined
  apiGroup?: string | undefined
}
export interface RoleRef {
  apiGroup: string
  kind: string
  name: string
}

export interface Role extends KubeObject {
  rules: PolicyRule[] | null
}
export interface ClusterRole extends Role {
  aggregationRule?: { clusterRoleSelectors?: LabelSelector[] } | undefined
}
export interface RoleBinding extends KubeObject {
  /** Immutable. */
  roleRef: RoleRef
  subjects?: Subject[] | undefined
}
export type ClusterRoleBinding = RoleBinding

const rbac = { group: 'rbac.authorization.k8s.io', version: 'v1' }
export const Role = resource<Role>({ ...rbac, kind: 'Role', plural: 'roles', namespaced: true })
export const ClusterRole = resource<ClusterRole>({
  ...rbac,
  kind: 'ClusterRole',
  plural: 'clusterroles',
  namespaced: false,
})
export const RoleBinding = resource<RoleBinding>({
  ...rbac,
  kind: 'RoleBinding',
  plural: 'rolebindings',
  namespaced: true,
})
export const ClusterRoleBinding = resource<ClusterRoleBinding>({
  ...rbac,
  kind: 'ClusterRoleBinding',
  plural: 'clusterrolebindings',
  namespaced: false,
})

export interface CustomResourceDefinition extends KubeObject {
  spec: {
    group: string
    names: { kind: string; plural: string; listKind?: string; singular?: string; shortNames?: string[] }
    scope: 'Namespaced' | 'Cluster'
    versions: { name: string; served: boolean; storage: boolean; schema?: unknown }[]
    conversion?: unknown
  }
  status?: { conditions?: Condition[]; storedVersions?: string[] }
}
export const CustomResourceDefinition = resource<CustomResourceDefinition>({
  group: 'apiextensions.k8s.io',
  version: 'v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  namespaced: false,
})

/** Not quite the shape of other conditions: an update time beside the time of transition, and no generation. */
export interface CertificateSigningRequestCondition {
  type: 'Approved' | 'Denied' | 'Failed'
  status: 'True' | 'False' | 'Unknown'
  reason?: string | undefined
  message?: string | undefined
  lastUpdateTime?: string | undefined
  lastTransitionTime?: string | undefined
}
export interface CertificateSigningRequest extends KubeObject {
  /** Immutable. Who asked is written by the API server, whatever the request said. */
  spec: {
    /** Base64 of PEM. */
    request: string
    signerName: string
    usages?: string[] | undefined
    /** At least 600. */
    expirationSeconds?: number | undefined
    username?: string | undefined
    uid?: string | undefined
    groups?: string[] | undefined
    extra?: Record<string, string[]> | undefined
  }
  status?: {
    conditions?: CertificateSigningRequestCondition[] | undefined
    /** Base64 of PEM: the certificate, then those between it and the authority. */
    certificate?: string | undefined
  }
}
export const CertificateSigningRequest = resource<CertificateSigningRequest>({
  group: 'certificates.k8s.io',
  version: 'v1',
  kind: 'CertificateSigningRequest',
  plural: 'certificatesigningrequests',
  namespaced: false,
})

export interface ResourceAttributes {
  namespace?: string | undefined
  verb: string
  group?: string | undefined
  version?: string | undefined
  resource: string
  subresource?: string | undefined
  name?: string | undefined
}
/** A question to the API server's authorizer: it is created, answered and not kept. */
export interface SubjectAccessReview extends KubeObject {
  spec: {
    user?: string | undefined
    uid?: string | undefined
    groups?: string[] | undefined
    extra?: Record<string, string[]> | undefined
    resourceAttributes?: ResourceAttributes | undefined
    nonResourceAttributes?: { path: string; verb: string } | undefined
  }
  status?: { allowed: boolean; denied?: boolean; reason?: string; evaluationError?: string }
}
export const SubjectAccessReview = resource<SubjectAccessReview>({
  group: 'authorization.k8s.io',
  version: 'v1',
  kind: 'SubjectAccessReview',
  plural: 'subjectaccessreviews',
  namespaced: false,
})
