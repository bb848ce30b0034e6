import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createPrivateKey, createPublicKey, generateKeyPairSync, X509Certificate } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { promisify } from 'node:util'
import * as fc from 'fast-check'
import { createAuthority, createRequest, issue } from './index.ts'

const run = promisify(execFile)
const hour = 3_600_000
const now = new Date('2026-03-01T12:00:00.500Z')
const year = { notBefore: now, notAfter: new Date(now.getTime() + 365 * 24 * hour) }
const authority = createAuthority({ commonName: 'lanyard test CA', validForMs: 30 * 365 * 24 * hour, now })

/** Writes files into a folder of the test's own and runs openssl there. */
const openssl = async (t: TestContext, files: Record<string, string>) => {
  const folder = await mkdtemp(join(tmpdir(), 'lanyard-pki-'))
  t.after(() => rm(folder, { recursive: true }))
  await Promise.all(Object.entries(files).map(([name, text]) => writeFile(join(folder, name), text)))
  return async (...args: string[]) => {
    const { stdout, stderr } = await run('openssl', args, { cwd: folder })
    return stdout + stderr
  }
}
const at = String(Math.floor(now.getTime() / 1000) + 60)

test('openssl verifies the chain strictly, for a server and for a client', async (t) => {
  const leaf = issue(authority, {
    commonName: 'kubernetes',
    dnsNames: ['localhost', '*.example.com'],
    ipAddresses: ['127.0.0.1', '2001:db8::1'],
    usages: ['server', 'client'],
    ...year,
  })
  const ssl = await openssl(t, { 'ca.pem': authority.cert, 'leaf.pem': leaf.cert })
  for (const purpose of ['sslserver', 'sslclient']) {
    const args = ['verify', '-x509_strict', '-attime', at, '-purpose', purpose, '-CAfile', 'ca.pem', 'leaf.pem']
    assert.equal(await ssl(...args), 'leaf.pem: OK\n')
  }
  const shown = await ssl('x509', '-in', 'leaf.pem', '-noout', '-text')
  assert.match(shown, /DNS:localhost, DNS:\*\.example\.com, IP Address:127\.0\.0\.1, IP Address:2001:DB8:0:0:0:0:0:1/)
  assert.match(shown, /Basic Constraints: critical\n\s+CA:FALSE/)
  assert.match(shown, /Key Usage: critical\n\s+Digital Signature\n/)
  assert.match(shown, /TLS Web Server Authentication, TLS Web Client Authentication/)
})

test('a client certificate is refused as a server, and one of another authority everywhere', async (t) => {
  const leaf = issue(authority, { commonName: 'c1', usages: ['client'], ...year })
  const other = createAuthority({ commonName: 'lanyard test CA', validForMs: hour, now })
  const ssl = await openssl(t, { 'ca.pem': authority.cert, 'other.pem': other.cert, 'leaf.pem': leaf.cert })
  const verify = ['verify', '-attime', at]
  await assert.rejects(
    ssl(...verify, '-purpose', 'sslserver', '-CAfile', 'ca.pem', 'leaf.pem'),
    /unsuitable certificate/,
  )
  await assert.rejects(ssl(...verify, '-CAfile', 'other.pem', 'leaf.pem'))
})

test('node reads what was issued: subject, names, times, keys, serial', () => {
  const leaf = issue(authority, {
    commonName: 'system:open-cluster-management:c1:agent',
    organizations: ['system:open-cluster-management:c1', 'zweite Gruppe ü'],
    dnsNames: ['hub.example.com'],
    ipAddresses: ['10.0.0.1'],
    usages: ['client'],
    ...year,
  })
  const cert = new X509Certificate(leaf.cert)
  const ca = new X509Certificate(authority.cert)
  assert.equal(
    cert.subject,
    'O=system:open-cluster-management:c1\nO=zweite Gruppe ü\nCN=system:open-cluster-management:c1:agent',
  )
  assert.equal(cert.issuer, 'CN=lanyard test CA')
  assert.equal(cert.subjectAltName, 'DNS:hub.example.com, IP Address:10.0.0.1')
  assert.equal(cert.validFromDate.toISOString(), '2026-03-01T12:00:00.000Z')
  assert.equal(cert.validToDate.toISOString(), '2027-03-01T12:00:00.000Z')
  assert.equal(ca.validToDate.getUTCFullYear(), 2056)
  assert.ok(ca.ca && !cert.ca)
  assert.ok(cert.checkIssued(ca) && cert.verify(ca.publicKey) && ca.verify(ca.publicKey))
  assert.ok(cert.checkPrivateKey(createPrivateKey(leaf.key)))
  assert.match(cert.serialNumber, /^[0-7][0-9A-F]{31}$/)
  assert.notEqual(cert.serialNumber, ca.serialNumber)
})

