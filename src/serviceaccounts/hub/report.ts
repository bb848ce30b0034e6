import { isDeepStrictEqual } from 'node:util'
import { ManagedServiceAccount } from '../../api/index.ts'
import { isNotFound, keyOf } from '../../kube/index.ts'
import { setConditions, type ConditionState } from '../../runtime/index.ts'
import type { Status } from '../contract.ts'
import { fieldManager, type Hub } from './hub.ts'

/** Fields of the status that the hub writes; null takes one out, absent leaves it. */
export type Fields = { [K in 'clusters' | 'troubles' | 'expirationTimestamp' | 'tokenSecretRef']?: Status[K] | null }

/** The change that a report makes; undefined when there is none. */
export const statusChange = (
  of: ManagedServiceAccount,
  states: readonly ConditionState[],
  fields: Fields,
  now: number,
): object | undefined => {
  const { uid, resourceVersion, generation } = of.metadata
  const conditions = setConditions(of.status?.conditions, states, { now, generation })
  const changed = Object.entries(fields).filter(
    ([key, value]) => !isDeepStrictEqual(value ?? undefined, of.status?.[key as keyof Fields]),
  )
  if (conditions === of.status?.conditions && changed.length === 0) return undefined
  return { metadata: { uid, resourceVersion }, status: { conditions, ...Object.fromEntries(changed) } }
}

/** Says how an object stands, as far as the hub knows; nothing is sent when nothing differs. */
export const report = async (
  hub: Hub,
  of: ManagedServiceAccount,
  states: readonly ConditionState[],
  fields: Fields,
  signal: AbortSignal,
): Promise<void> => {
  const merge = statusChange(of, states, fields, hub.clock.now())
  if (!merge) return
  const { name = '', namespace } = of.metadata
  try {
    const written = await hub.client
      .of(ManagedServiceAccount, namespace)
      .patch(name, { merge }, { subresource: 'status', fieldManager, signal })
    hub.written.wrote(keyOf(of), of, written)
  } catch (error) {
    if (!isNotFound(error)) throw error // gone in the meantime
  }
}
