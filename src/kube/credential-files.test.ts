import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { createAuthority, issue } from '../runtime/pki/index.ts'
import type { CredentialSource } from './connection.ts'
import { credentialFromParts } from './credential-files.ts'
import type { CredentialParts } from './credential-files.ts'
import { KubeconfigError } from './kubeconfig-error.ts'

const day = 86_400_000
const authorityOf = (commonName: string) => createAuthority({ commonName, validForMs: day, now: new Date() })
const authority = authorityOf('ca')
const leaf = () =>
  issue(authority, { commonName: 'c', usages: ['client'], notBefore: new Date(), notAfter: new Date(Date.now() + day) })

interface Watched {
  file: (name: string) => string
  write: (name: string, text: string) => Promise<void>
  source: (parts: CredentialParts) => CredentialSource
  /** Lets the clock move past the next look at the files. */
  wait: (ms?: number) => void
  warnings: string[]
}

const watched = async (t: TestContext): Promise<Watched> => {
  const folder = await mkdtemp(path.join(tmpdir(), 'lanyard-files-'))
  t.after(() => rm(folder, { recursive: true }))
  const file = (name: string): string => path.join(folder, name)
  const warnings: string[] = []
  let clock = 0
  return {
    file,
    write: (name, text) => writeFile(file(name), text),
    source: (parts) =>
      credentialFromParts(parts, {
        source: 'test',
        now: () => clock,
        onWarning: ({ message }) => warnings.push(message),
      }),
    wait: (ms = 10_000) => (clock += ms),
    warnings,
  }
}

test('R0.7 the same object is given while the files say the same', async (t) => {
  const { file, write, source, wait } = await watched(t)
  await write('token', 'one\n')
  const credentials = source({ token: { file: file('token') }, ca: { text: authority.cert, field: 'ca-data' } })

  const first = await credentials()
  assert.deepEqual(first, { token: 'one', ca: authority.cert })
  wait()
  assert.equal(await credentials(), first)
  await write('token', 'one')
  wait()
  assert.equal(await credentials(), first)
})

test('R0.7 files are looked at every ten seconds, and a changed one is read', async (t) => {
  const { file, write, source, wait } = await watched(t)
  await write('token', 'one')
  const credentials = source({ token: { file: file('token') } })
  const first = await credentials()

  await write('token', 'two')
  wait(9999)
  assert.equal(await credentials(), first)
  wait(1)
  assert.equal((await credentials()).token, 'two')
})

test('R0.7 a token mounted into a pod is followed through the swap of its symlink', async (t) => {
  const { file, write, source, wait } = await watched(t)
  for (const [version, token] of Object.entries({ '..1': 'one', '..2': 'two' })) {
    await mkdir(file(version))
    await write(`${version}/token`, token)
  }
  await symlink('..1', file('..data'))
  await symlink('..data/token', file('token'))
  const credentials = source({ token: { file: file('token') } })
  assert.equal((await credentials()).token, 'one')

  await symlink('..2', file('..next'))
  await rename(file('..next'), file('..data'))
  wait()

  assert.equal((await credentials()).token, 'two')
})

test('R0.7 a rejected credential makes the files be read at once; an older one does not', async (t) => {
  const { file, write, source } = await watched(t)
  await write('token', 'one')
  const credentials = source({ token: { file: file('token') } })
  const first = await credentials()
  assert.equal(await credentials({ rejected: first }), first)

  await write('token', 'two')
  const [second, again] = await Promise.all([credentials({ rejected: first }), credentials({ rejected: first })])
  assert.equal(second.token, 'two')
  assert.equal(again, second)

  await write('token', 'three')
  assert.equal(await credentials({ rejected: first }), second)
})

