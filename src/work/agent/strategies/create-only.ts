import { equal } from '../../../runtime/index.ts'
import { withOwnership } from '../ownership.ts'
import type { Strategy } from './strategy.ts'
import { assertNotLeaving, isCreated, presentOrCreated } from './update.ts'

/** Made when it is missing, and never changed; only who owns it is kept right. */
export const createOnly: Strategy = async (context) => {
  const { objects, desired, owner, signal } = context
  const present = await presentOrCreated(context)
  if (isCreated(present)) return present
  assertNotLeaving(present)
  const ownerReferences = withOwnership(present.metadata.ownerReferences, owner)
  if (equal(ownerReferences, present.metadata.ownerReferences)) return { live: present }
  const { uid, resourceVersion } = present.metadata
  const live = await objects.patch(
    desired.metadata.name!,
    { merge: { metadata: { uid, resourceVersion, ownerReferences } } },
    { signal },
  )
  return { live, change: 'updated' }
}
