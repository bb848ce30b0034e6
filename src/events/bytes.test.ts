import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import {
  decodeEvent,
  decodePublish,
  decodeSubscription,
  encodeEvent,
  encodePublish,
  encodeSubscription,
  type AttributeValue,
  type CloudEvent,
} from './cloud-event.ts'
import { framed, Frames, prefixLength } from './frames.ts'
import { heartbeat, makeEvent, readEvent } from './event.ts'
import { attribute, dataType, parseType, typeOf } from './event-type.ts'
import { MessageError } from './protobuf.ts'
import { asApiError, code, errorIn, GrpcError, percentDecode, percentEncode, trailersOf } from './status.ts'

// Written by Go's protobuf from the field's own message types.
const fromGo = {
  publish:
    '0ac0010a0131120263311a03312e302201742a140a0963652d612d7465787412071a056772c3bc6e2a100a0a63652d622d656d70747912021a002a1a0a0b63652d632d6e756d626572120b10f9ffffffffffffffff012a0e0a0863652d642d796573120208012a120a0a63652d652d62797465731204220200ff2a1a0a0963652d662d74696d65120d3a0b0880f2d6ca0610c0a9d33a2a220a0b63652d672d6265666f726512133a1108feffffffffffffffff011080cab5ee0132077b2261223a317d',
  subscription: '0a026331120263311a06782e76312e79',
}
const event: CloudEvent = {
  id: '1',
  source: 'c1',
  specVersion: '1.0',
  type: 't',
  attributes: new Map<string, AttributeValue>([
    ['ce-a-text', 'grün'],
    ['ce-b-empty', ''],
    ['ce-c-number', -7],
    ['ce-d-yes', true],
    ['ce-e-bytes', Buffer.from([0, 255])],
    ['ce-f-time', new Date(1767225600123)],
    ['ce-g-before', new Date(-1500)],
  ]),
  data: Buffer.from('{"a":1}'),
}

test('R6.1 messages are byte for byte those of the field', () => {
  assert.equal(encodePublish({ ...event, data: '{"a":1}' }).toString('hex'), fromGo.publish)
  assert.deepEqual(decodePublish(Buffer.from(fromGo.publish, 'hex')), event)
  const request = { source: 'c1', clusterName: 'c1', dataType: 'x.v1.y' }
  assert.equal(encodeSubscription(request).toString('hex'), fromGo.subscription)
  assert.deepEqual(decodeSubscription(Buffer.from(fromGo.subscription, 'hex')), request)
})

test('R6.1 every event survives the way there and back', () => {
  const value = fc.oneof(
    fc.string({ unit: 'grapheme' }),
    fc.integer(),
    fc.boolean(),
    fc.uint8Array().map((bytes) => Buffer.from(bytes)),
    fc.date({ min: new Date(-8e14), max: new Date(8e14), noInvalidDate: true }),
  )
  const events = fc.record({
    id: fc.string(),
    source: fc.string({ unit: 'grapheme' }),
    specVersion: fc.string(),
    type: fc.string(),
    attributes: fc
      .array(fc.tuple(fc.string({ unit: 'grapheme' }), value), { maxLength: 20 })
      .map((all) => new Map(all)),
    data: fc.uint8Array({ minLength: 1, maxLength: 3000 }).map((bytes) => Buffer.from(bytes)),
  })
  fc.assert(fc.property(events, (one) => assert.deepEqual(decodeEvent(encodeEvent(one)), { ...one })))
})

test('R6.5 bytes that are no message are refused, whatever they are, and nothing else happens', () => {
  const refused = (read: () => unknown): void => {
    try {
      read()
    } catch (error) {
      assert.ok(error instanceof MessageError, String(error))
    }
  }
  const whole = Buffer.from(fromGo.publish, 'hex')
  fc.assert(fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => refused(() => decodePublish(Buffer.from(bytes)))))
  fc.assert(
    fc.property(fc.nat(whole.length - 1), fc.nat(255), (at, byte) => {
      const bent = Buffer.from(whole)
      bent[at] = byte
      refused(() => decodePublish(bent))
    }),
  )
  for (let length = 1; length < whole.length; length++)
    assert.throws(() => decodePublish(whole.subarray(0, length)), MessageError)
  const many = new Map(Array.from({ length: 65 }, (_, n) => [`ce-${n}`, 'x']))
  assert.throws(() => decodeEvent(encodeEvent({ ...event, attributes: many })), /more than 64 attributes/)
})

