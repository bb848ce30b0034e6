import { AppliedManifestWork } from '../../api/index.ts'
import type { KubeObject, ObjectApi, OwnerReference, Unstructured } from '../../kube/index.ts'
import { ownerReference } from '../../runtime/index.ts'

/** What marks an object as delivered by a work. It isn't a controller reference: several works may own one object. */
export const ownerFor = (record: AppliedManifestWork): OwnerReference => ownerReference(record, AppliedManifestWork)

/** Whether the record owns the object. */
export const isOwnedBy = (object: KubeObject, uid: string): boolean =>
  object.metadata.ownerReferences?.some((owner) => owner.uid === uid) ?? false

/** The other works that own it too. */
export const otherWorks = (object: KubeObject, uid: string): OwnerReference[] =>
  (object.metadata.ownerReferences ?? []).filter(
    (owner) =>
      owner.uid !== uid &&
      owner.kind === AppliedManifestWork.kind &&
      owner.apiVersion.startsWith(AppliedManifestWork.group),
  )

/** The owners as they should be: ours among them, or not, and the others as they are. */
export const withOwnership = (
  present: readonly OwnerReference[] | undefined,
  ours: { reference: OwnerReference; owned: boolean },
): OwnerReference[] | undefined => {
  const others = (present ?? []).filter((owner) => owner.uid !== ours.reference.uid)
  if (!ours.owned) return others
  const kept = present?.find((owner) => owner.uid === ours.reference.uid)
  return kept ? [...present!] : [...others, ours.reference]
}

/** Takes our reference off an object that stays; only from the very object that was seen. */
export const disown = async (
  objects: ObjectApi<Unstructured>,
  object: Unstructured,
  uid: string,
  signal: AbortSignal,
): Promise<Unstructured> => {
  const { name, resourceVersion } = object.metadata
  const ownerReferences = (object.metadata.ownerReferences ?? []).filter((owner) => owner.uid !== uid)
  return objects.patch(
    name!,
    { merge: { metadata: { uid: object.metadata.uid, resourceVersion, ownerReferences } } },
    { signal },
  )
}
