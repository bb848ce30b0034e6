import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { promisify } from 'node:util'
import * as fc from 'fast-check'
import { controlPlaneBinary } from '../../testkit/paths.ts'
import { createAuthority, issue } from '../runtime/pki/index.ts'
import { connectionFrom } from './connection-from.ts'
import type { ExecConfig, KubeconfigDocument } from './kubeconfig-schema.ts'
import { kubeconfigText } from './kubeconfig-text.ts'
import { loadKubeconfig, parseKubeconfig } from './kubeconfig.ts'
import type { Entry, Kubeconfig } from './kubeconfig.ts'

// The same files, read by kubectl and by us, must give the same.

const run = promisify(execFile)

const folderFor = async (t: TestContext): Promise<string> => {
  const folder = await mkdtemp(path.join(tmpdir(), 'lanyard-kubectl-'))
  t.after(() => rm(folder, { recursive: true }))
  return folder
}

const kubectlView = async (folder: string, files: string[], ...flags: string[]): Promise<KubeconfigDocument> => {
  const env = { HOME: folder, KUBECONFIG: files.join(path.delimiter) }
  const { stdout } = await run(controlPlaneBinary('kubectl'), ['config', 'view', '--raw', '-o', 'json', ...flags], {
    env,
  })
  return JSON.parse(stdout) as KubeconfigDocument
}

/** Our merged kubeconfig in the form that kubectl prints: sorted by name, with the defaults it fills in. */
const asKubectlPrints = (kubeconfig: Kubeconfig): unknown => {
  const sorted = <T>(key: string, entries: ReadonlyMap<string, Entry<T>>, print: (value: T) => unknown): unknown =>
    entries.size === 0
      ? null
      : [...entries]
          .sort(([a], [b]) => (Buffer.from(a).compare(Buffer.from(b)) < 0 ? -1 : 1))
          .map(([name, { value }]) => ({ name, [key]: print(value) }))
  const exec = (value: ExecConfig): unknown => ({
    args: null,
    env: null,
    provideClusterInfo: false,
    interactiveMode: 'IfAvailable',
    ...value,
  })
  return {
    clusters: sorted('cluster', kubeconfig.clusters, (value) => ({ server: '', ...value })),
    users: sorted('user', kubeconfig.users, (value) => (value.exec ? { ...value, exec: exec(value.exec) } : value)),
    contexts: sorted('context', kubeconfig.contexts, (value) => ({ cluster: '', user: '', ...value })),
    'current-context': kubeconfig.currentContext ?? '',
  }
}

const name = fc.constantFrom('a', 'b', 'c', 'arn:aws:eks:eu-west-1:1:cluster/x', 'ü')
const word = fc.constantFrom('x', 'yes', '0123', 'null', '~', 'a: b', '- c', "it's", 'ü', '#d', '*e', '2001-01-01')
const some = (fields: Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<Record<string, unknown>> =>
  fc.record(fields, { requiredKeys: [] })
const truth = fc.constant(true)
const entries = <T>(key: string, value: fc.Arbitrary<T>): fc.Arbitrary<Record<string, unknown>[] | null> =>
  fc.option(fc.uniqueArray(fc.record({ name, [key]: value }), { selector: (entry) => entry.name }))
const document = some({
  apiVersion: fc.constant('v1'),
  kind: fc.constant('Config'),
  'current-context': fc.constantFrom('', 'a', 'b', 'none'),
  clusters: entries(
    'cluster',
    some({
      server: fc.constantFrom('https://a', 'https://b:6443/prefix', 'c:1'),
      'tls-server-name': word,
      'insecure-skip-tls-verify': truth,
      'certificate-authority': fc.constantFrom('ca.crt', '../ca.crt', '/etc/ca.crt'),
      'certificate-authority-data': fc.constant('aGVsbG8='),
      'proxy-url': fc.constantFrom('http://p', 'socks5://p:1080'),
      'disable-compression': truth,
      unknown: word,
    }),
  ),
  users: entries(
    'user',
    some({
      'client-certificate': word,
      'client-certificate-data': fc.constant('aGVsbG8='),
      'client-key': word,
      token: word,
      tokenFile: word,
      as: word,
      'as-uid': word,
      'as-groups': fc.array(word, { minLength: 1, maxLength: 2 }),
      'as-user-extra': fc.dictionary(fc.constantFrom('k', 'example.com/scopes'), fc.array(word, { minLength: 1 }), {
        minKeys: 1,
      }),
      username: word,
      password: word,
      exec: fc.record(
        {
          apiVersion: fc.constant('client.authentication.k8s.io/v1beta1'),
          command: fc.constantFrom('aws', './plug-in'),
          args: fc.array(word, { minLength: 1 }),
          env: fc.array(fc.record({ name: fc.constantFrom('A', 'B'), value: word }), { minLength: 1 }),
          installHint: word,
          provideClusterInfo: truth,
          interactiveMode: fc.constantFrom('Never', 'IfAvailable', 'Always'),
        },
        { requiredKeys: ['apiVersion', 'command'] },
      ),
    }),
  ),
  contexts: entries('context', some({ cluster: name, user: name, namespace: fc.constantFrom('n1', 'n2') })),
})

test('R0.5 lists of conflicting kubeconfigs merge to what kubectl makes of them', async (t) => {
  const folder = await folderFor(t)
  const { stringify } = await import('yaml')
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(document, fc.boolean()), { minLength: 1, maxLength: 4 }), async (documents) => {
      const files = documents.map((_, index) => path.join(folder, `${index}`))
      for (const [index, [content, json]] of documents.entries()) {
        const text = json ? JSON.stringify(content) : stringify(content, { compat: 'yaml-1.1' })
        await writeFile(files[index] ?? '', text)
      }
      const list = [path.join(folder, 'missing'), ...files, files[0] ?? '']

      const { clusters, users, contexts, 'current-context': current } = await kubectlView(folder, list)
      const ours = await loadKubeconfig({ env: { KUBECONFIG: list.join(path.delimiter) } })

      assert.deepEqual(asKubectlPrints(ours), { clusters, users, contexts, 'current-context': current })
    }),
    { numRuns: 40 },
  )
})

