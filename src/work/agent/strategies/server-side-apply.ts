import { isConflict, type Unstructured } from '../../../kube/index.ts'
import { equal } from '../../../runtime/index.ts'
import { defaultFieldManager } from '../../contract.ts'
import { withOwnership } from '../ownership.ts'
import { leavingFields } from './ignore-fields.ts'
import { ApplyProblem, type Strategy } from './strategy.ts'
import { assertNotLeaving } from './update.ts'

/** The server merges: we own the fields of the manifest, others own theirs. */
export const serverSideApply: Strategy = async (context) => {
  const { objects, desired, owner, settings, signal } = context
  const { force = false, fieldManager = defaultFieldManager, ignoreFields = [] } = settings.serverSideApply ?? {}
  const present = await objects.find(desired.metadata.name!, { signal })
  if (present) context.mayTake(present)
  if (present) assertNotLeaving(present)
  if (present && context.isAsApplied(present) && metadataHolds(context, present)) return { live: present }
  const wanted = leavingFields(desired, present, ignoreFields)
  const ownerReferences = withOwnership(wanted.metadata.ownerReferences, owner)
  const next: Unstructured = { ...wanted, metadata: { ...wanted.metadata, ownerReferences } }
  await context.mayWrite(next, present)
  try {
    const live = await objects.apply(next, { fieldManager, force, signal })
    if (!present) return { live, change: 'created' }
    return live.metadata.resourceVersion === present.metadata.resourceVersion ? { live } : { live, change: 'updated' }
  } catch (error) {
    if (!isConflict(error) || !error.details.causes?.length) throw error
    const fields = error.details.causes.map(({ field, message }) => `${field} (${message})`).join(', ')
    throw new ApplyProblem(
      `others own fields of it: ${fields}; set serverSideApply.force, name them in ignoreFields, or take them out of the manifest`,
      { cause: error },
    )
  }
}

const metadataHolds = ({ desired, owner }: Parameters<Strategy>[0], present: Unstructured): boolean => {
  const { labels, annotations, ownerReferences } = present.metadata
  return (
    Object.entries(desired.metadata.labels ?? {}).every(([key, value]) => labels?.[key] === value) &&
    Object.entries(desired.metadata.annotations ?? {}).every(([key, value]) => annotations?.[key] === value) &&
    equal(withOwnership(ownerReferences, owner), ownerReferences)
  )
}
