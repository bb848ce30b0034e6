import {
  code,
  EventClient,
  GrpcError,
  makeEvent,
  type EventParts,
  type Subscription,
} from '../../../../events/index.ts'
import { ApiError, Slots, type CallOptions, type Connection, type FailedRequest } from '../../../../kube/index.ts'
import { sleep, type Clock, type Logger } from '../../../../runtime/index.ts'

export interface LinkOptions {
  connection: Connection
  /** Whose objects these are: the endpoint gives a client no others. */
  cluster: string
  userAgent?: string | undefined
  /** Until a call is answered. */
  timeoutMs?: number | undefined
  /** A subscription that hears nothing for so long counts as cut. */
  silenceMs?: number | undefined
  clock: Clock
  random: () => number
  log: Logger
}

/** The endpoint takes 16 at a time from one client, and a new credential may share that with the old one. */
const publishesAtOnce = 8
/** All agents of a fleet lose their endpoint at the same moment: they come back spread over this time. */
const spreadMs = 2000

/** What an event says, besides where it comes from. */
export type Message = Omit<EventParts, 'source' | 'cluster' | 'now'>

/** The one connection of an agent to its hub's endpoint. Its errors are those of a Kubernetes client. */
export class Link {
  readonly connection: Connection
  readonly cluster: string
  readonly clock: Clock
  readonly log: Logger
  /** Whether this hub says when a resync is complete. Ours does. */
  marksResyncs = false
  readonly #client: EventClient
  readonly #random: () => number
  readonly #slots = new Slots(publishesAtOnce)
  #notBefore = -Infinity
  #sequence = 0

  constructor({ connection, cluster, clock, random, log, ...client }: LinkOptions) {
    this.connection = connection
    this.cluster = cluster
    this.clock = clock
    this.log = log
    this.#random = random
    this.#client = new EventClient(connection, { clock, ...client })
  }

  /** Resolves when the hub has acted on it. */
  async publish(message: Message, call: CallOptions = {}): Promise<void> {
    const event = makeEvent({ ...message, source: this.cluster, cluster: this.cluster, now: this.clock.now() })
    await this.#slots
      .run(() => this.#client.publish(event, call), call.signal)
      .catch((error: unknown) => {
        throw asKube(error, this.#request('Publish', message.dataType))
      })
  }

  /** Resolves when the hub has confirmed it. */
  async subscribe(dataType: string, call: CallOptions = {}): Promise<Subscription> {
    const wait = this.#notBefore - this.clock.now()
    if (wait > 0) await sleep(this.clock, wait, call.signal)
    const request = { source: this.cluster, clusterName: this.cluster, dataType }
    return this.#client.subscribe(request, call).catch((error: unknown) => {
      throw this.explained(error, dataType)
    })
  }

  /** A subscription was cut: nobody comes back at once. */
  lost(): void {
    const now = this.clock.now()
    if (this.#notBefore <= now) this.#notBefore = now + this.#random() * spreadMs
  }

  /** Greater than all before it, also those of a process before this one, unless its clock was ahead. */
  nextSequence(): string {
    this.#sequence = Math.max(this.#sequence + 1, this.clock.now() * 1000)
    return String(this.#sequence)
  }

  explained(error: unknown, dataType: string): unknown {
    return asKube(error, this.#request('Subscribe', dataType))
  }

  /** For errors that are found here and have to look like the API server's. A 404 with a name is about an object, not its kind. */
  refusal(status: number, message: string, dataType: string, more: { reason?: string; name?: string } = {}): ApiError {
    const { reason, name } = more
    const body = { message, ...(reason ? { reason } : {}), ...(name ? { details: { name } } : {}) }
    return new ApiError(this.#request('gRPC', dataType), status, body)
  }

  close(): void {
    this.#client.close()
  }

  #request(method: string, path: string): FailedRequest {
    const { server, source } = this.connection
    return { server, source, method, path }
  }
}

const statusOf: Readonly<Record<number, number>> = {
  [code.invalidArgument]: 400,
  [code.unauthenticated]: 401,
  [code.permissionDenied]: 403,
  [code.notFound]: 404,
  [code.resourceExhausted]: 429,
  [code.deadlineExceeded]: 504,
}

/** Hubs of the field say of kinds that they do not serve that they are forbidden. */
const isUnserved = ({ code: is, message }: GrpcError): boolean =>
  is === code.permissionDenied && message.includes('access denied: unsupported event type')

/** What the endpoint itself refuses, in the words of the API: whoever calls asks `isForbidden` and need not know of the wire. */
const asKube = (error: unknown, request: FailedRequest): unknown => {
  if (!(error instanceof GrpcError)) return error
  const status = isUnserved(error) ? 404 : (statusOf[error.code] ?? 503)
  return new ApiError(request, status, { message: error.message })
}
