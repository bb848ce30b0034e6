import { apiVersionOf, type KubeObject, type OwnerReference, type Resource } from '../kube/index.ts'

export const hasFinalizer = (object: KubeObject, finalizer: string): boolean =>
  object.metadata.finalizers?.includes(finalizer) ?? false

/** The object with the finalizer; itself when it has it. */
export const withFinalizer = <T extends KubeObject>(object: T, finalizer: string): T =>
  hasFinalizer(object, finalizer)
    ? object
    : withMetadata(object, { finalizers: [...(object.metadata.finalizers ?? []), finalizer] })

/** The object without the finalizer; itself when it has none. */
export const withoutFinalizer = <T extends KubeObject>(object: T, finalizer: string): T =>
  hasFinalizer(object, finalizer)
    ? withMetadata(object, { finalizers: object.metadata.finalizers!.filter((f) => f !== finalizer) })
    : object

/** A reference by which the garbage collector deletes the object with its owner. Owners are cluster-scoped or in the same namespace. */
export const ownerReference = (
  owner: KubeObject,
  of: Resource<KubeObject>,
  { controller = false }: { controller?: boolean } = {},
): OwnerReference => {
  const { name, uid } = owner.metadata
  if (!name || !uid) throw new Error(`${of.kind} ${name ?? ''} has no uid yet: create it before it can own anything`)
  return {
    apiVersion: apiVersionOf(of),
    kind: of.kind,
    name,
    uid,
    ...(controller ? { controller: true, blockOwnerDeletion: true } : {}),
  }
}

/** The object with the reference, in place of one to the same owner; itself when it has it. */
export const withOwner = <T extends KubeObject>(object: T, owner: OwnerReference): T => {
  const present = object.metadata.ownerReferences ?? []
  const same = present.find((o) => o.uid === owner.uid)
  if (same && same.controller === owner.controller) return object
  return withMetadata(object, { ownerReferences: [...present.filter((o) => o.uid !== owner.uid), owner] })
}

/** The reference of the one owner that is the controller. */
export const controllerOf = (object: KubeObject): OwnerReference | undefined =>
  object.metadata.ownerReferences?.find((o) => o.controller)

const withMetadata = <T extends KubeObject>(object: T, change: Partial<KubeObject['metadata']>): T => ({
  ...object,
  metadata: { ...object.metadata, ...change },
})
