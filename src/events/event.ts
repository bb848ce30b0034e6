import { randomUUID } from 'node:crypto'
import type { AttributeValue, CloudEvent } from './cloud-event.ts'
import { attribute, heartbeatType, parseType, typeOf, type EventType } from './event-type.ts'

/** What goes into an event; the rest is always the same. */
export interface EventParts extends EventType {
  /** `kube` from a hub, the cluster's name or one that begins with it from an agent. */
  source: string
  cluster: string
  resourceId?: string | undefined
  resourceVersion?: string | number | undefined
  originalSource?: string | undefined
  sequenceId?: string | undefined
  statusHash?: string | undefined
  /** Milliseconds. */
  deletedAt?: number | undefined
  /** An object's metadata, for works. */
  metadata?: unknown
  /** Anything that can be JSON; absent for what is deleted. */
  data?: unknown
  /** Of the event; a new one unless given. */
  id?: string | undefined
  /** Milliseconds. */
  now: number
}

/** The event that says this. */
export const makeEvent = (parts: EventParts): CloudEvent => {
  const attributes = new Map<string, AttributeValue>([
    [attribute.time, new Date(parts.now)],
    [attribute.cluster, parts.cluster],
    [attribute.originalSource, parts.originalSource ?? ''],
  ])
  const put = (name: string, value: AttributeValue | undefined): void => {
    if (value !== undefined) attributes.set(name, value)
  }
  put(attribute.resourceId, parts.resourceId)
  put(attribute.resourceVersion, parts.resourceVersion)
  put(attribute.sequenceId, parts.sequenceId)
  put(attribute.statusHash, parts.statusHash)
  put(attribute.deletionTimestamp, parts.deletedAt === undefined ? undefined : new Date(parts.deletedAt))
  put(attribute.metadata, parts.metadata === undefined ? undefined : JSON.stringify(parts.metadata))
  const event = { id: parts.id ?? randomUUID(), source: parts.source, specVersion: '1.0', type: typeOf(parts) }
  if (parts.data === undefined) return { ...event, attributes }
  attributes.set(attribute.contentType, 'application/json')
  return { ...event, attributes, data: JSON.stringify(parts.data) }
}

/** An event in words: what it is about, and its payload once it is asked for. */
export interface ReadEvent extends EventType {
  id: string
  source: string
  cluster: string
  resourceId: string
  resourceVersion: string | number | undefined
  originalSource: string
  sequenceId: string
  deletedAt: number | undefined
  /** Throws a SyntaxError when the payload is no JSON. Undefined when there is none. */
  data(): unknown
  /** Of a work. Throws like `data`. */
  metadata(): unknown
}

/** Reads an event; undefined when its type has no form that the field knows. */
export const readEvent = (event: CloudEvent): ReadEvent | undefined => {
  const type = parseType(event.type)
  if (!type) return undefined
  const text = (name: string): string => {
    const value = event.attributes.get(name)
    return typeof value === 'string' ? value : ''
  }
  const version = event.attributes.get(attribute.resourceVersion)
  const deleted = event.attributes.get(attribute.deletionTimestamp)
  return {
    ...type,
    id: event.id,
    source: event.source,
    cluster: text(attribute.cluster),
    resourceId: text(attribute.resourceId),
    resourceVersion: typeof version === 'string' || typeof version === 'number' ? version : undefined,
    originalSource: text(attribute.originalSource),
    sequenceId: text(attribute.sequenceId),
    deletedAt: timeOf(deleted),
    data: () => (event.data?.length ? parsed(event.data) : undefined),
    metadata: () => (text(attribute.metadata) ? parsed(text(attribute.metadata)) : undefined),
  }
}

// Some write a time as text.
const timeOf = (value: AttributeValue | undefined): number | undefined => {
  if (value instanceof Date) return value.getTime()
  const time = typeof value === 'string' ? Date.parse(value) : NaN
  return Number.isNaN(time) ? undefined : time
}

const parsed = (data: Uint8Array | string): unknown =>
  JSON.parse(typeof data === 'string' ? data : Buffer.from(data.buffer, data.byteOffset, data.length).toString('utf8'))

/** A sign of life; with `resync`, also that the resync request of that id has been answered in full. */
export const heartbeat = (resync?: string): CloudEvent => ({
  id: randomUUID(),
  source: '',
  specVersion: '1.0',
  type: heartbeatType,
  attributes: new Map(resync === undefined ? [] : [[attribute.resync, resync]]),
})

/** What an agent has, in a resync request: the hub sends what is newer and what has gone. */
export interface ResyncRequest {
  resourceVersions: { resourceID: string; resourceVersion: number }[]
}