test('R6.5 frames come together from any pieces, and one that is too long or compressed ends the call at its prefix', () => {
  const messages = ['', 'a', 'b'.repeat(1000)].map((text) => Buffer.from(text))
  const stream = Buffer.concat(messages.map((one) => framed(Buffer.concat([Buffer.alloc(prefixLength), one]))))
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 }), (sizes) => {
      const frames = new Frames(1000)
      const got: Buffer[] = []
      for (let at = 0, turn = 0; at < stream.length; turn++) {
        const size = sizes[turn % sizes.length]!
        got.push(...frames.push(stream.subarray(at, at + size)))
        at += size
      }
      assert.deepEqual(got, messages)
      assert.equal(frames.isPartial, false)
    }),
  )
  const refusedAs = (chunk: Buffer, of: number) =>
    assert.throws(
      () => [...new Frames(999).push(chunk)],
      (error) => error instanceof GrpcError && error.code === of,
    )
  refusedAs(Buffer.from([0, 0, 0, 3, 232]), code.resourceExhausted)
  refusedAs(Buffer.from([1, 0, 0, 0, 1, 65]), code.unimplemented)
})

test('R6.1 types have the form of the field: group, version, resource, side and action', () => {
  for (const one of Object.values(dataType)) {
    const type = { dataType: one, side: 'status', action: 'update_request' } as const
    assert.deepEqual(parseType(typeOf(type)), type)
  }
  for (const text of [
    '',
    'a.spec.create_request',
    'a.v1.b.spec.steal_request',
    'a.v1.b.meta.create_request',
    '.'.repeat(1e6),
  ])
    assert.equal(parseType(text), undefined)
})

test('R6.1 what is meant comes back as it was said, and a time may also be text', () => {
  const said = makeEvent({
    dataType: dataType.manifestBundles,
    side: 'spec',
    action: 'delete_request',
    source: 'kube',
    cluster: 'c1',
    resourceId: 'uid-1',
    resourceVersion: 3,
    deletedAt: 1500,
    metadata: { name: 'w1' },
    now: 1000,
  })
  const read = readEvent(decodeEvent(encodeEvent(said)))!
  assert.deepEqual(
    [read.dataType, read.side, read.action, read.cluster, read.resourceId, read.resourceVersion, read.deletedAt],
    [dataType.manifestBundles, 'spec', 'delete_request', 'c1', 'uid-1', 3, 1500],
  )
  assert.deepEqual([read.metadata(), read.data(), read.originalSource], [{ name: 'w1' }, undefined, ''])
  const asText = new Map<string, AttributeValue>([[attribute.deletionTimestamp, '2026-01-01T00:00:00Z']])
  assert.equal(readEvent({ ...said, attributes: asText })!.deletedAt, Date.parse('2026-01-01T00:00:00Z'))
  assert.equal(readEvent(heartbeat()), undefined)
})

test('R6.1 what the API server said reaches the other side as the error that it was, in the form that Go writes', () => {
  const status = { status: 'Failure', reason: 'Conflict', message: 'changed – 100 %', code: 409 }
  const trailers = trailersOf(new GrpcError(code.failedPrecondition, 'x', { status }))
  assert.match(percentDecode(trailers['grpc-message']), /^\{"ErrStatus":\{/)
  const error = errorIn(trailers, 'Publish')!
  const asKube = asApiError(error, { server: 's', source: 'o', method: 'gRPC', path: 'Publish' })!
  assert.deepEqual([asKube.status, asKube.reason, asKube.serverMessage], [409, 'Conflict', 'changed – 100 %'])
  assert.equal(errorIn({ 'grpc-status': '0' }, 'x'), undefined)
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (text) => assert.equal(percentDecode(percentEncode(text)), text)),
  )
})
