import assert from 'node:assert/strict'
import { mkdtemp, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { kubeconfigText, writeKubeconfig } from './kubeconfig-text.ts'
import type { KubeconfigIdentity } from './kubeconfig-text.ts'
import { parseKubeconfig } from './kubeconfig.ts'

const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: 'aws', args: ['eks', 'get-token'] }
const identities: [KubeconfigIdentity, unknown][] = [
  [{ token: 'abc' }, { token: 'abc' }],
  [{ tokenFile: 'token' }, { tokenFile: 'token' }],
  [
    { cert: 'C', key: 'K' },
    { 'client-certificate-data': 'Qw==', 'client-key-data': 'Sw==' },
  ],
  [
    { certFile: 'tls.crt', keyFile: 'tls.key' },
    { 'client-certificate': 'tls.crt', 'client-key': 'tls.key' },
  ],
  [{ exec }, { exec: { ...exec, interactiveMode: 'Never' } }],
]

test('R0.5 every kind of identity is written as it will be read', async () => {
  for (const [user, expected] of identities) {
    const text = await kubeconfigText({ cluster: 'hub', server: 'https://hub:6443', user })
    const read = await parseKubeconfig(text, { source: 's' })
    assert.deepEqual(read.users.get('hub')?.value, expected)
    assert.deepEqual(read.contexts.get(read.currentContext ?? '')?.value, { cluster: 'hub', user: 'hub' })
  }
})

test('R0.5 names, CA, namespace, proxy and TLS name are written where they belong', async () => {
  const text = await kubeconfigText({
    cluster: 'default-cluster',
    context: 'default-context',
    userName: 'default-auth',
    server: 'https://hub:6443',
    ca: 'PEM',
    tlsServerName: 'kubernetes',
    proxyUrl: 'http://proxy:3128',
    namespace: 'c1',
    user: { certFile: 'tls.crt', keyFile: 'tls.key' },
  })
  assert.equal(
    text,
    `apiVersion: v1
kind: Config
clusters:
  - name: default-cluster
    cluster:
      server: https://hub:6443
      certificate-authority-data: UEVN
      tls-server-name: kubernetes
      proxy-url: http://proxy:3128
users:
  - name: default-auth
    user:
      client-certificate: tls.crt
      client-key: tls.key
contexts:
  - name: default-context
    context:
      cluster: default-cluster
      user: default-auth
      namespace: c1
current-context: default-context
`,
  )
})

test('R0.5 a kubeconfig is replaced at once, and is for its owner only', async (t) => {
  const folder = await mkdtemp(path.join(tmpdir(), 'lanyard-write-'))
  t.after(() => rm(folder, { recursive: true }))
  const file = path.join(folder, 'config')
  await writeFile(file, 'old', { mode: 0o644 })

  await writeKubeconfig(file, 'new')

  assert.equal(await readFile(file, 'utf8'), 'new')
  assert.equal((await stat(file)).mode & 0o777, 0o600)
  await assert.rejects(writeKubeconfig(path.join(folder, 'none', 'config'), 'x'), { code: 'ENOENT' })
  assert.deepEqual(await readdir(folder), ['config'])
})
