import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { connect } from 'node:http2'
import { get } from 'node:https'
import { after, before, beforeEach, afterEach, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { ApiError, ConfigMap, ConnectionError, type Client } from '../src/kube/index.ts'
import { eventually, startControlPlane, startFaultProxy, type ControlPlane, type FaultProxy } from './index.ts'

const admin = { user: 'through-the-proxy', groups: ['system:masters'] }
let plane: ControlPlane
let proxy: FaultProxy
let client: Client
before(async () => {
  plane = await startControlPlane({ controllerManager: false })
})
after(() => plane?.stop())
beforeEach(async () => {
  proxy = await startFaultProxy(plane, admin)
  client = plane.client({ ...admin, server: proxy.server, userAgent: 'faults/1' })
})
afterEach(async () => {
  client.close()
  await proxy.stop()
})

const configMaps = () => client.of(ConfigMap, 'default')
const whoami = (...args: string[]) =>
  plane.kubectl(['auth', 'whoami', '-o', 'jsonpath={.status.userInfo.username}', ...args], {
    kubeconfig: proxy.kubeconfig,
  })

/** Collects the names that a watch reports, and how it ends. */
const following = async () => {
  const names: string[] = []
  const watch = await configMaps().watch({ resourceVersion: (await configMaps().list()).metadata.resourceVersion })
  const end = (async () => {
    for await (const batch of watch) names.push(...batch.map(({ object }) => object.metadata.name ?? ''))
    return 'ended'
  })().catch((error: unknown) => error)
  return { names, end }
}

/** A watch over plain HTTP/1.1, as bytes. */
const watchBytes = async () => {
  const request = get(`${proxy.server}/api/v1/namespaces/default/configmaps?watch=1`, { ca: plane.ca, agent: false })
  const [response]: IncomingMessage[] = await once(request, 'response')
  let text = ''
  response!.on('data', (chunk: Buffer) => (text += chunk.toString()))
  const end = once(response!, 'end').then(
    () => 'ended',
    (error: Error) => error.message,
  )
  return { status: response!.statusCode, text: () => text, end }
}

test('everything passes through as it is: reads, writes, watches, and who asked', async () => {
  const { names } = await following()
  await configMaps().create({ metadata: { name: 'passes' }, data: { big: 'x'.repeat(500_000) } })
  assert.equal((await configMaps().get('passes')).data?.['big']?.length, 500_000)
  await eventually(() => assert.deepEqual(names, ['passes']))
  await configMaps().delete('passes')
  await eventually(() => assert.deepEqual(names, ['passes', 'passes']))

  const { entries } = await plane.requestsBy('faults/')
  assert.deepEqual([...new Set(entries.map(({ user }) => user))], ['through-the-proxy'])
})

test('a client without credentials is the proxy’s user; a certificate, a token and impersonation still count', async () => {
  assert.equal((await watchBytes()).status, 200)
  assert.equal(await whoami(), 'through-the-proxy')
  assert.equal(await whoami('--as', 'ada', '--as-group', 'a', '--as-group', 'b'), 'ada')
  const grace = plane.kubeconfigFor({ user: 'grace', groups: ['g1', 'g2'], server: proxy.server })
  const groups = await plane.kubectl(['auth', 'whoami', '-o', 'jsonpath={.status.userInfo.groups}'], {
    kubeconfig: grace,
  })
  assert.deepEqual(JSON.parse(groups), ['g1', 'g2', 'system:authenticated'])

  await plane.kubectl(['create', 'serviceaccount', 'robot'])
  const token = (await plane.kubectl(['create', 'token', 'robot'])).trim()
  assert.equal(await whoami('--token', token), 'system:serviceaccount:default:robot')
})

test('both protocols are spoken: HTTP/2 to those who offer it, and HTTP/1.1', async () => {
  const session = connect(proxy.server, { ca: plane.ca })
  const stream = session.request({ ':path': '/version' })
  const [headers] = await once(stream, 'response')
  assert.equal(headers[':status'], 200)
  session.destroy()
  const [response]: IncomingMessage[] = await once(
    get(`${proxy.server}/version`, { ca: plane.ca, agent: false }),
    'response',
  )
  assert.equal(response!.httpVersion, '1.1')
  response!.resume()
})

test('the next matching requests can be answered instead of the API server', async () => {
  proxy.answer(
    { method: 'GET', path: /configmaps/ },
    { status: 410, body: { kind: 'Status', reason: 'Expired', code: 410 } },
  )
  await assert.rejects(configMaps().list(), (error: unknown) => error instanceof ApiError && error.status === 410)
  await configMaps().list()

  proxy.answer({ method: 'GET' }, { status: 429, headers: { 'retry-after': '0' } }, { times: 2 })
  const before = proxy.count({ method: 'GET' })
  await configMaps().list()
  assert.equal(proxy.count({ method: 'GET' }) - before, 3)
})

test('open watches can be cut in the middle, and others stay', async () => {
  const first = await following()
  const second = await watchBytes()
  assert.equal(proxy.open({ watch: true }), 2)

  assert.equal(proxy.cut({ userAgent: 'faults/' }), 1)
  assert.ok((await first.end) instanceof ConnectionError)
  assert.equal(proxy.open({ watch: true }), 1)

  assert.equal(proxy.cut(), 1)
  assert.equal(await second.end, 'aborted')
})

test('a watch can be cut in the middle of a line', async () => {
  const { names, end } = await following()
  const cut = proxy.cutMidLine()
  await plane
    .client()
    .of(ConfigMap, 'default')
    .create({ metadata: { name: 'half' } })
  await cut
  assert.ok((await end) instanceof ConnectionError)
  assert.deepEqual(names, [])

  const nextCut = proxy.cutMidLine()
  const bytes = await watchBytes()
  await nextCut
  assert.equal(await bytes.end, 'aborted')
  assert.match(bytes.text(), /^\{"type":"ADDED",[^\n]+$/)
  assert.throws(() => JSON.parse(bytes.text()))
})

test('a stalled request is acted on and gets no answer until it is released', async () => {
  const { names } = await following()
  proxy.stall({ path: /configmaps/ })
  const created = configMaps().create({ metadata: { name: 'stalled' } })
  await eventually(() => plane.client().of(ConfigMap, 'default').get('stalled'))
  assert.equal(await Promise.race([created, sleep(100, 'nothing')]), 'nothing')
  assert.deepEqual(names, [])

  proxy.release()
  assert.equal((await created).metadata.name, 'stalled')
  await eventually(() => assert.deepEqual(names, ['stalled']))
})

test('when the API server dies, clients of the proxy see their connections end', async () => {
  const { end } = await following()
  await plane.apiServer.kill()
  assert.ok((await end) instanceof ConnectionError)
  await assert.rejects(configMaps().list(), ConnectionError)
  await plane.apiServer.restart()
  await configMaps().list()
})
