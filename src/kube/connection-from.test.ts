import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { createAuthority, issue } from '../runtime/pki/index.ts'
import { connectionFrom } from './connection-from.ts'
import type { ConnectionOptions } from './connection-from.ts'
import type { Connection } from './connection.ts'
import { KubeconfigError } from './kubeconfig-error.ts'
import type { KubeconfigCluster, KubeconfigUser } from './kubeconfig-schema.ts'
import { parseKubeconfig } from './kubeconfig.ts'

const day = 86_400_000
const base64 = (text: string): string => Buffer.from(text).toString('base64')
const authority = createAuthority({ commonName: 'ca', validForMs: day, now: new Date() })
const leafOf = (commonName: string) =>
  issue(authority, { commonName, usages: ['client'], notBefore: new Date(), notAfter: new Date(Date.now() + day) })
const leaf = leafOf('someone')
const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: 'false', interactiveMode: 'Never' }

/** The connection to one cluster as one user. `folder: undefined` is a document held in a Secret. */
const connection = async (
  given: { cluster?: KubeconfigCluster; user?: KubeconfigUser; namespace?: string; folder?: string | undefined },
  options: ConnectionOptions = {},
): Promise<Connection> => {
  const document = {
    'current-context': 'dev',
    clusters: [{ name: 'c', cluster: { server: 'https://h:6443', ...given.cluster } }],
    users: [{ name: 'u', user: given.user }],
    contexts: [{ name: 'dev', context: { cluster: 'c', user: 'u', namespace: given.namespace } }],
  }
  const folder = 'folder' in given ? given.folder : '/folder'
  return connectionFrom(await parseKubeconfig(JSON.stringify(document), { source: 'file', folder }), options)
}
const refusal =
  (...says: RegExp[]) =>
  (error: Error): boolean => {
    assert.ok(error instanceof KubeconfigError, `${error.stack}`)
    for (const one of says) assert.match(error.message, one)
    assert.doesNotMatch(error.message, /SECRET/)
    return true
  }

const two = parseKubeconfig(
  `current-context: dev
clusters: [{name: c, cluster: {server: https://c}}, {name: d, cluster: {server: https://d, disable-compression: true}}]
users: [{name: u, user: {token: tu}}, {name: v, user: {token: tv}}]
contexts:
- {name: dev, context: {cluster: c, user: u, namespace: one}}
- {name: Production, context: {cluster: d, user: v}}
- {name: lost-cluster, context: {cluster: none, user: u}}
- {name: lost-user, context: {cluster: c, user: none}}
- {name: no-cluster, context: {user: u}}
- {name: anonymous, context: {cluster: c}}`,
  { source: 'file' },
)

test('R0.5 the current context is used, or the one that is chosen, each part of it replaceable', async () => {
  const kubeconfig = await two
  const { credentials, ...current } = connectionFrom(kubeconfig)
  assert.deepEqual(
    { ...current, ...(await credentials()) },
    {
      source: 'context "dev" of file',
      server: 'https://c',
      namespace: 'one',
      token: 'tu',
      tlsServerName: undefined,
      insecureSkipTlsVerify: undefined,
      proxyUrl: undefined,
      disableCompression: undefined,
      impersonate: undefined,
    },
  )
  const chosen = connectionFrom(kubeconfig, { context: 'Production', user: 'u', namespace: 'two' })
  assert.deepEqual([chosen.server, chosen.namespace, chosen.disableCompression], ['https://d', 'two', true])
  assert.equal((await chosen.credentials()).token, 'tu')
  assert.equal(connectionFrom(kubeconfig, { cluster: 'd' }).server, 'https://d')
  assert.deepEqual(await connectionFrom(kubeconfig, { context: 'anonymous' }).credentials(), {})
})

