import type { AppliedManifestWork } from '../../api/index.ts'
import type { Unstructured } from '../../kube/index.ts'
import { claimAnnotation, ManifestApplied } from '../contract.ts'
import { isOwnedBy, otherWorks } from './ownership.ts'
import { nameOf } from './manifest.ts'
import type { WorkMemory } from './memory.ts'
import type { Entry, Plan } from './plan.ts'

/** What a manifest claims; undefined when it takes whatever it finds, as most do. */
export const claimOf = (object: Unstructured): string | undefined => object.metadata.annotations?.[claimAnnotation]

/** Why a manifest that claims its object may not have the one that is there; undefined when it may. */
export const claimRefusal = (
  desired: Unstructured,
  present: Unstructured,
  of: { record: AppliedManifestWork; hubHash: string; wasOurs: () => boolean },
): string | undefined => {
  const claim = claimOf(desired)
  if (claim === undefined || isOwnedBy(present, of.record.metadata.uid!)) return undefined
  const others = otherWorks(present, of.record.metadata.uid!)
  const shares = claimOf(present) === claim && others.every(({ name }) => name.startsWith(`${of.hubHash}-`))
  // Once ours it stays ours, whatever somebody does to it: that is what protection means.
  if (shares || of.wasOurs()) return undefined
  const whose = others.length ? `belongs to ${others.map(({ name }) => name).join(', ')}` : 'is not from this hub'
  return `there is already one of this name on the managed cluster, which ${whose}: it is left as it is; choose another name on the hub, or remove that one`
}

/** Why a binding has to wait: the role that it would bind, of the same work, is not there as the work wants it. */
export const roleToWaitFor = (entry: Entry, plan: Plan, memory: WorkMemory): string | undefined => {
  const ref = entry.object['roleRef'] as { kind?: string; name?: string } | undefined
  if (!ref || claimOf(entry.object) === undefined) return undefined
  const namespace = ref.kind === 'Role' ? (entry.namespace ?? '') : ''
  const role = plan.byId.get(`${entry.group}/${ref.kind}/${namespace}/${ref.name}`)
  if (!role || claimOf(role.object) === undefined) return undefined
  const known = memory.manifests.get(role.id)
  const applied = known?.report.states.find(({ type }) => type === ManifestApplied.type)
  if (applied?.status === 'True' && known?.hash === role.target?.hash) return undefined
  return `it waits for ${nameOf(role)}, without which it would bind something else: ${applied?.message ?? 'it is not applied yet'}`
}
