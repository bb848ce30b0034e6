import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kubeconfigText } from '../../../../kube/index.ts'
import { grpcAuthority } from '../../../../../testkit/grpc-authority.ts'
import { CertificateSigningRequest, type Api } from '../../../../kube/index.ts'
import { silentLogger, systemClock } from '../../../../runtime/index.ts'
import { grpcAgentDriver } from './index.ts'

const authority = grpcAuthority()
const { cert, key } = authority.client({ user: 'u' })
const base64 = (text: string): string => Buffer.from(text).toString('base64')
const source = 'secret ns/bootstrap-hub-kubeconfig'
const driver = grpcAgentDriver({ env: {} })
const good = { url: 'hub.example.com:8090', caData: base64(authority.ca), token: 't0ps3cret' }
const text = (config: object): string => JSON.stringify(config)
const hubOf = (config: object, more: Record<string, string> = {}) =>
  driver.hubOf({ 'config.yaml': text(config), ...more }, source)

test('R1.50 the configuration of an endpoint is read as the field writes it: data, files of the secret, token or certificate', async () => {
  const { server, ca } = await hubOf(good)
  assert.deepEqual([server, ca], ['https://hub.example.com:8090', authority.ca])
  const files = {
    url: good.url,
    caFile: '/spoke/bootstrap/ca.crt',
    clientCertFile: 'tls.crt',
    clientKeyFile: 'tls.key',
  }
  assert.equal((await hubOf(files, { 'ca.crt': authority.ca, 'tls.crt': cert, 'tls.key': key })).ca, authority.ca)
  const server2 = 'https://api.example.com:6443'
  const kubeconfig = await kubeconfigText({ cluster: 'hub', server: server2, ca: authority.ca, user: { token: 't' } })
  const both = await hubOf(good, { kubeconfig })
  assert.deepEqual([both.server, both.addOns?.server], ['https://hub.example.com:8090', server2])
})

test('R1.50 what is written beside a certificate leads back to the same endpoint', async () => {
  const hub = await hubOf(good)
  const beside = await driver.beside!(hub)
  const again = await driver.hubOf({ ...beside, 'tls.crt': cert, 'tls.key': key }, source)
  assert.deepEqual([again.server, again.ca], [hub.server, hub.ca])
})

test('R0.36 a configuration that cannot be used is named with its field and what to do, and never with what it holds', async () => {
  const bad: [object, RegExp][] = [
    [{ ...good, url: '' }, /config\.yaml of secret ns\/bootstrap-hub-kubeconfig: url is missing/],
    [{ ...good, url: 'http://x:1' }, /not https/],
    [{ ...good, url: 'a b' }, /url is no address/],
    [{ ...good, caData: '' }, /it has no CA/],
    [{ ...good, caData: base64('nothing') }, /caData is not the base64 of PEM/],
    [{ ...good, token: '' }, /it says no user/],
    [{ ...good, token: 7 }, /token is not text/],
    [{ ...good, clientCertData: base64(cert) }, /only one is there/],
    [{ ...good, token: '', tokenFile: '/etc/passwd' }, /the file "passwd", and the secret has no such key/],
  ]
  for (const [config, why] of bad)
    await assert.rejects(hubOf(config), (error: Error) => {
      assert.match(error.message, why)
      assert.ok(!error.message.includes(good.token))
      return true
    })
  await assert.rejects(driver.hubOf({}, source), /config\.yaml of secret .* it is missing/)
  await assert.rejects(driver.hubOf({ 'config.yaml': 'a: [t0ps3cret' }, source), /line 1/)
})

test('R1.50 the request of a cluster with the longest name there is begins with all of it, as the endpoint demands', async () => {
  const cluster = 'c'.repeat(63)
  const asked: string[] = []
  const made = new Error('that is all')
  const hub = {
    connection: { server: 'https://hub.example.com:8090', source },
    of: (kind: unknown) => ({
      list: async () => ({ metadata: {}, items: [] }),
      create: async ({ metadata }: CertificateSigningRequest) => {
        assert.equal(kind, CertificateSigningRequest)
        asked.push(metadata.name!)
        throw made
      },
    }),
  } as unknown as Api
  const context = {
    identity: { cluster, agent: 'a1' },
    hub,
    present: {},
    save: async () => {},
    report: () => {},
    clock: systemClock,
    random: Math.random,
    log: silentLogger,
    signal: new AbortController().signal,
  }
  const addOn = { addOn: 'it', user: 'u', groups: [], signerName: 'example.com/it' }
  for (const one of [driver, driver.forAddOn(addOn)]) await assert.rejects(one.obtain(context), made)
  assert.ok(asked[0]!.startsWith(`${cluster}-`), String(asked))
  assert.ok(asked[1]!.startsWith(`addon-${cluster}-`), String(asked))
})