test('R0.36 an unknown context is answered with the known ones and the one that was probably meant', async () => {
  const kubeconfig = await two
  const context = (name: string) => () => connectionFrom(kubeconfig, { context: name })
  assert.throws(
    context('prod'),
    refusal(/^file: there is no context "prod"; did you mean "Production"\? known: "dev", /),
  )
  assert.throws(context('dve'), refusal(/there is no context "dve"; did you mean "dev"\? known: /))
  assert.throws(context('staging'), refusal(/there is no context "staging"; known: /))
  assert.throws(context('lost-clustre'), refusal(/did you mean "lost-cluster"\?/))
  assert.throws(context('x\u001b[31m'), refusal(/no context "x\\u001b\[31m"; known/))
  assert.throws(
    context('lost-cluster'),
    refusal(/^context "lost-cluster" of file: there is no cluster "none"; known: "c", "d"$/),
  )
  assert.throws(
    context('lost-user'),
    refusal(/^context "lost-user" of file: there is no user "none"; known: "u", "v"$/),
  )
  assert.throws(context('no-cluster'), refusal(/it names no cluster; set its field "cluster"/))
  assert.throws(() => connectionFrom(kubeconfig, { user: 'w' }), refusal(/there is no user "w"/))
})

test('R0.36 without a kubeconfig, a current context or any context the error says which and what to do', async () => {
  const of = async (text: string) => connectionFrom(await parseKubeconfig(text, { source: 'file' }))
  const none = { sources: [], missing: ['~/.kube/config'], currentContext: undefined }
  const empty = { clusters: new Map(), users: new Map(), contexts: new Map() }
  assert.throws(
    () => connectionFrom({ ...none, ...empty }),
    refusal(/no kubeconfig was found \(looked for "~\/.kube\/config"\); name one/),
  )
  await assert.rejects(of(''), refusal(/^file: it has no current-context; add a context to it/))
  await assert.rejects(of('contexts: [{name: a}]'), refusal(/no current-context; choose a context: "a"/))
  await assert.rejects(of('current-context: a'), refusal(/no context "a"; it has no contexts at all/))
  const many = Array.from({ length: 15 }, (_, index) => ({ name: `context-${index}` }))
  await assert.rejects(of(JSON.stringify({ contexts: many })), refusal(/"context-9" and 5 more$/))
})

test('R0.5 server addresses are brought into one form', async () => {
  const forms = {
    'https://h': 'https://h',
    'https://h:443/': 'https://h',
    'https://h:6443/k8s/clusters/c-1/': 'https://h:6443/k8s/clusters/c-1',
    'https://h/prefix?a=b#c': 'https://h/prefix',
    'h:6443': 'https://h:6443',
    'https://[fd00::1]:6443': 'https://[fd00::1]:6443',
    'http://localhost:8001': 'http://localhost:8001',
  }
  for (const [server, expected] of Object.entries(forms)) {
    assert.equal((await connection({ cluster: { server } })).server, expected)
  }
})

const badClusters: [KubeconfigCluster, RegExp][] = [
  [{ server: '' }, /^cluster "c" of file \(context "dev"\): server is missing; write it as https:\/\/host:port/],
  [{ server: 'https://' }, /server "https:\/\/" is not a URL/],
  [{ server: 'ftp://h' }, /is not a URL/],
  [{ server: 'https://h:99999' }, /is not a URL/],
  [{ server: 'https://admin:SECRET@h' }, /server holds a user name or password/],
  [{ 'proxy-url': 'ftp://SECRET@p' }, /^proxy-url of cluster "c" of file \(context "dev"\): .*write it as http:/],
  [{ 'proxy-url': 'proxy:3128' }, /write it as http:/],
  [
    { 'certificate-authority-data': '%SECRET' },
    /certificate-authority-data is not base64; write it again, or name a file/,
  ],
  [{ 'certificate-authority-data': authority.cert }, /not base64; encode the PEM text with base64/],
  [
    { 'insecure-skip-tls-verify': true, 'certificate-authority': 'ca' },
    /insecure-skip-tls-verify is true although a certificate-authority is given; remove one/,
  ],
]
for (const [cluster, says] of badClusters) {
  test(`R0.36 a cluster is refused that says ${JSON.stringify(cluster).slice(0, 60)}`, async () => {
    await assert.rejects(connection({ cluster }), refusal(says))
  })
}

