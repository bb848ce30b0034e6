/** The parts of a Kubernetes object that every kind shares. Dates stay strings: what came over the wire is what is cached. */

export interface OwnerReference {
  apiVersion: string
  kind: string
  name: string
  uid: string
  controller?: boolean | undefined
  blockOwnerDeletion?: boolean | undefined
}

export interface ObjectMeta {
  name?: string | undefined
  generateName?: string | undefined
  namespace?: string | undefined
  uid?: string | undefined
  /** Opaque: compare for equality only. */
  resourceVersion?: string | undefined
  generation?: number | undefined
  creationTimestamp?: string | undefined
  deletionTimestamp?: string | undefined
  deletionGracePeriodSeconds?: number | undefined
  labels?: Record<string, string> | undefined
  annotations?: Record<string, string> | undefined
  finalizers?: string[] | undefined
  ownerReferences?: OwnerReference[] | undefined
  managedFields?: unknown[] | undefined
}

/** An object as we write it: the server fills in the rest. */
export interface KubeObject {
  apiVersion?: string | undefined
  kind?: string | undefined
  metadata: ObjectMeta
}

/** Any kind at all, for code that does not know the fields. */
export interface Unstructured extends KubeObject {
  [field: string]: unknown
}

export interface ObjectList<T extends KubeObject = Unstructured> {
  apiVersion?: string
  kind?: string
  metadata: { resourceVersion?: string; continue?: string; remainingItemCount?: number }
  items: T[]
}

export interface Condition {
  type: string
  status: 'True' | 'False' | 'Unknown'
  reason: string
  message: string
  lastTransitionTime: string
  observedGeneration?: number | undefined
}

export interface LabelSelector {
  matchLabels?: Record<string, string> | undefined
  matchExpressions?:
    | { key: string; operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist'; values?: string[] | undefined }[]
    | undefined
}

/** `namespace/name`, or `name` for cluster-scoped objects: how objects are named in caches, queues and messages. */
export const keyOf = (object: KubeObject): string =>
  object.metadata.namespace ? `${object.metadata.namespace}/${object.metadata.name}` : (object.metadata.name ?? '')

/** The inverse of `keyOf`. */
export const parseKey = (key: string): { namespace?: string; name: string } => {
  const slash = key.indexOf('/')
  return slash < 0 ? { name: key } : { namespace: key.slice(0, slash), name: key.slice(slash + 1) }
}
