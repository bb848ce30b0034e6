import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import * as fc from 'fast-check'
import { KubeconfigError } from './kubeconfig-error.ts'
import { loadKubeconfig, mergeKubeconfigs, parseKubeconfig } from './kubeconfig.ts'

const folderWith = async (t: TestContext, files: Record<string, string> = {}): Promise<string> => {
  const folder = await mkdtemp(path.join(tmpdir(), 'lanyard-kubeconfig-'))
  t.after(() => rm(folder, { recursive: true }))
  for (const [name, text] of Object.entries(files)) {
    await mkdir(path.dirname(path.join(folder, name)), { recursive: true })
    await writeFile(path.join(folder, name), text)
  }
  return folder
}
const cluster = (name: string, server: string): string =>
  `clusters: [{name: ${name}, cluster: {server: "${server}"}}]\n`

test('R0.5 the path given must exist and is the only file read', async (t) => {
  const folder = await folderWith(t, { given: cluster('a', 'https://given'), other: cluster('b', 'https://other') })
  const env = { KUBECONFIG: path.join(folder, 'other') }

  const found = await loadKubeconfig({ path: path.join(folder, 'given'), env })

  assert.deepEqual([...found.clusters.keys()], ['a'])
  await assert.rejects(
    loadKubeconfig({ path: path.join(folder, 'none'), env }),
    (error: KubeconfigError) =>
      error instanceof KubeconfigError && /none: the file does not exist; check/.test(error.message),
  )
})

test('R0.5 missing, empty and repeated files of $KUBECONFIG are passed over', async (t) => {
  const folder = await folderWith(t, {
    a: cluster('c', 'https://a'),
    empty: '',
    comment: '# nothing\n',
    b: 'current-context: x',
  })
  const files = ['', 'none', 'empty', 'comment', 'a', 'b', 'a'].map((name) => name && path.join(folder, name))

  const found = await loadKubeconfig({ env: { KUBECONFIG: files.join(path.delimiter) } })

  assert.deepEqual(found.missing, [path.join(folder, 'none')])
  assert.equal(found.sources.length, 4)
  assert.equal(found.clusters.get('c')?.value.server, 'https://a')
  assert.equal(found.currentContext, 'x')
})

test('R0.5 without $KUBECONFIG the file in the home folder is read, and shown with ~', async (t) => {
  const home = await folderWith(t, { '.kube/config': cluster('c', 'https://home') })

  const found = await loadKubeconfig({ env: { KUBECONFIG: '' }, home })
  const without = await loadKubeconfig({ env: { HOME: path.join(home, 'nobody') } })

  assert.equal(found.clusters.get('c')?.source, path.join('~', '.kube', 'config'))
  assert.equal(found.clusters.get('c')?.folder, path.join(home, '.kube'))
  assert.deepEqual(without.missing, [path.join('~', '.kube', 'config')])
  assert.deepEqual((await loadKubeconfig({ env: {} })).sources, [])
})

test('R0.36 a kubeconfig that cannot be read is named with the reason', async (t) => {
  const folder = await folderWith(t)
  await assert.rejects(loadKubeconfig({ path: folder, env: {} }), /cannot be read \(EISDIR\); it must be a file/)
  await assert.rejects(loadKubeconfig({ env: { KUBECONFIG: folder } }), /cannot be read \(EISDIR\)/)
})

test('R0.5 the first file to name an entry gives all of it, whatever the others say', async () => {
  const name = fc.constantFrom('a', 'b', 'c', '__proto__', 'constructor')
  const named = <T>(key: string, value: fc.Arbitrary<T>): fc.Arbitrary<Record<string, unknown>[]> =>
    fc.uniqueArray(fc.record({ name, [key]: value }), { selector: (entry) => entry.name, maxLength: 4 })
  const document = fc.record(
    {
      'current-context': fc.constantFrom('', 'a', 'b'),
      clusters: named('cluster', fc.record({ server: fc.webUrl(), 'tls-server-name': fc.constantFrom('x', 'y') })),
      users: named('user', fc.record({ token: fc.stringMatching(/^[a-z]{1,5}$/), as: fc.constantFrom('x', 'y') })),
      contexts: named('context', fc.record({ cluster: name, user: name })),
    },
    { requiredKeys: [] },
  )

  await fc.assert(
    fc.asyncProperty(fc.array(document, { maxLength: 4 }), async (documents) => {
      const all = await Promise.all(
        documents.map((one, index) => parseKubeconfig(JSON.stringify(one), { source: `${index}` })),
      )
      const merged = mergeKubeconfigs(all)

      assert.equal(merged.currentContext, all.map((one) => one.currentContext).find(Boolean))
      for (const kind of ['clusters', 'users', 'contexts'] as const) {
        const names = new Set(all.flatMap((one) => [...one[kind].keys()]))
        assert.deepEqual(new Set(merged[kind].keys()), names)
        for (const one of names)
          assert.equal(merged[kind].get(one), all.find((from) => from[kind].has(one))?.[kind].get(one))
      }
      const [first, ...rest] = all
      if (first) assert.deepEqual(mergeKubeconfigs([first, mergeKubeconfigs(rest)]), merged)
    }),
  )
})

test('R0.5 JSON, anchors, null lists and unknown fields are read as kubectl reads them', async () => {
  const written = await parseKubeconfig(
    `{"apiVersion":"v1","kind":"Config","clusters":null,"users":[{"name":"u","user":null}],"preferences":{},"x":[1]}`,
    { source: 's' },
  )
  assert.deepEqual(written.users.get('u')?.value, {})
  const anchored = await parseKubeconfig(
    'x: &u {token: t}\nusers: [{name: a, user: *u}, {name: b, user: {<<: *u, as: root}}]\n---\n',
    { source: 's' },
  )
  assert.deepEqual(anchored.users.get('b')?.value, { token: 't', as: 'root' })
})

