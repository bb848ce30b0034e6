import { isDeepStrictEqual } from 'node:util'
import { ManagedServiceAccount } from '../../api/index.ts'
import { isNotFound } from '../../kube/index.ts'
import { setConditions, type ConditionState } from '../../runtime/index.ts'
import type { Status } from '../contract.ts'
import type { AccountAgent } from './agent.ts'

/** Fields of the status that the agent writes; null takes one out, absent leaves it. */
export interface Fields {
  expirationTimestamp?: string | null
  tokenSecretRef?: NonNullable<Status['tokenSecretRef']> | null
}

/** Says how an account stands. Nothing is sent when the hub has it all; what somebody else wrote meanwhile makes it fail. */
export const report = async (
  agent: AccountAgent,
  of: ManagedServiceAccount,
  states: readonly ConditionState[],
  fields: Fields,
  signal: AbortSignal,
): Promise<ManagedServiceAccount> => {
  const { name = '', namespace, uid, resourceVersion, generation } = of.metadata
  const conditions = setConditions(of.status?.conditions, states, { now: agent.clock.now(), generation })
  const changed = Object.entries(fields).filter(
    ([key, value]) => !isDeepStrictEqual(value ?? undefined, of.status?.[key as keyof Fields]),
  )
  if (conditions === of.status?.conditions && changed.length === 0) return of
  const merge = { metadata: { uid, resourceVersion }, status: { conditions, ...Object.fromEntries(changed) } }
  try {
    const written = await agent.hub
      .of(ManagedServiceAccount, namespace)
      .patch(name, { merge }, { subresource: 'status', signal })
    return agent.wroteStatus(of, written)
  } catch (error) {
    // Gone in the meantime: its deletion brings us back.
    if (isNotFound(error)) return of
    throw error
  }
}
