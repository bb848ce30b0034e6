import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { createAuthority } from '../runtime/pki/index.ts'
import { inCluster } from './in-cluster.ts'
import { KubeconfigError } from './kubeconfig-error.ts'

const authority = createAuthority({ commonName: 'ca', validForMs: 86_400_000, now: new Date() })
const env = { KUBERNETES_SERVICE_HOST: '10.96.0.1', KUBERNETES_SERVICE_PORT: '443' }

const mounted = async (t: TestContext, files: Record<string, string>): Promise<string> => {
  const folder = await mkdtemp(path.join(tmpdir(), 'lanyard-pod-'))
  t.after(() => rm(folder, { recursive: true }))
  await Promise.all(Object.entries(files).map(([name, text]) => writeFile(path.join(folder, name), text)))
  return folder
}

test('R0.5 a pod finds server, CA, token and namespace where the kubelet put them', async (t) => {
  const folder = await mounted(t, { token: 'abc\n', 'ca.crt': authority.cert, namespace: 'ns\n' })

  const { credentials, ...found } = await inCluster({ env, folder })

  assert.deepEqual(found, {
    source: 'in-cluster',
    server: 'https://10.96.0.1:443',
    namespace: 'ns',
    proxyUrl: undefined,
  })
  assert.deepEqual(await credentials(), { ca: authority.cert, token: 'abc' })
})

test('R0.5 a process that shares its file system with other pods is told where its files are', async (t) => {
  const folder = await mounted(t, { token: 'own', namespace: 'ns' })
  const found = await inCluster({ env: { ...env, KUBERNETES_SERVICE_ACCOUNT_FOLDER: folder } })
  assert.equal(found.namespace, 'ns')
  assert.deepEqual(await found.credentials(), { token: 'own' })
})

test('R0.7 a pod uses its next token', async (t) => {
  const folder = await mounted(t, { token: 'one', 'ca.crt': authority.cert })
  const { credentials } = await inCluster({ env, folder })
  const first = await credentials()

  await writeFile(path.join(folder, 'token'), 'two')

  assert.equal((await credentials({ rejected: first })).token, 'two')
})

test('R0.5 an IPv6 service address is put in brackets, and a missing CA means the roots of the system', async (t) => {
  const folder = await mounted(t, { token: 'abc' })
  const found = await inCluster({
    env: { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '6443' },
    folder,
  })
  assert.equal(found.server, 'https://[fd00::1]:6443')
  assert.deepEqual(await found.credentials(), { token: 'abc' })
})

test('R0.5 outside a pod, or in one without a token, the error says what to do', async (t) => {
  const folder = await mounted(t, {})
  const cases: [Parameters<typeof inCluster>[0], RegExp][] = [
    [
      { env: {}, folder },
      /KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set.*; give a kubeconfig, or run in a pod/,
    ],
    [{ env: { ...env, KUBERNETES_SERVICE_PORT: 'tcp://x' }, folder }, /do not make an address/],
    [{ env, folder }, /token .*cannot be read; let the pod mount its token/],
  ]
  for (const [options, says] of cases) {
    await assert.rejects(
      inCluster(options),
      (error: Error) => error instanceof KubeconfigError && says.test(error.message),
    )
  }
})
