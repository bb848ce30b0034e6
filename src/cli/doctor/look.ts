import {
  ApiError,
  ConnectionError,
  isForbidden,
  isNotFound,
  KubeconfigError,
  servedResources,
  type Client,
} from '../../kube/index.ts'
import { isDistrust } from '../hub-trust.ts'
import type { Seen, Side } from './faults.ts'
import type { Silence } from './snapshot.ts'

/** Each request has this long: a person waits. */
export const patienceMs = 10_000

/** What a look gives, or why there was none. */
export const seen = <T>(look: Promise<T>, signal: AbortSignal): Promise<Seen<T>> =>
  look.then(
    (is) => ({ is }),
    (error: unknown) => {
      signal.throwIfAborted()
      if (isForbidden(error)) return { unseen: `you may not look there: ${error.serverMessage}` }
      if (isNotFound(error)) return { unseen: 'this server does not know the kind' }
      if (error instanceof ApiError || error instanceof ConnectionError || error instanceof KubeconfigError)
        return { unseen: error.message }
      throw error
    },
  )

/** What a look finds; a kind that is not served has no objects. */
export const orNone = <T>(look: Promise<{ items: T[] }>): Promise<T[]> =>
  look.then(
    ({ items }) => items,
    (error: unknown) => {
      if (isNotFound(error)) return []
      throw error
    },
  )

/** Why a server does not answer at all; undefined when it does, whatever it says. */
export const silenceOf = async (client: Client, side: Side, signal: AbortSignal): Promise<Silence | undefined> => {
  try {
    await client.json({ method: 'GET', path: '/version', timeoutMs: patienceMs, signal })
    return undefined
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof ApiError) return undefined
    if (!(error instanceof ConnectionError)) throw error
    const fault = isDistrust(error) ? 'wrong-ca' : side === 'hub' ? 'hub-unreachable' : 'managed-unreachable'
    return { fault, why: error.message }
  }
}

/** Everything that a server serves, as `plural.group`. */
export const kindsOf = async (client: Client, signal: AbortSignal): Promise<ReadonlySet<string>> => {
  const { resources } = await servedResources(client, { timeoutMs: patienceMs, signal })
  return new Set(resources.map(({ plural, group }) => `${plural}.${group}`))
}