// Each with what its error must name. None may show SECRET.
const bad: [title: string, text: string, says: RegExp][] = [
  ['a list', '- a', /the document must be a mapping, but is a list/],
  ['text', 'SECRET', /the document must be a mapping, but is text/],
  ['a number', '12', /must be a mapping, but is a number/],
  ['another kind', 'kind: Pod\napiVersion: v1', /it is a "Pod" of "v1", not a kubeconfig/],
  ['another version', 'apiVersion: v2', /it is a "Config" of "v2"/],
  ['clusters as text', 'clusters: SECRET', /clusters must be a list, but is text/],
  ['users as a mapping', 'users: {a: {token: SECRET}}', /users must be a list, but is a mapping/],
  ['an entry that is null', 'users: [null]', /users\[0\] is empty/],
  ['an entry that is text', 'users: [SECRET]', /users\[0\] must be a mapping/],
  ['an entry without a name', 'users: [{name: a}, {user: {token: SECRET}}]', /users\[1\]\.name is missing/],
  ['an empty name', 'contexts: [{name: ""}]', /contexts\[0\]\.name is missing/],
  ['a number as name', 'users: [{name: 1}]', /users\[0\]\.name must be text, but is a number: put it in quotes/],
  ['two entries of one name', 'users: [{name: a}, {name: a}]', /users has two entries named "a"/],
  [
    'a cluster that is a list',
    'clusters: [{name: a, cluster: []}]',
    /clusters\[0\]\.cluster must be a mapping, but is a list/,
  ],
  [
    'a server that is a list',
    'clusters: [{name: a, cluster: {server: [SECRET]}}]',
    /cluster\.server must be text, but is a list/,
  ],
  [
    'a flag that is text',
    'clusters: [{name: a, cluster: {insecure-skip-tls-verify: "true"}}]',
    /must be true or false, but is text/,
  ],
  [
    'a token that is a number',
    'users: [{name: a, user: {token: 123}}]',
    /users\[0\]\.user\.token must be text, but is a number/,
  ],
  ['groups as text', 'users: [{name: a, user: {as-groups: SECRET}}]', /as-groups must be a list/],
  ['extra as a list', 'users: [{name: a, user: {as-user-extra: [SECRET]}}]', /as-user-extra must be a mapping/],
  [
    'extra that is not of lists',
    'users: [{name: a, user: {as-user-extra: {k: SECRET}}}]',
    /as-user-extra\.k must be a list/,
  ],
  ['exec as text', 'users: [{name: a, user: {exec: SECRET}}]', /user\.exec must be a mapping/],
  ['exec arguments that are numbers', 'users: [{name: a, user: {exec: {args: [1]}}}]', /exec\.args\[0\] must be text/],
  ['exec environment as a mapping', 'users: [{name: a, user: {exec: {env: {A: SECRET}}}}]', /exec\.env must be a list/],
  ['the same key twice', 'users: []\nusers: [{name: SECRET}]', /line 2, column 1: a key stands there twice/],
  ['a key that is a list', '? [SECRET]\n: b', /a key must be text/],
  ['an open bracket', 'users: [{name: SECRET', /not one YAML document: line 1/],
  ['an open quote', 'users: "SECRET', /not one YAML document: line 1/],
  ['tabs', 'users:\n\t- name: SECRET', /line 2, column 1: tabs cannot be used to indent/],
  ['a password that looks like an alias', 'users: [{name: a, user: {password: *SECRET }}]', /an alias is unknown/],
  ['two documents', 'users: []\n---\nusers: []', /it holds 2 documents/],
  ['deep nesting', '['.repeat(100_000), /not one YAML document/],
  [
    'an extension inside itself',
    'clusters: [{name: a, cluster: {extensions: [{extension: &x {a: *x}}]}}]',
    /refers to itself/,
  ],
  ['binary rubbish', '\u0000\u0001SECRET', /must be a mapping, but is text/],
  [
    'aliases that multiply',
    `a: &a [1,1,1,1,1,1,1,1,1]\n${'bcdefghi'.replaceAll(/./g, (x, i: number) => `${x}: &${x} [${`*${'abcdefgh'[i]},`.repeat(9)}]\n`)}`,
    /aliases multiply without bound/,
  ],
]
for (const [title, text, says] of bad) {
  test(`R0.36 bad input: ${title}`, async () => {
    await assert.rejects(parseKubeconfig(text, { source: 'secret ns/name' }), (error: Error) => {
      assert.ok(error instanceof KubeconfigError, `${error.stack}`)
      assert.match(error.message, says)
      assert.match(error.message, /^secret ns\/name: .+; .+/)
      assert.doesNotMatch(`${error.stack} ${String(error.cause)}`, /SECRET/)
      return true
    })
  })
}

test('R0.36 no text at all makes the parser crash or show what it read', async () => {
  const line = fc.constantFrom(
    'users:',
    '- name: a',
    '  user: {token: SECRET}',
    'clusters: *x',
    '{',
    '&x',
    '!!y',
    '? ',
    '---',
    '\t',
    ': ',
  )
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(
        fc.string(),
        fc.array(line).map((lines) => lines.join('\n')),
      ),
      async (text) => {
        await parseKubeconfig(text, { source: 's' }).catch((error: Error) => {
          assert.ok(error instanceof KubeconfigError, `${error.stack}`)
          assert.doesNotMatch(error.message, /SECRET/)
        })
      },
    ),
  )
})