const day = 86_400_000
const authority = createAuthority({ commonName: 'ca', validForMs: day, now: new Date() })
const leaf = issue(authority, {
  commonName: 'someone',
  usages: ['client'],
  notBefore: new Date(),
  notAfter: new Date(Date.now() + day),
})

test('R0.5 paths relative to their own file lead to the contents that kubectl flattens to', async (t) => {
  const folder = await folderFor(t)
  await mkdir(path.join(folder, 'one', 'pki'), { recursive: true })
  await mkdir(path.join(folder, 'two'))
  await writeFile(path.join(folder, 'one', 'pki', 'ca.crt'), authority.cert)
  await writeFile(path.join(folder, 'two', 'tls.crt'), leaf.cert)
  await writeFile(path.join(folder, 'tls.key'), leaf.key)
  const one = path.join(folder, 'one', 'config')
  const two = path.join(folder, 'two', 'config')
  await writeFile(
    one,
    'clusters: [{name: c, cluster: {server: https://h, certificate-authority: pki/ca.crt}}]\ncurrent-context: x',
  )
  await writeFile(
    two,
    `users: [{name: u, user: {client-certificate: ./tls.crt, client-key: ../tls.key}}]
contexts: [{name: x, context: {cluster: c, user: u, namespace: ns}}, {name: z, context: {cluster: c}}]`,
  )

  const { clusters, users, contexts } = await kubectlView(folder, [one, two], '--flatten', '--minify')
  const ours = connectionFrom(await loadKubeconfig({ env: { KUBECONFIG: [one, two].join(path.delimiter) } }))

  const text = (data: string | undefined): string => Buffer.from(data ?? '', 'base64').toString()
  const user = users?.[0]?.user
  assert.deepEqual(await ours.credentials(), {
    ca: text(clusters?.[0]?.cluster?.['certificate-authority-data']),
    cert: text(user?.['client-certificate-data']),
    key: text(user?.['client-key-data']),
  })
  assert.equal(ours.namespace, contexts?.[0]?.context?.namespace)
  assert.equal(ours.source, `context "x" of ${two}`)
})

test('R0.5 a kubeconfig that we write is read by kubectl and by us as it was meant', async (t) => {
  const folder = await folderFor(t)
  const file = path.join(folder, 'config')
  await fc.assert(
    fc.asyncProperty(word, word, fc.stringMatching(/^[!-~]{1,20}$/), async (cluster, context, token) => {
      const parts = { cluster, context, server: 'https://h:6443', ca: authority.cert, namespace: 'ns', user: { token } }
      await writeFile(file, await kubeconfigText(parts))

      const { clusters, users, 'current-context': current } = await kubectlView(folder, [file], '--minify')
      assert.deepEqual([clusters?.[0]?.name, current, users?.[0]?.user], [cluster, context, { token }])

      const ours = connectionFrom(await parseKubeconfig(await readFile(file, 'utf8'), { source: 's' }))
      assert.deepEqual(await ours.credentials(), { ca: authority.cert, token })
    }),
    { numRuns: 15 },
  )
})

test('R0.6 an exec plug-in is told by us what kubectl tells it', async (t) => {
  const folder = await folderFor(t)
  await writeFile(path.join(folder, 'ca.crt'), authority.cert)
  const answer = JSON.stringify({
    kind: 'ExecCredential',
    apiVersion: 'client.authentication.k8s.io/v1',
    status: { token: 't' },
  })
  await writeFile(
    path.join(folder, 'plug-in'),
    `#!/bin/sh\nprintf '%s' "$KUBERNETES_EXEC_INFO" > "$TOLD"\necho '${answer}'\n`,
    { mode: 0o755 },
  )
  const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: './plug-in', interactiveMode: 'IfAvailable' }
  const cluster = {
    server: 'https://127.0.0.1:1/prefix', // nothing listens there; the plug-in is asked first
    'certificate-authority': 'ca.crt',
    'tls-server-name': 'kubernetes',
    'proxy-url': 'http://127.0.0.1:1',
    'disable-compression': true,
    extensions: [{ name: 'client.authentication.k8s.io/exec', extension: { audience: 'a', list: [1, { b: true }] } }],
  }
  const config = path.join(folder, 'config')
  for (const provideClusterInfo of [true, false]) {
    const user = { exec: { ...exec, provideClusterInfo } }
    const kubeconfig = {
      'current-context': 'x',
      clusters: [{ name: 'c', cluster }],
      users: [{ name: 'u', user }],
      contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    }
    await writeFile(config, JSON.stringify(kubeconfig))
    const told = async (by: string): Promise<unknown> =>
      JSON.parse(await readFile(path.join(folder, by), 'utf8')) as unknown

    const env = { HOME: folder, KUBECONFIG: config, PATH: '/usr/bin:/bin' }
    const kubectl = run(controlPlaneBinary('kubectl'), ['get', '--raw', '/version'], {
      env: { ...env, TOLD: path.join(folder, 'kubectl') },
    })
    await assert.rejects(kubectl, /refused/)
    const ours = connectionFrom(await loadKubeconfig({ env }), { env: { ...env, TOLD: path.join(folder, 'ours') } })
    assert.equal((await ours.credentials()).token, 't')

    assert.deepEqual(await told('ours'), await told('kubectl'))
  }
})
