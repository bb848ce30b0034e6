import {
  attribute,
  code,
  encodeEvent,
  framed,
  GrpcError,
  heartbeat,
  makeEvent,
  prefixLength,
  type Action,
  type CloudEvent,
  type Outbox,
  type ResyncRequest,
} from '../../../../events/index.ts'
import { keyOf, type KubeObject } from '../../../../kube/index.ts'
import { timestamp, type Clock } from '../../../../runtime/index.ts'
import type { Identity } from './identity.ts'
import type { Served } from './served.ts'

/** Somebody who listens. */
export interface Subscriber {
  outbox: Outbox
  who: Identity
  /** Its connection: answers to questions go to whoever asked them. */
  session: object
  cluster: string
  dataType: string
}

const topic = (dataType: string, cluster: string): string => `${dataType}/${cluster}`
const frameOf = (event: CloudEvent): Buffer => framed(encodeEvent(event, { reserve: prefixLength }))

/** Tells subscribers what changes in the caches. Whom a change concerns is one look into a map, however many listen. */
export class Broker {
  readonly #served: Map<string, Served>
  readonly #clock: Clock
  readonly #topics = new Map<string, Set<Subscriber>>()
  readonly #clusters = new Map<string, Set<Subscriber>>()
  #size = 0

  constructor(served: readonly Served[], clock: Clock) {
    this.#served = new Map(served.map((one) => [one.dataType, one]))
    this.#clock = clock
    for (const one of served)
      one.informer.on({
        added: (object) => this.#changed(one, object, 'create_request'),
        updated: (object, old) => {
          if (one.differs(object, old)) this.#changed(one, object, 'update_request')
          // It went from one cluster to another, which a label can do.
          if (one.clusterOf(old) !== one.clusterOf(object)) this.#gone(one, old)
        },
        deleted: (object) => this.#gone(one, object),
      })
  }

  get size(): number {
    return this.#size
  }

