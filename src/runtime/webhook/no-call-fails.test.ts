import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { eventually, manualClock, startControlPlane, type ControlPlane } from '../../../testkit/index.ts'
import { ConfigMap, isForbidden, type Client } from '../../kube/index.ts'
import {
  caBundlePublisher,
  validating,
  ValidatingWebhookConfiguration,
  webhookCertificates,
  webhookServer,
  type Serving,
  type Webhook,
} from './index.ts'

const hour = 3_600_000
const day = 24 * hour
const limit = { timeout: 120_000 }

// The API server keeps 25 idle connections to a server: of so many calls at once, 15 need a new one, with its handshake.
const atOnce = 40

/** Admits nobody until all of a burst are here. */
const turnstile = () => {
  let waiting: (() => void)[] = []
  return async (): Promise<undefined> => {
    const { promise, resolve } = Promise.withResolvers<void>()
    waiting.push(resolve)
    if (waiting.length === atOnce) {
      for (const admit of waiting) admit()
      waiting = []
    }
    await promise
  }
}

const routes = {
  '/admit': validating(turnstile()),
  '/refuse': validating(() => ({ reason: 'Forbidden', message: 'the marker has arrived' })),
}

const webhook = (port: number, path: string, label: string): Webhook => ({
  name: `${label}.webhook.test`,
  clientConfig: { url: `https://127.0.0.1:${port}${path}` },
  rules: [{ operations: ['CREATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'] }],
  objectSelector: { matchLabels: { [label]: 'yes' } },
  admissionReviewVersions: ['v1'],
  sideEffects: 'None',
})

const configMap = (name: string, label: string): ConfigMap => ({
  metadata: { name, namespace: 'default', labels: { [label]: 'yes' } },
})

/** Resolves when the API server has seen every configuration that was written before: it sees them in their order. */
const seenByServer = async (client: Client, port: number, serial: number, caBundle: string): Promise<void> => {
  const label = `refused-${serial}`
  const marker = webhook(port, '/refuse', label)
  marker.clientConfig.caBundle = Buffer.from(caBundle).toString('base64')
  await client.of(ValidatingWebhookConfiguration).create({ metadata: { name: label }, webhooks: [marker] })
  const probe = configMap(label, label)
  await eventually(() => assert.rejects(client.of(ConfigMap).create(probe, { dryRun: true }), isForbidden))
}

/** Writes that the webhook must admit, in bursts, until told to stop. */
const steadyCalls = (clients: Client[]) => {
  const failures: unknown[] = []
  const waiting: (() => void)[] = []
  const stopped = new AbortController()
  const burst = Array.from({ length: atOnce }, (_, index) => configMap(`call-${index}`, 'call'))
  const loop = async (): Promise<void> => {
    while (!stopped.signal.aborted) {
      const done = waiting.splice(0)
      const results = await Promise.allSettled(
        burst.map((one, index) => clients[index % clients.length]!.of(ConfigMap).create(one, { dryRun: true })),
      )
      for (const result of results) if (result.status === 'rejected') failures.push(result.reason)
      for (const resolve of done) resolve()
    }
  }
  const running = loop()
  return {
    failures,
    /** Resolves after a burst that began after this call. */
    another: () => new Promise<void>((resolve) => waiting.push(resolve)),
    stop: async () => {
      stopped.abort()
      await running
    },
  }
}

const setUp = async (t: TestContext) => {
  const plane: ControlPlane = await startControlPlane({ controllerManager: false })
  const client = plane.client()
  const callers = [plane.client(), plane.client()] // a client keeps to 32 connections
  // The certificates are made in the past, so that they are due now and those that follow are valid for the API server.
  const clock = manualClock(Date.now() - 70 * day)
  const publisher = caBundlePublisher({ client, validating: { names: ['calls'] } })
  let published = Promise.resolve()
  const certificates = webhookCertificates({
    client,
    namespace: 'default',
    secretName: 'webhook',
    dnsNames: [],
    ipAddresses: ['127.0.0.1'],
    clock,
    random: () => 0,
    caValidityMs: 100 * day,
    publish: async (caBundle) => {
      await published
      await publisher(caBundle)
    },
  })
  await certificates.ensure()
  const server = webhookServer({ host: '127.0.0.1', port: 0, certificate: certificates.current, routes })
  certificates.onChange(server.reload)
  await server.start()
  const stop = new AbortController()
  await client.of(ValidatingWebhookConfiguration).create({
    metadata: { name: 'calls' },
    webhooks: [webhook(server.port, '/admit', 'call')],
  })
  const running = certificates.run(stop.signal)
  t.after(async () => {
    stop.abort()
    await running
    await server.stop()
    await plane.stop()
  })
  /** Keeps bundles from being published; the answer lets them. */
  const hold = (): (() => void) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    published = promise
    return resolve
  }
  return { client, callers, clock, certificates, server, hold }
}

const count = (bundle: string): number => bundle.match(/BEGIN CERTIFICATE/g)?.length ?? 0

test('R0.31 authority and certificate change amid a stream of writes, and no write fails', limit, async (t) => {
  const { client, callers, clock, certificates, server, hold } = await setUp(t)
  let serial = 0
  const settled = async (): Promise<void> => {
    await eventually(() => clock.pending > 0) // it has published, and sleeps
    await seenByServer(client, server.port, ++serial, certificates.current().caBundle)
  }
  await settled()
  const calls = steadyCalls(callers)
  t.after(calls.stop)
  await calls.another()

  /** What changes when time passes: calls are made before the API server knows of it, and after. */
  const after = async (ms: number): Promise<Serving> => {
    const { promise: changed, resolve } = Promise.withResolvers<Serving>()
    const forget = certificates.onChange(resolve)
    const release = hold()
    clock.advance(ms)
    const current = await changed
    forget()
    await calls.another()
    release()
    await settled()
    await calls.another()
    return current
  }

  const old = certificates.current()
  const trusted = await after(70 * day - 2 * hour)
  const used = await after(hour)
  const alone = await after(hour)
  await calls.stop()

  assert.deepEqual(calls.failures, [])
  assert.deepEqual([trusted.cert === old.cert, count(trusted.caBundle)], [true, 2])
  assert.deepEqual([used.cert === old.cert, used.caBundle === trusted.caBundle], [false, true])
  assert.deepEqual([alone.cert === used.cert, count(alone.caBundle)], [true, 1])
  assert.ok(!alone.caBundle.includes(old.caBundle))
})
