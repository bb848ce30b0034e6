/**
 * CloudEvents over gRPC, the wire of agents that have no way to the API server of their hub. A tour:
 *
 *     const client = new EventClient(connection)       // a kube `Connection`: server https://host:port, credentials
 *     const events = await client.subscribe({ source: 'c1', clusterName: 'c1', dataType: dataType.managedClusters })
 *     await client.publish(makeEvent({ ...resync, data: { resourceVersions: [] } }))
 *     for await (const event of events) readEvent(event)?.data()
 *
 * `event-type.ts` has the names that the field uses; `event.ts` turns what is meant into events and back; `cloud-event.ts` and
 * `protobuf.ts` are the bytes, `frames.ts` and `status.ts` what gRPC puts around them. `server.ts` serves, `outbox.ts` is what a
 * subscriber is owed, and `client.ts` calls. It knows nothing of who may do what: see registration/drivers/grpc.
 */
export { EventClient, type EventClientOptions, type Subscription } from './client.ts'
export {
  decodeEvent,
  encodeEvent,
  encodePublish,
  encodeSubscription,
  type AttributeValue,
  type CloudEvent,
  type SubscriptionRequest,
} from './cloud-event.ts'
export { heartbeat, makeEvent, readEvent, type EventParts, type ReadEvent, type ResyncRequest } from './event.ts'
export {
  attribute,
  dataType,
  heartbeatType,
  parseType,
  typeOf,
  type Action,
  type DataType,
  type EventType,
  type Side,
} from './event-type.ts'
export { framed, Frames, prefixLength } from './frames.ts'
export { Outbox } from './outbox.ts'
export { MessageError } from './protobuf.ts'
export { EventServer, type Call, type EventServerOptions, type EventService, type Peer } from './server.ts'
export { asApiError, code, errorIn, GrpcError, trailersOf } from './status.ts'
