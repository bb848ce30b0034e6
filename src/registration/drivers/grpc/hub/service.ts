import {
  code,
  GrpcError,
  readEvent,
  type Call,
  type CloudEvent,
  type EventService,
  type Outbox,
  type SubscriptionRequest,
} from '../../../../events/index.ts'
import { ApiError, ConnectionError, Slots } from '../../../../kube/index.ts'
import type { Authentication } from './authentication.ts'
import { readResync, type Subscriber } from './broker.ts'
import type { Identity } from './identity.ts'
import type { ClientLimits } from './limits.ts'
import { invalid, parsed, type Desk, type Publication } from './publication.ts'
import { writeFor } from './writes.ts'
import { listWish, watchWish } from './wishes.ts'

export interface ServiceOptions {
  desk: Desk
  authentication: Authentication
  limits: ClientLimits
  /** Told of each new subscription. */
  watch: (subscriber: Subscriber) => void
  calls: { inc(labels: { method: string; outcome: string }): void }
}

/** Publishes that are worked on at a time, of all clients together: each holds a message. The others wait, and are not read. */
const atOnce = 128

/** What the endpoint does with a call: who, how much, whose, may it, then do it. */
export const eventService = ({
  desk,
  authentication,
  limits,
  watch,
  calls,
}: ServiceOptions): EventService<Identity> => {
  const slots = new Slots(atOnce)
  const counted = async <T>(method: string, work: () => Promise<T>): Promise<T> => {
    let outcome = 'ok'
    try {
      return await work()
    } catch (error) {
      const refused = asRefusal(error)
      outcome = nameOf(refused)
      throw refused
    } finally {
      calls.inc({ method, outcome })
    }
  }
  const publish = async (event: CloudEvent, who: Identity, { peer, signal }: Call): Promise<void> => {
    const read = readEvent(event)
    if (!read) throw invalid('the type of the event is not <group>.<version>.<resource>.<spec|status>.<action>')
    const { cluster } = read
    if (!cluster) throw invalid('the attribute ce-clustername is missing')
    const publication: Publication = { event: read, who, cluster, session: peer.session, signal }
    if (read.action === 'resync_request') return resync(desk, publication)
    const write = writeFor(read)
    if (!write) throw invalid(`nothing is done with ${read.side}.${read.action} of ${read.dataType.slice(0, 200)}`)
    return write(desk, publication)
  }
  const subscribe = async (
    request: SubscriptionRequest,
    who: Identity,
    { peer }: Call,
  ): Promise<(outbox: Outbox) => void> => {
    const { clusterName: cluster } = request
    if (!cluster) throw invalid('cluster_name is missing')
    const wish = watchWish(request.dataType, cluster)
    if (!wish) throw invalid(`${JSON.stringify(request.dataType.slice(0, 200))} cannot be subscribed to`)
    await desk.access.demand(who, wish)
    return (outbox) => {
      const subscriber = { outbox, who, session: peer.session, cluster, dataType: request.dataType }
      desk.broker.add(subscriber)
      watch(subscriber)
    }
  }
  return {
    admit: (call, method) =>
      counted(`${method}-admission`, async () => {
        const who = await authentication.identify(call)
        return { who, done: limits.enter(who.username, method) }
      }),
    publish: (event, who, call) => counted('publish', () => slots.run(() => publish(event, who, call), call.signal)),
    subscribe: (request, who, call) => counted('subscribe', () => subscribe(request, who, call)),
  }
}

const resync = async (desk: Desk, { event, who, cluster, session }: Publication): Promise<void> => {
  if (event.side !== 'spec') throw invalid('the hub answers resyncs of spec')
  const wish = listWish(event.dataType, cluster)
  if (!wish) throw invalid(`${JSON.stringify(event.dataType.slice(0, 200))} cannot be listed`)
  const request = readResync(parsed(() => event.data()))
  await desk.access.demand(who, wish)
  const subscribers = desk.broker.asking({ who, session, cluster, dataType: event.dataType })
  if (subscribers.length === 0)
    throw new GrpcError(code.failedPrecondition, `nobody listens for the answer: subscribe to ${event.dataType} first`)
  for (const subscriber of subscribers) desk.broker.resync(subscriber, request, event.id)
}

/** Errors of the API server travel as what they are; that it cannot be reached is said without its address. */
export const asRefusal = (error: unknown): unknown => {
  if (error instanceof ApiError) {
    const { status, reason, serverMessage, details } = error
    // The hub's own rights are nobody's business, and nothing that the caller could mend.
    if (status === 401 || status === 403)
      return new GrpcError(code.internal, 'the hub itself may not do this: its log tells why', { cause: error })
    const said = { status: 'Failure', reason, message: serverMessage, details, code: status }
    const passing = status === 429 || status >= 500
    return new GrpcError(passing ? code.unavailable : code.failedPrecondition, serverMessage, {
      status: said,
      cause: error,
    })
  }
  if (error instanceof ConnectionError)
    return new GrpcError(code.unavailable, 'the hub cannot reach its API server at the moment: try again', {
      cause: error,
    })
  return error
}

const nameOf = (error: unknown): string =>
  error instanceof GrpcError
    ? (Object.entries(code).find(([, value]) => value === error.code)?.[0] ?? 'unknown')
    : 'internal'
