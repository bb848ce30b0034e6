import { asBytes, asInt32, asInt64, asString, asVarint, fieldsOf, MessageError, Writer } from './protobuf.ts'

/** What an attribute holds. A number is an int32, a Date a timestamp; URIs are read as strings. */
export type AttributeValue = string | number | boolean | Date | Uint8Array

/**
 * A CloudEvent as `io.cloudevents.v1` has it on the wire. The field uses the binary mode of the specification: attributes have
 * `ce-` before their names, except `contenttype`, and the payload is JSON in `binary_data`.
 */
export interface CloudEvent {
  id: string
  source: string
  specVersion: string
  type: string
  attributes: ReadonlyMap<string, AttributeValue>
  /** A string is written as it is and always read as bytes. */
  data?: Uint8Array | string | undefined
}

/** Which events somebody wants to have: all of one data type that belong to one cluster. */
export interface SubscriptionRequest {
  source: string
  clusterName: string
  dataType: string
}

/** Nothing honest comes near: what the field sends has about ten. */
const mostAttributes = 64

/** The event as it follows a prefix of `reserve` bytes. */
export const encodeEvent = (event: CloudEvent, { reserve = 0 } = {}): Buffer => {
  const writer = writerFor(event, reserve)
  writeEvent(writer, event)
  return writer.finish()
}

export const encodePublish = (event: CloudEvent, { reserve = 0 } = {}): Buffer => {
  const writer = writerFor(event, reserve)
  writer.message(1, () => writeEvent(writer, event))
  return writer.finish()
}

export const encodeSubscription = (request: SubscriptionRequest, { reserve = 0 } = {}): Buffer => {
  const writer = new Writer({ reserve })
  if (request.source) writer.string(1, request.source)
  if (request.clusterName) writer.string(2, request.clusterName)
  if (request.dataType) writer.string(3, request.dataType)
  return writer.finish()
}

// Text that is not ASCII takes more than its length says, and the writer grows then.
const writerFor = (event: CloudEvent, reserve: number): Writer =>
  new Writer({ size: reserve + 512 + (event.data?.length ?? 0), reserve })

const writeEvent = (writer: Writer, event: CloudEvent): void => {
  if (event.id) writer.string(1, event.id)
  if (event.source) writer.string(2, event.source)
  if (event.specVersion) writer.string(3, event.specVersion)
  if (event.type) writer.string(4, event.type)
  for (const [name, value] of event.attributes)
    writer.message(5, () => {
      writer.string(1, name)
      writer.message(2, () => writeValue(writer, value))
    })
  if (typeof event.data === 'string') writer.string(6, event.data)
  else if (event.data) writer.bytes(6, event.data)
}

const writeValue = (writer: Writer, value: AttributeValue): void => {
  if (typeof value === 'string') writer.string(3, value)
  else if (typeof value === 'boolean') writer.integer(1, value ? 1 : 0)
  else if (typeof value === 'number') writer.integer(2, int32(value))
  else if (value instanceof Date) writer.message(7, () => writeTime(writer, value.getTime()))
  else writer.bytes(4, value)
}

const int32 = (value: number): number => {
  if ((value | 0) !== value) throw new RangeError(`${value} is no int32, and an attribute holds no other numbers`)
  return value
}

const writeTime = (writer: Writer, ms: number): void => {
  const seconds = Math.floor(ms / 1000)
  if (seconds) writer.integer(1, seconds)
  if (ms !== seconds * 1000) writer.integer(2, (ms - seconds * 1000) * 1_000_000)
}

export const decodeEvent = (message: Buffer): CloudEvent => {
  const attributes = new Map<string, AttributeValue>()
  const event: CloudEvent = { id: '', source: '', specVersion: '', type: '', attributes }
  for (const field of fieldsOf(message)) {
    if (field.number === 1) event.id = asString(field)
    else if (field.number === 2) event.source = asString(field)
    else if (field.number === 3) event.specVersion = asString(field)
    else if (field.number === 4) event.type = asString(field)
    else if (field.number === 5) readAttribute(asBytes(field), attributes)
    else if (field.number === 6 || field.number === 7) event.data = asBytes(field)
    else if (field.number === 8) throw new MessageError('proto_data is not understood: send JSON in binary_data')
  }
  return event
}

/** Undefined when the request holds no event. */
export const decodePublish = (message: Buffer): CloudEvent | undefined => {
  let event: CloudEvent | undefined
  for (const field of fieldsOf(message)) if (field.number === 1) event = decodeEvent(asBytes(field))
  return event
}

export const decodeSubscription = (message: Buffer): SubscriptionRequest => {
  const request: SubscriptionRequest = { source: '', clusterName: '', dataType: '' }
  for (const field of fieldsOf(message)) {
    if (field.number === 1) request.source = asString(field)
    else if (field.number === 2) request.clusterName = asString(field)
    else if (field.number === 3) request.dataType = asString(field)
  }
  return request
}

const readAttribute = (entry: Buffer, into: Map<string, AttributeValue>): void => {
  let name = ''
  let value: AttributeValue | undefined
  for (const field of fieldsOf(entry)) {
    if (field.number === 1) name = asString(field)
    else if (field.number === 2) value = readValue(asBytes(field))
  }
  if (value === undefined) throw new MessageError(`attribute ${JSON.stringify(name.slice(0, 50))} has no value`)
  into.set(name, value)
  if (into.size > mostAttributes) throw new MessageError(`an event has more than ${mostAttributes} attributes`)
}

const readValue = (message: Buffer): AttributeValue | undefined => {
  let value: AttributeValue | undefined
  for (const field of fieldsOf(message)) {
    if (field.number === 1) value = asVarint(field) !== 0n
    else if (field.number === 2) value = asInt32(field)
    else if (field.number === 3 || field.number === 5 || field.number === 6) value = asString(field)
    else if (field.number === 4) value = asBytes(field)
    else if (field.number === 7) value = readTime(asBytes(field))
  }
  return value
}

const readTime = (message: Buffer): Date => {
  let seconds = 0n
  let nanos = 0
  for (const field of fieldsOf(message)) {
    if (field.number === 1) seconds = asInt64(field)
    else if (field.number === 2) nanos = asInt32(field)
  }
  const time = new Date(Number(seconds) * 1000 + Math.floor(nanos / 1_000_000))
  if (Number.isNaN(time.getTime())) throw new MessageError('a timestamp is out of range')
  return time
}
