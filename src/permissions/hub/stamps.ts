import { isDeepStrictEqual } from 'node:util'
import type { KubeObject, Requester } from '../../kube/index.ts'
import { annotation } from '../contract.ts'

/** Who wrote a spec or approved it, as annotations that only admission writes. */

type Stamped = KubeObject & { spec?: unknown }

const stampOf = ({ username, uid, groups, extra }: Requester): string =>
  JSON.stringify({ username, ...(uid && { uid }), ...(groups && { groups }), ...(extra && { extra }) })

const readStamp = (object: KubeObject, key: string): Requester | undefined => {
  try {
    const value = JSON.parse(object.metadata.annotations?.[key] ?? '') as Requester
    return typeof value.username === 'string' ? value : undefined
  } catch {
    return undefined
  }
}

/** Who wrote the spec; undefined when it was written past admission. */
export const authorOf = (object: KubeObject): Requester | undefined => readStamp(object, annotation.author)

/** Who set the approval. */
export const approverOf = (object: KubeObject): Requester | undefined => readStamp(object, annotation.approver)

/** The fingerprint that was approved. */
export const approvedPrint = (object: KubeObject): string | undefined =>
  object.metadata.annotations?.[annotation.approve]

/** Whether a write changes what the permission gives. */
export const changesSpec = (object: Stamped, old: Stamped | undefined): boolean =>
  !old || !isDeepStrictEqual(object.spec, old.spec)

/** Whether a write sets another approval. */
export const changesApproval = (object: KubeObject, old: KubeObject | undefined): boolean =>
  approvedPrint(object) !== undefined && approvedPrint(object) !== (old && approvedPrint(old))

/** The annotations that a write must have: the old ones, unless it is by this request that they change. An edit ends an approval. */
export const wantedStamps = (
  object: Stamped,
  old: Stamped | undefined,
  user: Requester,
): Record<string, string | undefined> => {
  const [edited, approves] = [changesSpec(object, old), changesApproval(object, old)]
  const before = old?.metadata.annotations ?? {}
  const approve = edited && !approves ? undefined : approvedPrint(object)
  return {
    [annotation.author]: edited ? stampOf(user) : before[annotation.author],
    [annotation.approve]: approve,
    [annotation.approver]: approve === undefined ? undefined : approves ? stampOf(user) : before[annotation.approver],
  }
}

/** The object with those annotations, whatever the request has in their place; undefined when it has them. */
export const stamped = <T extends Stamped>(object: T, old: Stamped | undefined, user: Requester): T | undefined => {
  const wanted = wantedStamps(object, old, user)
  if (hasStamps(object, wanted)) return undefined
  const annotations: Record<string, string> = { ...object.metadata.annotations }
  for (const [key, value] of Object.entries(wanted)) {
    if (value === undefined) delete annotations[key]
    else annotations[key] = value
  }
  return { ...object, metadata: { ...object.metadata, annotations } }
}

/** Whether it carries exactly these. */
export const hasStamps = (object: KubeObject, wanted: Record<string, string | undefined>): boolean =>
  Object.entries(wanted).every(([key, value]) => object.metadata.annotations?.[key] === value)
