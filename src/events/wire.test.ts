import assert from 'node:assert/strict'
import { once } from 'node:events'
import http2 from 'node:http2'
import type { TLSSocket } from 'node:tls'
import { test, type TestContext } from 'node:test'
import { eventually, manualClock } from '../../testkit/index.ts'
import { grpcAuthority } from '../../testkit/grpc-authority.ts'
import { ApiError, ConnectionError, type Credential } from '../kube/index.ts'
import { EventClient } from './client.ts'
import { encodeEvent, type CloudEvent, type SubscriptionRequest } from './cloud-event.ts'
import { heartbeat, makeEvent } from './event.ts'
import { dataType } from './event-type.ts'
import { framed, prefixLength } from './frames.ts'
import type { Outbox } from './outbox.ts'
import { EventServer, type Call, type EventServerOptions, type EventService } from './server.ts'
import { code, GrpcError } from './status.ts'

const authority = grpcAuthority()
const frame = (event: CloudEvent) => framed(encodeEvent(event, { reserve: prefixLength }))
const event = (id: string, data: unknown = {}) =>
  makeEvent({
    dataType: dataType.leases,
    side: 'spec',
    action: 'update_request',
    source: 'c1',
    cluster: 'c1',
    id,
    data,
    now: 0,
  })
const request: SubscriptionRequest = { source: 'c1', clusterName: 'c1', dataType: dataType.leases }

/** Serves what the test says, to whoever has a certificate or a token. */
const serve = async (
  t: TestContext,
  service: Partial<EventService<string>> = {},
  options: Partial<EventServerOptions<string>> = {},
) => {
  const outboxes: Outbox[] = []
  const published: CloudEvent[] = []
  const calls: Call[] = []
  let serving = authority.serving()
  const server = new EventServer<string>({
    host: '127.0.0.1',
    port: 0,
    tls: () => ({ ...serving, ca: authority.ca }),
    service: {
      admit: async (call) => {
        calls.push(call)
        if (call.peer.refused) throw new GrpcError(code.unauthenticated, `refused: ${call.peer.refused}`)
        return { who: call.authorization ?? call.peer.certificate!.subject }
      },
      publish: async (one) => void published.push(one),
      subscribe: async () => (outbox) => void outboxes.push(outbox),
      ...service,
    },
    ...options,
  })
  await server.start()
  t.after(() => server.stop())
  const clientFor = (credential: Credential, client = {}) => {
    const made = new EventClient(
      { source: 'test', server: `https://127.0.0.1:${server.port}`, credentials: async () => credential },
      client,
    )
    t.after(() => made.close())
    return made
  }
  const asC1 = { ca: authority.ca, ...authority.client({ user: 'c1', groups: ['g'] }) }
  const renew = (): void => {
    serving = authority.serving()
    server.reload()
  }
  return { server, outboxes, published, calls, clientFor, client: clientFor(asC1), asC1, renew }
}

test('R6.1 an event is published, a subscription confirmed, and its events come in order', async (t) => {
  const { client, published, outboxes, calls } = await serve(t)
  await client.publish(event('1', { text: 'x'.repeat(500_000) }))
  assert.equal(published[0]!.id, '1')
  assert.equal(published[0]!.data!.length, 500_011)
  const subscription = await client.subscribe(request)
  assert.equal(subscription.id, outboxes[0]!.id)
  for (const id of ['a', 'b', 'c']) outboxes[0]!.put(id, () => frame(event(id)))
  outboxes[0]!.offer(frame(heartbeat()))
  const got: string[] = []
  for await (const one of subscription) {
    got.push(one.type === event('x').type ? one.id : 'heartbeat')
    if (got.length === 4) break
  }
  assert.deepEqual(got, ['a', 'b', 'c', 'heartbeat'])
  assert.equal(new Set(calls.map(({ peer }) => peer.session)).size, 1)
  assert.match(calls[0]!.peer.certificate!.subject, /CN=c1/)
})

test('R6.3 a slow reader gets the latest state of each object, and costs one entry for each', async (t) => {
  const { client, outboxes } = await serve(t)
  const subscription = await client.subscribe(request)
  const state = new Map<string, number>()
  const big = 'x'.repeat(200_000)
  for (let round = 0; round < 200; round++)
    for (const key of ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j']) {
      state.set(key, round)
      outboxes[0]!.put(key, () => frame(event(`${key} ${state.get(key)}`, big)))
    }
  await eventually(() => outboxes[0]!.waiting > 0 && outboxes[0]!.stalledMs(Date.now() + 1) > 0)
  assert.ok(outboxes[0]!.waiting <= 10)
  const last = new Map<string, string>()
  let seen = 0
  for await (const one of subscription) {
    const [key, round] = one.id.split(' ')
    last.set(key!, round!)
    seen++
    if ([...last.values()].filter((of) => of === '199').length === 10) break
  }
  assert.ok(seen < 100, `2,000 changes took ${seen} events`)
})