test('a certificate can be for a public key that somebody else holds, RSA included', async (t) => {
  const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const spki = publicKey.export({ type: 'spki', format: 'pem' })
  const leaf = issue(authority, { commonName: 'c1', usages: ['server'], ...year, publicKey: spki })
  assert.deepEqual(Object.keys(leaf), ['cert'])
  assert.ok(new X509Certificate(leaf.cert).publicKey.equals(publicKey))
  const ssl = await openssl(t, { 'leaf.pem': leaf.cert })
  assert.match(
    await ssl('x509', '-in', 'leaf.pem', '-noout', '-ext', 'keyUsage'),
    /Digital Signature, Key Encipherment/,
  )
})

test('an authority that openssl made can issue too, and its key identifier is repeated', async (t) => {
  const ssl = await openssl(t, {})
  const subject = ['-subj', '/C=DE/O=Somebody/CN=Root']
  await ssl('req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', 'ca.key', '-out', 'ca.pem', ...subject)
  const foreign = { cert: await ssl('x509', '-in', 'ca.pem'), key: await ssl('pkey', '-in', 'ca.key') }
  const leaf = issue(foreign, { commonName: 'c1', usages: ['client'], ...year })
  const again = await openssl(t, { 'ca.pem': foreign.cert, 'leaf.pem': leaf.cert })
  const ca = await again('x509', '-in', 'ca.pem', '-noout', '-text')
  const shown = await again('x509', '-in', 'leaf.pem', '-noout', '-text')
  const id = /Subject Key Identifier: *\n *([0-9A-F:]+)/.exec(ca)?.[1]
  assert.ok(id)
  assert.equal(/Authority Key Identifier: *\n *(?:keyid:)?([0-9A-F:]+)/.exec(shown)?.[1], id)
  assert.ok(new X509Certificate(leaf.cert).verify(new X509Certificate(foreign.cert).publicKey))
})

test('openssl verifies a request: subject in order, each organization for itself, names asked for', async (t) => {
  const { csr } = createRequest({
    commonName: 'system:open-cluster-management:c1:a1',
    organizations: ['system:open-cluster-management:c1', 'system:open-cluster-management:managed-clusters'],
    organizationalUnits: ['addons'],
    dnsNames: ['c1.example.com'],
  })
  const ssl = await openssl(t, { 'csr.pem': csr })
  const shown = await ssl('req', '-verify', '-in', 'csr.pem', '-noout', '-text', '-nameopt', 'RFC2253')
  assert.match(shown, /verify OK/)
  const subject = [
    'CN=system:open-cluster-management:c1:a1',
    'OU=addons',
    'O=system:open-cluster-management:managed-clusters',
    'O=system:open-cluster-management:c1',
  ]
  assert.ok(shown.includes(`Subject: ${subject.join(',')}\n`), shown)
  assert.match(shown, /DNS:c1\.example\.com/)
})

test('a request can be made again with the same key, and needs no extensions', async (t) => {
  const first = createRequest({ commonName: 'c1' })
  const second = createRequest({ commonName: 'c1', key: first.key })
  assert.equal(second.key, first.key)
  const ssl = await openssl(t, { 'csr.pem': second.csr })
  assert.match(await ssl('req', '-verify', '-in', 'csr.pem', '-noout'), /verify OK/)
  const spki = createPublicKey(first.key).export({ type: 'spki', format: 'pem' })
  assert.equal(await ssl('req', '-in', 'csr.pem', '-noout', '-pubkey'), spki)
})

test('any subject survives the way through node’s reader', () => {
  const word = fc
    .string({ minLength: 1, maxLength: 80, unit: 'grapheme-ascii' })
    .filter((s) => !/[\\,+"<>;=#\n\s]/.test(s))
  fc.assert(
    fc.property(word, fc.array(word, { maxLength: 4 }), (commonName, organizations) => {
      const { cert } = issue(authority, { commonName, organizations, usages: ['client'], ...year })
      const lines = [...organizations.map((name) => `O=${name}`), `CN=${commonName}`]
      assert.equal(new X509Certificate(cert).subject, lines.join('\n'))
    }),
    { numRuns: 50 },
  )
})

test('names that cannot be written are refused by name', () => {
  const wrong = { commonName: 'x', usages: ['server' as const], ...year }
  assert.throws(() => issue(authority, { ...wrong, dnsNames: ['bücher.example'] }), /bücher\.example.*punycode/)
  assert.throws(() => issue(authority, { ...wrong, ipAddresses: ['localhost'] }), /"localhost" is not an IP address/)
})