test('R0.7 a half-written pair is not used: the previous one stays until both files fit', async (t) => {
  const { file, write, source, wait, warnings } = await watched(t)
  const [one, two] = [leaf(), leaf()]
  await write('tls.crt', one.cert)
  await write('tls.key', one.key)
  const credentials = source({ pair: { cert: { file: file('tls.crt') }, key: { file: file('tls.key') } } })
  const first = await credentials()
  assert.deepEqual(first, one)

  await write('tls.crt', two.cert)
  wait()
  assert.equal(await credentials(), first)
  assert.match(
    warnings[0] ?? '',
    /^test: .*tls\.crt and .*tls\.key: the key does not belong to the certificate; write a good one/,
  )
  await write('tls.key', two.key.slice(0, 40))
  wait()
  assert.equal(await credentials({ rejected: first }), first)
  await write('tls.key', two.key)
  wait()
  assert.deepEqual(await credentials(), two)
})

test('R0.7 a CA that is replaced is used; one that is overwritten with rubbish is not', async (t) => {
  const { file, write, source, wait, warnings } = await watched(t)
  const next = authorityOf('next')
  await write('ca.crt', authority.cert)
  const credentials = source({ ca: { file: file('ca.crt') } })
  await credentials()

  await write('ca.crt', `${authority.cert}${next.cert}`)
  wait()
  assert.equal((await credentials()).ca, `${authority.cert}${next.cert}`)
  await write('ca.crt', '<html>')
  wait()
  assert.equal((await credentials()).ca, `${authority.cert}${next.cert}`)
  assert.match(warnings[0] ?? '', /there is no certificate in PEM form/)
})

test('R0.7 what was read once stays in use when its file is emptied or removed, and until it is back', async (t) => {
  const { file, write, source, wait, warnings } = await watched(t)
  await write('token', 'one')
  const credentials = source({ token: { file: file('token') } })
  const first = await credentials()

  await write('token', '')
  wait()
  assert.equal(await credentials(), first)
  await rm(file('token'))
  wait()
  assert.equal(await credentials({ rejected: first }), first)
  assert.match(warnings.at(-1) ?? '', /token: it cannot be read \(ENOENT\)/)
  await write('token', 'two')
  wait()
  assert.equal((await credentials()).token, 'two')
})

test('R0.7 a file that never was good gives an error with its name and no content, and is tried again', async (t) => {
  const { file, write, source } = await watched(t)
  const credentials = source({ token: { file: file('token') } })
  const refusal =
    (says: RegExp) =>
    (error: Error): boolean => {
      assert.ok(error instanceof KubeconfigError)
      assert.match(error.message, says)
      assert.doesNotMatch(error.message, /SECRET/)
      return true
    }
  await assert.rejects(credentials(), refusal(/token: it cannot be read \(ENOENT\); write a good one/))
  await write('token', ' \n')
  await assert.rejects(credentials(), refusal(/token: there is no token in it/))
  await write('token', 'SECRET\nSECRET')
  await assert.rejects(credentials(), refusal(/characters that cannot be sent/))
  await write('token', 'good')
  assert.equal((await credentials()).token, 'good')
})

test('R0.5 the token file wins over the token, which serves until the file is there', async (t) => {
  const { file, write, source, wait } = await watched(t)
  const credentials = source({ token: { file: file('token') }, spareToken: 'spare' })
  assert.equal((await credentials()).token, 'spare')
  await write('token', 'kept fresh')
  await write('token', 'fresh')
  wait()
  assert.equal((await credentials()).token, 'fresh')
})

test('R0.7 a key with a passphrase is refused by name', async (t) => {
  const { source } = await watched(t)
  const { cert } = leaf()
  const key = '-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n'
  const credentials = source({ pair: { cert: { text: cert, field: 'a' }, key: { text: key, field: 'b' } } })
  await assert.rejects(credentials(), /a and b: the key is protected by a passphrase/)
})

test('R0.7 many callers share one look at the files', async (t) => {
  const { file, write, source } = await watched(t)
  await write('token', 'one')
  const credentials = source({ token: { file: file('token') } })
  const all = await Promise.all(Array.from({ length: 50 }, () => credentials()))
  assert.equal(new Set(all).size, 1)
})