test('R6.3 what a caller is refused for reaches it: by the endpoint, by the API server, and without a word of our faults', async (t) => {
  const errors: unknown[] = [
    new GrpcError(code.permissionDenied, 'not yours'),
    new GrpcError(code.failedPrecondition, 'x', { status: { reason: 'Conflict', message: 'changed', code: 409 } }),
    new Error('secret of ours'),
  ]
  const { client } = await serve(t, {
    publish: async () => {
      throw errors.shift()
    },
    subscribe: async () => {
      throw new GrpcError(code.permissionDenied, 'not your cluster')
    },
  })
  await assert.rejects(client.publish(event('1')), (e) => e instanceof GrpcError && /not yours/.test(e.message))
  await assert.rejects(client.publish(event('1')), (e) => e instanceof ApiError && e.status === 409)
  await assert.rejects(client.publish(event('1')), (e) => e instanceof GrpcError && !/secret/.test(e.message))
  await assert.rejects(client.subscribe(request), (e) => e instanceof GrpcError && /not your cluster/.test(e.message))
})

test('R6.2 certificates of the endpoint change without a restart, and nobody who is connected notices', async (t) => {
  const { client, clientFor, asC1, outboxes, renew, server } = await serve(t)
  const subscription = await client.subscribe(request)
  const present = async (): Promise<string> => {
    const session = http2.connect(`https://127.0.0.1:${server.port}`, { ca: authority.ca })
    await once(session, 'connect')
    const { fingerprint256 } = (session.socket as TLSSocket).getPeerCertificate()
    session.destroy()
    return fingerprint256
  }
  const before = await present()
  renew()
  assert.notEqual(await present(), before)
  await clientFor(asC1).publish(event('new'))
  await client.publish(event('old'))
  outboxes[0]!.put('k', () => frame(event('still')))
  for await (const one of subscription) {
    assert.equal(one.id, 'still')
    break
  }
})

test('R6.2 a renewed credential is used for the next call, and what was subscribed with the old one goes on', async (t) => {
  const { server, calls, outboxes, asC1 } = await serve(t)
  let credential: Credential = asC1
  const client = new EventClient({
    source: 'test',
    server: `https://127.0.0.1:${server.port}`,
    credentials: async () => credential,
  })
  t.after(() => client.close())
  const subscription = await client.subscribe(request)
  credential = { ca: authority.ca, ...authority.client({ user: 'renewed' }) }
  await client.publish(event('1'))
  assert.match(calls.at(-1)!.peer.certificate!.subject, /renewed/)
  outboxes[0]!.put('k', () => frame(event('still')))
  for await (const one of subscription) {
    assert.equal(one.id, 'still')
    break
  }
})

test('R6.5 a certificate of another authority, an expired one and one for servers are refused in words; strangers are told to identify', async (t) => {
  const { clientFor, published } = await serve(t)
  const ca = authority.ca
  const hour = 3_600_000
  const foreign = grpcAuthority().client({ user: 'c1' })
  const expired = authority.client({ user: 'c1' }, { notBefore: Date.now() - 2 * hour, notAfter: Date.now() - hour })
  for (const pair of [foreign, expired, authority.serving()])
    await assert.rejects(
      clientFor({ ca, ...pair }).publish(event('1')),
      (e) => e instanceof GrpcError && e.code === code.unauthenticated,
    )
  await clientFor({ ca, token: 'abc' }).publish(event('by token'))
  assert.deepEqual(
    published.map(({ id }) => id),
    ['by token'],
  )
})

test('R6.3 a connection that is cut, a server that stops and one that is silent end a subscription with an error', async (t) => {
  const { client, clientFor, asC1, outboxes, server, calls } = await serve(t)
  const ended = async (subscription: AsyncIterable<CloudEvent>): Promise<unknown> => {
    try {
      for await (const _ of subscription);
    } catch (error) {
      return error
    }
    return undefined
  }
  const first = await client.subscribe(request)
  const cut = ended(first)
  ;(calls[0]!.peer.session as http2.ServerHttp2Session).destroy()
  assert.ok((await cut) instanceof ConnectionError)
  const clock = manualClock()
  const patient = clientFor(asC1, { clock, silenceMs: 5000 })
  const silent = ended(await patient.subscribe(request))
  await eventually(async () => {
    clock.advance(6000)
    return Promise.race([silent.then(() => true), new Promise<false>((resolve) => setImmediate(resolve, false))])
  })
  assert.ok((await silent) instanceof ConnectionError)
  const last = ended(await client.subscribe(request))
  await eventually(() => outboxes.length === 3)
  await server.stop()
  const error = await last
  assert.ok(error instanceof GrpcError && error.code === code.unavailable, String(error))
})
