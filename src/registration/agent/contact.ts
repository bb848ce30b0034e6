import { ApiError, isUnauthorized, type Api, type KubeObject, type ObjectApi } from '../../kube/index.ts'
import { describeError, type Clock } from '../../runtime/index.ts'

/** How it stands between us and a hub, as all our requests tell it. */
export interface Contact {
  /** No answer since then. */
  unreachable?: { since: number; why: string } | undefined
  /** Nothing but 401 since then. */
  refused?: { since: number; why: string } | undefined
}

/** The same hub, with each request's outcome noted: no part has to tell how its requests went. */
export const observed = (hub: Api, clock: Clock, changed: () => void): { hub: Api; contact: () => Contact } => {
  let contact: Contact = {}
  const set = (next: Contact): void => {
    const same = !next.unreachable === !contact.unreachable && !next.refused === !contact.refused
    contact = {
      unreachable: next.unreachable && { ...next.unreachable, since: (contact.unreachable ?? next.unreachable).since },
      refused: next.refused && { ...next.refused, since: (contact.refused ?? next.refused).since },
    }
    if (!same) changed()
  }
  const note = (error?: unknown): void => {
    const now = { since: clock.now(), why: describeError(error) }
    if (error === undefined) set({})
    else if (isUnauthorized(error)) set({ refused: now })
    // Any other answer is an answer, if it comes from an API server and not from what stands before one.
    else if (error instanceof ApiError && error.status < 500) set({})
    else set({ ...contact, unreachable: now })
  }
  return {
    hub: {
      connection: hub.connection,
      of: (resource, namespace) => watched(hub.of(resource, namespace), note),
      close: () => hub.close(),
    },
    contact: () => contact,
  }
}

const watched = <T extends KubeObject>(objects: ObjectApi<T>, note: (error?: unknown) => void): ObjectApi<T> =>
  new Proxy(objects, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name, target)
      if (typeof value !== 'function') return value
      return (...args: unknown[]): unknown => {
        const result: unknown = value.apply(target, args)
        if (!(result instanceof Promise)) return result
        const signal = args.map(signalOf).find((s) => s !== undefined)
        return result.then(
          (answer: unknown) => {
            note()
            return answer
          },
          (error: unknown) => {
            // Whoever gave up on a request learnt nothing of the hub.
            if (!signal?.aborted) note(error)
            throw error
          },
        )
      }
    },
  })

const signalOf = (argument: unknown): AbortSignal | undefined =>
  typeof argument === 'object' && argument !== null && 'signal' in argument && argument.signal instanceof AbortSignal
    ? argument.signal
    : undefined
