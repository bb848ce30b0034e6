import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { after, before, test } from 'node:test'
import { eventually, manualClock, startControlPlane, type ControlPlane } from '../../../testkit/index.ts'
import { clientFor, isNotFound, Secret, type Client } from '../../kube/index.ts'
import { jsonLogger } from '../log.ts'
import { webhookCertificates, type WebhookCertificates, type WebhookCertificatesOptions } from './certificates.ts'

const day = 24 * 3_600_000
const namespace = 'default'

let plane: ControlPlane
let client: Client
before(async () => {
  plane = await startControlPlane({ controllerManager: false })
  client = plane.client()
})
after(() => plane.stop())

const replica = (secretName: string, more: Partial<WebhookCertificatesOptions> = {}): WebhookCertificates =>
  webhookCertificates({ client, namespace, secretName, dnsNames: ['hooks.default.svc'], ...more })

const stored = async (name: string): Promise<Record<string, string>> =>
  (await client.of(Secret, namespace).get(name)).data!
const text = (base64: string | undefined): string => Buffer.from(base64 ?? '', 'base64').toString('utf8')

test('R0.31 the Secret is made with all four keys, and current is what it holds', async () => {
  const certificates = replica('made')
  assert.throws(() => certificates.current(), /await ensure\(\) first/)
  await certificates.ensure()
  const data = await stored('made')
  assert.deepEqual(Object.keys(data).toSorted(), ['ca.crt', 'ca.key', 'tls.crt', 'tls.key'])
  const { cert, key, caBundle } = certificates.current()
  assert.deepEqual([cert, key, caBundle], [text(data['tls.crt']), text(data['tls.key']), text(data['ca.crt'])])
  assert.ok(new X509Certificate(cert).verify(new X509Certificate(caBundle).publicKey))
})

test('R0.31 replicas that start at once end with the same certificate', async () => {
  const replicas = Array.from({ length: 5 }, () => replica('race'))
  await Promise.all(replicas.map((one) => one.ensure()))
  const [first, ...others] = replicas.map((one) => one.current())
  for (const other of others) assert.deepEqual(other, first)
  assert.equal(text((await stored('race'))['tls.crt']), first!.cert)
})

test('R0.31 replicas that renew at once end with the same certificate', async () => {
  const clock = manualClock(Date.now())
  const replicas = Array.from({ length: 5 }, () => replica('renewal', { clock, random: () => 0 }))
  await Promise.all(replicas.map((one) => one.ensure()))
  const before = replicas[0]!.current()
  clock.advance(61 * day)
  await Promise.all(replicas.map((one) => one.ensure()))
  const [first, ...others] = replicas.map((one) => one.current())
  assert.notEqual(first!.cert, before.cert)
  assert.equal(first!.caBundle, before.caBundle)
  for (const other of others) assert.deepEqual(other, first)
})

test('R0.31 a damaged Secret is repaired by whoever looks next, and other data in it is kept', async (t) => {
  const secrets = client.of(Secret, namespace)
  await replica('damaged').ensure()
  const good = await stored('damaged')
  const rubbish = Buffer.from('rubbish').toString('base64')
  for (const broken of Object.keys(good))
    await t.test(broken, async () => {
      await secrets.patch('damaged', { merge: { data: { [broken]: rubbish, note: rubbish } } })
      const lines: string[] = []
      const certificates = replica('damaged', { log: jsonLogger((line) => lines.push(line)) })
      await certificates.ensure()
      const data = await stored('damaged')
      assert.equal(data['note'], rubbish)
      assert.notEqual(data[broken], rubbish)
      const { cert, caBundle } = certificates.current()
      assert.ok(caBundle.split(/(?<=-----END CERTIFICATE-----\n)/).some((ca) => isIssuer(ca, cert)))
      assert.match(lines.join(), /renewed.*(Missing|NotTrusted)/)
      for (const name of ['ca.key', 'tls.key']) assert.ok(!lines.join().includes(text(data[name]).slice(30, 60)))
    })
})

const isIssuer = (ca: string, cert: string): boolean =>
  ca !== '' && new X509Certificate(cert).verify(new X509Certificate(ca).publicKey)

test('R0.31 a Secret that was deleted comes back with a new authority, and the certificate in use stays trusted', async () => {
  const certificates = replica('deleted')
  await certificates.ensure()
  const before = certificates.current()
  await client.of(Secret, namespace).delete('deleted')
  await certificates.ensure()
  const now = certificates.current()
  assert.equal(now.cert, before.cert)
  assert.ok(now.caBundle.endsWith(before.caBundle))
  assert.notEqual(now.caBundle, before.caBundle)
})

test('R0.31 a replica follows the rotation of another', async (t) => {
  const clock = manualClock(Date.now())
  const leader = replica('followed', { clock, random: () => 0 })
  const follower = replica('followed', { clock, random: () => 1, intervalMs: 1000 })
  const stop = new AbortController()
  await leader.ensure()
  const first = Promise.withResolvers<void>()
  const forget = follower.onChange(() => first.resolve())
  const running = follower.run(stop.signal)
  t.after(async () => {
    stop.abort()
    await running
  })
  await first.promise
  forget()
  assert.deepEqual(follower.current(), leader.current())

  const second = Promise.withResolvers<string>()
  follower.onChange(({ cert }) => second.resolve(cert))
  await eventually(() => clock.pending > 0) // it sleeps
  clock.advance(61 * day)
  await leader.ensure()
  await eventually(() => clock.pending > 0)
  clock.advance(1000)
  assert.equal(await second.promise, leader.current().cert)
})

test('R0.31 while nothing is due, nothing is written', async () => {
  const own = plane.client({ user: 'lanyard-testkit', groups: ['system:masters'], userAgent: 'steady-webhook' })
  const certificates = replica('steady', { client: own })
  let changes = 0
  certificates.onChange(() => changes++)
  await certificates.ensure()
  const since = new Date()
  for (let i = 0; i < 3; i++) await certificates.ensure()
  const requests = await plane.requestsBy('steady-webhook', { since })
  assert.equal(requests.writes, 0)
  assert.equal(changes, 1)
})

test('R0.31 a failure is logged and tried again: an API server that cannot be reached, a listener that throws', async () => {
  const clock = manualClock(Date.now())
  const lines: string[] = []
  const log = jsonLogger((line) => lines.push(line))
  const down = clientFor({ source: 'test', server: 'https://127.0.0.1:1', credentials: async () => ({}) })
  const stop = new AbortController()
  const running = replica('unreachable', { client: down, clock, log }).run(stop.signal)
  await eventually(() => lines.length === 1)
  await eventually(() => clock.pending > 0)
  clock.advance(5000)
  await eventually(() => lines.length === 2)
  stop.abort()
  await running
  assert.match(lines[0]!, /could not be kept up.*unreachable/)

  const certificates = replica('listened', { log })
  certificates.onChange(() => {
    throw new Error('a broken listener')
  })
  await certificates.ensure()
  assert.match(lines.at(-1)!, /a broken listener/)
})

test('R0.31 a namespace that does not exist is an error', async () => {
  await assert.rejects(replica('lost', { namespace: 'nowhere' }).ensure(), isNotFound)
})