  add(subscriber: Subscriber): void {
    const sets = [
      setIn(this.#topics, topic(subscriber.dataType, subscriber.cluster)),
      setIn(this.#clusters, subscriber.cluster),
    ]
    for (const set of sets) set.add(subscriber)
    this.#size++
    subscriber.outbox.onClose(() => {
      this.#size--
      drop(this.#topics, topic(subscriber.dataType, subscriber.cluster), subscriber)
      drop(this.#clusters, subscriber.cluster, subscriber)
    })
  }

  /** Everybody who listens for one cluster. */
  listening(cluster: string): Subscriber[] {
    return [...(this.#clusters.get(cluster) ?? [])]
  }

  /**
   * The subscriptions to which an answer goes: those on the connection that asked, else those of the same user on others, which
   * is so for a moment after a credential was renewed. Never anybody else's.
   */
  asking(asked: Pick<Subscriber, 'who' | 'session' | 'cluster' | 'dataType'>): Subscriber[] {
    const all = [...(this.#topics.get(topic(asked.dataType, asked.cluster)) ?? [])]
    const same = all.filter(({ session }) => session === asked.session)
    return same.length > 0 ? same : all.filter(({ who }) => who.username === asked.who.username)
  }

  /** Sends what the agent lacks, and then says that this was all. */
  resync(to: Subscriber, { resourceVersions }: ResyncRequest, requestId: string): void {
    const served = this.#served.get(to.dataType)
    const held = new Map(resourceVersions.map(({ resourceID, resourceVersion }) => [resourceID, resourceVersion]))
    for (const object of served?.of(to.cluster) ?? []) {
      const { uid, generation = 0, deletionTimestamp } = object.metadata
      const had = held.get(uid!) ?? held.get(served!.idOf(object))
      held.delete(uid!)
      held.delete(served!.idOf(object))
      if (served!.versioned && !deletionTimestamp && had !== undefined && had >= generation) continue
      this.#put(served!, object, 'update_request', [to])
    }
    // What it has and we do not know is gone. Without the object, only its id can be said.
    for (const [id, version] of served ? held : [])
      to.outbox.put(`${to.dataType}/gone/${id}`, () =>
        frameOf(
          makeEvent({
            dataType: to.dataType,
            side: 'spec',
            action: 'delete_request',
            source: 'kube',
            cluster: to.cluster,
            resourceId: id,
            resourceVersion: int32(version),
            deletedAt: this.#clock.now(),
            now: this.#clock.now(),
          }),
        ),
      )
    to.outbox.put(`resync/${requestId}`, () => frameOf(heartbeat(requestId)))
  }

  /** One event that is no object's state: an answer. */
  answer(to: readonly Subscriber[], event: CloudEvent): void {
    const frame = frameOf(event)
    for (const { outbox } of to) outbox.put(`answer/${event.id}`, () => frame)
  }

  #changed(served: Served, object: KubeObject, action: Action): void {
    const subscribers = this.#topics.get(topic(served.dataType, served.clusterOf(object)))
    if (subscribers) this.#put(served, object, action, subscribers)
  }

  /** The bytes are made from the cache when there is room for them, so that nobody is sent a state that is over. */
  #put(served: Served, { metadata }: KubeObject, action: Action, to: Iterable<Subscriber>): void {
    const key = keyOf({ metadata })
    const id = `${served.dataType}/${metadata.uid}`
    for (const { outbox, cluster } of to)
      outbox.put(id, () => {
        const now = served.informer.get(key)
        // Deleted since: that is an entry of its own.
        if (now?.metadata.uid !== metadata.uid || served.clusterOf(now!) !== cluster) return undefined
        const deletedAt = now!.metadata.deletionTimestamp ? Date.parse(now!.metadata.deletionTimestamp) : undefined
        const said = { ...served.say(now!), deletedAt }
        return frameOf(this.#event(served, cluster, deletedAt === undefined ? action : 'update_request', said))
      })
  }

  #gone(served: Served, object: KubeObject): void {
    const cluster = served.clusterOf(object)
    const subscribers = this.#topics.get(topic(served.dataType, cluster))
    if (!subscribers) return
    const now = this.#clock.now()
    const { finalizers: _, ...metadata } = object.metadata
    // Agents in the field take an object without finalizers that is being deleted for one that is gone.
    const last = {
      ...object,
      metadata: { ...metadata, deletionTimestamp: metadata.deletionTimestamp ?? timestamp(now) },
    }
    for (const { outbox } of subscribers)
      outbox.put(`${served.dataType}/${metadata.uid}`, () =>
        frameOf(this.#event(served, cluster, 'delete_request', { ...served.say(last), deletedAt: now })),
      )
  }

  #event(served: Served, cluster: string, action: Action, said: object): CloudEvent {
    const { dataType } = served
    return makeEvent({ dataType, side: 'spec', action, source: 'kube', cluster, now: this.#clock.now(), ...said })
  }
}

/** An attribute holds no larger number, and nobody reads it. */
const int32 = (value: number): number | undefined => ((value | 0) === value ? value : undefined)

const setIn = <T>(map: Map<string, Set<T>>, key: string): Set<T> => {
  let set = map.get(key)
  if (!set) map.set(key, (set = new Set()))
  return set
}

const drop = <T>(map: Map<string, Set<T>>, key: string, value: T): void => {
  const set = map.get(key)
  set?.delete(value)
  if (set?.size === 0) map.delete(key)
}

/** Whether a payload is a resync request that can be read. */
export const readResync = (data: unknown): ResyncRequest => {
  const list = (data as Partial<ResyncRequest> | null)?.resourceVersions ?? []
  const sound =
    Array.isArray(list) &&
    list.every((one) => typeof one?.resourceID === 'string' && Number.isSafeInteger(one?.resourceVersion ?? 0))
  if (!sound)
    throw new GrpcError(
      code.invalidArgument,
      `${attribute.resync}: the data is not {"resourceVersions": [{"resourceID", "resourceVersion"}]}`,
    )
  return {
    resourceVersions: list.map(({ resourceID, resourceVersion }) => ({
      resourceID,
      resourceVersion: resourceVersion ?? 0,
    })),
  }
}
