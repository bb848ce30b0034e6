import assert from 'node:assert/strict'
import { test } from 'node:test'
import { KubeconfigError, kubeconfigText, type Credential, type Connection } from '../../kube/index.ts'
import { createAuthority, issue } from '../../runtime/pki/index.ts'
import { csrAgentDriver } from './csr/index.ts'
import { parseDriverName } from './index.ts'
import { asHolder, hubFromKubeconfig } from './kubeconfig-hub.ts'

const now = new Date()
const authority = createAuthority({ commonName: 'ca', validForMs: 3_600_000, now })
const text = (
  server = 'https://hub.example:6443',
  user: Parameters<typeof kubeconfigText>[0]['user'] = { token: 'abcdef' },
) => kubeconfigText({ cluster: 'my-hub', context: 'ctx', userName: 'me', server, ca: authority.cert, user })
const source = 'secret agent/bootstrap-hub-kubeconfig'
const hubOf = async (kubeconfig: string) => hubFromKubeconfig({ kubeconfig }, source)

test('a bootstrap kubeconfig says where the hub is, and how it calls it', async () => {
  assert.deepEqual(await hubOf(await text()), {
    source,
    server: 'https://hub.example:6443',
    ca: authority.cert,
    tlsServerName: undefined,
    proxyUrl: undefined,
    clusterEntry: 'my-hub',
  })
})

test('the address is known though the bootstrap certificate has expired', async () => {
  const from = { notBefore: new Date(0), notAfter: new Date(1000) }
  const { cert, key } = issue(authority, { commonName: 'boot', usages: ['client'], ...from })
  assert.equal((await hubOf(await text('https://hub.example', { cert, key }))).server, 'https://hub.example')
})

test('what is wrong with a bootstrap secret is said with its name and what to do', async () => {
  const good = await text()
  const cases: [kubeconfig: string | undefined, says: RegExp][] = [
    [undefined, /it has no key "kubeconfig", only other/],
    [' ', /it has no key "kubeconfig"/],
    ['{{', /not one YAML document/],
    ['hello', /bootstrap-hub-kubeconfig/],
    [good.replace(/server: .*/, 'server: ""'), /server is missing/],
    [good.replace(/server: .*/, 'server: "::"'), /not a URL/],
    [good.replace(/server: .*/, 'server: http://hub.example'), /not https/],
    [good.replace('current-context: ctx', 'current-context: other'), /there is no context "other"/],
    [good.replace('current-context: ctx', ''), /no current-context/],
    [good.replace(/certificate-authority-data: .*/, 'insecure-skip-tls-verify: true'), /anybody could pose as the hub/],
    [good.replace(/certificate-authority-data: .*/, 'certificate-authority: /etc/ca'), /names a file/],
    [good.replace(/certificate-authority-data: .*/, 'certificate-authority-data: "***"'), /not base64/],
  ]
  for (const [kubeconfig, says] of cases) {
    const secret: Record<string, string> = kubeconfig === undefined ? { other: 'x' } : { kubeconfig }
    await assert.rejects(hubFromKubeconfig(secret, source), (error) => {
      assert.ok(error instanceof KubeconfigError, String(error))
      assert.match(error.message, says)
      assert.match(error.message, /secret agent\/bootstrap-hub-kubeconfig/)
      assert.doesNotMatch(error.message, /abcdef/)
      return true
    })
  }
})

test('the bootstrap user is the one of the kubeconfig', async () => {
  const api = await csrAgentDriver().asBootstrap(
    { kubeconfig: await text() },
    source,
    {},
    { cluster: 'c1', agent: 'a1' },
  )
  const { token, ca } = await (api.connection as Connection).credentials()
  assert.deepEqual([token, ca], ['abcdef', authority.cert])
})

test('the credential is the same object while the secret is unchanged, and a new one as soon as it changes', async () => {
  let secret: Omit<Credential, 'ca'> = { cert: 'a', key: 'b' }
  const api = asHolder(() => secret, await hubOf(await text()), {})
  const { credentials } = api.connection as Connection
  const first = await credentials()
  assert.deepEqual([first.cert, first.key, first.ca], ['a', 'b', authority.cert])
  secret = { ...secret }
  assert.equal(await credentials(), first)
  secret = { cert: 'c', key: 'd' }
  const second = await credentials()
  assert.notEqual(second, first)
  assert.equal(second.cert, 'c')
})

test('R1.3 drivers are known by the names that people type, and others are refused with the list', () => {
  const known = ['csr', 'awsirsa', 'grpc'] as const
  assert.equal(parseDriverName('csr'), 'csr')
  assert.equal(parseDriverName('aws-irsa', known), 'awsirsa')
  assert.equal(parseDriverName('awsirsa', known), 'awsirsa')
  for (const wrong of ['', 'CSR', 'irsa', 'toString', '__proto__'])
    assert.throws(() => parseDriverName(wrong, known), /is no registration driver; use one of: csr, aws-irsa, grpc/)
})
