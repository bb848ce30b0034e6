import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, request as httpsRequest, type RequestOptions } from 'node:https'
import { test, type TestContext } from 'node:test'
import { connect, type TLSSocket } from 'node:tls'
import { manualClock } from '../../../testkit/manual-clock.ts'
import { createAuthority, issue } from '../pki/index.ts'
import { validating } from './admission.ts'
import { converting } from './conversion.ts'
import { webhookServer, type WebhookServer, type WebhookServerOptions } from './server.ts'

const now = Date.now()
const authority = createAuthority({ commonName: 'server test', validForMs: 3_600_000, now: new Date(now - 60_000) })
const certificate = () =>
  issue(authority, {
    ipAddresses: ['127.0.0.1'],
    usages: ['server'],
    notBefore: new Date(now - 60_000),
    notAfter: new Date(now + 3_000_000),
  })
const first = certificate()

const yes = validating(() => undefined)
const review = JSON.stringify({
  apiVersion: 'admission.k8s.io/v1',
  kind: 'AdmissionReview',
  request: { uid: 'u-1', operation: 'DELETE', kind: {}, resource: {}, userInfo: {} },
})

const serving = async (t: TestContext, options: Partial<WebhookServerOptions> = {}): Promise<WebhookServer> => {
  const routes = { '/yes': yes, '/convert': converting({}) }
  const server = webhookServer({ host: '127.0.0.1', port: 0, certificate: () => first, routes, ...options })
  t.after(() => server.stop())
  await server.start()
  return server
}

interface Answer {
  status: number
  text: string
  headers: Record<string, unknown>
}

const send = async (
  server: WebhookServer,
  path: string,
  body: string | Buffer = review,
  options: Omit<RequestOptions, 'headers'> & { headers?: Record<string, string> } = {},
): Promise<Answer> => {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const request = httpsRequest({
    host: '127.0.0.1',
    port: server.port,
    ca: authority.cert,
    method: 'POST',
    agent: false,
    path,
    ...options,
    headers: { 'content-type': 'application/json', ...options.headers },
  })
  request.on('error', reject)
  request.on('response', (response) => {
    const chunks: Buffer[] = []
    response.on('data', (chunk: Buffer) => chunks.push(chunk))
    response.on('error', reject)
    response.on('end', () =>
      resolve({ status: response.statusCode!, text: Buffer.concat(chunks).toString(), headers: response.headers }),
    )
  })
  request.end(body)
  return promise
}

/** What the server says to bytes that are no whole request, until it closes the connection. */
const sayRaw = async (server: WebhookServer, bytes: string): Promise<string> => {
  const socket = await connected(server)
  let said = ''
  socket.on('data', (chunk: Buffer) => (said += chunk.toString()))
  socket.write(bytes)
  await once(socket, 'close')
  return said
}

const connected = async (server: WebhookServer, options: object = {}): Promise<TLSSocket> => {
  const socket = connect({ host: '127.0.0.1', port: server.port, ca: authority.cert, ...options })
  socket.on('error', () => {})
  await once(socket, 'secureConnect')
  return socket
}

test('R0.30 a review is answered over TLS, with and without the query that the API server adds', async (t) => {
  const server = await serving(t)
  for (const path of ['/yes', '/yes?timeout=10s']) {
    const answer = await send(server, path, review, { headers: { 'content-type': 'application/json; charset=utf-8' } })
    assert.equal(answer.status, 200)
    assert.equal(answer.headers['content-type'], 'application/json')
    assert.deepEqual(JSON.parse(answer.text), {
      apiVersion: 'admission.k8s.io/v1',
      kind: 'AdmissionReview',
      response: { uid: 'u-1', allowed: true },
    })
  }
})

test('R0.30 what is no review is refused with the right status, and the server goes on', async (t) => {
  const server = await serving(t)
  const statusOf = async (...args: Parameters<typeof send>): Promise<number> => (await send(...args)).status
  assert.equal(await statusOf(server, '/no'), 404)
  assert.equal(await statusOf(server, '/toString'), 404)
  const get = await send(server, '/yes', '', { method: 'GET' })
  assert.deepEqual([get.status, get.headers['allow']], [405, 'POST'])
  assert.equal(await statusOf(server, '/yes', review, { headers: { 'content-type': 'application/jsonp' } }), 415)
  assert.equal(await statusOf(server, '/yes', '{'), 400)
  assert.equal(await statusOf(server, '/yes', ''), 400)
  assert.equal(await statusOf(server, '/convert', review), 400)
  assert.match(await sayRaw(server, 'NOT HTTP AT ALL\r\n\r\n'), /^HTTP\/1\.1 400 /)
  assert.match(await sayRaw(server, `GET / HTTP/1.1\r\nx: ${'x'.repeat(20_000)}\r\n\r\n`), /^HTTP\/1\.1 431 /)
  assert.equal(await statusOf(server, '/yes'), 200)
})