const badUsers: [KubeconfigUser, RegExp][] = [
  [
    { 'client-certificate': 'a' },
    /^user "u" of file \(context "dev"\): it has a client-certificate but no client-key; give both/,
  ],
  [{ 'client-key': 'a' }, /a client-key but no client-certificate/],
  [{ token: 'SECRET', username: 'a' }, /it has both a token and a password/],
  [{ tokenFile: 'a', password: 'SECRET' }, /it has both a token and a password/],
  [{ 'auth-provider': { name: 'oidc' } }, /its auth-provider "oidc" .* removed; use the provider's exec plug-in/],
  [{ 'as-groups': ['a'] }, /without a user; set "as" too/],
  [{ 'as-user-extra': { a: ['b'] } }, /without a user/],
  [{ exec: {} }, /exec\.command is missing; correct the exec section/],
  [{ exec: { command: 'a' } }, /exec\.apiVersion is missing/],
  [
    { exec: { ...exec, apiVersion: 'client.authentication.k8s.io/v1alpha1' } },
    /v1alpha1" is not one of "client\.auth.*v1", .*v1beta1"/,
  ],
  [{ exec: { apiVersion: exec.apiVersion, command: 'a' } }, /interactiveMode is missing, which v1 asks for/],
  [
    { exec: { ...exec, interactiveMode: 'Sometimes' } },
    /interactiveMode is not one of "Never", "IfAvailable", "Always"/,
  ],
  [{ exec: { ...exec, env: [{ value: 'SECRET' }] } }, /an entry of exec\.env has no name/],
]
for (const [user, says] of badUsers) {
  test(`R0.36 a user is refused that says ${JSON.stringify(user).slice(0, 60)}`, async () => {
    await assert.rejects(connection({ user }), refusal(says))
  })
}

test('R0.36 a namespace that cannot be one is refused', async () => {
  await assert.rejects(
    connection({ namespace: 'a/../b' }),
    refusal(/^context "dev" of file: "a\/\.\.\/b" cannot be the name/),
  )
  await assert.rejects(connection({}, { namespace: 'UPPER' }), refusal(/^namespace: "UPPER"/))
})

test('R0.5 inline data wins over files, and a plug-in is not run beside another credential', async () => {
  const inline = await connection({
    cluster: { 'certificate-authority-data': base64(authority.cert), 'certificate-authority': '/none' },
    user: {
      'client-certificate-data': base64(leaf.cert),
      'client-certificate': '/none',
      'client-key-data': base64(leaf.key),
      'client-key': '/none',
      exec,
    },
  })
  assert.deepEqual(await inline.credentials(), { ca: authority.cert, cert: leaf.cert, key: leaf.key })
  assert.deepEqual(await (await connection({ user: { token: 't', exec } })).credentials(), { token: 't' })
  const basic = { username: 'a', password: 'b' }
  assert.deepEqual(await (await connection({ user: { ...basic, exec } })).credentials(), { basic })
})

test('R0.36 inline data that is no certificate, no key, or not a pair is named by its field', async () => {
  const pair = (cert: string, key: string) =>
    connection({ user: { 'client-certificate-data': base64(cert), 'client-key-data': base64(key) } })
  const asked = async (made: Promise<Connection>): Promise<unknown> => (await made).credentials()
  const both = /^user "u" of file \(context "dev"\): client-certificate-data and client-key-data: /
  await assert.rejects(asked(pair('SECRET', leaf.key)), refusal(both, /no certificate in PEM form/))
  await assert.rejects(asked(pair(leaf.cert, 'SECRET')), refusal(both, /no private key in PEM form/))
  await assert.rejects(
    asked(pair(leaf.cert, leafOf('other').key)),
    refusal(both, /the key does not belong to the certificate/),
  )
  await assert.rejects(
    asked(connection({ cluster: { 'certificate-authority-data': base64('SECRET') } })),
    refusal(/-data: there is no cert/),
  )
  await assert.rejects(
    asked(connection({ user: { token: 'SECRET\r\nX-Evil: 1' } })),
    refusal(/token: .*cannot be sent in a header/),
  )
})

test('R0.5 nothing secret is sent to a server without TLS', async () => {
  const plain = await connection({ cluster: { server: 'http://h' }, user: { token: 't', as: 'root' } })
  assert.deepEqual(await plain.credentials(), {})
  assert.equal(plain.impersonate?.user, 'root')
})

test('R0.5 impersonation, TLS name and proxy come from the kubeconfig, the environment fills in', async () => {
  const user = { as: 'a', 'as-uid': 'u', 'as-groups': ['g', 'h'], 'as-user-extra': { 'example.com/k': ['1', '2'] } }
  const env = { HTTPS_PROXY: 'http://env' }
  const made = await connection(
    { user, cluster: { 'tls-server-name': 'n', 'insecure-skip-tls-verify': true } },
    { env },
  )
  assert.deepEqual(made.impersonate, {
    user: 'a',
    uid: 'u',
    groups: ['g', 'h'],
    extra: { 'example.com/k': ['1', '2'] },
  })
  assert.deepEqual([made.tlsServerName, made.insecureSkipTlsVerify, made.proxyUrl], ['n', true, 'http://env'])
  const other = await connection(
    { user, cluster: { 'proxy-url': 'socks5://own' } },
    { env, impersonate: { user: 'b' } },
  )
  assert.deepEqual([other.impersonate, other.proxyUrl], [{ user: 'b' }, 'socks5://own'])
})

test('R0.36 a document that is not from the disk can neither name files nor run commands here', async () => {
  const held = (user: KubeconfigUser, cluster: KubeconfigCluster = {}) =>
    connection({ user, cluster, folder: undefined })
  await assert.rejects(
    held({ tokenFile: '/etc/shadow' }),
    refusal(/tokenFile names a file, .*; put the content itself into it/),
  )
  await assert.rejects(
    held({ 'client-certificate': 'a', 'client-key': 'b' }),
    refusal(/client-certificate names a file/),
  )
  await assert.rejects(held({}, { 'certificate-authority': 'ca' }), refusal(/certificate-authority names a file/))
  await assert.rejects(held({ exec }), refusal(/it runs a command \(exec\).*; use a token or a client certificate/))
  assert.equal((await (await held({ token: 't' })).credentials()).token, 't')
})

test('R0.5 two kubeconfigs with users of the same name keep their credentials apart', async () => {
  const [a, b] = await Promise.all([connection({ user: { token: 'a' } }), connection({ user: { token: 'b' } })])
  assert.deepEqual([(await a.credentials()).token, (await b.credentials()).token], ['a', 'b'])
})

test('R0.6 a plug-in is found beside its kubeconfig or in PATH, and its token joins a CA that is kept up to date', async (t) => {
  const folder = await mkdtemp(path.join(tmpdir(), 'lanyard-connection-'))
  t.after(() => rm(folder, { recursive: true }))
  await mkdir(path.join(folder, 'bin'))
  const put = (name: string, text: string) => writeFile(path.join(folder, name), text, { mode: 0o755 })
  await put('bin/plug-in', '#!/bin/sh\nexec cat "$FILE"')
  const prints = (token: string) =>
    put('answer', JSON.stringify({ kind: 'ExecCredential', apiVersion: exec.apiVersion, status: { token } }))
  await prints('one')
  await put('ca.crt', authority.cert)
  let now = 0

  for (const command of ['./bin/plug-in', 'bin/plug-in', 'plug-in', path.join(folder, 'bin', 'plug-in')]) {
    const user = { exec: { ...exec, command } }
    const env = { PATH: `${path.join(folder, 'bin')}:/usr/bin:/bin`, FILE: path.join(folder, 'answer') }
    const made = await connection(
      { user, cluster: { 'certificate-authority': 'ca.crt' }, folder },
      { env, now: () => now },
    )
    const first = await made.credentials()
    assert.deepEqual(first, { ca: authority.cert, token: 'one' })
    assert.equal(await made.credentials(), first)

    await prints('two')
    const second = await made.credentials({ rejected: first })
    assert.deepEqual(second, { ca: authority.cert, token: 'two' })

    const other = createAuthority({ commonName: 'other', validForMs: day, now: new Date() })
    await put('ca.crt', other.cert)
    now += 10_000
    assert.deepEqual(await made.credentials(), { ca: other.cert, token: 'two' })
    await put('ca.crt', authority.cert)
    await prints('one')
  }
})