test('R0.30 a body above the limit gets a 413, whether its length was told or not', async (t) => {
  const server = await serving(t)
  const large = Buffer.alloc(yes.bodyLimit + 1, ' ')
  assert.equal((await send(server, '/yes', large)).status, 413)
  assert.equal((await send(server, '/yes', large, { headers: { 'transfer-encoding': 'chunked' } })).status, 413)
  const justFits = Buffer.concat([Buffer.from(review), Buffer.alloc(yes.bodyLimit - review.length, ' ')])
  assert.equal((await send(server, '/yes', justFits)).status, 200)
})

test('R0.30 slow headers and a slow body get a 408', async (t) => {
  const server = await serving(t, { headersTimeoutMs: 500, requestTimeoutMs: 1000 })
  assert.match(await sayRaw(server, 'POST /yes HTTP/1.1\r\nhost: x\r\n'), /^HTTP\/1\.1 408 /)
  const head = 'POST /yes HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n'
  assert.match(await sayRaw(server, `${head}{"apiVersion":`), /^HTTP\/1\.1 408 /)
})

test('R0.30 a client that goes away in the middle of its body does no harm', async (t) => {
  const server = await serving(t)
  const socket = await connected(server)
  socket.write('POST /yes HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{')
  socket.destroy()
  assert.equal((await send(server, '/yes')).status, 200)
})

test('R0.30 a client that goes away while it waits ends the work for it', async (t) => {
  const { promise: asked, resolve } = Promise.withResolvers<AbortSignal>()
  const slow = validating((_request, { signal }) => {
    resolve(signal)
    return new Promise(() => {})
  })
  const server = await serving(t, { routes: { '/slow': slow }, graceMs: 0 })
  const socket = await connected(server)
  const head = `POST /slow HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${review.length}\r\n\r\n`
  socket.write(head + review)
  const signal = await asked
  socket.destroy()
  if (!signal.aborted) await once(signal, 'abort')
})

test('R0.30 a handler gets less time than the API server grants', async (t) => {
  const clock = manualClock()
  const { promise: asked, resolve } = Promise.withResolvers<void>()
  const hangs = validating(() => {
    resolve()
    return new Promise(() => {})
  })
  const server = await serving(t, { routes: { '/hangs': hangs }, clock })
  const answer = send(server, '/hangs?timeout=2s')
  await asked
  clock.advance(1600)
  assert.match((await answer).text, /webhook \/hangs did not answer within 1\.6 s/)
})

test('R0.30 TLS 1.2 is spoken, TLS 1.1 is not', async (t) => {
  const server = await serving(t)
  assert.equal((await send(server, '/yes', review, { maxVersion: 'TLSv1.2' })).status, 200)
  await assert.rejects(
    send(server, '/yes', review, { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' }),
    /alert protocol version/,
  )
})

test('R0.30 stop answers what is under way, and takes nothing new', async (t) => {
  const { promise: asked, resolve: ask } = Promise.withResolvers<void>()
  const { promise: decision, resolve: decide } = Promise.withResolvers<undefined>()
  const waits = validating(() => {
    ask()
    return decision
  })
  const server = await serving(t, { routes: { '/waits': waits, '/yes': yes } })
  const agent = new Agent({ keepAlive: true })
  t.after(() => agent.destroy())
  await send(server, '/yes', review, { agent }) // leaves an idle connection behind
  const answer = send(server, '/waits')
  await asked

  const { port } = server
  const stopped = server.stop()
  await assert.rejects(send({ port } as WebhookServer, '/yes'), { code: 'ECONNREFUSED' })
  decide(undefined)
  assert.equal((await answer).status, 200)
  assert.equal((await answer).headers['connection'], 'close')
  await stopped
})

test('R0.30 stop does not wait longer than the grace period', async (t) => {
  const clock = manualClock()
  const { promise: asked, resolve } = Promise.withResolvers<void>()
  const hangs = validating(() => {
    resolve()
    return new Promise(() => {})
  })
  const server = await serving(t, { routes: { '/hangs': hangs }, clock, graceMs: 1000 })
  const answer = assert.rejects(send(server, '/hangs'), { code: 'ECONNRESET' })
  await asked
  const stopped = server.stop()
  clock.advance(1000)
  await Promise.all([stopped, answer])
})

test('R0.31 a new certificate is used for new connections, and open ones go on', async (t) => {
  let current = first
  const server = await serving(t, { certificate: () => current })
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.after(() => agent.destroy())
  assert.equal((await send(server, '/yes', review, { agent })).status, 200)
  const certificateNow = async (): Promise<string> => {
    const socket = await connected(server)
    const seen = socket.getPeerX509Certificate()!.toString()
    socket.destroy()
    return seen
  }
  assert.equal(await certificateNow(), first.cert)

  current = certificate()
  server.reload()
  assert.equal(await certificateNow(), current.cert)
  assert.equal((await send(server, '/yes', review, { agent })).status, 200)

  const good = current
  current = { cert: 'rubbish', key: 'rubbish' }
  assert.throws(() => server.reload())
  assert.equal(await certificateNow(), good.cert)
})

test('R0.30 a port that is taken is an error at the start', async (t) => {
  const server = await serving(t)
  await assert.rejects(serving(t, { port: server.port }), { code: 'EADDRINUSE' })
})
